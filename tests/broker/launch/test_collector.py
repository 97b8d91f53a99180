"""The garbage collector of a broker's process leaves alone what the start has made, and what has survived a walk."""

import asyncio
import gc
from collections.abc import Callable, Generator

import pytest

from odradek.broker.launch import collector
from odradek.broker.launch.collector import collect_everything, collector_paused, short_collections


@pytest.fixture(autouse=True)
def thawed() -> Generator[None]:
    yield
    gc.unfreeze()


def test_what_a_start_makes_is_never_walked_over() -> None:
    with collector_paused():
        assert not gc.isenabled()
        made = [[number] for number in range(1000)]
    assert gc.isenabled()
    assert gc.get_freeze_count() > len(made)
    walked = {id(each) for each in gc.get_objects()}
    assert not any(id(each) in walked for each in made)


def test_a_start_that_fails_leaves_the_collector_running() -> None:
    with pytest.raises(OSError, match="no room"), collector_paused():
        raise OSError("no room")
    assert gc.isenabled()


class Knot:
    """Garbage, once nobody else holds it, that only a collection finds."""

    def __init__(self) -> None:
        self.own = self


def knots() -> int:
    return sum(isinstance(each, Knot) for each in gc.get_objects())


async def test_what_has_survived_a_walk_is_not_walked_over_again() -> None:
    with short_collections(asyncio.get_running_loop()):
        made = [Knot() for _ in range(1000)]
        gc.collect()
        assert knots() == 0, "they are frozen"
        del made
        gc.collect()
        made = [Knot() for _ in range(10)]
        del made
        assert gc.collect() >= 10, "what is made since is found"
        found, walked = collect_everything()
        assert found >= 1000
        assert walked > found
        assert gc.get_freeze_count() > 0


async def test_afterwards_the_collector_is_as_it_was() -> None:
    before = gc.get_threshold(), list(gc.callbacks)
    with short_collections(asyncio.get_running_loop()):
        assert gc.get_threshold() == collector.THRESHOLDS
        gc.collect()
    assert (gc.get_threshold(), list(gc.callbacks)) == before
    assert gc.get_freeze_count() == 0


async def test_everything_is_walked_over_from_time_to_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rarely while it finds nothing; soon again after it has found something."""
    monkeypatch.setattr(collector, "EVERYTHING_S", 1.0)
    monkeypatch.setattr(collector, "EVERYTHING_S_MAX", 3.0)
    found = iter([0, 0, 0, 50, 0])
    monkeypatch.setattr(collector, "collect_everything", lambda: (next(found), 1000))
    loop, delays = asyncio.get_running_loop(), list[float]()
    call_soon = loop.call_soon

    def call_later(delay_s: float, then: Callable[[], None]) -> asyncio.Handle:
        delays.append(delay_s)
        return call_soon(then) if len(delays) < 6 else loop.call_at(loop.time() + 1000, then)

    monkeypatch.setattr(loop, "call_later", call_later)
    with short_collections(loop):
        for _ in range(10):
            await asyncio.sleep(0)
    assert delays == [1, 2, 3, 3, 1, 2]
