"""A small server on a real loopback socket: each connection is served by a coroutine of the test.

    async def serve(peer: Peer) -> None:
        await peer.greet()                                  # answers ApiVersions
        request = await peer.receive()                      # header and message
        await peer.answer(request, MetadataResponse(...))

    async with Loopback(serve) as server:
        connection = await server.connect()

Leaving it ends all connections of both sides, and raises what a serving coroutine raised.
"""

import asyncio
from collections.abc import Awaitable, Callable
from ssl import SSLContext
from types import TracebackType
from typing import Any, NamedTuple, Self

from odradek.client.configuration.client_config import ClientConfig
from odradek.client.network.connection import Connection, open_connection
from odradek.protocol.codec.codec import decode, encode_parts
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.declared import declared_messages
from odradek.protocol.frames import RequestHeader, read_request_header, response_frame
from odradek.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from odradek.runtime.environment import Environment

HOST = "127.0.0.1"
REQUESTS: dict[int, type[Request[Any]]] = {
    cls.api_key: cls for cls in declared_messages().values() if issubclass(cls, Request)
}
ALL_RANGES = {key: (cls.min_version, cls.max_version) for key, cls in REQUESTS.items()}


class Received(NamedTuple):
    """A request as it came."""

    header: RequestHeader
    message: Any


class Peer:
    """The server's end of one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def receive(self) -> Received:
        """The next request. Raises IncompleteReadError when the client is gone."""
        size = int.from_bytes(await self.reader.readexactly(4))
        frame = await self.reader.readexactly(size)
        key, version = int.from_bytes(frame[:2]), int.from_bytes(frame[2:4])
        request = REQUESTS[key]
        header, position = read_request_header(frame, request.is_flexible(version))
        return Received(header, decode(request, version, frame, position))

    async def answer(self, request: Received, response: Response) -> None:
        await self.send(frame_of(request, response))

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def greet(self, ranges: dict[int, tuple[int, int]] | None = None, throttle_time_ms: int = 0) -> None:
        """Answers ApiVersions, with the client's own ranges by default."""
        request = await self.receive()
        assert isinstance(request.message, ApiVersionsRequest)
        await self.answer(request, ranges_answer(ALL_RANGES if ranges is None else ranges, throttle_time_ms))

    async def gone(self) -> None:
        """Returns when the client has closed, whatever it still sent."""
        try:
            while await self.reader.read(65_536):
                pass
        except ConnectionError:
            return


def ranges_answer(ranges: dict[int, tuple[int, int]], throttle_time_ms: int = 0) -> ApiVersionsResponse:
    keys = [ApiVersion(api_key=key, min_version=low, max_version=high) for key, (low, high) in ranges.items()]
    return ApiVersionsResponse(api_keys=keys, throttle_time_ms=throttle_time_ms)


def frame_of(request: Received, response: Response, version: int | None = None) -> bytes:
    """The response to a request, size first; its body in another version if one is given."""
    version = request.header.api_version if version is None else version
    flexible = response.is_flexible(version) and not isinstance(response, ApiVersionsResponse)
    return b"".join(response_frame(request.header.correlation_id, flexible, encode_parts(response, version)))


Serve = Callable[[Peer], Awaitable[None]]


class Loopback:
    """See the module. `limit_bytes`: half of what a peer takes unread. `count`: how many connections have been made."""

    def __init__(
        self, serve: Serve, *, ssl: SSLContext | None = None, host: str = HOST, limit_bytes: int = 65_536
    ) -> None:
        self.host = host
        self.port = 0
        self.count = 0
        self._serve = serve
        self._ssl = ssl
        self._limit_bytes = limit_bytes
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._connections: list[Connection] = []

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, self.host, 0, ssl=self._ssl, limit=self._limit_bytes)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        for connection in self._connections:
            connection.close()
            await asyncio.wait_for(connection.closed(), 5)
        self._server.close()
        tasks = list(self._tasks)
        if kind is not None:
            for task in tasks:
                task.cancel()
        ends = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 5)
        await self._server.wait_closed()
        for end in ends:
            if isinstance(end, Exception) and kind is None:
                raise end

    def config(self, **settings: Any) -> ClientConfig:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return ClientConfig(f"{host}:{self.port}", **settings)

    async def connect(self, *, node_id: int = 1, host: str | None = None, **settings: Any) -> Connection:
        """A connection of ours, closed at the end."""
        config = self.config(**settings)
        connection = await open_connection(Environment(), config, node_id, host or self.host, self.port)
        self._connections.append(connection)
        return connection

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.count += 1
        task = asyncio.get_running_loop().create_task(self._run(Peer(reader, writer)))
        self._tasks.add(task)

    async def _run(self, peer: Peer) -> None:
        try:
            await self._serve(peer)
        except (asyncio.IncompleteReadError, ConnectionError):
            return  # the client is gone
        finally:
            peer.writer.transport.abort()


def each_by_itself(*serves: Serve) -> Serve:
    """Serves the first connection by the first coroutine, the second by the second, and so on."""
    left: list[Serve] = list(serves)
    return lambda peer: left.pop(0)(peer)
