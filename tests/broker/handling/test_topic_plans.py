"""New topics and partitions while brokers are down: replicas on the registered, leaders and ISR among those there.

Broker 0 answers; which of brokers 1 and 2 are there, and which stop, differs. Answers were compared with those of
Apache Kafka 4.3.1 (`tests/compat/test_cluster_commands.py` asks both).
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager

import pytest

from odradek.broker.cluster.keys import PartitionState, encode_stopping, node_key, stopping_key
from odradek.broker.cluster.store import Txn
from odradek.broker.handling.context import Context
from odradek.broker.handling.topic_plans import DEFAULT, plan_partitions, plan_topic
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.broker.api.controlling import OTHERS, controller, stored
from tests.broker.support import HERE, ask, make_topic

NOTHING: Mapping[int, Sequence[int]] = {}


@asynccontextmanager
async def cluster(up: Sequence[int] = (0, 1), stopping: Sequence[int] = ()) -> AsyncGenerator[Context]:
    """Brokers 0, 1 and 2 are registered; those `up` are there."""
    brokers = [each for each in (HERE, *OTHERS) if each.broker_id in up]
    async with controller(is_elected=False, brokers=brokers) as context:
        put = {stopping_key(each): encode_stopping(1) for each in stopping}
        await context.metadata.applied(await context.metadata.store.commit(Txn(put=put)))
        yield context


def planned(
    context: Context, count: int = 1, replication_factor: int = 3, assignments: Mapping[int, Sequence[int]] = NOTHING
) -> tuple[PartitionState, ...]:
    return plan_topic(context, "orders", count, replication_factor, tuple(assignments.items()), {}).partitions


def by_hand(context: Context, *replicas: int) -> PartitionState:
    [state] = planned(context, DEFAULT, DEFAULT, {0: replicas})
    return state


async def test_who_is_registered_gets_replicas_and_who_is_there_leads_and_is_in_sync() -> None:
    async with cluster() as context:
        for state in planned(context, 8):
            assert sorted(state.replicas) == [0, 1, 2]
            assert state.replicas[2] == 2
            assert sorted(state.isr) == [0, 1]
            assert state.leader == state.replicas[0]
            assert (state.elr, state.leader_epoch) == ((), 0)


async def test_who_stops_is_registered_and_neither_leads_nor_is_in_sync() -> None:
    async with cluster(up=(0, 1, 2), stopping=(0, 1)) as context:
        for state in planned(context, 4):
            assert (state.leader, state.isr, sorted(state.replicas)) == (2, (2,), [0, 1, 2])


async def test_replicas_given_by_hand_may_be_down_and_the_first_that_is_there_leads() -> None:
    async with cluster(up=(0, 1)) as context:
        state = by_hand(context, 2, 1, 0)
        assert (state.replicas, state.isr, state.leader) == ((2, 1, 0), (1, 0), 1)
        with pytest.raises(KafkaError, match="for partition 0 are fenced or in controlled shutdown") as caught:
            by_hand(context, 2)
        assert caught.value.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT


async def test_only_so_many_are_registered() -> None:
    async with cluster(up=(0,)) as context:
        with pytest.raises(KafkaError) as caught:
            planned(context, 1, 4)
        assert caught.value.code is ErrorCode.INVALID_REPLICATION_FACTOR
        assert caught.value.message == (
            "Unable to replicate the partition 4 time(s): The target replication factor of 4 cannot be reached because "
            "only 3 broker(s) are registered."
        )
        with pytest.raises(KafkaError, match="includes broker 3, but no such broker is registered"):
            by_hand(context, 0, 3)
        assert planned(context)[0].isr == (0,)


async def test_who_is_unregistered_gets_nothing() -> None:
    async with cluster() as context:
        await context.metadata.applied(await context.metadata.store.commit(Txn(delete=(node_key(2),))))
        with pytest.raises(KafkaError, match="only 2 broker"):
            planned(context)
        with pytest.raises(KafkaError, match="no such broker is registered"):
            by_hand(context, 0, 2)


async def test_where_nobody_may_lead_that_is_the_reason() -> None:
    async with cluster(up=(0,), stopping=(0,)) as context:
        for count in (1, 4):
            with pytest.raises(KafkaError, match=r"time\(s\): All brokers are currently fenced") as caught:
                planned(context, 1, count)
            assert caught.value.code is ErrorCode.INVALID_REPLICATION_FACTOR


async def test_added_partitions_are_placed_likewise() -> None:
    async with cluster() as context:
        request = CreateTopicsRequest(
            topics=[CreatableTopic(name="orders", num_partitions=1, replication_factor=3, assignments=[], configs=[])],
            timeout_ms=5_000,
        )
        [answer] = (await ask(context, request, 7)).topics
        assert (answer.error_code, answer.replication_factor) == (ErrorCode.NONE, 3)
        topic = context.metadata.image.topics["orders"]
        await make_topic(context, "lone")
        for state in plan_partitions(context, topic, 5, None):
            assert (state.replicas[2], sorted(state.isr)) == (2, [0, 1])
        [state] = plan_partitions(context, topic, 2, [[2, 0, 1]])
        assert (state.replicas, state.isr, state.leader) == ((2, 0, 1), (0, 1), 0)
        with pytest.raises(KafkaError, match="for partition 2 are fenced"):
            plan_partitions(context, context.metadata.image.topics["lone"], 3, [[0], [2]])
        more = CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name="orders", count=2, assignments=None)],
            timeout_ms=5_000,
            validate_only=False,
        )
        [result] = (await ask(context, more, 3)).results
        assert result.error_code == ErrorCode.NONE
        assert sorted((await stored(context, index=1)).isr) == [0, 1]


async def test_a_topic_that_a_client_asks_for_is_created_while_a_broker_is_down() -> None:
    async with cluster() as context:
        context.config.update({"default.replication.factor": "3"}, {})
        request = MetadataRequest(topics=[MetadataRequestTopic(name="orders")], allow_auto_topic_creation=True)
        answer = await ask(context, request, 12)
        [topic] = answer.topics
        [partition] = topic.partitions
        assert (topic.error_code, partition.error_code) == (ErrorCode.NONE, ErrorCode.NONE)
        assert sorted(partition.replica_nodes) == [0, 1, 2]
        assert (sorted(partition.isr_nodes), partition.offline_replicas) == ([0, 1], [2])
        assert [each.node_id for each in answer.brokers] == [0, 1]
