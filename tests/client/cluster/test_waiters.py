"""Waiters wake by news or by time, each for itself, and leave no timer behind (which virtual time finds)."""

import asyncio

import pytest

from odradek.client.cluster.waiters import Waiters
from tests.client.virtual_time import VirtualEnvironment, virtual_loop

pytestmark = pytest.mark.virtual_time


async def test_all_who_wait_are_woken_by_news() -> None:
    waiters = Waiters(VirtualEnvironment())
    tasks = [asyncio.ensure_future(waiters.wait(until)) for until in (float("inf"), 2_000_000.0, float("inf"))]
    await asyncio.sleep(1)
    assert len(waiters) == 3
    tasks[2].cancel()
    waiters.wake()
    waiters.wake()
    await asyncio.gather(*tasks[:2])
    assert len(waiters) == 0
    await asyncio.sleep(0)
    assert tasks[2].cancelled()


async def test_news_before_a_wait_are_not_news() -> None:
    environment = VirtualEnvironment()
    waiters = Waiters(environment)
    waiters.wake()
    began_ms = environment.monotonic_ms()
    await waiters.wait(began_ms + 500)
    assert environment.monotonic_ms() - began_ms == pytest.approx(500)
    assert virtual_loop().timers() == []


@pytest.mark.parametrize("early_ms", [0.0, 0.5, 3.0])
async def test_a_moment_that_is_near_or_past_is_waited_for_a_millisecond(early_ms: float) -> None:
    environment = VirtualEnvironment()
    began_ms = environment.monotonic_ms()
    await Waiters(environment).wait(began_ms + 0.5 - early_ms)
    assert environment.monotonic_ms() - began_ms == pytest.approx(1.0)
