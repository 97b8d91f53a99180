"""What a listener says in a handshake of TLS, as far as it is in plain bytes: all of it up to TLS 1.2, and the first
message in TLS 1.3. Pure.

    record      u8 type (22: handshake, 21: alert, 20: what follows is encrypted), u16 version, u16 size, content
    message     u8 type, u24 size, body; messages lie in records as in one stream
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

__all__ = ["Flight", "read_flight"]

RECORD_HEADER_BYTES: Final = 5
HANDSHAKE: Final = 22
ALERT: Final = 21
SERVER_HELLO: Final = 2
CERTIFICATE: Final = 11
CERTIFICATE_REQUEST: Final = 13
RANDOM_END: Final = 2 + 32
"""Where the session id begins in a ServerHello: behind version and random."""


class Flight(NamedTuple):
    """`cipher`: the number of the cipher that was chosen; None: the listener took none of what was offered.

    `certificate`: the listener's, as DER; None where it is encrypted. `asks_for_certificate`: of the client; None where
    that is encrypted. `is_alert`: the bytes are TLS at all, and nothing but a refusal.
    """

    cipher: int | None = None
    certificate: bytes | None = None
    asks_for_certificate: bool | None = None
    is_alert: bool = False


def read_flight(received: bytes) -> Flight:
    """Whatever the bytes are: what cannot be read says nothing."""
    stream, is_alert = _stream(received)
    cipher: int | None = None
    certificate: bytes | None = None
    is_plain = asks = False
    for kind, body in _messages(stream):
        if kind == SERVER_HELLO:
            cipher = _cipher(body)
        elif kind == CERTIFICATE:
            is_plain = True
            certificate = _first_certificate(body)
        elif kind == CERTIFICATE_REQUEST:
            asks = True
    return Flight(cipher, certificate, asks if is_plain else None, is_alert and not stream)


def _stream(received: bytes) -> tuple[bytes, bool]:
    """The plain bytes of the handshake, and whether an alert is among what came."""
    stream = bytearray()
    position, is_alert = 0, False
    while position + RECORD_HEADER_BYTES <= len(received):
        kind = received[position]
        if received[position + 1] != 3 or kind not in (HANDSHAKE, ALERT):  # the version begins with 3 always
            break
        size = int.from_bytes(received[position + 3 : position + RECORD_HEADER_BYTES])
        content = received[position + RECORD_HEADER_BYTES : position + RECORD_HEADER_BYTES + size]
        if kind == HANDSHAKE:
            stream += content
        else:
            is_alert = True
        position += RECORD_HEADER_BYTES + size
    return bytes(stream), is_alert


def _messages(stream: bytes) -> Iterator[tuple[int, bytes]]:
    position = 0
    while position + 4 <= len(stream):
        size = int.from_bytes(stream[position + 1 : position + 4])
        body = stream[position + 4 : position + 4 + size]
        if len(body) < size:
            return
        yield stream[position], body
        position += 4 + size


def _cipher(body: bytes) -> int | None:
    if len(body) <= RANDOM_END:
        return None
    at = RANDOM_END + 1 + body[RANDOM_END]
    return int.from_bytes(body[at : at + 2]) if at + 2 <= len(body) else None


def _first_certificate(body: bytes) -> bytes | None:
    size = int.from_bytes(body[3:6])
    certificate = body[6 : 6 + size]
    return certificate if size and len(certificate) == size else None
