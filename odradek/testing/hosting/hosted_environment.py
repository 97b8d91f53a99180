"""The environment of a broker in a thread: the world behind its gate, with a time of day that a test can move."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from ssl import SSLContext
from typing import ParamSpec, TypeVar, cast
from weakref import WeakSet

from odradek.runtime.environment import NS_PER_MS, Environment
from odradek.runtime.worker import GiveWay, Talk, Worker
from odradek.testing.hosting.gate import Gate
from odradek.testing.hosting.shifted_clock import ShiftedClock

_P = ParamSpec("_P")
_T = TypeVar("_T")
_D = TypeVar("_D")


class HostedEnvironment(Environment):
    """See the module. What it has opened, `sever` closes."""

    __slots__ = ("_accepted", "_gate", "_has_device", "_servers", "_transports", "clock")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, gate: Gate, clock: ShiftedClock, *, has_device: bool = True
    ) -> None:
        """`has_device`: whether its files are on one. Else nothing waits, and a helper thread would only be waited for
        (reset of 300 partitions on three brokers: 164 ms with them, 80 without)."""
        super().__init__(loop)
        self._has_device = has_device
        self.clock = clock
        self._gate = gate
        self._accepted: WeakSet[asyncio.BaseProtocol] = WeakSet()
        self._servers: list[asyncio.AbstractServer] = []
        self._transports: WeakSet[asyncio.BaseTransport] = WeakSet()

    # (The base class binds the real clock, for speed.)
    def now_ns(self) -> int:
        return self.clock.now_ns()

    def now_ms(self) -> int:
        return self.clock.now_ns() // NS_PER_MS

    async def run_blocking(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        if not self._has_device:
            return self._behind_gate(partial(function, *args, **kwargs))
        return await super().run_blocking(self._behind_gate, partial(function, *args, **kwargs))

    async def run_computing(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        return await super().run_blocking(self._behind_gate, partial(function, *args, **kwargs))

    def _behind_gate(self, function: Callable[[], _T]) -> _T:
        self._gate.check()
        return function()

    async def start_worker(
        self, module: str, serve: Callable[[_D, GiveWay], Talk], disk: _D, *, in_process: bool
    ) -> Worker:
        """In helper threads: a test has no processes that it did not ask for."""
        return await super().start_worker(module, serve, disk, in_process=False)

    async def listen(
        self,
        factory: Callable[[], asyncio.BaseProtocol],
        host: str,
        port: int,
        *,
        ssl: SSLContext | None = None,
    ) -> tuple[asyncio.AbstractServer, Sequence[tuple[str, int]]]:
        self._gate.check()

        def accepted() -> asyncio.BaseProtocol:
            protocol = factory()
            self._accepted.add(protocol)
            return protocol

        server, addresses = await super().listen(accepted, host, port, ssl=ssl)
        self._servers.append(server)
        return server, addresses

    async def connect(
        self,
        factory: Callable[[], asyncio.BaseProtocol],
        host: str,
        port: int,
        *,
        ssl: SSLContext | None = None,
        server_hostname: str | None = None,
        send_buffer_bytes: int = -1,
        receive_buffer_bytes: int = -1,
    ) -> asyncio.BaseTransport:
        self._gate.check()
        transport = await super().connect(
            factory,
            host,
            port,
            ssl=ssl,
            server_hostname=server_hostname,
            send_buffer_bytes=send_buffer_bytes,
            receive_buffer_bytes=receive_buffer_bytes,
        )
        self._transports.add(transport)
        return transport

    def sever(self) -> None:
        """Closes what listens, and breaks all connections; what was not sent is lost. In the loop's thread; the loop
        has to turn once more."""
        for server in self._servers:
            server.close()
        for transport in self._connected():
            cast(asyncio.WriteTransport, transport).abort()

    def descriptors(self) -> list[int]:
        """Of the sockets that it listens on, has accepted, and has connected. In any thread, also in a forked child."""
        sockets = [transport.get_extra_info("socket") for transport in self._connected()]
        sockets += [each for server in self._servers for each in getattr(server, "sockets", ())]
        return [each.fileno() for each in sockets if each is not None]

    def _connected(self) -> list[asyncio.BaseTransport]:
        """Of the connections that it has accepted and made, and that are open."""
        accepted = [getattr(protocol, "transport", None) for protocol in list(self._accepted)]
        return [transport for transport in [*accepted, *self._transports] if transport is not None]
