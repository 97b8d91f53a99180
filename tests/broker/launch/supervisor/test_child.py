"""A process of the supervisor: it is told what it is to be, tells when it is ready, and its end is explained."""

import asyncio
import os
import signal
from collections.abc import Callable

import pytest

from odradek.broker.launch.supervisor.child import Child
from odradek.broker.launch.supervisor.supervisor import PAGE_MODULE
from odradek.runtime.signal import Signal
from odradek.runtime.tasks import breathe

TURNS = 5


class Watched:
    """A metrics page without brokers, the smallest process there is, and who looks at it."""

    def __init__(self) -> None:
        self.changed = Signal()
        self.child = Child("page", PAGE_MODULE, self.changed.give)
        self.ending: str | None = None
        asyncio.get_running_loop().add_signal_handler(signal.SIGCHLD, self.changed.give)

    async def until(self, condition: Callable[[], bool]) -> None:
        while True:
            seen = self.changed.count
            if condition():
                return
            await self.changed.after(seen, 20_000)

    def has_ended(self) -> bool:
        self.ending = self.child.reap()
        return self.ending is not None

    async def ended(self) -> str:
        await self.until(self.has_ended)
        assert self.ending is not None
        return self.ending


def has_ended(pid: int) -> None:
    """Blocks the loop until the process has ended, and leaves its end to be learned."""
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


@pytest.fixture
async def watched() -> Watched:
    return Watched()


async def test_a_process_is_ready_and_ends_when_it_is_told_to(watched: Watched) -> None:
    child = watched.child
    await child.start({"listen": ["127.0.0.1", 0]})
    await watched.until(lambda: child.ready is not None)
    assert (child.ready or {})["port"] > 0
    assert os.getpgid(child.pid) == child.pid
    child.order("stop")
    assert await watched.ended() == "ended with exit code 0"
    assert not child.is_running
    assert child.ready is None


async def test_what_a_process_says_of_its_end_is_known_with_it(watched: Watched) -> None:
    child = watched.child
    with_port_taken = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    await child.start({"listen": ["127.0.0.1", with_port_taken.sockets[0].getsockname()[1]]})
    for _ in range(TURNS):
        await breathe()  # it is told what it is to be
    has_ended(child.pid)  # and what it said was not read
    assert child.reap() is None
    assert await watched.ended() == "ended with exit code 1"
    assert "cannot serve metrics on 127.0.0.1:" in child.failure
    with_port_taken.close()


async def test_a_process_that_was_killed_can_be_started_again(watched: Watched) -> None:
    child = watched.child
    for _ in range(2):
        await child.start({"listen": ["127.0.0.1", 0]})
        child.kill()
        assert await watched.ended() == "was killed by SIGKILL"
    assert child.reap() is None
    child.order("stop")  # nobody hears it


async def test_the_end_of_the_lifeline_ends_the_process(watched: Watched) -> None:
    child = watched.child
    await child.start({"listen": ["127.0.0.1", 0]})
    await watched.until(lambda: child.ready is not None)
    child.let_go()
    assert await watched.ended() == "ended with exit code 0"
