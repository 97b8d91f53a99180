"""What a broker wants to know of a certificate (RFC 5280), from its DER. Pure.

    Certificate     SEQUENCE { tbs SEQUENCE { [0] version, serial, algorithm, issuer, validity, subject, key, ...,
                               [3] SEQUENCE { extension SEQUENCE { OID, BOOLEAN, OCTET STRING }, ... } }, ... }

Whether it is to be trusted is OpenSSL's question, not one of this module.
"""

from datetime import UTC, datetime
from typing import Final, NamedTuple

from odradek.broker.tls.der import SEQUENCE, DerError, Element, children, elements, first, oid_text
from odradek.broker.tls.distinguished_name import java_name

_VERSION: Final = 0xA0
_EXTENSIONS: Final = 0xA3
_OCTET_STRING: Final = 0x04
_UTC_TIME, _GENERALIZED_TIME = 0x17, 0x18
_ALTERNATIVE_NAMES: Final = "2.5.29.17"
_MS_PER_S: Final = 1000


class Certificate(NamedTuple):
    """One certificate."""

    der: bytes
    subject: bytes
    """The name as it is encoded, by which an issuer is found; `name` is the same for people."""
    issuer: bytes
    name: str
    not_before_ms: int
    not_after_ms: int
    """Until when it may be used."""
    alternative_names: frozenset[bytes]
    """Each as it is encoded."""

    def __repr__(self) -> str:
        return f"<Certificate {self.name!r}>"


def read_certificate(der: bytes) -> Certificate:
    """Raises DerError."""
    whole = first(der, SEQUENCE)
    body = children(whole, SEQUENCE)
    fields = children(body[0], SEQUENCE) if body else []
    if fields and fields[0].tag == _VERSION:
        del fields[0]
    if len(fields) < 6:
        raise DerError("this is no certificate")
    _, _, issuer, validity, subject, _ = fields[:6]
    times = children(validity, SEQUENCE)
    if len(times) != 2:
        raise DerError("a certificate without two times")
    return Certificate(
        whole.whole,
        subject.whole,
        issuer.whole,
        java_name(subject),
        _time_ms(times[0]),
        _time_ms(times[1]),
        _alternative_names(fields[6:]),
    )


def in_order(certificates: list[Certificate]) -> list[Certificate]:
    """The first one, and behind each the one that issued it, as TLS sends them. What belongs to no other is left out,
    and so is one that has issued itself, which a client has to know already."""
    chain = certificates[:1]
    while (
        chain
        and (issuer := next((each for each in certificates if each.subject == chain[-1].issuer), None)) is not None
        and issuer not in chain
        and issuer.issuer != issuer.subject
    ):
        chain.append(issuer)
    return chain


def _alternative_names(fields: list[Element]) -> frozenset[bytes]:
    for field in fields:
        if field.tag == _EXTENSIONS:
            for extension in children(first(field.content, SEQUENCE), SEQUENCE):
                parts = children(extension, SEQUENCE)
                if len(parts) >= 2 and oid_text(parts[0]) == _ALTERNATIVE_NAMES and parts[-1].tag == _OCTET_STRING:
                    names = first(parts[-1].content, SEQUENCE)
                    return frozenset(name.whole for name in elements(names.content))
    return frozenset()


def _time_ms(element: Element) -> int:
    """Both kinds of time are in seconds and UTC (RFC 5280, 4.1.2.5)."""
    text = element.content.decode("ascii", "replace")
    if element.tag == _UTC_TIME:
        text = f"{19 if text[:2] >= '50' else 20}{text}"
    elif element.tag != _GENERALIZED_TIME:
        raise DerError("a time of an unknown kind")
    digits = text[:-1]
    if len(digits) != 14 or text[-1] != "Z" or not digits.isdecimal():
        raise DerError("a time that is none")
    year, month, day, hour, minute, second = (
        int(digits[:4]), *(int(digits[start : start + 2]) for start in range(4, 14, 2)),
    )  # fmt: skip
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError as error:
        raise DerError(f"a time that is none: {error}") from None
    return int(moment.timestamp()) * _MS_PER_S
