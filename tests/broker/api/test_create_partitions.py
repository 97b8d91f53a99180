"""CreatePartitions: topics only grow, in the order of their partitions, and only as far as they may.

Errors and texts were compared with those of Apache Kafka 4.3.1.
"""

import asyncio
from collections.abc import Sequence

import pytest

from odradek.broker.cluster.keys import BrokerState, PartitionState, partition_key
from odradek.broker.cluster.store import Txn
from odradek.broker.handling.context import Context
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from tests.broker.support import HERE, append, ask, batch, make_topic, running_broker

SECOND = BrokerState(1, {"PLAINTEXT": ("127.0.0.1", 9093)})
THIRD = BrokerState(2, {"PLAINTEXT": ("127.0.0.1", 9094)})


def wanted(name: str, count: int, assignments: Sequence[Sequence[int]] | None = None) -> CreatePartitionsTopic:
    given = None
    if assignments is not None:
        given = [CreatePartitionsAssignment(broker_ids=list(replicas)) for replicas in assignments]
    return CreatePartitionsTopic(name=name, count=count, assignments=given)


async def enlarged(
    context: Context,
    *topics: CreatePartitionsTopic,
    version: int = 3,
    validate_only: bool = False,
    timeout_ms: int = 10_000,
) -> list[CreatePartitionsTopicResult]:
    request = CreatePartitionsRequest(topics=list(topics), timeout_ms=timeout_ms, validate_only=validate_only)
    answer = await ask(context, request, version)
    assert [result.name for result in answer.results] == [topic.name for topic in topics]
    return answer.results


def count_of(context: Context, name: str) -> int:
    return len(context.metadata.image.topics[name].partitions)


@pytest.mark.parametrize("version", range(4))
async def test_the_new_partitions_can_be_used_when_the_answer_is_out(version: int) -> None:
    async with running_broker() as context:
        await make_topic(context, "orders", 2)
        append(context.partitions.leader("orders", 0), batch(b"stays"))
        (result,) = await enlarged(context, wanted("orders", 5), version=version)
        ends = [context.partitions.leader("orders", index).log.log_end_offset for index in range(5)]
    assert (result.error_code, result.error_message) == (ErrorCode.NONE, None)
    assert ends == [1, 0, 0, 0, 0]


async def test_partitions_placed_by_hand_keep_the_replication_factor() -> None:
    async with running_broker(brokers=(HERE, SECOND)) as context:
        await make_topic(context, "orders", replicas=(0, 1))
        (result,) = await enlarged(context, wanted("orders", 3, [[1, 0], [0, 1]]))
        partitions = context.metadata.image.topics["orders"].partitions
    assert result.error_code == ErrorCode.NONE
    assert [partition.replicas for partition in partitions] == [(0, 1), (1, 0), (0, 1)]


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (2, "Topic already has 2 partition(s)."),
        (1, "The topic orders currently has 2 partition(s); 1 would not be an increase."),
        (0, "The topic orders currently has 2 partition(s); 0 would not be an increase."),
        (-1, "The topic orders currently has 2 partition(s); -1 would not be an increase."),
    ],
)
async def test_a_count_that_is_no_increase(count: int, text: str) -> None:
    async with running_broker() as context:
        await make_topic(context, "orders", 2)
        (result,) = await enlarged(context, wanted("orders", count))
        assert count_of(context, "orders") == 2
    assert (result.error_code, result.error_message) == (ErrorCode.INVALID_PARTITIONS, text)


async def test_more_partitions_than_a_request_may_add() -> None:
    async with running_broker() as context:
        await make_topic(context, "orders")
        (result,) = await enlarged(context, wanted("orders", 20_000))
        (unassigned,) = await enlarged(context, wanted("orders", 20_000, []))
        (assigned,) = await enlarged(context, wanted("orders", 20_000, [[0]] * 19_999))
    assert result.error_code == assigned.error_code == ErrorCode.POLICY_VIOLATION
    assert unassigned.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT, "which Kafka finds first"


