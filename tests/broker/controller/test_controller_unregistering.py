"""UnregisterBroker at the controller: who is forgotten and who is not, and what happens when a broker comes back."""

import asyncio
from dataclasses import replace

import pytest

from odradek.broker.cluster.keys import BrokerState, PartitionState, broker_key
from odradek.broker.cluster.store import Conflict, Txn
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.cluster.faulty_store import Fate
from tests.broker.controller.brokers import LEASE_MS, TOPIC_ID, brokers, settle, sleep_ms

pytestmark = pytest.mark.virtual_time

TRIO = PartitionState(TOPIC_ID, (1, 2, 3), (1, 2, 3), 1)


async def test_who_is_unregistered_has_no_seat_and_no_node_any_more() -> None:
    async with brokers() as cluster:
        await cluster.create(TRIO, *[TRIO] * 120)
        await cluster[3].crash()
        await sleep_ms(LEASE_MS + 100)
        await cluster[1].controller.unregister(3)
        image = await cluster.image()
        assert 3 not in image.nodes
        states = await cluster.states()
        assert not any(3 in (*state.isr, *state.elr) for state in states.values())


async def test_who_alone_has_everything_is_not_unregistered_before_somebody_else_leads() -> None:
    """It may come back with all of it; where it cannot, an operator says so partition by partition."""
    async with brokers() as cluster:
        alone = replace(TRIO, isr=(3,), leader=3)
        await cluster.create(TRIO, alone, replace(alone, replicas=(3,)), *[alone] * 5)
        await cluster[3].crash()
        await sleep_ms(LEASE_MS + 100)
        before = await cluster.states()
        with pytest.raises(KafkaError) as raised:
            await cluster[1].controller.unregister(3)
        assert raised.value.code is ErrorCode.INVALID_REQUEST
        assert "the only one that has all of 7 partition(s): orders-1, orders-2, " in raised.value.message
        assert "orders-5, …. Start it again" in raised.value.message
        assert await cluster.states() == before
        assert 3 in (await cluster.image()).nodes
        await cluster.reborn(3)
        await settle()
        assert {state.leader for state in (await cluster.states()).values()} == {1, 3}


async def test_who_comes_back_while_it_is_unregistered_keeps_its_in_sync_places() -> None:
    async with brokers() as cluster:
        await cluster.create(replace(TRIO, replicas=(2, 3), isr=(2, 3), leader=2))
        await asyncio.gather(cluster[2].crash(), cluster[3].crash())
        await sleep_ms(LEASE_MS + 100)
        assert (await cluster.state()).elr == (2, 3)
        cluster[1].store.fates.append(Fate.HELD)
        unregistering = asyncio.ensure_future(cluster[1].controller.unregister(3))
        await settle()
        back = BrokerState(3, {"PLAINTEXT": ("10.0.0.3", 9092)}, directory_id=b"\x03" * 16)
        await cluster.store.commit(Txn(put={broker_key(3): back.encode()}))
        await cluster[1].store.deliver()
        with pytest.raises(Conflict):
            await unregistering
        await settle()
        state = await cluster.state()
        assert (state.leader, state.isr) == (3, (3,))
        assert 3 in (await cluster.image()).nodes
