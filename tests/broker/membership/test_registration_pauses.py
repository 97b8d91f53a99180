"""A process that stood still, and may have been fenced meanwhile: what it does before it has asked the store."""

import pytest

from odradek.broker.membership.registration import BEAT_MS
from tests.broker.cluster.faulty_store import FaultyStore
from tests.broker.membership.test_registration import LEASE_MS, Registered, fence, sleep_ms, world

pytestmark = pytest.mark.virtual_time

SILENCE_MS = 750
"""For so long a process may stand still."""


async def stands_still_fenced(store: FaultyStore, here: Registered) -> None:
    """Its process is stopped, the controller fences it, and it goes on before its watch has told it so."""
    here.registration.pause_detector.limit_ms = SILENCE_MS
    here.tasks.start(here.registration.watch_pauses(), "notice pauses")
    await sleep_ms(BEAT_MS + 1)
    assert here.may_serve()
    store.blind()
    await fence(store, here.registration.epoch)
    here.environment.sleep_machine_ms(2 * SILENCE_MS)


async def test_a_process_that_stood_still_serves_nothing_before_the_store_was_asked() -> None:
    """Its lease has not ended, its image is behind, and what lies in its buffers comes first."""
    async with world() as (store, here):
        await here.register()
        await stands_still_fenced(store, here)
        assert not here.registration.term.is_over(here.environment.lease_clock_ms())
        assert not here.may_serve()
        await sleep_ms(5 * BEAT_MS)
        assert not here.may_serve(), "the store says that it is registered no more"
        epoch = here.registration.epoch
        here.keep()
        await sleep_ms(BEAT_MS)
        assert here.registration.epoch > epoch, "it does not wait for its image"
        store.see()
        await sleep_ms(LEASE_MS / 4 + 2 * BEAT_MS)
        assert here.may_serve(), "it is registered anew, and its image knows that"


async def test_whoever_looks_first_the_timer_hides_no_standstill() -> None:
    async with world() as (store, here):
        await here.register()
        await stands_still_fenced(store, here)
        await sleep_ms(BEAT_MS + 1)
        assert not here.may_serve()


async def test_a_paused_process_that_was_not_fenced_resumes_once_the_store_has_said_so() -> None:
    async with world() as (store, here):
        await here.register()
        here.keep()
        here.registration.pause_detector.limit_ms = SILENCE_MS
        here.tasks.start(here.registration.watch_pauses(), "notice pauses")
        await sleep_ms(2 * BEAT_MS)
        store.is_cut = True
        here.environment.sleep_machine_ms(2 * SILENCE_MS)
        assert not here.may_serve()
        await sleep_ms(3 * BEAT_MS)
        assert not here.may_serve(), "nobody has said anything yet"
        store.is_cut = False
        await sleep_ms(LEASE_MS / 4 + 2 * BEAT_MS)
        assert here.may_serve()
