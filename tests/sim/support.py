"""What tests of the simulator's parts need: one process, or several, without a world around them."""

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, ClassVar, cast

from odradek.runtime.tasks import breathe
from odradek.testing.sim.world.clock import Clock
from odradek.testing.sim.world.network import Network
from odradek.testing.sim.world.process import Process
from odradek.testing.sim.world.scheduler import START_S, Scheduler
from odradek.testing.sim.world.store import SimStore, SimStoreClient
from odradek.testing.sim.world.trace import Trace


class Bench:
    """A scheduler, a trace that is kept line by line, a network, and processes by name. `used` are to be cleared."""

    used: ClassVar[list["Bench"]] = []

    def __init__(self) -> None:
        self.used.append(self)
        self.processes: list[Process] = []
        self.scheduler = Scheduler()
        self.lines: list[str] = []
        self.trace = Trace(self.scheduler, self.lines.append)
        self.network = Network(self.scheduler)
        self._hosts = 0

    def process(self, name: str = "p", uptime_s: float = 100.0) -> Process:
        """A process on a host of its own, 10.0.0.1 and so on."""
        self._hosts += 1
        clock = Clock(self.scheduler, uptime_s)
        process = Process(name, self.scheduler, self.trace, clock, random.Random(self._hosts))
        self.processes.append(process)
        self.network.add_process(process, self.network.add_host(name, f"10.0.0.{self._hosts}"))
        return process

    def clear(self) -> None:
        """Kills all that is left."""
        for process in self.processes:
            process.kill()

    def run(self, seconds: float = 1.0) -> None:
        self.scheduler.run(self.scheduler.now_s + seconds)

    def at(self, at_s: float, callback: Callable[..., object], *args: Any) -> None:
        self.scheduler.at(START_S + at_s, callback, *args)

    def do(self, process: Process, coroutine: Coroutine[Any, Any, object], seconds: float = 1.0) -> None:
        """Runs it in the process, for so long. Raises AssertionError for what the process was left with."""
        process.start(coroutine, "test")
        self.run(seconds)
        assert process.errors == []


class _Hosted(Process):
    """A process whose code runs on the loop that runs anyway."""

    def __init__(self, bench: Bench) -> None:
        super().__init__("hosted", bench.scheduler, bench.trace, Clock(bench.scheduler, 100.0), random.Random(1))
        self.loop.kill()
        self.loop = cast(Any, asyncio.get_running_loop())

    def post(self, callback: Callable[..., object], *args: Any) -> None:
        self.loop.call_soon(callback, *args)


@asynccontextmanager
async def hosted_store_client() -> AsyncGenerator[SimStoreClient]:
    """The simulated store for tests that run on a loop of their own, in each of whose rounds virtual time passes."""
    bench = Bench()

    async def pass_time() -> None:
        while True:
            bench.run(0.0005)
            await breathe()

    passing = asyncio.get_running_loop().create_task(pass_time())
    store = SimStore(bench.scheduler, bench.network, bench.trace, random.Random(1))
    client = store.client(_Hosted(bench), "hosted")
    try:
        yield client
    finally:
        await client.close()
        passing.cancel()
