r"""A distinguished name as Java writes it, which is whom Kafka's ACLs name: `X500Principal.getName()`. Pure.

    CN=billing,OU=Accounts+L=Wien,O=Example\, Inc.,1.2.840.113549.1.9.1=#160b61406578616d706c65...

RFC 2253 with what Java makes of it (sun.security.x509.AVA, RDN, X500Name), and an ACL compares letter by letter:

- The parts of the name come in the reverse order of the certificate; those of one part stay in their order, with `+`.
- The nine attributes that RFC 2253 names have names. Each other one is its object identifier, and its value `#` and the
  hex digits of its DER: an email address, too. So is a value of a type that is none of Java's six kinds of text.
- A backslash stands before each of `,=+<>#;"\`, and before blanks and carriage returns at both ends; a zero is `\00`.
- Text of any kind is read as UTF-8, even where the certificate says that it is UTF-16 or Latin.
"""

import re
from typing import Final

from odradek.broker.tls.der import SEQUENCE, SET, DerError, Element, children, encoded, oid_text

_KEYWORDS: Final = {
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
}
_UTF8, _PRINTABLE, _T61, _IA5, _GENERAL, _BMP = 0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E
_TEXTS: Final = frozenset((_UTF8, _PRINTABLE, _T61, _IA5, _GENERAL, _BMP))
_ESCAPES: Final = {ord(character): f"\\{character}" for character in ',=+<>#;"\\'} | {0: "\\00"}
_BLANKS: Final = " \r"
_SURROGATE: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
"""Half a pair of UTF-16, or its beginning, which Java's decoder replaces as a whole and Python's byte by byte."""
_REPLACEMENT: Final = "�".encode()


def java_name(name: Element) -> str:
    """The name of a certificate's subject, or issuer. Raises DerError."""
    return ",".join(_part(part) for part in reversed(children(name, SEQUENCE)))


def _part(part: Element) -> str:
    return "+".join(_attribute(attribute) for attribute in children(part, SET))


def _attribute(attribute: Element) -> str:
    halves = children(attribute, SEQUENCE)
    if len(halves) != 2:
        raise DerError("an attribute that is not a type and a value")
    kind, value = oid_text(halves[0]), halves[1]
    keyword = _KEYWORDS.get(kind)
    if keyword is None or value.tag not in _TEXTS:
        return f"{keyword or kind}=#{encoded(value.tag, value.content).hex()}"
    return f"{keyword}={_escaped(_java_text(value.content))}"


def _java_text(data: bytes) -> str:
    return _SURROGATE.sub(_REPLACEMENT, data).decode("utf-8", "replace")


def _escaped(value: str) -> str:
    text = value.translate(_ESCAPES)
    inner = text.strip(_BLANKS)
    if not inner:
        return _all_escaped(text)
    before, _, after = text.partition(inner)
    return _all_escaped(before) + inner + _all_escaped(after)


def _all_escaped(text: str) -> str:
    return "".join(f"\\{character}" for character in text)
