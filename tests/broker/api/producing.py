"""What the tests of Produce share: requests, their answers, and batches of idempotent producers."""

from odradek.broker.handling.context import Context
from odradek.protocol.batches.record_encoding import build_batch
from odradek.protocol.batches.records import Record
from odradek.protocol.codec.schema import ZERO_UUID, Buffer
from odradek.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tests.broker.support import ask, id_of

ACKS_ALL = -1
TOPIC_IDS_SINCE = 13
Sent = tuple[int, Buffer | None]
"""Partition and batch."""


def request(
    *sent: Sent,
    topic: str = "orders",
    topic_id: bytes = ZERO_UUID,
    acks: int = ACKS_ALL,
    timeout_ms: int = 10_000,
    transactional_id: str | None = None,
) -> ProduceRequest:
    """Both name and id go into it: a version carries one of them."""
    data = [
        PartitionProduceData(index=index, records=None if records is None else memoryview(records))
        for index, records in sent
    ]
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=[TopicProduceData(name=topic, topic_id=topic_id, partition_data=data)],
    )


def answers(response: ProduceResponse) -> list[PartitionProduceResponse]:
    (topic,) = response.responses
    return topic.partition_responses


async def produced(
    context: Context,
    *sent: Sent,
    version: int = 11,
    topic: str = "orders",
    acks: int = ACKS_ALL,
    timeout_ms: int = 10_000,
) -> list[PartitionProduceResponse]:
    topic_id = id_of(context, topic)
    asking = request(*sent, topic=topic, topic_id=topic_id, acks=acks, timeout_ms=timeout_ms)
    response = await ask(context, asking, version)
    named = [(each.name, each.topic_id) for each in response.responses]
    assert named == [(topic, ZERO_UUID) if version < TOPIC_IDS_SINCE else ("", topic_id)]
    told = answers(response)
    assert [each.index for each in told] == [index for index, _ in sent]
    return told


def idempotent(base_sequence: int, count: int = 1, *, epoch: int = 0, producer_id: int = 7, txn: bool = False) -> bytes:
    records = [Record(offset, 1000, None, b"%d" % (base_sequence + offset), ()) for offset in range(count)]
    return build_batch(
        records, producer_id=producer_id, producer_epoch=epoch, base_sequence=base_sequence, is_transactional=txn
    )


def end_of(context: Context, index: int = 0, topic: str = "orders") -> int:
    return context.partitions.find(topic, index).log.log_end_offset
