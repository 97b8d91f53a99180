"""A connection by which a listener is looked at: TCP, with TLS on it where that is asked for, and Kafka's frames.

TLS is done in memory (`ssl.MemoryBIO`), so that everything the listener has sent can be looked at: up to TLS 1.2 its
certificate, its choice of a cipher, and whether it asks for a client's certificate stand there in plain bytes.
"""

import asyncio
import ssl
from typing import Final, TypeVar

from odradek.protocol.codec.codec import decode_prefix, encode_parts
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.frames import RequestHeader, read_response_header, request_frame
from odradek.protocol.messages.api_versions import ApiVersionsRequest

__all__ = ["Closed", "NoKafka", "PlainConnection", "TlsConnection"]

R = TypeVar("R", bound=Response)

CLIENT_ID: Final = "odradek-secure-check"
FRAME_BYTES_MAX: Final = 16 * 1024 * 1024
READ_BYTES: Final = 16 * 1024


class Closed(Exception):
    """The listener has closed the connection."""


class NoKafka(Exception):
    """What came is no answer of a Kafka broker."""


class PlainConnection:
    """Bytes over TCP, and requests over these."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._buffer = bytearray()
        self._correlation_id = 0

    def close(self) -> None:
        self._writer.transport.abort()

    async def ask(self, request: Request[R], version: int) -> R:
        """The answer to a request. Raises Closed, NoKafka, OSError, MalformedMessage."""
        self._correlation_id += 1
        header = RequestHeader(request.api_key, version, self._correlation_id, CLIENT_ID)
        frame = request_frame(header, request.is_flexible(version), encode_parts(request, version))
        await self._send(b"".join(frame))
        response_type: type[R] = request.response_type
        body = await self._frame()
        # The header of ApiVersions has version 0 always (KIP-511).
        is_flexible = response_type.is_flexible(version) and request.api_key != ApiVersionsRequest.api_key
        correlation_id, position = read_response_header(body, is_flexible)
        if correlation_id != self._correlation_id:
            raise NoKafka
        return decode_prefix(response_type, version, body, position)

    async def _frame(self) -> bytes:
        size = int.from_bytes(await self._exactly(4), signed=True)
        if not 0 <= size <= FRAME_BYTES_MAX:
            raise NoKafka
        return await self._exactly(size)

    async def listen(self) -> None:
        """Returns when the listener has said anything. Raises Closed, OSError."""
        self._buffer += await self._receive()

    async def _exactly(self, count: int) -> bytes:
        while len(self._buffer) < count:
            self._buffer += await self._receive()
        found = bytes(self._buffer[:count])
        del self._buffer[:count]
        return found

    async def _send(self, data: bytes) -> None:
        await self._send_raw(data)

    async def _receive(self) -> bytes:
        return await self._receive_raw()

    async def _send_raw(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def _receive_raw(self) -> bytes:
        """Raises Closed, OSError."""
        data = await self._reader.read(READ_BYTES)
        if not data:
            raise Closed
        return data


class TlsConnection(PlainConnection):
    """The same within TLS."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, context: ssl.SSLContext, host: str
    ) -> None:
        super().__init__(reader, writer)
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self.received = bytearray()
        """All that the listener has sent until the handshake ended, as it came."""

    @property
    def version(self) -> str | None:
        return self._tls.version()

    @property
    def cipher(self) -> str | None:
        chosen = self._tls.cipher()
        return None if chosen is None else chosen[0]

    @property
    def certificate(self) -> bytes | None:
        """The listener's, as DER."""
        return self._tls.getpeercert(binary_form=True)

    async def handshake(self) -> None:
        """Raises ssl.SSLError, Closed, OSError."""
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._flush()
                data = await self._receive_raw()
                self.received += data
                self._incoming.write(data)
            except ssl.SSLError:
                await self._flush()
                raise
            else:
                await self._flush()
                return

    async def _flush(self) -> None:
        if self._outgoing.pending:
            await self._send_raw(self._outgoing.read())

    async def _send(self, data: bytes) -> None:
        self._tls.write(data)
        await self._flush()

    async def _receive(self) -> bytes:
        """Raises ssl.SSLError for an alert, too: a listener that misses a certificate in TLS 1.3 says so only here."""
        while True:
            try:
                data = self._tls.read(READ_BYTES)
            except ssl.SSLWantReadError:
                await self._flush()
                self._incoming.write(await self._receive_raw())
            except ssl.SSLZeroReturnError:
                raise Closed from None
            else:
                if not data:
                    raise Closed
                return data
