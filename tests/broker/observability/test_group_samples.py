"""Metrics of groups follow what the groups do."""

from odradek.broker.observability import metric_rows as rows
from odradek.broker.observability.group_samples import group_samples
from odradek.broker.observability.sample import Sample
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.broker.support import ask, make_topic, running_broker

SETTINGS = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "2"}


def commit(group_id: str) -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata=None)
    return OffsetCommitRequest(
        group_id=group_id, topics=[OffsetCommitRequestTopic(name="orders", partitions=[partition])]
    )


async def test_groups_and_offsets_are_counted() -> None:
    async with running_broker(SETTINGS) as context:
        await make_topic(context, "orders")
        await ask(context, FindCoordinatorRequest(coordinator_keys=["simple"]), 4)
        for _ in range(2):
            await ask(context, commit("simple"), 8)
        protocols = [JoinGroupRequestProtocol(name="range", metadata=b"")]
        join = JoinGroupRequest(
            group_id="members", session_timeout_ms=10_000, member_id="", protocol_type="consumer", protocols=protocols
        )
        await ask(context, join, 0)
        samples: list[Sample] = list(group_samples(context.groups, context.group_counts))
    told = {(row, labels): value for row, labels, value in samples}
    assert told[rows.GROUPS, ("classic", "Empty")] == 1
    assert told[rows.GROUPS, ("classic", "CompletingRebalance")] == 1
    assert told[rows.COORDINATOR_PARTITIONS, ("active",)] == 2
    assert told[rows.COMMITTED_OFFSETS, ()] == 1
    assert told[rows.OFFSET_COMMITS, ()] == 2
    assert told[rows.REBALANCES, ("member joined",)] == 1
