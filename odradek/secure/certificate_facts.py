"""What is worth knowing of a listener's certificate: whose it is, for which names, and until when. From its DER. Pure.

    Certificate  SEQUENCE { tbs SEQUENCE { [0] version, serial, algorithm, issuer, validity, subject, key, …,
                            [3] SEQUENCE { extension SEQUENCE { OID, BOOLEAN, OCTET STRING } … } } … }

Whether it is trusted, OpenSSL says. Here nothing is decided by what a certificate says of itself.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import Final, NamedTuple

__all__ = ["CertificateFacts", "certificate_facts"]

VERSION: Final = 0xA0
EXTENSIONS: Final = 0xA3
UTC_TIME: Final = 0x17
DNS_NAME: Final = 0x82
IP_ADDRESS: Final = 0x87
ALTERNATIVE_NAME: Final = b"\x55\x1d\x11"
COMMON_NAME: Final = b"\x55\x04\x03"
SIZE_SHORT_MAX: Final = 0x7F
MS_PER_DAY: Final = 86_400_000


class CertificateFacts(NamedTuple):
    """`common_name` is empty where there is none; `names` are those that the certificate is for."""

    common_name: str
    names: tuple[str, ...]
    not_after_ms: int

    def days_left(self, now_ms: int) -> int:
        """Whole days; below 0: it has ended."""
        return (self.not_after_ms - now_ms) // MS_PER_DAY


def certificate_facts(der: bytes) -> CertificateFacts | None:
    """None for what is no certificate."""
    try:
        return _facts(der)
    except (IndexError, ValueError):
        return None


def _facts(der: bytes) -> CertificateFacts:
    certificate = _first(der)[1]
    fields = list(_items(_first(certificate)[1]))
    if fields[0][0] == VERSION:
        del fields[0]
    validity, subject = fields[3][1], fields[4][1]
    ends = list(_items(validity))[1]
    extensions = [content for tag, content in fields[5:] if tag == EXTENSIONS]
    names = tuple(name for content in extensions for name in _alternative_names(content))
    return CertificateFacts(_common_name(subject), names, _time_ms(*ends))


def _items(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Tags and contents, one after the other. Raises ValueError."""
    position = 0
    while position < len(data):
        tag, size = data[position], data[position + 1]
        position += 2
        if size > SIZE_SHORT_MAX:
            count = size & SIZE_SHORT_MAX
            size = int.from_bytes(data[position : position + count])
            position += count
        if position + size > len(data):
            raise ValueError("it ends too soon")
        yield tag, data[position : position + size]
        position += size


def _first(data: bytes) -> tuple[int, bytes]:
    """Raises ValueError."""
    for item in _items(data):
        return item
    raise ValueError("it is empty")


def _common_name(subject: bytes) -> str:
    for _, relative in _items(subject):
        for _, pair in _items(relative):
            (_, kind), (_, value) = _items(pair)
            if kind == COMMON_NAME:
                return value.decode("utf-8", "replace")
    return ""


def _alternative_names(extensions: bytes) -> Iterator[str]:
    for _, extension in _items(_first(extensions)[1]):
        parts = list(_items(extension))
        if parts[0][1] != ALTERNATIVE_NAME:
            continue
        for tag, content in _items(_first(parts[-1][1])[1]):
            if tag == DNS_NAME:
                yield content.decode("ascii", "replace")
            elif tag == IP_ADDRESS:
                yield str(ip_address(content))


def _time_ms(tag: int, content: bytes) -> int:
    text = content.decode("ascii")
    if tag == UTC_TIME:  # RFC 5280: two digits below 50 are of this century
        text = f"{'20' if text[:2] < '50' else '19'}{text}"
    return int(datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp() * 1000)
