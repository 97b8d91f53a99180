"""Certificates and private keys in PEM: from files, and from the values of options (KIP-651). Pure.

As Kafka's PemParser, text between the blocks and lines with a colon at the head of one are passed over, and a block may
stand on one line, as it does in a properties file. More than Kafka, keys of OpenSSL's own notation are read; those of
them that are encrypted are not.
"""

import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from typing import Final, NamedTuple

from odradek.broker.tls.tls_error import TlsError

_BLOCK: Final = re.compile(r"-+BEGIN ([A-Z0-9 ]+?)-+\s+(.*?)-+END \1-+", re.DOTALL)
_HEADERS: Final = re.compile(r"\A(?:[^\r\n]*:[^\r\n]*[\r\n]+)+")
_CERTIFICATES: Final = ("CERTIFICATE", "X509 CERTIFICATE")
_ENCRYPTED: Final = "ENCRYPTED PRIVATE KEY"
_KEYS: Final = ("PRIVATE KEY", _ENCRYPTED, "RSA PRIVATE KEY", "EC PRIVATE KEY")
_LINE_CHARACTERS: Final = 64


class PrivateKey(NamedTuple):
    """A private key; its bytes are a secret, and in no `repr`."""

    label: str
    der: bytes

    def __repr__(self) -> str:
        return f"<PrivateKey {self.label}>"

    @property
    def is_encrypted(self) -> bool:
        return self.label == _ENCRYPTED

    def pem(self) -> bytes:
        """As a file holds it."""
        return pem(self.label, self.der)


def pem(label: str, der: bytes) -> bytes:
    """One block."""
    text = b64encode(der).decode()
    lines = [text[start : start + _LINE_CHARACTERS] for start in range(0, len(text), _LINE_CHARACTERS)]
    return "\n".join((f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", "")).encode()


def read_certificates(text: str, where: str) -> list[bytes]:
    """The DER of each certificate, one at least. `where` names the option or file. Raises TlsError."""
    found = [_decoded(body, where) for label, body in _blocks(text) if label in _CERTIFICATES]
    if not found:
        raise TlsError(f"{where} holds no certificate in PEM (-----BEGIN CERTIFICATE-----)")
    return found


def read_private_key(text: str, where: str) -> PrivateKey:
    """The only key. Raises TlsError, which never quotes the text."""
    found = [(label, body) for label, body in _blocks(text) if label in _KEYS]
    if len(found) != 1:
        count = "no private key" if not found else f"{len(found)} private keys"
        raise TlsError(f"{where} holds {count} in PEM, where one is expected (-----BEGIN PRIVATE KEY-----, PKCS#8)")
    label, body = found[0]
    if "Proc-Type" in body:
        raise TlsError(
            f"the private key in {where} is encrypted in OpenSSL's old way; convert it: openssl pkcs8 -topk8 -in OLD "
            "-out NEW"
        )
    return PrivateKey(label, _decoded(body, where))


def _blocks(text: str) -> list[tuple[str, str]]:
    return [(match[1], match[2]) for match in _BLOCK.finditer(text)]


def _decoded(body: str, where: str) -> bytes:
    try:
        return b64decode("".join(_HEADERS.sub("", body).split()), validate=True)
    except (Base64Error, ValueError):
        raise TlsError(f"a block of PEM in {where} is damaged: its base64 cannot be read") from None
