"""ListOffsets finds the first, the last and the timestamp's offset, in the versions that know them; errors are single.

The expected numbers were read from Apache Kafka 4.3.1 with the same records.
"""

import pytest

from odradek.broker.handling.context import Context
from odradek.broker.replica.replicas import Replicas
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tests.broker.support import append, ask, batch, make_topic, running_broker

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, PENDING_UPLOAD = range(-1, -7, -1)
Asked = tuple[int, int, int]
"""Partition, current leader epoch, timestamp."""
Told = tuple[int, int, int, int]
"""Error, timestamp, offset, leader epoch."""


async def listed(
    context: Context,
    *asked: Asked,
    version: int = 9,
    topic: str = "orders",
    isolation_level: int = 0,
    replica: int = -1,
) -> list[ListOffsetsPartitionResponse]:
    request = ListOffsetsRequest(
        replica_id=replica,
        isolation_level=isolation_level,
        topics=[
            ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsPartition(partition_index=index, current_leader_epoch=epoch, timestamp=timestamp)
                    for index, epoch, timestamp in asked
                ],
            )
        ],
    )
    answer = await ask(context, request, version)
    (told,) = answer.topics
    assert told.name == topic
    assert [partition.partition_index for partition in told.partitions] == [index for index, _, _ in asked]
    return told.partitions


def told(partition: ListOffsetsPartitionResponse) -> Told:
    return partition.error_code, partition.timestamp, partition.offset, partition.leader_epoch


async def with_records(context: Context) -> None:
    """Three records, the one with the largest timestamp in the middle; partition 1 stays empty."""
    await make_topic(context, "orders", 2)
    partition = context.partitions.leader("orders", 0)
    for timestamp_ms in (1000, 3000, 2000):
        append(partition, batch(b"v", timestamps_ms=[timestamp_ms]))


@pytest.mark.parametrize("version", range(1, 12))
@pytest.mark.parametrize(
    ("timestamp", "since", "expected"),
    [
        (LATEST, 1, (-1, 3, 0)),
        (EARLIEST, 1, (-1, 0, 0)),
        (MAX_TIMESTAMP, 7, (3000, 1, 0)),
        (EARLIEST_LOCAL, 8, (-1, 0, 0)),
        (LATEST_TIERED, 9, (-1, -1, -1)),
        (PENDING_UPLOAD, 11, (-1, -1, -1)),
        (-7, 99, (-1, -1, -1)),
        (0, 1, (1000, 0, 0)),
        (1000, 1, (1000, 0, 0)),
        (1500, 1, (3000, 1, 0)),
        (3001, 1, (-1, -1, -1)),
    ],
)
async def test_each_timestamp_in_each_version(
    version: int, timestamp: int, since: int, expected: tuple[int, int, int]
) -> None:
    async with running_broker() as context:
        await with_records(context)
        (answer,) = await listed(context, (0, -1, timestamp), version=version)
    if version < since:
        assert told(answer) == (ErrorCode.UNSUPPORTED_VERSION, -1, -1, -1)
    else:
        found_ms, offset, epoch = expected
        assert told(answer) == (ErrorCode.NONE, found_ms, offset, epoch if version >= 4 else -1)


async def test_an_empty_partition_has_a_first_and_a_last_offset_and_nothing_else() -> None:
    async with running_broker() as context:
        await with_records(context)
        offsets = {
            timestamp: told((await listed(context, (1, -1, timestamp)))[0])
            for timestamp in (LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, 0)
        }
    nothing = ErrorCode.NONE, -1, -1, -1
    assert offsets == {
        LATEST: (ErrorCode.NONE, -1, 0, 0),
        EARLIEST: (ErrorCode.NONE, -1, 0, 0),
        MAX_TIMESTAMP: nothing,
        EARLIEST_LOCAL: (ErrorCode.NONE, -1, 0, 0),
        LATEST_TIERED: nothing,
        0: nothing,
    }


async def test_after_records_were_deleted_the_first_offset_is_the_log_start() -> None:
    async with running_broker() as context:
        await with_records(context)
        await context.partitions.delete_records(context.partitions.leader("orders", 0), 2)
        offsets = [told(each) for each in await listed(context, (0, -1, EARLIEST))]
        found = [told(each) for each in await listed(context, (0, -1, 0))]
    assert offsets == [(ErrorCode.NONE, -1, 2, 0)]
    assert found == [(ErrorCode.NONE, 2000, 2, 0)]


