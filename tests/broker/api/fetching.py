"""What the tests of Fetch share: requests, their answers, and a topic with records."""

from odradek.broker.handling.context import Context
from odradek.broker.replica.partition import Partition
from odradek.protocol.batches.batch import iterate_batches
from odradek.protocol.codec.schema import ZERO_UUID
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)
from tests.broker.support import append, ask, batch, make_topic

BY_NAME, BY_ID = 12, 17
LARGE = 1 << 20
INITIAL, FINAL = 0, -1


def wanted(
    index: int = 0, offset: int = 0, *, epoch: int = -1, last_epoch: int = -1, max_bytes: int = LARGE
) -> FetchPartition:
    return FetchPartition(
        partition=index,
        current_leader_epoch=epoch,
        fetch_offset=offset,
        last_fetched_epoch=last_epoch,
        partition_max_bytes=max_bytes,
    )


def request(
    *partitions: FetchPartition,
    topic: str = "orders",
    topic_id: bytes = ZERO_UUID,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = LARGE,
    isolation_level: int = 0,
    session: tuple[int, int] = (0, FINAL),
    forgotten: tuple[int, ...] = (),
    replica: int = -1,
    replica_epoch: int = -1,
) -> FetchRequest:
    """Both name and id go into it: a version carries one of them."""
    topics = [FetchTopic(topic=topic, topic_id=topic_id, partitions=list(partitions))] if partitions else []
    gone = [ForgottenTopic(topic=topic, topic_id=topic_id, partitions=list(forgotten))] if forgotten else []
    return FetchRequest(
        replica_id=replica,
        replica_state=None if replica < 0 else ReplicaState(replica_id=replica, replica_epoch=replica_epoch),
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        session_id=session[0],
        session_epoch=session[1],
        topics=topics,
        forgotten_topics_data=gone,
    )


def told(response: FetchResponse) -> list[PartitionData]:
    assert response.error_code == ErrorCode.NONE
    return [partition for topic in response.responses for partition in topic.partitions]


async def fetched(context: Context, sent: FetchRequest, version: int = BY_NAME) -> list[PartitionData]:
    return told(await ask(context, sent, version))


def offsets(data: PartitionData) -> list[int]:
    """The base offsets of the batches, which are whole."""
    records = memoryview(data.records or b"")
    headers = list(iterate_batches(records))
    assert sum(header.size_bytes for _, header in headers) == len(records)
    return [header.base_offset for _, header in headers]


def codes(answers: list[PartitionData]) -> list[int]:
    return [answer.error_code for answer in answers]


async def with_records(context: Context, *, partitions: int = 1) -> Partition:
    """Three batches of one record in partition 0 of "orders"."""
    await make_topic(context, "orders", partitions)
    partition = context.partitions.leader("orders", 0)
    for value in (b"a", b"b", b"c"):
        append(partition, batch(value))
    return partition
