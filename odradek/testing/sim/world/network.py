"""The simulated network: hosts, the lines between them, listeners, and connections.

    network.cut("b1", "b2")               # nothing goes from b1 to b2 any more; what comes back does
    network.line("b1", "b2").delay_ms = 80
    network.heal()

A connection is made by a handshake that takes time and can be lost, and is accepted by the host, not by the process:
one that is paused has its connections wait. When a process is killed its host closes its sockets, and says so; when a
machine loses power nobody says anything, and the other end is half open until it sends something and the machine is
back.

The two ends are `MemoryTransport`s, each on its own process's loop. They send at the end of the round of a write, as
uvloop's do. A listener that was given an SSLContext speaks TLS, asyncio's own, over its end (memory_tls.py).
"""

import asyncio
import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from ssl import SSLContext
from typing import Final, NoReturn

from odradek.testing.sim.world.memory_pipe import End
from odradek.testing.sim.world.memory_tls import forget_tls, with_tls
from odradek.testing.sim.world.memory_transport import MemoryTransport
from odradek.testing.sim.world.process import Process
from odradek.testing.sim.world.scheduler import Scheduler
from odradek.testing.sim.world.wire import Host, Line, Wire

Factory = Callable[[], asyncio.BaseProtocol]

SYN_RETRIES_S: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
"""After so long each Linux sends the first packet again, and at last gives up (tcp_syn_retries = 6)."""
SYN_ACK_RETRY_S: Final = 1.0
FIRST_FREE_PORT: Final = 40_000


@dataclass(slots=True, eq=False)
class Connection:
    """One TCP connection, from the moment at which the server's host took it."""

    client: Process
    server: Process
    to_server: Wire
    to_client: Wire
    names: tuple[tuple[str, int], tuple[str, int]]
    is_client_gone: bool = False
    is_server_gone: bool = False

    def wires(self, process: Process) -> tuple[Wire, Wire]:
        """What the process sends on, and what it receives from."""
        return (self.to_server, self.to_client) if process is self.client else (self.to_client, self.to_server)


@dataclass(slots=True, eq=False)
class _Attempt:
    """Somebody connecting."""

    process: Process
    server: tuple[str, int]
    future: asyncio.Future[Connection]
    tries: int = 0
    is_given_up: bool = False


