"""A start waits for a store that is started beside it: until it answers, for so long, or until a signal."""

import asyncio
import logging

import pytest

from odradek.broker.cluster.open_store import wait_for_store
from tests.broker.cluster.faulty_store import FaultyStore
from tests.client.virtual_time import VirtualEnvironment

pytestmark = pytest.mark.virtual_time


async def test_a_store_that_answers_is_not_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    environment = VirtualEnvironment()
    began_ms = environment.monotonic_ms()
    assert await wait_for_store(FaultyStore(), environment, 60_000, asyncio.Event())
    assert environment.monotonic_ms() - began_ms == 0
    assert caplog.records == []


async def test_one_that_comes_later_is_waited_for_and_that_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    environment, store = VirtualEnvironment(), FaultyStore()
    began_ms = environment.monotonic_ms()
    store.is_cut = True
    with caplog.at_level(logging.WARNING, "odradek.broker.cluster.open_store"):
        waiting = asyncio.ensure_future(wait_for_store(store, environment, 60_000, asyncio.Event()))
        await asyncio.sleep(5)
        assert not waiting.done()
        store.is_cut = False
        assert await waiting
    assert 5_000 <= environment.monotonic_ms() - began_ms <= 5_200
    assert len(caplog.records) == 1
    assert "the start waits for the metadata store, 60 s at most" in caplog.text


async def test_one_that_does_not_come_is_an_error_in_the_end() -> None:
    environment, store = VirtualEnvironment(), FaultyStore()
    began_ms = environment.monotonic_ms()
    store.is_cut = True
    with pytest.raises(OSError, match="store"):
        await wait_for_store(store, environment, 3_000, asyncio.Event())
    assert 3_000 <= environment.monotonic_ms() - began_ms <= 3_200


async def test_a_signal_ends_the_waiting() -> None:
    environment, store, stop = VirtualEnvironment(), FaultyStore(), asyncio.Event()
    began_ms = environment.monotonic_ms()
    store.is_cut = True
    waiting = asyncio.ensure_future(wait_for_store(store, environment, 60_000, stop))
    await asyncio.sleep(1)
    stop.set()
    assert not await waiting
    assert environment.monotonic_ms() - began_ms <= 1_100
