"""The environment of one simulated process: an `Environment` with nothing of the real world in it."""

import asyncio
import random
import socket
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from ipaddress import ip_address
from ssl import SSLContext
from typing import Any, NoReturn, ParamSpec, TypeVar, cast

from odradek.runtime.environment import NS_PER_MS, Environment
from odradek.runtime.stall_watch import StallListener
from odradek.runtime.tls_transport import start_tls
from odradek.runtime.worker import GiveWay, Talk, Worker
from odradek.testing.sim.world.network import Network
from odradek.testing.sim.world.process import Process
from odradek.testing.sim.world.worker import WorkerDisk

_P = ParamSpec("_P")
_T = TypeVar("_T")
_D = TypeVar("_D")

Serve = Callable[[WorkerDisk, GiveWay], Talk]
StartWorker = Callable[[Process, Serve], Worker]
"""Starts a worker for a process."""


class SimEnvironment(Environment):
    """What a process sees of its machine. `boot_id` names the machine's last start."""

    __slots__ = ("_boot_id", "_monotonic_s", "_rng", "_start_worker", "address", "network", "process")

    def __init__(
        self,
        process: Process,
        network: Network,
        address: str,
        rng: random.Random,
        boot_id: str,
        start_worker: StartWorker,
    ) -> None:
        super().__init__(process.loop)
        self._start_worker = start_worker
        self.process = process
        self.network = network
        self.address = address
        self._rng = rng
        self._boot_id = boot_id
        self._monotonic_s = process.clock.monotonic_s

    # (The base class binds the real clock, for speed.)
    def now_ns(self) -> int:
        return self.process.clock.wall_ns()

    def now_ms(self) -> int:
        return self.process.clock.wall_ns() // NS_PER_MS

    def monotonic_ms(self) -> float:
        return self._monotonic_s() * 1000.0

    def precise_s(self) -> float:
        return self._monotonic_s()

    def lease_clock_ms(self) -> float:
        """A clock that runs on while the machine sleeps, and never goes back: for leases."""
        return self.process.clock.boottime_s() * 1000.0

    def boot_id(self) -> str:
        """Another one after each start of the machine, and the same for all its processes between two."""
        return self._boot_id

    def watch_stalls(self, listener: StallListener) -> Callable[[], None]:
        """Nothing blocks a loop whose clock stands still meanwhile."""
        return _nothing

    def random_bytes(self, size: int) -> bytes:
        self.process.check()
        return self._rng.randbytes(size)

    def end_helper_threads(self) -> None:
        """There are none."""

    def allow_helper_threads(self, count: int) -> None:
        self.process.helpers_max = count

    async def run_blocking(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        return await self.process.run_in_helper(partial(function, *args, **kwargs))

    async def run_computing(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        return await self.process.run_in_helper(partial(function, *args, **kwargs))

    def give_way(self) -> None:
        """A helper thread's work is one event here."""

    async def start_worker(
        self, module: str, serve: Callable[[_D, GiveWay], Talk], disk: _D, *, in_process: bool
    ) -> Worker:
        """The process has a disk of its own, on the same device."""
        if not in_process:
            return await super().start_worker(module, serve, disk, in_process=False)
        self.process.check()
        return self._start_worker(self.process, cast(Serve, serve))

    def run_threadsafe(self, coroutine: Coroutine[Any, Any, _T]) -> NoReturn:
        coroutine.close()
        raise RuntimeError("a simulated process has no other threads")

    async def listen(
        self,
        factory: Callable[[], asyncio.BaseProtocol],
        host: str,
        port: int,
        *,
        ssl: SSLContext | None = None,
    ) -> tuple[asyncio.AbstractServer, Sequence[tuple[str, int]]]:
        self.process.check()
        server = self.network.listen(self.process, factory, host or self.address, port, ssl)
        return server, [(server.address, server.port)]

    async def resolve(self, host: str, port: int) -> list[str]:
        self.process.check()
        if host in self.network.names:
            return [self.network.names[host]]
        try:
            return [str(ip_address(host))]
        except ValueError:
            raise socket.gaierror(socket.EAI_NONAME, f"{host}: Name or service not known") from None

    async def canonical_name(self, address: str) -> str:
        for name, known in self.network.names.items():
            if known == address:
                return name
        raise socket.gaierror(socket.EAI_NONAME, f"{address}: Name or service not known")

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
        """The sizes of the buffers are the network's, not the caller's."""
        self.process.check()
        address = (await self.resolve(host, port))[0]
        if ssl is None:
            return await self.network.connect(self.process, factory, address, port)
        transport = await self.network.connect(self.process, asyncio.Protocol, address, port)
        return await start_tls(self.loop, transport, factory(), ssl, server_hostname or host)


def _nothing() -> None: ...
