"""Items are taken as they come, in order and side by side, and the loop has its turn however slow they are."""

import asyncio
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from itertools import repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.client.taking import RUN_MAX, TURN_MS, Taking, taken
from tests.client.virtual_time import run_virtual, virtual_loop

pytestmark = pytest.mark.virtual_time


def slow(costs_ms: list[float]) -> Iterator[int]:
    """Numbers, each of which keeps the loop for so long."""
    for number, cost_ms in enumerate(costs_ms):
        virtual_loop().compute(cost_ms)
        yield number


class Turns:
    """Notes the longest time between two turns of the loop, while it is watched."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._last_s = self._loop.time()
        self._is_over = False
        self.longest_ms = 0.0
        self._turn()

    def _turn(self) -> None:
        self.longest_ms = max(self.longest_ms, (self._loop.time() - self._last_s) * 1000.0)
        self._last_s = self._loop.time()
        if not self._is_over:
            self._loop.call_soon(self._turn)

    def end(self) -> float:
        self._turn()
        self._is_over = True
        return self.longest_ms


@pytest.mark.parametrize("cost_ms", [0.0, 0.3, 1.0, 2.0, 4.0, 9.0])
async def test_the_loop_has_a_turn_within_ten_milliseconds(cost_ms: float) -> None:
    turns = Turns()
    assert await taken(slow([cost_ms] * 300)) == list(range(300))
    assert turns.end() <= TURN_MS + 0.001


async def test_it_has_one_after_each_item_that_takes_longer() -> None:
    turns = Turns()
    assert await taken(slow([20.0] * 30)) == list(range(30))
    assert turns.end() == pytest.approx(20.0)


async def test_it_has_one_between_two_iterables_that_are_slow() -> None:
    turns = Turns()
    taking = Taking({"values": slow([20.0] * 9), "keys": slow([20.0] * 9)})
    for _ in range(9):
        items, _ = await taking.take(100)
        assert len(items["keys"]) == 1
        await asyncio.sleep(0)
    assert turns.end() == pytest.approx(20.0)


async def test_items_that_become_slow_at_once_keep_it_for_one_run_at_most() -> None:
    turns = Turns()
    assert await taken(slow([0.0] * 200 + [20.0] * 50)) == list(range(250))
    assert turns.end() <= RUN_MAX * 20.0 + 0.001


NUMBERS: list[int] = list(range(3000))


@pytest.mark.parametrize("numbers", [NUMBERS, tuple(NUMBERS), range(3000), deque(NUMBERS), dict.fromkeys(NUMBERS)])
@pytest.mark.parametrize("is_iterator", [False, True])
async def test_what_runs_no_code_of_the_callers_is_taken_at_once(numbers: Iterable[int], is_iterator: bool) -> None:
    taking = Taking({"values": iter(numbers) if is_iterator else numbers, "keys": repeat(None)})
    assert taking.is_plain
    items, failure = await taking.take(2000)
    assert (items, failure) == ({"values": list(range(2000)), "keys": [None] * 2000}, None)
    items, _ = await taking.take(2000)
    assert items["values"] == list(range(2000, 3000))


async def test_an_error_comes_behind_the_items_before_it() -> None:
    def failing() -> Generator[int]:
        yield from range(20)
        raise KeyError("no such row")

    taking = Taking({"values": failing(), "keys": slow([0.0] * 100)})
    items, failure = await taking.take(64)
    assert items["values"] == list(range(20))
    assert list(range(20)) == items["keys"][:20]
    assert len(items["keys"]) < 20 + RUN_MAX, "no more is taken of the others than its run had"
    assert isinstance(failure, KeyError)
    with pytest.raises(KeyError):
        await taken(failing())


@given(st.lists(st.sampled_from([0.0, 0.1, 1.0, 3.0, 12.0]), max_size=120), st.integers(1, 100))
def test_all_items_come_in_order_whatever_they_cost(costs_ms: list[float], count: int) -> None:
    """And as many of each iterable, until one ends."""

    async def main() -> None:
        taking = Taking({"values": slow(costs_ms), "keys": iter(range(len(costs_ms)))})
        got: list[int] = []
        while True:
            items, failure = await taking.take(count)
            assert failure is None
            assert items["values"] == items["keys"]
            assert len(items["keys"]) <= count
            got += items["values"]
            if not items["values"]:
                break
        assert got == list(range(len(costs_ms)))

    run_virtual(main())
