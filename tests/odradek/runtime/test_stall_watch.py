"""What blocks an event loop is noticed, and named by file and line; a loop that turns is not."""

import asyncio
import threading
import time

import pytest

from odradek.runtime import stall_watch
from odradek.runtime.stall_watch import watch_stalls


def blocks() -> None:
    time.sleep(0.3)  # what is to be noticed


@pytest.mark.both_loops
async def test_where_the_loop_stood_is_told_when_it_turns_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stall_watch, "LIMIT_S", 0.08)
    told: list[tuple[float, str]] = []
    others: list[tuple[float, str]] = []
    loop, heard = asyncio.get_running_loop(), asyncio.Event()
    stops = [
        watch_stalls(loop, lambda stood_s, place: told.append((stood_s, place))),
        watch_stalls(loop, lambda stood_s, place: others.append((stood_s, place))),
        watch_stalls(loop, lambda _seconds, _place: heard.set()),
    ]
    await asyncio.sleep(0.2)  # longer than the limit, with a loop that turns
    assert told == []
    blocks()
    await asyncio.wait_for(heard.wait(), 10)
    ((stood_s, place),) = told
    assert stood_s > 0.25
    assert f"{__file__}:" in place and place.endswith("in blocks")
    assert others == told
    for stop in stops:
        stop()
    blocks()
    await asyncio.sleep(0.1)  # the watch looks every 0.02 s
    assert len(told) == 1
    assert all(thread.name != "stall watch" for thread in threading.enumerate())