IMPOSSIBLE: list[tuple[list[list[int]], str]] = [
    ([], "Attempted to add 1 additional partition(s), but only 0 assignment(s) were specified."),
    ([[0], [0]], "Attempted to add 1 additional partition(s), but only 2 assignment(s) were specified."),
    ([[]], "includes an empty replica list"),
    ([[7]], "includes broker 7, but no such broker is registered"),
    ([[0, 0]], "includes the broker 0 more than once"),
    ([[0, 1]], "includes a partition with 2 replica(s), but this is not consistent"),
]


@pytest.mark.parametrize(("assignments", "reason"), IMPOSSIBLE)
async def test_assignments_that_are_not_possible(assignments: list[list[int]], reason: str) -> None:
    async with running_broker(brokers=(HERE, SECOND)) as context:
        await make_topic(context, "orders")
        (result,) = await enlarged(context, wanted("orders", 2, assignments))
        assert count_of(context, "orders") == 1
    assert result.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert reason in (result.error_message or "")


async def test_replicas_for_which_the_brokers_are_no_longer_enough() -> None:
    async with running_broker() as context:
        await make_topic(context, "orders", replicas=(0, 1, 2))
        (result,) = await enlarged(context, wanted("orders", 2))
    assert result.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert result.error_message == (
        "The target replication factor of 3 cannot be reached because only 1 broker(s) are registered."
    )


async def test_each_topic_has_its_own_answer_and_one_given_twice_stays_as_it_is() -> None:
    async with running_broker() as context:
        for name in ("a", "b"):
            await make_topic(context, name)
        results = await enlarged(context, wanted("a", 2), wanted("nowhere", 2), wanted("b", 3), wanted("a", 3))
        assert (count_of(context, "a"), count_of(context, "b")) == (1, 3)
    assert [result.error_code for result in results] == [
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NONE,
        ErrorCode.INVALID_REQUEST,
    ]
    assert results[0].error_message == "Duplicate topic name."


async def test_validate_only_checks_and_changes_nothing() -> None:
    async with running_broker() as context:
        await make_topic(context, "orders")
        good, bad = await enlarged(context, wanted("orders", 5), wanted("nowhere", 2), validate_only=True)
        assert count_of(context, "orders") == 1
    assert (good.error_code, bad.error_code) == (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


async def test_who_does_not_want_to_wait_is_told_so_and_the_partitions_are_added() -> None:
    async with running_broker() as context:
        await make_topic(context, "orders")
        revision = context.metadata.image.revision
        (result,) = await enlarged(context, wanted("orders", 2), timeout_ms=0)
        await asyncio.wait_for(context.metadata.applied(revision + 1), 5)
        assert count_of(context, "orders") == 2
    assert result.error_code == ErrorCode.REQUEST_TIMED_OUT


async def test_of_two_increases_at_once_one_is_told_to_look_again() -> None:
    async with running_broker() as context:
        await make_topic(context, "orders")
        results = await asyncio.gather(*(enlarged(context, wanted("orders", count)) for count in (2, 3)))
        codes = [ErrorCode(result.error_code) for (result,) in results]
        assert count_of(context, "orders") == (3, 2)[codes.index(ErrorCode.NOT_CONTROLLER)]
    assert sorted(codes) == [ErrorCode.NONE, ErrorCode.NOT_CONTROLLER]


async def test_they_get_as_many_replicas_as_the_first_one_has_by_now() -> None:
    """It was created with one, and reassigned to two; or it is on the way to one of three."""
    async with running_broker(brokers=(HERE, SECOND, THIRD)) as context:
        for name, replicas, removing, count in (("grown", (0, 1), (), 2), ("shrinking", (0, 1, 2), (1, 2), 1)):
            topic_id = await make_topic(context, name)
            moved = PartitionState(topic_id, replicas, (0,), 0, leader_epoch=1, removing=removing)
            revision = await context.metadata.store.commit(Txn(put={partition_key(name, 0): moved.encode()}))
            await context.metadata.applied(revision)
            (result,) = await enlarged(context, wanted(name, 2))
            assert result.error_code == ErrorCode.NONE
            assert len(context.metadata.image.topics[name].partitions[1].replicas) == count
