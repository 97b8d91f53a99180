"""`Tasks`: failures are logged, closing ends every task, and a result can still be awaited."""

import asyncio
import logging

import pytest

from client.tasks import Tasks


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
