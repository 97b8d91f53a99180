"""The common budget of request bytes: who stops, who goes on and in which order, and that nobody stops for ever."""

import asyncio
from collections.abc import Callable

import pytest

from odradek.broker.network import request_budget
from odradek.broker.network.request_budget import RequestBudget


@pytest.fixture
async def memory() -> RequestBudget:
    return RequestBudget(100, asyncio.get_running_loop())


def never() -> None:
    raise AssertionError("its connection may not read")


async def test_waiters_go_on_in_their_order_as_bytes_are_given_back(memory: RequestBudget) -> None:
    order: list[str] = []

    def reader(name: str) -> Callable[[], None]:
        def resume() -> None:
            order.append(name)
            memory.received(60)
            memory.completed(60, resume)

        return resume

    first, second = reader("first"), reader("second")
    memory.received(100)
    memory.completed(100, never)
    assert not memory.may_read(first)
    assert not memory.may_read(second)
    memory.answered(50)
    assert order == ["first"], "the first one's 60 bytes fill the budget again"
    memory.answered(60)
    assert order == ["first", "second"]


async def test_one_that_is_forgotten_is_not_resumed(memory: RequestBudget) -> None:
    memory.received(100)
    memory.completed(100, never)
    assert not memory.may_read(never)
    memory.forget(never)
    memory.answered(100)
    assert memory.held_bytes == 0


async def test_no_limit_is_never_exhausted() -> None:
    memory = RequestBudget(-1, asyncio.get_running_loop())
    memory.received(10**12)
    assert memory.may_read(never)


async def test_if_all_requests_are_incomplete_the_longest_waiter_reads_its_request_whole(
    memory: RequestBudget,
) -> None:
    memory.received(100)

    def resume() -> None:
        pass

    assert memory.may_read(resume), "nothing can be given back, so waiting would never end"
    memory.received(10)
    assert memory.may_read(resume), "it has the pass"
    assert not memory.may_read(never), "one at a time"
    memory.completed(110, resume)
    assert not memory.may_read(resume), "its request is whole, so that it waits like the others"
    memory.forget(never)
    memory.forget(resume)
    memory.answered(110)


async def test_a_sender_that_stalls_loses_its_pass_to_the_next(
    memory: RequestBudget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_budget, "STALL_S", 0.01)
    resumed = asyncio.get_running_loop().create_future()
    memory.received(100)

    def stalling() -> None:
        pass

    def following() -> None:
        resumed.set_result(None)

    assert memory.may_read(stalling)
    assert not memory.may_read(following)
    await asyncio.wait_for(resumed, 5)
    assert memory.may_read(following)
    memory.forget(following)


async def test_what_is_set_aside_does_not_count_and_has_a_bound_of_its_own(memory: RequestBudget) -> None:
    order: list[str] = []
    memory.received(110)
    memory.completed(100, never)
    assert not memory.may_read(lambda: order.append("waits"))
    assert not memory.set_aside(100, 10), "more than a quarter of the limit"
    assert order == ["waits"], "who waited goes on"
    assert (memory.held_bytes, memory.aside_bytes) == (0, 110)
    memory.take_back(100, 10)
    assert (memory.held_bytes, memory.aside_bytes) == (110, 0)
    memory.answered(100)
    memory.dropped(10)
    assert memory.set_aside(0, 0)
    memory.received(25)
    memory.completed(25, never)
    assert memory.set_aside(25, 0)


async def test_without_a_limit_anything_may_be_set_aside() -> None:
    memory = RequestBudget(-1, asyncio.get_running_loop())
    memory.received(1 << 30)
    memory.completed(1 << 30, never)
    assert memory.set_aside(1 << 30, 0)
