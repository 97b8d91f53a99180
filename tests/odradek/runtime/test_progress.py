"""`Progress`: waiters are woken when, and only when, their number is reached, however many give up in between."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.runtime.progress import Progress


async def test_reaching_what_is_reached_does_not_wait() -> None:
    progress = Progress(5)
    await asyncio.wait_for(progress.reach(5), 1)


async def test_advance_wakes_those_who_waited_for_it_and_no_others() -> None:
    progress = Progress()
    woken: list[int] = []

    async def wait(value: int) -> None:
        await progress.reach(value)
        woken.append(value)

    tasks = [asyncio.ensure_future(wait(value)) for value in (3, 1, 2, 9)]
    await asyncio.sleep(0)
    assert progress.waiting == 4
    assert progress.advance(2)
    await asyncio.sleep(0)
    assert sorted(woken) == [1, 2]
    assert not progress.advance(2), "it did not move"
    assert progress.advance(100)
    await asyncio.gather(*tasks)
    assert sorted(woken) == [1, 2, 3, 9]
    assert progress.waiting == 0


async def test_a_deadline_raises_timeout_error_and_leaves_nothing_behind() -> None:
    progress = Progress()
    with pytest.raises(TimeoutError):
        await progress.reach(1, timeout_ms=1)
    assert progress.waiting == 0
    progress.advance(1)
    await progress.reach(1, timeout_ms=0)


async def test_cancelling_one_waiter_leaves_the_others() -> None:
    progress = Progress()
    first = asyncio.ensure_future(progress.reach(1))
    second = asyncio.ensure_future(progress.reach(1))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    assert first.cancelled()
    assert progress.waiting == 1
    progress.advance(1)
    await asyncio.wait_for(second, 1)


async def test_fail_wakes_everybody_and_those_who_come_later_until_a_restart() -> None:
    progress = Progress()
    waiter = asyncio.ensure_future(progress.reach(1))
    await asyncio.sleep(0)
    progress.fail(LookupError("leadership lost"))
    with pytest.raises(LookupError, match="leadership lost"):
        await waiter
    with pytest.raises(LookupError):
        await progress.reach(0)
    progress.restart(0)
    progress.advance(1)
    await progress.reach(1)


@given(st.lists(st.one_of(st.integers(1, 30), st.just("cancel"), st.integers(-30, -1)), max_size=60))
def test_against_a_plain_list(steps: list[int | str]) -> None:
    """Positive numbers wait, negative ones advance, "cancel" ends the oldest waiter; a list says who must be awake."""

    async def run() -> None:
        progress = Progress()
        waiting: dict[asyncio.Task[None], int] = {}
        for step in steps:
            if step == "cancel":
                if waiting:
                    task = next(iter(waiting))
                    del waiting[task]
                    task.cancel()
            elif isinstance(step, int) and step > 0:
                waiting[asyncio.ensure_future(progress.reach(step))] = step
            elif isinstance(step, int):
                progress.advance(-step)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            for task, value in list(waiting.items()):
                assert task.done() == (value <= progress.value)
                if task.done():
                    del waiting[task]
            assert progress.waiting == len(waiting)
        progress.advance(1000)
        await asyncio.gather(*waiting)

    asyncio.run(run())
