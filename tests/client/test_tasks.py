"""`Tasks`: failures are logged, closing ends every task or goes on without it, and a result can still be awaited.

`breathe`: one turn.
"""

import asyncio
import logging

import pytest

from client.tasks import Tasks, breathe


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
