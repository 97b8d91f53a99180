"""A network in memory, on virtual time: names, addresses, listeners, and what can happen between two of them.

    network = MemoryNetwork(seed=1)
    network.names["kafka.test"] = ["10.0.0.1", "10.0.0.2"]
    environment = MemoryEnvironment(network)             # what is tested connects and listens through this
    path = network.path("10.0.0.1", 9092)                # how connections to there behave, now and later
    path.reach = Reach.REFUSED                           # or BLACK_HOLE: nobody answers
    path.to_server.delay_ms = 50; path.to_client.tear = byte_by_byte
    network.links[0].reset()                             # one connection that is open; or `lose_server`

Directions and pipes stand in `memory_pipe.py`, the ends in `memory_transport.py`. What happens by chance comes from the
seed, and every machine has an environment of its own, so this carries clients, brokers and whole clusters.
"""

import asyncio
import errno
import ipaddress
import random
import socket
from asyncio import sslproto
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from ssl import SSLContext
from typing import NamedTuple, NoReturn

from odradek.testing.sim.world.memory_pipe import Direction, Pipe
from odradek.testing.sim.world.memory_tls import with_tls
from odradek.testing.sim.world.memory_transport import MemoryTransport
from tests.client.virtual_time import VirtualEnvironment

Factory = Callable[[], asyncio.BaseProtocol]

SYN_RETRIES_S = (1, 2, 4, 8, 16, 32, 64)
"""After so long each Linux sends the first packet again, and at last gives up (tcp_syn_retries = 6)."""
CLIENT_ADDRESS = "192.0.2.1"
FIRST_FREE_PORT = 40_000


class Reach(Enum):
    """What becomes of an attempt to connect."""

    OPEN = "a listener accepts it; without one it is refused"
    REFUSED = "it is refused"
    BLACK_HOLE = "it is never answered"


@dataclass
class Path:
    """How connections to one address and port behave. `reach` is looked at when the first packet comes there."""

    reach: Reach = Reach.OPEN
    to_server: Direction = field(default_factory=Direction)
    to_client: Direction = field(default_factory=Direction)


class Attempt(NamedTuple):
    """Somebody connecting, whatever came of it."""

    at_ms: float
    address: str
    port: int


class SocketsLeft(AssertionError):
    """Connections are open that their owner should have closed."""


class Link:
    """One connection, with both its ends."""

    client: MemoryTransport
    server: MemoryTransport

    def __init__(self, number: int, address: str, port: int, to_server: Pipe, to_client: Pipe) -> None:
        self.number = number
        self.address = address
        self.port = port
        self.to_server = to_server
        self.to_client = to_client

    def __repr__(self) -> str:
        ends = [name for name in ("client", "server") if not getattr(self, name).is_gone]
        return f"<connection {self.number} to {self.address}:{self.port}, open at: {', '.join(ends) or 'neither end'}>"

    def reset(self) -> None:
        """Both ends are told that the other one is gone."""
        self.server.reset()
        self.client.reset()

    def lose_server(self) -> None:
        """The server's machine is gone, and the client is told nothing: half of the connection stays open."""
        self.to_client.is_dead = self.to_server.is_dead = True
        self.server.abort()

    def stop(self) -> None:
        self.to_server.stop()
        self.to_client.stop()


