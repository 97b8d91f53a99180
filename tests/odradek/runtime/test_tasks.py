"""`Tasks`: failures are logged, closing ends every task or goes on without it, and a result can still be awaited.

Nobody but the owner ends a task, and the end of the loop ends those of an owner that was not closed. `breathe`: one
turn. `run_together`: results in order, the first error, and nothing left behind.
"""

import asyncio
import gc
import inspect
import logging
import sys
from collections.abc import Callable
from typing import Any, cast

import pytest
import uvloop

from odradek.runtime.tasks import Tasks, breathe, run_together, running_tasks

LOOPS: list[Callable[[], asyncio.AbstractEventLoop]] = [asyncio.new_event_loop, uvloop.new_event_loop]


async def test_the_result_can_be_awaited() -> None:
    tasks = Tasks(asyncio.get_running_loop())

    async def answer() -> int:
        return 42

    assert await tasks.start(answer(), "answer") == 42
    assert len(tasks) == 0


async def test_a_failure_is_logged_with_the_task_s_name(caplog: pytest.LogCaptureFixture) -> None:
    tasks = Tasks(asyncio.get_running_loop())

    async def fail() -> None:
        raise LookupError("no such thing")

    task = tasks.start(fail(), "the failing one")
    with caplog.at_level(logging.ERROR):
        await asyncio.gather(task, return_exceptions=True)
        await asyncio.sleep(0)
    assert "the failing one" in caplog.text
    assert "no such thing" in caplog.text


async def test_a_failure_that_its_owner_explains_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    tasks = Tasks(asyncio.get_running_loop())
    told: list[BaseException] = []

    def explain(error: BaseException) -> bool:
        told.append(error)
        return isinstance(error, LookupError)

    async def fail(error: Exception) -> None:
        raise error

    tasks.failed = explain
    errors = [LookupError("known"), ValueError("unknown")]
    await asyncio.gather(*(tasks.start(fail(each), str(each)) for each in errors), return_exceptions=True)
    await asyncio.sleep(0)
    assert told == errors
    assert [record.args for record in caplog.records] == [("unknown",)]


async def test_close_ends_all_of_them_even_one_that_starts_another_on_its_way_out() -> None:
    tasks = Tasks(asyncio.get_running_loop())
    ended: list[str] = []

    async def last_words() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append("last words")

    async def work() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append("work")
            tasks.start(last_words(), "last words")
            await asyncio.sleep(0)

    tasks.start(work(), "work")
    await asyncio.sleep(0)
    await tasks.close()
    assert ended == ["work", "last words"]
    assert len(tasks) == 0


@pytest.mark.virtual_time
async def test_what_does_not_end_in_time_is_named_and_forgotten(caplog: pytest.LogCaptureFixture) -> None:
    loop = asyncio.get_running_loop()
    tasks = Tasks(loop)
    release = asyncio.Event()
    ended: list[str] = []

    async def hang() -> None:
        try:
            await loop.create_future()
        finally:
            await release.wait()
            ended.append("hung")

    async def linger() -> None:
        try:
            await loop.create_future()
        finally:
            await asyncio.sleep(2)
            ended.append("lingered")

    both = [tasks.start(hang(), "the hanging one"), tasks.start(linger(), "the lingering one")]
    await asyncio.sleep(1)
    for task in both:
        task.cancel()
    began_s = loop.time()
    await tasks.ended(both, 3_000)
    assert loop.time() - began_s == pytest.approx(3, abs=0.01)
    assert ended == ["lingered"]
    [warning] = [record.getMessage() for record in caplog.records]
    assert "the hanging one" in warning
    assert "the lingering one" not in warning
    await tasks.close()
    assert loop.time() - began_s == pytest.approx(3, abs=0.01)
    release.set()
    await asyncio.gather(*both, return_exceptions=True)


async def test_those_that_end_are_not_waited_for_longer() -> None:
    tasks = Tasks(asyncio.get_running_loop())
    task = tasks.start(asyncio.sleep(60), "sleeper")
    task.cancel()
    await asyncio.wait_for(tasks.ended([task], 600_000), 5)
    assert task.cancelled()


async def test_breathe_lets_the_others_run_once() -> None:
    seen: list[str] = []
    asyncio.get_running_loop().call_soon(seen.append, "other")
    await breathe()
    assert seen == ["other"]


