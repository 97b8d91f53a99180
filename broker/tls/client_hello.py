"""The first bytes on a listener with TLS: a hello of TLS, whole or in part, or something else. Pure.

record      type 22 (handshake), version 3.x, length (2 bytes), fragment
hello       type 1 (ClientHello), length (3 bytes), ...                         in one fragment, or in several
"""

from typing import Final

HELLO_BYTES_MAX: Final = 14 * 1024
"""The largest hello. Those of clients have a few hundred bytes, or two thousand with a key of a post-quantum kind."""
RECORDS_MAX: Final = 64
"""In how many records it may come."""
RECORD_HEADER_BYTES: Final = 5
MESSAGE_HEADER_BYTES: Final = 4
HANDSHAKE: Final = 22
CHANGE_CIPHER_SPEC: Final = 20
_CLIENT_HELLO: Final = 1
_HTTP: Final = (b"GET ", b"HEAD", b"POST", b"PUT ", b"OPTI", b"PRI ")


class NoHello(Exception):
    """What came is no hello of TLS; the text is for the log."""


def is_whole(data: bytes | bytearray) -> bool:
    """Whether the hello that `data` begins with has come in full. Raises NoHello as soon as it cannot become one."""
    if not data:
        return False
    if data[0] != HANDSHAKE or (len(data) > 1 and data[1] != 3):
        raise NoHello(_guess(bytes(data[:4])))
    fragments = bytearray()
    position = 0
    for _ in range(RECORDS_MAX):
        header = data[position : position + RECORD_HEADER_BYTES]
        if len(header) < RECORD_HEADER_BYTES:
            return False
        if header[0] != HANDSHAKE or header[1] != 3:
            raise NoHello("a hello of TLS that is interrupted")
        size = int.from_bytes(header[3:5], "big")
        if not 0 < size <= HELLO_BYTES_MAX:
            raise NoHello(f"a record of {size} bytes in a hello of TLS")
        position += RECORD_HEADER_BYTES
        fragments += data[position : position + size]
        position += size
        if len(fragments) >= MESSAGE_HEADER_BYTES and len(fragments) >= _announced(fragments):
            return True
        if position > len(data):
            return False
    raise NoHello(f"a hello of TLS in more than {RECORDS_MAX} records")


def _announced(fragments: bytearray) -> int:
    """How long the hello is, its header included. Raises NoHello."""
    if fragments[0] != _CLIENT_HELLO:
        raise NoHello("a handshake of TLS that does not begin with a hello")
    size = int.from_bytes(fragments[1:4], "big")
    if size > HELLO_BYTES_MAX:
        raise NoHello(f"a hello of TLS of {size} bytes, where {HELLO_BYTES_MAX} are allowed")
    return MESSAGE_HEADER_BYTES + size


def _guess(begin: bytes) -> str:
    """What was taken for a hello: people ask what went wrong."""
    if begin in _HTTP:
        return "this looks like HTTP, and this listener speaks Kafka's protocol over TLS"
    if begin[:1] == b"\0":
        return "this looks like a client without TLS, and this listener speaks TLS: check its security.protocol"
    if begin[:1] == b"\x80":
        return "a hello of SSL 2, which is not served"
    return "this is no hello of TLS"