class MemoryNetwork:
    """See the module."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop | None = None, *, seed: int = 0, sends_late: bool = False
    ) -> None:
        self.loop = asyncio.get_running_loop() if loop is None else loop
        self.rng = random.Random(seed)
        self.sends_late = sends_late
        """Transports send in the round after the write, as uvloop's do."""
        self.names: dict[str, list[str]] = {}
        """Addresses by name, in the order of the resolver's answer."""
        self.resolve_ms = 0.1
        self.links: list[Link] = []
        """The connections of which an end is open, oldest first."""
        self.attempts: list[Attempt] = []
        self._paths: dict[tuple[str, int], Path] = {}
        self._listeners: dict[tuple[str, int], MemoryServer] = {}
        self._link_count = 0
        self._free_port = FIRST_FREE_PORT

    # -- what a test sets and asks ---------------------------------------------------------------------------------

    def path(self, host: str, port: int) -> Path:
        """The path to the (first) address of `host`."""
        return self._paths.setdefault((self.addresses(host)[0], port), Path())

    def addresses(self, host: str) -> list[str]:
        """What a resolver answers. Raises socket.gaierror."""
        if self.names.get(host):
            return list(self.names[host])
        try:
            return [str(ipaddress.ip_address(host))]
        except ValueError:
            raise socket.gaierror(socket.EAI_NONAME, f"{host}: Name or service not known") from None

    def links_to(self, host: str, port: int) -> list[Link]:
        addresses = self.addresses(host)
        return [link for link in self.links if link.address in addresses and link.port == port]

    def open_clients(self) -> list[Link]:
        """The connections whose client's end is open."""
        return [link for link in self.links if not link.client.is_gone]

    def check_closed(self) -> None:
        """Raises SocketsLeft unless all who connected have closed their ends."""
        if links := self.open_clients():
            raise SocketsLeft(f"{len(links)} connections are still open: {links}")

    def stop(self) -> None:
        """Ends all connections at once, both ends being told, and everything that is on the way."""
        for server in list(self._listeners.values()):
            server.close()
        for link in list(self.links):
            link.reset()
            link.stop()

    # -- what environments ask -------------------------------------------------------------------------------------

    async def connect(
        self,
        factory: Factory,
        host: str,
        port: int,
        *,
        ssl: SSLContext | None = None,
        server_hostname: str | None = None,
        client_address: str = CLIENT_ADDRESS,
    ) -> asyncio.Transport:
        """Connects as `loop.create_connection` does, to the first address of `host`. Raises OSError."""
        address = self.addresses(host)[0]
        path = self.path(address, port)
        self.attempts.append(Attempt(self.loop.time() * 1000.0, address, port))
        for retry_s in SYN_RETRIES_S:
            await asyncio.sleep(path.to_server.delay_ms / 1000.0)
            if path.reach is not Reach.BLACK_HOLE:
                break
            await asyncio.sleep(retry_s)
        else:
            raise TimeoutError(errno.ETIMEDOUT, f"connect to {address}:{port}: timed out")
        listener = self._listeners.get((address, port))
        if listener is None or not listener.is_serving() or path.reach is Reach.REFUSED:
            await asyncio.sleep(path.to_client.delay_ms / 1000.0)
            raise ConnectionRefusedError(errno.ECONNREFUSED, f"connect to {address}:{port}: Connection refused")

        waiter: asyncio.Future[None] | None = None
        protocol = factory()
        if ssl is not None:
            waiter = self.loop.create_future()
            protocol = with_tls(self.loop, protocol, ssl, waiter, server_hostname or host)
        link = self._accept(listener, path, protocol, client_address)
        try:
            await asyncio.sleep(path.to_client.delay_ms / 1000.0)
            if link.client.is_gone:
                raise ConnectionResetError(errno.ECONNRESET, f"connect to {address}:{port}: Connection reset by peer")
            link.client.start()
            if waiter is not None:
                await waiter
        except BaseException:
            link.client.abort()
            raise
        return _outermost(link.client, protocol)

    def listen(self, factory: Factory, address: str, port: int, ssl: SSLContext | None = None) -> "MemoryServer":
        """Binds a server. Raises OSError when the address is taken."""
        if port == 0:
            port = self._next_free_port()
        if (address, port) in self._listeners:
            raise OSError(errno.EADDRINUSE, f"{address}:{port}: address already in use")
        server = MemoryServer(self, factory, address, port, ssl)
        self._listeners[address, port] = server
        return server

    def forget_listener(self, address: str, port: int) -> None:
        self._listeners.pop((address, port), None)

    # -- below -----------------------------------------------------------------------------------------------------

    def _accept(
        self, listener: "MemoryServer", path: Path, client_protocol: asyncio.BaseProtocol, client_address: str
    ) -> Link:
        self._link_count += 1
        to_server = Pipe(self.loop, path.to_server, self.rng.random)
        to_client = Pipe(self.loop, path.to_client, self.rng.random)
        link = Link(self._link_count, listener.address, listener.port, to_server, to_client)
        peer, here = (client_address, self._next_free_port()), (listener.address, listener.port)
        server_protocol = listener.factory()
        if listener.ssl is not None:
            server_protocol = with_tls(self.loop, server_protocol, listener.ssl)

        def end(
            protocol: asyncio.BaseProtocol, out: Pipe, into: Pipe, mine: tuple[str, int], other: tuple[str, int]
        ) -> MemoryTransport:
            extra = {"peername": other, "sockname": mine}
            return MemoryTransport(
                self.loop, protocol, out, into, sends_late=self.sends_late, extra=extra, on_gone=gone
            )

        def gone() -> None:
            if link.client.is_gone and link.server.is_gone and link in self.links:
                link.stop()
                self.links.remove(link)

        link.client = end(client_protocol, to_server, to_client, peer, here)
        link.server = end(server_protocol, to_client, to_server, here, peer)
        self.links.append(link)
        link.server.start()
        return link

    def _next_free_port(self) -> int:
        self._free_port += 1
        return self._free_port


