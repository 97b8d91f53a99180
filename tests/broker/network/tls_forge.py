"""Records of TLS 1.3 as a client would write them that holds to no rules: Python's own TLS updates no keys, and sends
nothing that is empty.

    forge = ForgedRecords(secret)           CLIENT_TRAFFIC_SECRET_0 of a connection, as `keylog_filename` tells it
    forge.data(b"x") + forge.key_update()   RFC 8446, 5.2, 7.1 and 7.2, with TLS_AES_256_GCM_SHA384
"""

import ssl
from pathlib import Path

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA384
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

HANDSHAKE, DATA = 22, 23
HASH_BYTES = 48


class ForgedRecords:
    """What follows in the place of the client, which has sent nothing behind its handshake."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._sequence = 0

    def record(self, content: bytes, kind: int) -> bytes:
        inner = content + bytes((kind,))
        header = b"\x17\3\3" + (len(inner) + 16).to_bytes(2, "big")
        key, nonce = expanded(self._secret, b"key", 32), expanded(self._secret, b"iv", 12)
        number = int.from_bytes(nonce, "big") ^ self._sequence
        self._sequence += 1
        return header + AESGCM(key).encrypt(number.to_bytes(12, "big"), inner, header)

    def data(self, content: bytes) -> bytes:
        return self.record(content, DATA)

    def key_update(self) -> bytes:
        """Which asks the other side to update its own, too."""
        made = self.record(b"\x18\0\0\1\1", HANDSHAKE)
        self._secret, self._sequence = expanded(self._secret, b"traffic upd", HASH_BYTES), 0
        return made


def expanded(secret: bytes, label: bytes, size_bytes: int) -> bytes:
    """HKDF-Expand-Label without a context."""
    whole = b"tls13 " + label
    info = size_bytes.to_bytes(2, "big") + bytes((len(whole),)) + whole + b"\0"
    return HKDFExpand(SHA384(), size_bytes, info).derive(secret)


def telling(context: ssl.SSLContext, path: Path) -> ssl.SSLContext:
    """Has the context write its secrets there."""
    context.keylog_filename = str(path)
    return context


def forged(path: Path) -> ForgedRecords:
    """In the place of the client whose context has told its secrets."""
    for line in path.read_text().splitlines():
        if line.startswith("CLIENT_TRAFFIC_SECRET_0 "):
            return ForgedRecords(bytes.fromhex(line.split()[2]))
    raise AssertionError("there is no connection")
