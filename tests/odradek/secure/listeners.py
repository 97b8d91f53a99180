"""Listeners on loopback with TLS as a test wants it, and of Kafka's protocol no more than a stranger hears.

TLS is done in memory: asyncio's own leaves a transport open when a client goes in the middle of a handshake.
"""

import asyncio
import ssl
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field

from odradek.protocol.codec.codec import decode_prefix, encode_parts
from odradek.protocol.codec.schema import Response
from odradek.protocol.errors import ErrorCode
from odradek.protocol.frames import read_request_header, response_frame
from odradek.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

API_VERSIONS = 18

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Gone(Exception):
    """The client has gone, or has done what TLS does not allow."""


class Channel:
    """A client's connection, with TLS on it where there is a context."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, context: ssl.SSLContext | None
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = None if context is None else context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._buffer = bytearray()

    async def open(self) -> None:
        """Raises Gone."""
        while self._tls is not None:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._flush()
                self._incoming.write(await self._received())
            except ssl.SSLError:
                await self._flush()  # the alert
                raise Gone from None
            else:
                await self._flush()
                return

    async def exactly(self, count: int) -> bytes:
        """Raises Gone."""
        while len(self._buffer) < count:
            if self._tls is None:
                self._buffer += await self._received()
                continue
            try:
                self._buffer += self._tls.read(65536)
            except ssl.SSLWantReadError:
                self._incoming.write(await self._received())
            except ssl.SSLError:
                raise Gone from None
        found = bytes(self._buffer[:count])
        del self._buffer[:count]
        return found

    async def send(self, data: bytes) -> None:
        if self._tls is None:
            self._writer.write(data)
            await self._writer.drain()
        else:
            self._tls.write(data)
            await self._flush()

    async def _flush(self) -> None:
        self._writer.write(self._outgoing.read())
        await self._writer.drain()

    async def _received(self) -> bytes:
        data = await self._reader.read(65536)
        if not data:
            raise Gone
        return data


@dataclass(slots=True)
class StrangersListener:
    """`mechanisms`: of SASL; none: who connects is answered everything."""

    mechanisms: tuple[str, ...] = ()
    requests: list[int] = field(default_factory=list[int])
    """The API keys that came."""

    async def serve(self, channel: Channel) -> None:
        while True:
            frame = await channel.exactly(int.from_bytes(await channel.exactly(4)))
            header, position = read_request_header(frame, flexible=False)
            self.requests.append(header.api_key)
            answer = self._answer(header.api_key, header.api_version, frame, position)
            if answer is None:
                return
            parts = encode_parts(answer, header.api_version)
            await channel.send(b"".join(response_frame(header.correlation_id, False, parts)))

    def _answer(self, key: int, version: int, frame: bytes, position: int) -> Response | None:
        if key == API_VERSIONS:
            keys = [API_VERSIONS, MetadataRequest.api_key, SaslHandshakeRequest.api_key]
            return ApiVersionsResponse(
                api_keys=[ApiVersion(api_key=each, min_version=0, max_version=9) for each in keys]
            )
        if key == SaslHandshakeRequest.api_key:
            request = decode_prefix(SaslHandshakeRequest, version, frame, position)
            assert request.mechanism not in self.mechanisms, "it would be a login"
            code = ErrorCode.UNSUPPORTED_SASL_MECHANISM if self.mechanisms else ErrorCode.ILLEGAL_SASL_STATE
            return SaslHandshakeResponse(error_code=code, mechanisms=list(self.mechanisms))
        if key == MetadataRequest.api_key and not self.mechanisms:
            return MetadataResponse(brokers=[], topics=[])
        return None


@asynccontextmanager
async def listening(
    listener: StrangersListener, context: ssl.SSLContext | None = None, host: str = "127.0.0.1"
) -> AsyncGenerator[int]:
    """The port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        channel = Channel(reader, writer, context)
        await channel.open()
        await listener.serve(channel)

    async with serving(serve, host) as port:
        yield port


@asynccontextmanager
async def babbling(*words: bytes) -> AsyncGenerator[int]:
    """A port at which something else answers: these words to whatever comes first, and then the end."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"".join(words))
        await writer.drain()

    async with serving(serve) as port:
        yield port


@asynccontextmanager
async def serving(serve: Serve, host: str = "127.0.0.1") -> AsyncGenerator[int]:
    """A port whose connections are served, and closed then."""
    under_way: set[asyncio.Task[None]] = set()

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        under_way.add(task)
        try:
            with suppress(Gone, OSError):
                await serve(reader, writer)
        finally:
            under_way.discard(task)
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    server = await asyncio.start_server(one, host, 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await asyncio.gather(*under_way, return_exceptions=True)
        await server.wait_closed()


@contextmanager
def in_thread(opening: AbstractAsyncContextManager[int]) -> Generator[int]:
    """The same on a loop in another thread, for commands, which have a loop of their own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield asyncio.run_coroutine_threadsafe(opening.__aenter__(), loop).result(60)
        asyncio.run_coroutine_threadsafe(opening.__aexit__(None, None, None), loop).result(60)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
