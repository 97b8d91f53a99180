"""OffsetForLeaderEpoch says where an epoch ended in the log, so that clients notice what was cut off."""

from odradek.broker.handling.context import Context
from odradek.broker.replica.replicas import Replicas
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.broker.support import append, ask, batch, make_topic, running_broker

ALONE = Replicas(0, (0,), (0,))
Asked = tuple[int, int, int]
"""Partition, current leader epoch, leader epoch asked for."""


async def ends(context: Context, *asked: Asked, topic: str = "orders", version: int = 4) -> list[EpochEndOffset]:
    request = OffsetForLeaderEpochRequest(
        replica_id=-1,
        topics=[
            OffsetForLeaderTopic(
                topic=topic,
                partitions=[
                    OffsetForLeaderPartition(partition=index, current_leader_epoch=current, leader_epoch=epoch)
                    for index, current, epoch in asked
                ],
            )
        ],
    )
    answer = await ask(context, request, version)
    (told,) = answer.topics
    assert told.topic == topic
    return told.partitions


def end(epoch: int, offset: int, partition: int = 0) -> EpochEndOffset:
    return EpochEndOffset(partition=partition, leader_epoch=epoch, end_offset=offset)


async def with_epochs(context: Context) -> None:
    """Epoch 0 with offsets 0 and 1, epoch 3 with offset 2."""
    await make_topic(context, "orders", 2)
    partition = context.partitions.leader("orders", 0)
    append(partition, batch(b"a", b"b"))
    partition.become_leader(3, ALONE)
    append(partition, batch(b"c"))


async def test_the_largest_epoch_that_is_not_later_and_where_it_ended() -> None:
    async with running_broker() as context:
        await with_epochs(context)
        answers = await ends(context, (0, -1, 0), (0, -1, 1), (0, -1, 2), (0, -1, 3))
    assert answers == [end(0, 2), end(0, 2), end(0, 2), end(3, 3)]


async def test_each_version_answers_alike() -> None:
    async with running_broker() as context:
        await with_epochs(context)
        answers = [await ends(context, (0, 3, 0), version=version) for version in (2, 3, 4)]
    assert answers == [[end(0, 2)]] * 3


async def test_an_epoch_that_the_leader_does_not_know_has_no_end() -> None:
    async with running_broker() as context:
        await with_epochs(context)
        answers = await ends(context, (0, -1, 4), (0, -1, -1))
    assert answers == [end(-1, -1), end(-1, -1)]


async def test_the_current_epoch_of_an_empty_partition_ends_at_its_log_end() -> None:
    async with running_broker() as context:
        await with_epochs(context)
        answers = await ends(context, (1, -1, 0))
    assert answers == [end(0, 0, partition=1)]


async def test_an_epoch_in_which_nothing_was_appended_is_not_mistaken_for_a_truncation() -> None:
    """A consumer learns epoch 4 from ListOffsets at the log end; the leader goes on in epoch 5. Where Kafka's leader
    would say "(3, log end)", an unknown epoch would make the consumer believe that its records are gone."""
    async with running_broker() as context:
        await with_epochs(context)
        for epoch in (4, 5):
            context.partitions.leader("orders", 0).become_leader(epoch, ALONE)
        answers = await ends(context, (0, -1, 4), (0, -1, 3), (0, -1, 5))
    assert answers == [end(3, 3), end(3, 3), end(5, 3)]


async def test_an_old_epoch_of_a_partition_without_records_ends_at_its_log_end() -> None:
    async with running_broker() as context:
        await with_epochs(context)
        context.partitions.leader("orders", 1).become_leader(5, ALONE)
        answers = await ends(context, (1, -1, 2))
    assert answers == [end(2, 0, partition=1)]


async def test_the_clients_current_leader_epoch_is_compared() -> None:
    async with running_broker() as context:
        await with_epochs(context)
        answers = await ends(context, (0, 2, 0), (0, 9, 0), (0, 3, 0))
    assert [answer.error_code for answer in answers] == [
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.NONE,
    ]
    assert (answers[0].leader_epoch, answers[0].end_offset) == (-1, -1)


async def test_unknown_topic_unknown_partition_and_lost_leadership() -> None:
    async with running_broker() as context:
        await with_epochs(context)
        (unknown,) = await ends(context, (0, -1, 0), topic="nowhere")
        context.partitions.leader("orders", 1).resign()
        out_of_range, led_elsewhere = await ends(context, (9, -1, 0), (1, -1, 0))
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert out_of_range.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert led_elsewhere.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_a_follower_compares_the_clients_epoch_before_it_says_that_another_one_leads() -> None:
    """As `Partition.getLocalLog` does: who knows a newer epoch than the broker hears that, and may wait for it."""
    async with running_broker() as context:
        await with_epochs(context)
        partition = context.partitions.leader("orders", 0)
        epoch = partition.leader_epoch
        partition.become_follower(1, epoch)
        answers = await ends(context, (0, -1, 0), (0, epoch, 0), (0, epoch - 1, 0), (0, epoch + 1, 0))
    assert [answer.error_code for answer in answers] == [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
    ]
