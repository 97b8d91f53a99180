"""Syncs of many logs: those that come meanwhile go together, each with its own end, and few at the same time.

On virtual time, where what a helper thread does takes `BLOCKING_MS`: a second is time enough for all of it.
"""

import asyncio
import errno
import os
from collections.abc import Callable

import pytest

from odradek.broker.launch.serving import HELPER_THREADS
from odradek.broker.replica.syncs import LANES, Syncs
from odradek.runtime.tasks import Tasks
from tests.client.virtual_time import VirtualEnvironment

BLOCKING_MS = 5.0

virtual_time = pytest.mark.virtual_time(blocking_ms=BLOCKING_MS)


class Watched(VirtualEnvironment):
    """Counts what helper threads are asked for, and how many of them work at the same time."""

    calls = working = most = 0

    async def run_blocking(self, function: Callable[..., object], *args: object, **kwargs: object) -> object:  # type: ignore[override]
        self.calls += 1
        self.working += 1
        self.most = max(self.most, self.working)
        try:
            return await super().run_blocking(function, *args, **kwargs)
        finally:
            self.working -= 1


class Log:
    """Notes its syncs, and how they ended. `error` is what the device answers."""

    def __init__(self, syncs: Syncs, error: BaseException | None = None) -> None:
        self._syncs = syncs
        self.error = error
        self.count = 0
        self.ends: list[OSError | None] = []

    def want(self) -> None:
        self._syncs.add(self.sync, self.ends.append)

    def sync(self) -> None:
        self.count += 1
        if self.error is not None:
            raise self.error


def failure() -> OSError:
    return OSError(errno.EIO, os.strerror(errno.EIO))


@virtual_time
async def test_each_is_done_once_and_told_in_the_loop() -> None:
    environment = Watched()
    syncs = Syncs(environment, Tasks(environment.loop))
    logs = [Log(syncs) for _ in range(50)]
    for log in logs:
        log.want()
    assert [log.count for log in logs] == [0] * 50, "nothing is done at once"
    await asyncio.sleep(1)
    assert [log.count for log in logs] == [1] * 50
    assert [log.ends for log in logs] == [[None]] * 50


@virtual_time
async def test_those_that_wait_share_a_few_helper_threads() -> None:
    environment = Watched()
    syncs = Syncs(environment, Tasks(environment.loop))
    for log in [Log(syncs) for _ in range(100)]:
        log.want()
    await asyncio.sleep(1)
    assert environment.most == LANES
    assert environment.calls < 100 / 2


@virtual_time
async def test_one_alone_goes_at_once_and_so_do_those_after_a_pause() -> None:
    environment = Watched()
    syncs = Syncs(environment, Tasks(environment.loop))
    log = Log(syncs)
    for count in range(1, 4):
        log.want()
        await asyncio.sleep((BLOCKING_MS + 1) / 1000)
        assert len(log.ends) == environment.calls == count
    assert environment.most == 1


@virtual_time
async def test_each_has_its_own_error_and_those_behind_it_are_done() -> None:
    environment = Watched()
    syncs = Syncs(environment, Tasks(environment.loop))
    logs = [Log(syncs, failure() if number % 3 == 0 else None) for number in range(60)]
    for log in logs:
        log.want()
    await asyncio.sleep(1)
    assert [log.count for log in logs] == [1] * 60
    assert [log.ends for log in logs] == [[log.error] for log in logs]


@virtual_time
async def test_a_sync_that_fails_unexpectedly_has_failed_and_the_log_says_why(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Nobody waits for ever, and nobody takes it for synced."""
    environment = Watched()
    syncs = Syncs(environment, Tasks(environment.loop))
    log, other = Log(syncs, RuntimeError("a mistake of ours")), Log(syncs)
    for each in (log, other):
        each.want()
    await asyncio.sleep(1)
    [error] = log.ends
    assert error is not None
    assert error.strerror == "RuntimeError: a mistake of ours"
    assert other.ends == [None]
    assert "a mistake of ours" in caplog.text


@virtual_time
async def test_whoever_wants_another_when_one_has_ended_gets_it() -> None:
    environment = Watched()
    syncs = Syncs(environment, Tasks(environment.loop))
    ends: list[int] = []

    def again(number: int) -> Callable[[OSError | None], None]:
        def ended(_: OSError | None) -> None:
            ends.append(number)
            if number < 20:
                syncs.add(lambda: None, again(number + 1))

        return ended

    syncs.add(lambda: None, again(1))
    await asyncio.sleep(1)
    assert ends == list(range(1, 21))


@virtual_time
async def test_an_end_that_fails_keeps_nobody_else_from_theirs(caplog: pytest.LogCaptureFixture) -> None:
    environment = Watched()
    syncs = Syncs(environment, Tasks(environment.loop))
    told: list[dict[str, object]] = []
    environment.loop.set_exception_handler(lambda _, context: told.append(context))

    def broken(_: OSError | None) -> None:
        raise RuntimeError("a mistake of ours")

    logs = [Log(syncs) for _ in range(20)]
    syncs.add(lambda: None, broken)
    for log in logs:
        log.want()
    await asyncio.sleep(1)
    assert [log.ends for log in logs] == [[None]] * 20
    assert [str(context["exception"]) for context in told] == ["a mistake of ours"]


def test_syncs_leave_helper_threads_for_others() -> None:
    assert 2 * LANES <= HELPER_THREADS
