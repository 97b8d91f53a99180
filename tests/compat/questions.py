"""What brokers are asked to find out whether they answer alike: a function a question, found by name in `QUESTIONS`.

A question gets a connection and the name of a topic of its own, which exists with one partition, and returns an answer
that can be compared: error codes by name, offsets, or CLOSED where the broker closes the connection.
"""

import struct
from collections.abc import Callable
from typing import Final

from crc32c import crc32c

from odradek.protocol.batches.compression import Codec
from odradek.protocol.batches.record_encoding import build_batch
from odradek.protocol.batches.records import Record
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.compat.peer import Peer

Answer = object
Question = Callable[[Peer, str], Answer]

CLOSED: Final = "closed"
QUESTIONS: Final[dict[str, Question]] = {}

BATCH_LENGTH, MAGIC, CRC, ATTRIBUTES, LAST_OFFSET_DELTA, MAX_TIMESTAMP, RECORD_COUNT = 8, 16, 17, 21, 23, 35, 57
"""Where these fields lie in a batch."""


def question(function: Question) -> Question:
    assert function.__name__ not in QUESTIONS
    QUESTIONS[function.__name__] = function
    return function


def name_of(code: int) -> str:
    return ErrorCode(code).name


def batch(
    count: int = 1,
    *,
    codec: Codec = Codec.NONE,
    base_offset: int = 0,
    producer_id: int = -1,
    epoch: int = -1,
    sequence: int = -1,
    is_transactional: bool = False,
    timestamp_ms: int = 1_700_000_000_000,
    value: bytes = b"value",
) -> bytes:
    records = [Record(base_offset + delta, timestamp_ms + delta, None, value, ()) for delta in range(count)]
    return build_batch(
        records,
        codec=codec,
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=is_transactional,
    )


def changed(records: bytes, position: int, layout: str, value: int, *, with_crc: bool = True) -> bytes:
    """The batch with another value at a position, and with the checksum that goes with it."""
    data = bytearray(records)
    struct.pack_into(layout, data, position, value)
    if with_crc:
        struct.pack_into(">I", data, CRC, crc32c(data[ATTRIBUTES:]))
    return bytes(data)


def produced(
    peer: Peer, topic: str, *batches: bytes | None, acks: int = -1, index: int = 0, version: int = 9
) -> list[tuple[str, int]]:
    """Error and base offset of each batch, sent one request after the other."""
    answers: list[tuple[str, int]] = []
    for records in batches:
        data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=index, records=records)])
        request = ProduceRequest(acks=acks, timeout_ms=10_000, topic_data=[data])
        [answer] = peer.ask(request, version).responses[0].partition_responses
        answers.append((name_of(answer.error_code), answer.base_offset))
    return answers


def fetched(
    peer: Peer, topic: str, offset: int, *, index: int = 0, epoch: int = -1, max_bytes: int = 1 << 20, version: int = 11
) -> tuple[str, int, int, int]:
    """Error, high watermark, log start, and how many bytes came."""
    wanted = FetchPartition(
        partition=index, current_leader_epoch=epoch, fetch_offset=offset, partition_max_bytes=max_bytes
    )
    request = FetchRequest(
        replica_id=-1, max_wait_ms=0, min_bytes=0, topics=[FetchTopic(topic=topic, partitions=[wanted])]
    )
    [answer] = peer.ask(request, version).responses[0].partitions
    size_bytes = 0 if answer.records is None else len(answer.records)
    return name_of(answer.error_code), answer.high_watermark, answer.log_start_offset, size_bytes


def listed(
    peer: Peer, topic: str, timestamp: int, *, index: int = 0, epoch: int = -1, version: int = 9
) -> tuple[str, int, int]:
    """Error, offset and timestamp."""
    wanted = ListOffsetsPartition(partition_index=index, current_leader_epoch=epoch, timestamp=timestamp)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[wanted])])
    [answer] = peer.ask(request, version).topics[0].partitions
    return name_of(answer.error_code), answer.offset, answer.timestamp
