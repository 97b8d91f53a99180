"""What of a client's handshake is handed to OpenSSL, and when. Pure.

OpenSSL makes room at once for what a message announces: 128 KiB for a hello, and 100 KiB for a certificate. So 9 bytes
would hold 170 KiB until the time of the client is up, and a thousand clients a thousand times as much. Here

- a hello is held back until it is whole, and may have 14 KiB: who says nothing costs not even OpenSSL's own state;
- so is a second one, where the broker has asked for it (HelloRetryRequest, RFC 8446, 4.1.4);
- other messages that are not encrypted, which those of TLS 1.2 are, may announce 14 KiB, and so may a record, which is
  held back until it is whole, too: OpenSSL would keep room for it beside that of a message;
- all of a handshake may have 64 KiB.

What an encrypted message announces, nobody sees but OpenSSL: a client that has computed keys can have it make room for
100 KiB, if the listener asks for certificates. How many there may be at a time says `max.unauthenticated.connections`.
"""

from typing import Final

from odradek.broker.tls.client_hello import (
    CHANGE_CIPHER_SPEC,
    HANDSHAKE,
    HELLO_BYTES_MAX,
    MESSAGE_HEADER_BYTES,
    RECORD_HEADER_BYTES,
    NoHello,
    is_whole,
)

HANDSHAKE_BYTES_MAX: Final = 64 * 1024
MESSAGE_BYTES_MAX: Final = HELLO_BYTES_MAX
RECORD_BYTES_MAX: Final = MESSAGE_BYTES_MAX + 256
"""With what encryption adds."""
_RECORD_TYPES: Final = frozenset(range(20, 25))
_RETRY_RANDOM: Final = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
"""In place of random bytes in a ServerHello: it is a HelloRetryRequest (RFC 8446, 4.1.3)."""
_RANDOM_POSITION: Final = RECORD_HEADER_BYTES + MESSAGE_HEADER_BYTES + 2


class HandshakeGate:
    """The gate of one connection."""

    __slots__ = ("_awaits_hello", "_held", "_messages", "received_bytes")

    def __init__(self) -> None:
        self._held = bytearray()
        self._awaits_hello = True
        self._messages = PlainMessages()
        self.received_bytes = 0

    def feed(self, data: memoryview) -> bytes:
        """What OpenSSL may have now: whole records, or nothing yet. Raises NoHello."""
        self.received_bytes += len(data)
        if self.received_bytes > HANDSHAKE_BYTES_MAX:
            raise NoHello(f"a handshake of TLS of more than {HANDSHAKE_BYTES_MAX} bytes")
        self._held += data
        if self._awaits_hello:
            start = self._hello_position()
            if start is None or not is_whole(self._held[start:]):
                return b""
            self._awaits_hello = False
            return self.rest()
        end = self._whole_records()
        ready = bytes(self._held[:end])
        del self._held[:end]
        self._messages.feed(memoryview(ready))
        return ready

    def answered(self, flight: bytes) -> None:
        """What OpenSSL answered to that, in full."""
        if flight[_RANDOM_POSITION : _RANDOM_POSITION + len(_RETRY_RANDOM)] == _RETRY_RANDOM:
            self._awaits_hello = True

    def rest(self) -> bytes:
        """What has come and was not handed on: at the end of a handshake, the beginning of what follows."""
        rest, self._held = bytes(self._held), bytearray()
        return rest

    def _whole_records(self) -> int:
        """Where the last record ends that has come in full. Raises NoHello if there is none, and what has come is not
        the beginning of one; behind others it may be one of data, if these end the handshake."""
        held, end = self._held, 0
        while len(held) - end >= RECORD_HEADER_BYTES:
            size = int.from_bytes(held[end + 3 : end + 5], "big")
            is_record = held[end] in _RECORD_TYPES and held[end + 1] == 3
            if not is_record or size > RECORD_BYTES_MAX:
                if end:
                    break
                what = f"a record of {size} bytes" if is_record else "something else than TLS"
                raise NoHello(f"{what} in the middle of a handshake of TLS")
            if len(held) - end < RECORD_HEADER_BYTES + size:
                break
            end += RECORD_HEADER_BYTES + size
        return end

    def _hello_position(self) -> int | None:
        """Where the hello begins; None: that has not come. One record may stand before a second hello, for the sake of
        machines on the way that know TLS 1.2 alone (RFC 8446, D.4)."""
        if self.received_bytes == len(self._held) or self._held[0] != CHANGE_CIPHER_SPEC:
            return 0
        if len(self._held) < RECORD_HEADER_BYTES:
            return None
        size = int.from_bytes(self._held[3:5], "big")
        if size != 1:
            raise NoHello("a handshake of TLS that is damaged")
        end = RECORD_HEADER_BYTES + size
        return None if len(self._held) < end else end


class PlainMessages:
    """The sizes of handshake messages, as long as they are not encrypted."""

    __slots__ = ("_header", "_is_over", "_message_header", "_message_left", "_record_left")

    def __init__(self) -> None:
        self._header = b""  # of the next record, while it is not whole
        self._record_left = 0
        self._message_header = b""
        self._message_left = 0
        self._is_over = False

    def feed(self, data: memoryview) -> None:
        """Raises NoHello for a message that announces too much."""
        position = 0
        while position < len(data) and not self._is_over:
            if self._record_left == 0:
                position = self._begin_record(data, position)
            else:
                part = bytes(data[position : position + self._record_left])
                self._record_left -= len(part)
                position += len(part)
                self._look_at(part)

    def _begin_record(self, data: memoryview, position: int) -> int:
        taken = bytes(data[position : position + RECORD_HEADER_BYTES - len(self._header)])
        self._header += taken
        if len(self._header) == RECORD_HEADER_BYTES:
            header, self._header = self._header, b""
            self._is_over = header[0] != HANDSHAKE  # what comes behind another record is encrypted
            self._record_left = int.from_bytes(header[3:5], "big")
        return position + len(taken)

    def _look_at(self, part: bytes) -> None:
        while part:
            if self._message_left:
                skipped = min(self._message_left, len(part))
                self._message_left -= skipped
                part = part[skipped:]
                continue
            missing = MESSAGE_HEADER_BYTES - len(self._message_header)
            self._message_header += part[:missing]
            part = part[missing:]
            if len(self._message_header) == MESSAGE_HEADER_BYTES:
                header, self._message_header = self._message_header, b""
                self._message_left = int.from_bytes(header[1:4], "big")
                if self._message_left > MESSAGE_BYTES_MAX:
                    raise NoHello(f"a message of {self._message_left} bytes in a handshake of TLS")