@pytest.mark.parametrize("isolation_level", [0, 1])
async def test_consumers_find_nothing_behind_the_high_watermark(isolation_level: int) -> None:
    """A follower that lags holds the high watermark back; a replica may ask for the log end."""
    async with running_broker() as context:
        await with_records(context)
        partition = context.partitions.leader("orders", 0)
        partition.become_leader(1, Replicas(0, (0, 1), (0, 1)))
        append(partition, batch(b"unreplicated", timestamps_ms=[9000]))
        assert partition.high_watermark.value == 3
        consumer = [
            told((await listed(context, (0, -1, timestamp), isolation_level=isolation_level))[0])
            for timestamp in (LATEST, MAX_TIMESTAMP, 9000)
        ]
        (replica,) = await listed(context, (0, -1, LATEST), replica=1)
    assert consumer[0] == (ErrorCode.NONE, -1, 3, 1)
    assert consumer[1] == (ErrorCode.NONE, -1, -1, -1)
    assert consumer[2] == (ErrorCode.NONE, -1, -1, -1)
    assert replica.offset == 4


@pytest.mark.parametrize(
    ("version", "code"), [(4, ErrorCode.LEADER_NOT_AVAILABLE), (5, ErrorCode.OFFSET_NOT_AVAILABLE)]
)
async def test_the_end_is_unknown_until_the_high_watermark_has_reached_the_new_epoch(
    version: int, code: ErrorCode
) -> None:
    async with running_broker() as context:
        await with_records(context)
        partition = context.partitions.leader("orders", 0)
        partition.high_watermark.restart(1)
        partition.become_leader(1, Replicas(0, (0, 1), (0, 1)))
        answers = [
            told((await listed(context, (0, -1, timestamp), version=version))[0])
            for timestamp in (LATEST, 2500, EARLIEST, 500)
        ]
    assert answers[0] == answers[1] == (code, -1, -1, -1)
    assert [offset for _, _, offset, _ in answers[2:]] == [0, 0]


async def test_a_partition_named_twice_is_refused_each_time_and_the_others_are_not() -> None:
    async with running_broker() as context:
        await with_records(context)
        answers = await listed(context, (0, -1, LATEST), (1, -1, LATEST), (0, -1, EARLIEST))
    assert [answer.error_code for answer in answers] == [ErrorCode.INVALID_REQUEST, 0, ErrorCode.INVALID_REQUEST]
    assert [answer.offset for answer in answers] == [-1, 0, -1]


async def test_a_partition_named_under_two_entries_of_its_topic_is_refused() -> None:
    async with running_broker() as context:
        await with_records(context)
        entry = ListOffsetsTopic(name="orders", partitions=[ListOffsetsPartition(partition_index=0, timestamp=LATEST)])
        answer = await ask(context, ListOffsetsRequest(replica_id=-1, topics=[entry, entry]), 1)
    assert [[each.error_code for each in topic.partitions] for topic in answer.topics] == [
        [ErrorCode.INVALID_REQUEST],
        [ErrorCode.INVALID_REQUEST],
    ]


async def test_the_clients_leader_epoch_is_compared() -> None:
    async with running_broker() as context:
        await make_topic(context, "orders", 3)
        context.partitions.leader("orders", 0).become_leader(5, Replicas(0, (0,), (0,)))
        answers = await listed(context, (0, 4, LATEST), (1, 7, LATEST), (2, 0, LATEST))
    assert [answer.error_code for answer in answers] == [
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.NONE,
    ]


async def test_unknown_topic_unknown_partition_and_lost_leadership() -> None:
    async with running_broker() as context:
        await make_topic(context, "orders", 1)
        (unknown,) = await listed(context, (0, -1, LATEST), topic="nowhere")
        (out_of_range,) = await listed(context, (7, -1, LATEST))
        context.partitions.leader("orders", 0).resign()
        (led_elsewhere,) = await listed(context, (0, -1, LATEST))
    assert told(unknown) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1, -1)
    assert told(out_of_range) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1, -1)
    assert told(led_elsewhere) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, -1, -1)
