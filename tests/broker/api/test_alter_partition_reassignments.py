"""AlterPartitionReassignments: partitions get other replicas, each by itself, from the controller only."""

from odradek.broker.handling.context import Context
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from tests.broker.api.controlling import controller, stored
from tests.broker.support import ask, make_topic

VERSION = 1


async def altered(
    context: Context,
    partitions: dict[int, list[int] | None],
    *,
    topic: str = "orders",
    version: int = VERSION,
    may_change_count: bool = True,
) -> AlterPartitionReassignmentsResponse:
    wanted = [ReassignablePartition(partition_index=index, replicas=replicas) for index, replicas in partitions.items()]
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=5_000,
        allow_replication_factor_change=may_change_count,
        topics=[ReassignableTopic(name=topic, partitions=wanted)],
    )
    return await ask(context, request, version)


def codes(response: AlterPartitionReassignmentsResponse) -> dict[int, int]:
    assert response.error_code == ErrorCode.NONE
    return {each.partition_index: each.error_code for topic in response.responses for each in topic.partitions}


async def test_a_reassignment_begins_and_is_cancelled() -> None:
    async with controller() as context:
        await make_topic(context, "orders", replicas=(0, 1))
        assert codes(await altered(context, {0: [0, 2]})) == {0: ErrorCode.NONE}
        state = await stored(context)
        assert (state.replicas, state.adding, state.removing) == ((0, 2, 1), (2,), (1,))
        assert context.metadata.image.topics["orders"].partitions[0] == state, "the answer is true for who asks next"
        assert codes(await altered(context, {0: None})) == {0: ErrorCode.NONE}
        assert (await stored(context)).replicas == (0, 1)


async def test_each_partition_has_its_own_answer() -> None:
    async with controller() as context:
        await make_topic(context, "orders", 3, replicas=(0, 1))
        response = await altered(context, {0: [0, 9], 1: [0, 2], 2: None, 7: [0]})
        assert codes(response) == {
            0: ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            1: ErrorCode.NONE,
            2: ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
            7: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        assert [(await stored(context, index=index)).adding for index in range(3)] == [(), (2,), ()]
        told = [each.error_message for topic in response.responses for each in topic.partitions]
        assert told[1] is None
        assert all(told[index] for index in (0, 2, 3))


async def test_whether_the_number_of_replicas_may_change_is_said_since_version_1() -> None:
    async with controller() as context:
        await make_topic(context, "orders", 2, replicas=(0, 1))
        refused = await altered(context, {0: [0]}, may_change_count=False)
        assert codes(refused) == {0: ErrorCode.INVALID_REPLICATION_FACTOR}
        assert not refused.allow_replication_factor_change
        assert codes(await altered(context, {1: [0]}, version=0)) == {1: ErrorCode.NONE}


async def test_what_is_so_already_is_not_written() -> None:
    async with controller() as context:
        await make_topic(context, "orders", replicas=(0, 1))
        before = await stored(context)
        assert codes(await altered(context, {0: [0, 1]})) == {0: ErrorCode.NONE}
        assert (await stored(context)).revision == before.revision
