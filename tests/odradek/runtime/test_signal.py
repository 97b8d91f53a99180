"""`Signal`: nothing that happens between a look and the wait is lost, and each wait is woken once."""

import asyncio

import pytest

from odradek.runtime.signal import Signal


async def test_what_happened_since_the_look_ends_the_wait_at_once() -> None:
    signal = Signal()
    seen = signal.count
    signal.give()
    signal.give()
    await asyncio.wait_for(signal.after(seen), 5)


async def test_all_who_wait_are_woken_by_one_and_not_before() -> None:
    signal = Signal()
    waiting = [asyncio.ensure_future(signal.after(signal.count)) for _ in range(3)]
    await asyncio.sleep(0)
    assert not any(task.done() for task in waiting)
    signal.give()
    await asyncio.wait_for(asyncio.gather(*waiting), 5)


async def test_a_wait_ends_at_its_time_or_with_an_error() -> None:
    signal = Signal()
    with pytest.raises(TimeoutError):
        await signal.after(signal.count, 1)
    signal.fail(OSError("closed"))
    with pytest.raises(OSError, match="closed"):
        await signal.after(signal.count)
