"""Whether a broker may answer by the ACLs that it knows: confirmed by the store, at its epoch, and not long ago."""

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from odradek.broker.cluster.keys import broker_key
from odradek.broker.cluster.store import Txn
from odradek.broker.config.access_options import STANDARD_AUTHORIZER
from odradek.broker.membership.standing import TERM_MS, Standing
from tests.broker.api.controlling import OTHERS
from tests.broker.controller.brokers import Brokers, Member, brokers, settle, sleep_ms
from tests.broker.support import HERE, running_broker
from tests.client.virtual_time import VirtualEnvironment

pytestmark = pytest.mark.virtual_time

SURE_MS = 0.9 * TERM_MS


@asynccontextmanager
async def world() -> AsyncGenerator[tuple[Brokers, Member, Standing]]:
    """Broker 2, which is not the controller."""
    async with brokers(2) as cluster:
        here = cluster[2]
        yield cluster, here, Standing(here.metadata, here.registration, here.environment)


async def fence(cluster: Brokers) -> None:
    await cluster.store.commit(Txn(delete=(broker_key(2),)))


async def test_it_is_sure_for_a_while_after_it_was_confirmed() -> None:
    async with world() as (_, _, standing):
        assert not standing.is_sure()
        await standing.confirm()
        assert standing.is_sure()
        await sleep_ms(SURE_MS - 1)
        assert standing.is_sure()
        await sleep_ms(2)
        assert not standing.is_sure()


async def test_it_goes_on_asking() -> None:
    async with world() as (_, here, standing):
        here.tasks.start(standing.keep(), "ask")
        for _ in range(50):
            await sleep_ms(200)
            assert standing.is_sure()


async def test_cut_off_from_the_store_it_is_not_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with world() as (_, here, standing):
        here.tasks.start(standing.keep(), "ask")
        await settle()
        here.store.is_cut = True
        await sleep_ms(SURE_MS - TERM_MS / 5 - 1)
        assert standing.is_sure()
        await sleep_ms(TERM_MS)
        assert not standing.is_sure()
        await sleep_ms(10 * TERM_MS)
        assert caplog.text.count("broker 2 does not know whether it has the newest ACLs") == 1
        here.store.is_cut = False
        await sleep_ms(TERM_MS)
        assert standing.is_sure()
        assert "broker 2 knows again that it has the newest ACLs" in caplog.text


async def test_a_registration_that_has_gone_unnoticed_confirms_nothing() -> None:
    """Its watch hangs, and its lease is renewed: only the store says that it was fenced."""
    async with world() as (cluster, here, standing):
        here.tasks.start(standing.keep(), "ask")
        await settle()
        here.store.blind()
        await fence(cluster)
        await sleep_ms(SURE_MS + 1)
        assert here.registration.is_known, "as far as it knows"
        assert not here.registration.term.is_over(here.environment.lease_clock_ms())
        assert not standing.is_sure()


async def test_registered_anew_it_is_sure_only_once_its_image_has_come_so_far() -> None:
    """What was changed while it was gone was answered without it."""
    async with world() as (cluster, here, standing):
        here.store.blind()
        await fence(cluster)
        await here.registration.register()
        await standing.confirm()
        assert not standing.is_sure()
        here.store.see()
        await settle()
        await standing.confirm()
        assert standing.is_sure()


async def test_a_process_that_stood_still_is_not_before_it_has_asked() -> None:
    async with world() as (_, here, standing):
        await standing.confirm()
        here.environment.sleep_machine_ms(TERM_MS)
        assert not standing.is_sure()
        await standing.confirm()
        assert standing.is_sure()


async def test_alone_with_its_store_it_is_always_sure() -> None:
    settings = {"authorizer.class.name": STANDARD_AUTHORIZER}
    async with running_broker(settings, environment=VirtualEnvironment()) as context:
        assert context.member.standing is not None
        await context.metadata.store.commit(Txn(delete=(broker_key(HERE.broker_id),)))
        await sleep_ms(10 * TERM_MS)
        assert context.member.standing.is_sure()
    async with running_broker(settings, brokers=(HERE, *OTHERS), environment=VirtualEnvironment()) as context:
        assert context.member.standing is not None
        assert context.member.standing.is_sure()
        await context.metadata.store.commit(Txn(delete=(broker_key(HERE.broker_id),)))
        await sleep_ms(10 * TERM_MS)
        assert not context.member.standing.is_sure()


async def test_a_registration_of_another_process_confirms_nothing() -> None:
    async with world() as (cluster, here, standing):
        here.store.blind()
        state = here.metadata.image.brokers[2]
        await cluster.store.commit(Txn(put={broker_key(2): state.encode()}))
        await standing.confirm()
        assert here.registration.is_known
        assert not standing.is_sure()
