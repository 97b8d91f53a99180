"""A store that is served on a socket within a test, by a clock that the test moves."""

import asyncio
import posixpath
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from odradek.broker.cluster.local import LocalStore
from odradek.broker.cluster.memory import MemoryStore
from odradek.broker.cluster.socket_store.address import listening_socket
from odradek.broker.cluster.socket_store.server import StoreServer
from odradek.broker.cluster.socket_store.store import SocketStore
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import breathe

STEP_MS = 100.0
TURNS = 20


class Clocked(Environment):
    """Its leases go by `clock_ms`; who sleeps here sleeps until `pass_time` has come so far."""

    def __init__(self) -> None:
        super().__init__()
        self.clock_ms = 1_000_000.0
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def lease_clock_ms(self) -> float:
        return self.clock_ms

    async def sleep(self, delay_ms: float) -> None:
        wakes: asyncio.Future[None] = self.loop.create_future()
        self._sleepers.append((self.clock_ms + delay_ms, wakes))
        await wakes

    async def jump(self, duration_ms: float) -> None:
        """So long nothing here ran."""
        self.clock_ms += duration_ms
        for sleeper in [sleeper for sleeper in self._sleepers if sleeper[0] <= self.clock_ms]:
            self._sleepers.remove(sleeper)
            if not sleeper[1].done():
                sleeper[1].set_result(None)
        for _ in range(TURNS):
            await breathe()

    async def pass_time(self, duration_ms: float) -> None:
        """So long everything ran as it should."""
        for _ in range(int(duration_ms / STEP_MS)):
            await self.jump(STEP_MS)


class Served:
    """A server and its store; the server may be replaced by another one, at the same path."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.environment = Clocked()
        self.server: StoreServer
        self.clients: list[SocketStore] = []

    async def serve(self, store: LocalStore, user_id: int | None = None) -> None:
        self.server = StoreServer(store, self.environment, self.path, user_id=user_id)
        await self.server.start(listening_socket(self.path))

    def client(self, timeout_ms: float = 5_000.0) -> SocketStore:
        self.clients.append(SocketStore(Environment(), self.path, timeout_ms))
        return self.clients[-1]

    def cut_off(self) -> None:
        """Every connection breaks."""
        for session in list(self.server.sessions):
            session.transport.abort()


async def until(condition: Callable[[], bool]) -> None:
    """Returns when it is so, which must come by itself."""
    async with asyncio.timeout(5):
        while not condition():
            await breathe()


@asynccontextmanager
async def served_at(directory: Path, store: LocalStore | None = None) -> AsyncGenerator[Served]:
    """A store that is served, an empty one in memory by default."""
    served = Served(posixpath.join(directory, "store.sock"))
    await served.serve(MemoryStore() if store is None else store)
    try:
        yield served
    finally:
        for client in served.clients:
            await client.close()
        await served.server.close()
        await served.server.store.close()
