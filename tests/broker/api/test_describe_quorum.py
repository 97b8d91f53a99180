"""DescribeQuorum: the controller as leader, the others as observers, and how far this broker has followed."""

import pytest

from odradek.broker.cluster.keys import CONTROLLER_KEY, encode_controller
from odradek.broker.cluster.store import Txn
from odradek.broker.handling.context import Context
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    QuorumPartitionData,
    QuorumTopicData,
)
from tests.broker.api.controlling import OTHERS, controller
from tests.broker.support import HERE, ask

METADATA = "__cluster_metadata"


async def described(
    context: Context, version: int = 2, *, topic: str = METADATA, indexes: tuple[int, ...] = (0,), listener: str = ""
) -> DescribeQuorumResponse:
    partitions = [QuorumPartitionData(partition_index=index) for index in indexes]
    request = DescribeQuorumRequest(topics=[QuorumTopicData(topic_name=topic, partitions=partitions)])
    return await ask(context, request, version, listener=listener or "PLAINTEXT")


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_the_controller_leads_and_the_others_observe(version: int) -> None:
    async with controller() as context:
        response = await described(context, version)
        (topic,) = response.topics
        (partition,) = topic.partitions
        image = context.metadata.image
        assert (topic.topic_name, partition.partition_index, partition.leader_id) == (METADATA, 0, 0)
        assert partition.leader_epoch == image.controller_revision
        assert partition.high_watermark == image.revision
        assert [(each.replica_id, each.log_end_offset) for each in partition.current_voters] == [(0, image.revision)]
        assert [(each.replica_id, each.log_end_offset) for each in partition.observers] == [(1, -1), (2, -1)]
        nodes = {node.node_id: node.listeners[0].port for node in response.nodes}
        assert nodes == ({0: 9092, 1: 9093, 2: 9094} if version == 2 else {})


async def test_the_controller_says_what_time_it_is_there_and_nobody_else_does() -> None:
    async with controller() as context:
        before_ms = context.environment.now_ms()
        (partition,) = (await described(context, 1)).topics[0].partitions
        (voter,) = partition.current_voters
        assert before_ms <= voter.last_fetch_timestamp <= context.environment.now_ms()
        assert voter.last_caught_up_timestamp == voter.last_fetch_timestamp
        assert {each.last_fetch_timestamp for each in partition.observers} == {-1}
        store = context.metadata.store
        await context.metadata.applied(await store.commit(Txn(put={CONTROLLER_KEY: encode_controller(1)})))
        (partition,) = (await described(context, 1)).topics[0].partitions
        assert [(each.replica_id, each.last_fetch_timestamp) for each in partition.current_voters] == [(1, -1)]


async def test_nodes_are_named_as_they_are_reached_on_the_listener_that_was_asked() -> None:
    async with controller(brokers=(HERE, *OTHERS)) as context:
        response = await described(context, listener="PUBLIC")
        assert [(node.node_id, node.listeners[0].port) for node in response.nodes] == [(1, 9193), (2, 9194)]


@pytest.mark.parametrize(("topic", "indexes"), [("orders", (0,)), (METADATA, (1,)), (METADATA, (0, 1)), (METADATA, ())])
async def test_nothing_else_has_a_quorum(topic: str, indexes: tuple[int, ...]) -> None:
    async with controller() as context:
        response = await described(context, topic=topic, indexes=indexes)
        assert (response.error_code, response.topics) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, [])