class Network:
    """See the module. `names` are host names with their addresses."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.names: dict[str, str] = {}
        self.connections: dict[Connection, None] = {}
        """Those of which an end is open, oldest first."""
        self.default = Line()
        """What lines are like unless they were changed."""
        self._hosts: dict[str, Host] = {}  # by address
        self._places: dict[Process, Host] = {}
        self._lines: dict[tuple[str, str], Line] = {}
        self._listeners: dict[tuple[str, int], Server] = {}
        self._free_port = FIRST_FREE_PORT

    # -- what the world sets ---------------------------------------------------------------------------------------

    def add_host(self, name: str, address: str) -> Host:
        self.names[name] = address
        host = self._hosts[address] = Host(name, address)
        return host

    def host(self, name: str) -> Host:
        return self._hosts[self.names[name]]

    def add_process(self, process: Process, host: Host) -> None:
        """What is of the process ends with it: `process_ended`, which the machine calls."""
        self._places[process] = host

    def line(self, source: str, target: str) -> Line:
        """The line from one host to another, by their names."""
        found = self._lines.get((source, target))
        if found is None:
            default = self.default
            found = Line(default.delay_ms, default.jitter_ms, default.loss, default.bytes_per_ms)
            self._lines[source, target] = found
        return found

    def cut(self, source: str, target: str) -> None:
        """Nothing goes this way any more."""
        self.line(source, target).is_cut = True

    def heal(self) -> None:
        """All lines are as they were in the beginning."""
        default = self.default
        for line in self._lines.values():
            line.delay_ms, line.jitter_ms, line.loss = default.delay_ms, default.jitter_ms, default.loss
            line.bytes_per_ms, line.is_cut = default.bytes_per_ms, False

    def between(self, one: str, other: str) -> list[Connection]:
        """The connections between two hosts, oldest first."""
        pairs = ((one, other), (other, one))
        return [each for each in self.connections if (self._name(each.client), self._name(each.server)) in pairs]

    def send_again(self, source: str, target: str) -> None:
        """What did not get through from one host to the other is sent now, and not when its time comes."""
        for connection in self.between(source, target):
            for wire in (connection.to_server, connection.to_client):
                if wire.line is self.line(source, target):
                    wire.send_again()

    def reset(self, connection: Connection) -> None:
        """Both ends are told that the other one is gone."""
        for process in (connection.client, connection.server):
            transport = connection.wires(process)[0].sending
            if transport is not None:
                process.post(transport.reset)

    def process_ended(self, process: Process, *, is_silent: bool) -> None:
        """Its host closes its sockets; or, `is_silent`, has lost power and does nothing."""
        for server in list(self._listeners.values()):
            if server.process is process:
                server.close()
        for connection in list(self.connections):
            if process in (connection.client, connection.server):
                self._drop(connection, process, is_silent)
        self._places.pop(process, None)

    def _drop(self, connection: Connection, process: Process, is_silent: bool) -> None:
        out, into = connection.wires(process)
        transport = out.sending
        if transport is None or not transport.is_gone:
            was_unread = into.arrived_bytes > 0 or transport is None
            into.drop_arrived()
            if transport is not None:
                transport.is_gone = True
                forget_tls(transport.get_protocol())
            if is_silent:
                out.is_silent = True
            else:
                out.send_end(End.RESET if was_unread else End.STREAM)
        self._gone(connection, process)

    # -- what environments ask -------------------------------------------------------------------------------------

    def listen(
        self, process: Process, factory: Factory, address: str, port: int, ssl: SSLContext | None = None
    ) -> "Server":
        """Binds a server, which speaks TLS where `ssl` is given. Raises OSError when the address is taken, or not the
        process's."""
        if address != self._places[process].address:
            raise OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL))
        port = port or self._next_port()
        if (address, port) in self._listeners:
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        server = self._listeners[address, port] = Server(self, process, factory, address, port, ssl)
        return server

    def forget_listener(self, server: "Server") -> None:
        if self._listeners.get((server.address, server.port)) is server:
            del self._listeners[server.address, server.port]

    async def connect(self, process: Process, factory: Factory, address: str, port: int) -> asyncio.Transport:
        """Connects as `loop.create_connection` does. Raises OSError."""
        attempt = _Attempt(process, (address, port), process.loop.create_future())
        self._send_syn(attempt)
        try:
            connection = await attempt.future
        except BaseException:
            attempt.is_given_up = True
            future = attempt.future
            if future.done() and not future.cancelled() and future.exception() is None:
                self.give_up(attempt, future.result())  # it stood, and the caller was cancelled before it was told
            raise
        return self._open(connection, process, factory())

    # -- the handshake ---------------------------------------------------------------------------------------------

    def _send_syn(self, attempt: _Attempt) -> None:
        if attempt.is_given_up or attempt.process.is_dead:
            return
        there, _ = attempt.server
        to = self._hosts.get(there)
        line = None if to is None else self.line(self._name(attempt.process), to.name)
        if to is None or line is None or line.is_cut or not to.is_up:
            self._retry_syn(attempt)
            return
        self.scheduler.after(self._delay_s(attempt.process, line), self._syn_arrives, attempt, to)

    def _retry_syn(self, attempt: _Attempt) -> None:
        if attempt.tries == len(SYN_RETRIES_S):
            self._fail(attempt, TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT)))
            return
        self.scheduler.after(SYN_RETRIES_S[attempt.tries], self._send_syn, attempt)
        attempt.tries += 1

    def _syn_arrives(self, attempt: _Attempt, to: Host) -> None:
        if attempt.is_given_up or attempt.process.is_dead:
            return
        client, host = attempt.process, self._places[attempt.process]
        line, back = self.line(host.name, to.name), self.line(to.name, host.name)
        if not to.is_up:
            self._retry_syn(attempt)
            return
        listener = self._listeners.get(attempt.server)
        if listener is None or not listener.is_serving():
            if back.is_cut:
                self._retry_syn(attempt)
            else:
                refused = ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
                self.scheduler.after(self._delay_s(client, back), self._fail, attempt, refused)
            return
        server = listener.process
        to_server = Wire(client, server, to, host, line, back)
        to_client = Wire(server, client, host, to, back, line)
        names = (host.address, self._next_port()), attempt.server
        connection = Connection(client, server, to_server, to_client, names)
        self.connections[connection] = None
        server.post(self._accept, connection, listener)
        self._send_syn_ack(attempt, connection)

    def _send_syn_ack(self, attempt: _Attempt, connection: Connection) -> None:
        back = connection.to_client.line
        if back.is_cut:
            self.scheduler.after(SYN_ACK_RETRY_S, self._send_syn_ack, attempt, connection)
        else:
            self.scheduler.after(self._delay_s(attempt.process, back), self._established, attempt, connection)

    def _established(self, attempt: _Attempt, connection: Connection) -> None:
        process = attempt.process
        if process.is_dead:
            return  # its end was closed with it
        if attempt.is_given_up:
            self._drop(connection, process, is_silent=False)
        else:
            process.trace.note(process.name, "connected", connection.server.name)
            process.post(_settle, attempt, connection, self)

    def give_up(self, attempt: _Attempt, connection: Connection) -> None:
        """Nobody waits for the connection any more."""
        self._drop(connection, attempt.process, is_silent=False)

    def _fail(self, attempt: _Attempt, error: OSError) -> None:
        attempt.process.post(_refuse, attempt, error)

    def _accept(self, connection: Connection, listener: "Server") -> None:
        """In the server's loop."""
        if listener.is_serving():
            protocol, process = listener.factory(), connection.server
            if listener.ssl is not None:
                protocol = with_tls(process.loop, protocol, listener.ssl)
            self._open(connection, process, protocol)
        else:
            self._drop(connection, connection.server, is_silent=False)

    def _open(self, connection: Connection, process: Process, protocol: asyncio.BaseProtocol) -> MemoryTransport:
        out, into = connection.wires(process)
        here, there = connection.names if process is connection.client else connection.names[::-1]
        transport = MemoryTransport(
            process.loop,
            protocol,
            out,
            into,
            sends_late=True,
            later=process.loop.call_at_end,
            extra={"peername": there, "sockname": here},
            on_gone=lambda: self._gone(connection, process),
        )
        out.sending = into.receiving = transport
        transport.start()
        return transport

    # -- below -----------------------------------------------------------------------------------------------------

    def _gone(self, connection: Connection, process: Process) -> None:
        if process is connection.client:
            connection.is_client_gone = True
        else:
            connection.is_server_gone = True
        if connection.is_client_gone and connection.is_server_gone:
            self.connections.pop(connection, None)

    def _name(self, process: Process) -> str:
        host = self._places.get(process)
        return "" if host is None else host.name

    def _delay_s(self, process: Process, line: Line) -> float:
        return (line.delay_ms + line.jitter_ms * process.rng.random()) / 1000.0

    def _next_port(self) -> int:
        self._free_port += 1
        return self._free_port


