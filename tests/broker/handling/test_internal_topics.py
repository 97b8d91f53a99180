"""Topics that the broker makes for itself: one however many ask, and more replicas when there are more brokers."""

import asyncio
from dataclasses import replace

import pytest

from odradek.broker.access.principal import BROKER_ITSELF
from odradek.broker.cluster.keys import BrokerState, broker_key
from odradek.broker.cluster.store import Txn
from odradek.broker.handling import internal_topics
from odradek.broker.handling.context import Call, Context
from odradek.broker.handling.internal_topics import InternalTopic, add_replicas, ensure_internal_topic
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from tests.broker.api.controlling import controller
from tests.broker.handling.test_forwarding import FIRST, world
from tests.broker.support import HERE, running_broker

WANTED = InternalTopic("__tests", 4, 3, {"cleanup.policy": "compact"})
LONG_MS = 10_000.0


async def register(context: Context, *broker_ids: int) -> None:
    put = {broker_key(each): BrokerState(each, {"PLAINTEXT": (f"10.0.0.{each}", 9092)}).encode() for each in broker_ids}
    revision = await context.metadata.store.commit(Txn(put=put))
    await asyncio.wait_for(context.metadata.applied(revision), 5)


def placed(context: Context) -> list[tuple[int, ...]]:
    return [state.replicas for state in context.metadata.image.topics["__tests"].partitions]


async def test_one_broker_creates_it_with_the_replicas_that_there_can_be() -> None:
    async with running_broker() as context:
        topic = await ensure_internal_topic(context, WANTED, LONG_MS)
        assert topic is context.metadata.image.topics["__tests"]
        assert placed(context) == [(0,)] * 4
        assert context.partitions.leader("__tests", 3).config.cleanup_policy == ("compact",)
        assert await ensure_internal_topic(context, WANTED, LONG_MS) is topic


async def test_however_many_ask_at_once_there_is_one() -> None:
    async with running_broker() as context:
        asked = (ensure_internal_topic(context, WANTED, LONG_MS) for _ in range(5))
        topics = await asyncio.wait_for(asyncio.gather(*asked), 5)
        assert len({topic.topic_id for topic in topics}) == 1


async def test_without_time_it_is_not_waited_for_and_created_nevertheless() -> None:
    async with running_broker() as context:
        with pytest.raises(KafkaError) as raised:
            await ensure_internal_topic(context, WANTED, 0)
        assert raised.value.code is ErrorCode.REQUEST_TIMED_OUT
        assert (await ensure_internal_topic(context, WANTED, LONG_MS)).name == "__tests"


async def test_more_brokers_get_replicas_and_who_leads_goes_on() -> None:
    async with controller(nodes=(0,), brokers=[HERE]) as context:
        await ensure_internal_topic(context, WANTED, LONG_MS)
        assert await add_replicas(context, WANTED, LONG_MS) == 0
        await register(context, 1)
        assert await add_replicas(context, WANTED, LONG_MS) == 4
        states = context.metadata.image.topics["__tests"].partitions
        assert {(state.adding, state.leader) for state in states} == {((1,), 0)}
        assert sorted(state.replicas for state in states) == [(0, 1)] * 2 + [(1, 0)] * 2
        assert await add_replicas(context, WANTED, LONG_MS) == 0, "it is under way"


@pytest.mark.virtual_time
async def test_who_is_not_the_controller_asks_it_and_is_told_what_it_refuses() -> None:
    async with world() as (here, context):
        one = replace(WANTED, replication_factor=1)
        await ensure_internal_topic(context, one, LONG_MS)
        here.answers[FIRST] = AlterPartitionReassignmentsResponse(responses=[])
        assert await add_replicas(context, WANTED, LONG_MS) == 4
        [(_, version, request)] = here.asked
        [topic] = request.topics
        assert (version, topic.name, [len(each.replicas) for each in topic.partitions]) == (1, "__tests", [3] * 4)
        code = ErrorCode.INVALID_REPLICA_ASSIGNMENT
        refused = ReassignablePartitionResponse(partition_index=0, error_code=code, error_message="no")
        here.answers[FIRST] = AlterPartitionReassignmentsResponse(
            responses=[ReassignableTopicResponse(name="__tests", partitions=[refused])]
        )
        with pytest.raises(KafkaError, match="INVALID_REPLICA_ASSIGNMENT: no"):
            await add_replicas(context, WANTED, LONG_MS)


async def test_of_a_topic_that_is_not_there_nothing_can_be_added() -> None:
    async with running_broker() as context:
        with pytest.raises(KafkaError) as raised:
            await add_replicas(context, WANTED, LONG_MS)
        assert raised.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_with_more_brokers_it_is_spread_over_them() -> None:
    async with running_broker(brokers=[HERE, *(BrokerState(each, {}) for each in (1, 2, 3))]) as context:
        await ensure_internal_topic(context, WANTED, LONG_MS)
        assert {len(set(replicas)) for replicas in placed(context)} == {3}
        assert {broker_id for replicas in placed(context) for broker_id in replicas} == {0, 1, 2, 3}


async def test_it_is_asked_for_in_no_clients_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """An authorizer at the controller would refuse ANONYMOUS."""
    asked: list[Call] = []

    async def forwarded(context: Context, call: Call, *others: object) -> AlterPartitionReassignmentsResponse:
        asked.append(call)
        return AlterPartitionReassignmentsResponse(responses=[])

    async with running_broker(brokers=[HERE]) as context:
        await ensure_internal_topic(context, WANTED, LONG_MS)
        revision = await context.metadata.store.commit(Txn(put={broker_key(1): BrokerState(1, {}).encode()}))
        await context.metadata.applied(revision)
        monkeypatch.setattr(internal_topics, "forward", forwarded)
        assert await add_replicas(context, WANTED, LONG_MS)
    assert [call.principal for call in asked] == [BROKER_ITSELF]