class MemoryServer(asyncio.AbstractServer):
    """A bound address. Connections are refused until `start_serving`, and stay when it is closed."""

    def __init__(
        self, network: MemoryNetwork, factory: Factory, address: str, port: int, ssl: SSLContext | None
    ) -> None:
        self.network = network
        self.factory = factory
        self.address = address
        self.port = port
        self.ssl = ssl
        self._is_serving = False

    def is_serving(self) -> bool:
        return self._is_serving

    async def start_serving(self) -> None:
        self.start()

    def start(self) -> None:
        self._is_serving = True

    def close(self) -> None:
        self._is_serving = False
        self.network.forget_listener(self.address, self.port)

    async def wait_closed(self) -> None:
        assert not self._is_serving, "close() comes first"

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self.network.loop

    async def serve_forever(self) -> NoReturn:
        self.start()
        await self.network.loop.create_future()
        raise AssertionError("nobody ends it but by cancelling")


class MemoryEnvironment(VirtualEnvironment):
    """The world seen from one machine with one address."""

    __slots__ = ("address", "network")

    def __init__(self, network: MemoryNetwork, *, address: str = CLIENT_ADDRESS, seed: int = 0) -> None:
        super().__init__(network.loop, seed=seed)
        self.network = network
        self.address = address

    async def listen(
        self, factory: Factory, host: str, port: int, *, ssl: SSLContext | None = None
    ) -> tuple[asyncio.AbstractServer, Sequence[tuple[str, int]]]:
        server = self.network.listen(factory, self.network.addresses(host)[0], port, ssl)
        return server, [(server.address, server.port)]

    async def resolve(self, host: str, port: int) -> list[str]:
        await asyncio.sleep(self.network.resolve_ms / 1000.0)
        return self.network.addresses(host)

    async def canonical_name(self, address: str) -> str:
        await asyncio.sleep(self.network.resolve_ms / 1000.0)
        for name, addresses in self.network.names.items():
            if address in addresses:
                return name
        raise socket.gaierror(socket.EAI_NONAME, f"{address}: Name or service not known")

    async def connect(
        self,
        factory: Factory,
        host: str,
        port: int,
        *,
        ssl: SSLContext | None = None,
        server_hostname: str | None = None,
        send_buffer_bytes: int = -1,
        receive_buffer_bytes: int = -1,
    ) -> asyncio.BaseTransport:
        """The sizes of the buffers are the path's, not the caller's."""
        return await self.network.connect(
            factory, host, port, ssl=ssl, server_hostname=server_hostname, client_address=self.address
        )


def _outermost(transport: MemoryTransport, protocol: asyncio.BaseProtocol) -> asyncio.Transport:
    """The transport that a protocol writes to: the one of TLS where there is TLS."""
    if isinstance(protocol, sslproto.SSLProtocol):
        app_transport: asyncio.Transport = protocol._app_transport  # pyright: ignore
        return app_transport
    return transport