def _settle(attempt: _Attempt, connection: Connection, network: Network) -> None:
    """In the client's loop."""
    if attempt.future.done():
        network.give_up(attempt, connection)
    else:
        attempt.future.set_result(connection)


def _refuse(attempt: _Attempt, error: OSError) -> None:
    if not attempt.future.done():
        attempt.future.set_exception(error)


class Server(asyncio.AbstractServer):
    """A bound address. Connections are refused until `start_serving`, and stay when it is closed."""

    def __init__(
        self,
        network: Network,
        process: Process,
        factory: Factory,
        address: str,
        port: int,
        ssl: SSLContext | None,
    ) -> None:
        self.network = network
        self.process = process
        self.factory = factory
        self.address = address
        self.port = port
        self.ssl = ssl
        self._is_serving = False

    def is_serving(self) -> bool:
        return self._is_serving

    async def start_serving(self) -> None:
        self.process.check()
        self._is_serving = True

    def close(self) -> None:
        self._is_serving = False
        self.network.forget_listener(self)

    async def wait_closed(self) -> None:
        assert not self._is_serving, "close() comes first"

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self.process.loop

    async def serve_forever(self) -> NoReturn:
        await self.start_serving()
        await self.process.loop.create_future()
        raise AssertionError("nobody ends it but by cancelling")
