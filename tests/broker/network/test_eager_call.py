"""A coroutine runs up to its first wait when it is begun, and on when it is awaited, by whichever task."""

import asyncio
from typing import Any

import pytest

from odradek.broker.network.eager_call import EagerCall
from odradek.runtime.tasks import breathe

pytestmark = pytest.mark.both_loops


async def waiting(future: "asyncio.Future[int]", seen: list[str]) -> int:
    """Waits for the future once, and for a turn of the loop."""
    seen.append("begun")
    try:
        value = await future
        seen.append("went on")
        await breathe()
        return value
    except asyncio.CancelledError:
        seen.append("cancelled")
        raise
    finally:
        seen.append("ended")


async def test_what_never_waits_is_done_at_once() -> None:
    async def answer() -> int:
        return 7

    begun = EagerCall(answer())
    assert begun.is_done
    assert begun.is_ready
    assert await begun == 7


async def test_an_error_is_raised_to_who_awaits() -> None:
    async def fail() -> None:
        raise ValueError("wrong")

    begun = EagerCall(fail())
    assert begun.is_done
    with pytest.raises(ValueError, match="wrong"):
        await begun


async def test_it_goes_on_in_another_task_before_or_after_what_it_waits_for_is_done() -> None:
    for is_done_first in (True, False):
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        seen: list[str] = []
        begun = EagerCall(waiting(future, seen))
        assert seen == ["begun"]
        assert not begun.is_ready
        if is_done_first:
            future.set_result(1)
            assert begun.is_ready
        task = asyncio.ensure_future(result_of(begun))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        if not is_done_first:
            assert seen == ["begun"]
            future.set_result(1)
        assert await task == 1
        assert seen == ["begun", "went on", "ended"]


async def result_of(begun: EagerCall[Any]) -> Any:
    return await begun


async def test_an_error_of_what_it_waits_for_goes_through_it() -> None:
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    seen: list[str] = []
    begun = EagerCall(waiting(future, seen))
    future.set_exception(ValueError("wrong"))
    with pytest.raises(ValueError, match="wrong"):
        await begun
    assert seen == ["begun", "ended"]


async def test_the_end_of_the_task_that_awaits_it_is_its_own() -> None:
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    seen: list[str] = []
    begun = EagerCall(waiting(future, seen))
    task = asyncio.ensure_future(result_of(begun))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["begun", "cancelled", "ended"]


async def test_one_that_nobody_awaits_can_be_cancelled_once_or_twice() -> None:
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    seen: list[str] = []
    begun = EagerCall(waiting(future, seen))
    begun.cancel()
    begun.cancel()
    assert future.cancelled()
    assert begun.is_done
    assert seen == ["begun", "cancelled", "ended"]


async def test_one_that_is_cancelled_while_a_task_awaits_it_ends_that_task() -> None:
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    begun = EagerCall(waiting(future, []))
    task = asyncio.ensure_future(result_of(begun))
    await asyncio.sleep(0)
    begun.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_it_goes_on_while_something_is_so_and_from_there_elsewhere() -> None:
    first, second = (asyncio.get_running_loop().create_future() for _ in range(2))
    seen: list[str] = []

    async def two_waits() -> int:
        seen.append(await first)
        seen.append(await second)
        return 7

    begun = EagerCall(two_waits())
    driven = asyncio.ensure_future(begun.while_it(lambda: not seen))
    first.set_result("first")
    await driven
    assert seen == ["first"]
    assert not begun.is_ready
    second.set_result("second")
    assert await result_of(begun) == 7


async def test_who_drives_it_is_cancelled_and_so_is_it() -> None:
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    seen: list[str] = []
    begun = EagerCall(waiting(future, seen))
    driven = asyncio.ensure_future(begun.while_it(lambda: True))
    await breathe()
    driven.cancel()
    with pytest.raises(asyncio.CancelledError):
        await driven
    assert seen == ["begun", "cancelled", "ended"]
