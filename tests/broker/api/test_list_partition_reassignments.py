"""ListPartitionReassignments: what is on its way to other replicas, and nothing else."""

from dataclasses import replace

from odradek.broker.cluster.keys import partition_key
from odradek.broker.cluster.store import Txn
from odradek.broker.handling.context import Context
from odradek.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
    OngoingPartitionReassignment,
)
from tests.broker.api.controlling import controller, stored
from tests.broker.support import ask, make_topic

MOVING = OngoingPartitionReassignment(partition_index=1, replicas=[0, 2, 1], adding_replicas=[2], removing_replicas=[1])


async def listed(context: Context, asked: dict[str, list[int]] | None) -> dict[str, list[OngoingPartitionReassignment]]:
    topics = None
    if asked is not None:
        topics = [ListPartitionReassignmentsTopics(name=name, partition_indexes=each) for name, each in asked.items()]
    response = await ask(context, ListPartitionReassignmentsRequest(timeout_ms=1_000, topics=topics), 0)
    assert response.error_code == 0
    return {topic.name: topic.partitions for topic in response.topics}


async def test_only_what_is_under_way_is_listed_by_any_broker() -> None:
    async with controller(is_elected=False) as context:
        await make_topic(context, "orders", 2, replicas=(0, 1))
        await make_topic(context, "bills", replicas=(0, 1))
        assert await listed(context, None) == {}
        moving = replace(await stored(context, index=1), replicas=(0, 2, 1), adding=(2,), removing=(1,))
        moving = replace(moving, leader_epoch=1, partition_epoch=1)
        revision = await context.metadata.store.commit(Txn(put={partition_key("orders", 1): moving.encode()}))
        await context.metadata.applied(revision)
        assert await listed(context, None) == {"orders": [MOVING]}
        assert await listed(context, {"orders": [0, 1, 7, -1], "bills": [0], "unknown": [0]}) == {"orders": [MOVING]}
        assert await listed(context, {"orders": [0]}) == {}
        assert await listed(context, {}) == {}