async def cancel_all_others() -> None:
    """What `asyncio.run`, test plugins and servers do when they end."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


async def test_who_cancels_all_tasks_does_not_find_them() -> None:
    tasks = Tasks(asyncio.get_running_loop())
    release = asyncio.Event()

    async def work() -> str:
        async with asyncio.timeout(60):  # cancels the task that it is in, if it has to
            await release.wait()
        return "done"

    task = tasks.start(work(), "work")
    await asyncio.sleep(0)
    assert running_tasks() == [task]
    await cancel_all_others()
    assert not task.done()
    release.set()
    assert await task == "done"
    assert running_tasks() == []


async def test_a_timeout_within_a_task_ends_what_it_is_about() -> None:
    tasks = Tasks(asyncio.get_running_loop())

    async def work() -> str:
        try:
            async with asyncio.timeout(0.001):
                await asyncio.get_running_loop().create_future()
        except TimeoutError:
            return "timed out"
        return "?"

    assert await tasks.start(work(), "work") == "timed out"


async def test_a_task_of_the_program_can_be_adopted() -> None:
    tasks = Tasks(asyncio.get_running_loop())
    release = asyncio.Event()

    async def work() -> str:
        current = asyncio.current_task()
        assert current is not None
        tasks.adopt(current)
        await release.wait()
        return "done"

    task = asyncio.ensure_future(work())
    await asyncio.sleep(0)
    await cancel_all_others()
    release.set()
    assert await task == "done"


@pytest.mark.parametrize("loop_factory", LOOPS)
def test_the_end_of_the_main_coroutine_leaves_them_to_an_owner_that_is_still_closing(
    loop_factory: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    """As in `asyncio.run`: another task holds the owner, is cancelled, and has work to finish on its way out."""
    done: list[str] = []

    async def hold() -> None:
        tasks = Tasks(asyncio.get_running_loop())
        release = asyncio.Event()

        async def work() -> None:
            await release.wait()
            done.append("work")

        task = tasks.start(work(), "work")
        try:
            await asyncio.sleep(60)
        finally:
            release.set()
            await task
            await tasks.close()

    async def main() -> None:
        background.append(asyncio.ensure_future(hold()))
        await asyncio.sleep(0.01)

    background: list[asyncio.Task[None]] = []
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(main())
    assert done == ["work"]


@pytest.mark.parametrize("loop_factory", LOOPS)
def test_the_end_of_the_loop_ends_those_of_an_owner_that_nobody_closed(
    loop_factory: Callable[[], asyncio.AbstractEventLoop], caplog: pytest.LogCaptureFixture
) -> None:
    ended: list[str] = []
    owners: list[Tasks] = []

    async def last_words(tasks: Tasks) -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append("last words")

    async def work(tasks: Tasks) -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await asyncio.sleep(0.001)
            ended.append("work")
            tasks.start(last_words(tasks), "last words")
            await asyncio.sleep(0)

    async def main() -> None:
        owners.append(Tasks(asyncio.get_running_loop()))
        owners[0].start(work(owners[0]), "work")
        await asyncio.sleep(0)

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(main())
    assert ended == ["work", "last words"]
    assert len(owners[0]) == 0
    assert caplog.records == []


async def test_what_runs_together_gives_its_results_in_order() -> None:
    async def answer(number: int) -> int:
        for _ in range(5 - number):
            await asyncio.sleep(0)
        return number

    assert await run_together([answer(number) for number in range(5)], "answer") == [0, 1, 2, 3, 4]
    assert await run_together([answer(7)], "answer") == [7]
    assert await run_together([], "answer") == []


def test_what_a_loop_that_is_gone_cannot_run_is_closed() -> None:
    """Else Python warns that nobody awaited it, long after."""

    async def answer() -> int:
        return 1

    coroutines = [answer(), answer()]
    running = run_together(coroutines, "answer")
    with pytest.raises(RuntimeError, match="no running event loop"):
        running.send(None)
    assert [inspect.getcoroutinestate(each) for each in coroutines] == [inspect.CORO_CLOSED] * 2


@pytest.mark.parametrize("is_cancelled", [True, False])
async def test_the_first_error_and_a_cancellation_end_all_that_run_together(
    is_cancelled: bool, caplog: pytest.LogCaptureFixture
) -> None:
    ended: list[str] = []

    async def wait() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await asyncio.sleep(0)
            ended.append("waiter")

    async def fail() -> None:
        if is_cancelled:
            await wait()
        raise LookupError("no such thing")

    running = asyncio.ensure_future(run_together([wait(), fail()], "both"))
    for _ in range(3):
        await asyncio.sleep(0)
    if is_cancelled:
        running.cancel()
    with pytest.raises(asyncio.CancelledError if is_cancelled else LookupError):
        await running
    assert ended == ["waiter"] * (2 if is_cancelled else 1)
    assert running_tasks() == []
    assert caplog.records == []


async def test_who_cancels_all_tasks_does_not_find_what_runs_together() -> None:
    release = asyncio.Event()

    async def answer(number: int) -> int:
        await release.wait()
        return number

    tasks = Tasks(asyncio.get_running_loop())
    task = tasks.start(run_together([answer(1), answer(2)], "answer"), "asker")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await cancel_all_others()
    release.set()
    assert await task == [1, 2]


def test_a_loop_that_was_closed_with_tasks_on_it_leaves_no_error_to_the_collector(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As a test does that abandons its loop: nothing can be cancelled there any more."""
    told: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    loop = asyncio.new_event_loop()
    task = Tasks(loop).start(asyncio.sleep(100), "abandoned")
    loop.run_until_complete(asyncio.sleep(0))
    cast(Any, task)._log_destroy_pending = False
    del task
    loop.close()
    gc.collect()
    assert told == []
