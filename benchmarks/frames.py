"""The load in bytes: record batches of one size, and the Produce requests that carry them, built before the clock runs.

Both contenders get the very same bytes (Produce v9, acks=1, one batch a request, uncompressed); only the correlation id
is written into a frame when it is sent. The bytes follow from the `Load` alone, so that the process which sends them
and the one which reads the log back agree without exchanging them.

    reply (v9, no error): size int32 | correlation_id int32 | tags | 1 topic, its name | 1 partition, index int32,
                          error_code int16, base_offset int64, … always of the same size
"""

import json
import random
from dataclasses import asdict, dataclass
from struct import Struct
from typing import NamedTuple, Self

from protocol.codec import encode, encode_parts
from protocol.frames import RequestHeader, request_frame, response_frame
from protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from protocol.record_encoding import build_batch
from protocol.records import Record

PRODUCE_KEY = 0
PRODUCE_VERSION = 9
CORRELATION_ID_POSITION = 8
"""Of a request with its size: int32 size, int16 key, int16 version."""
DISTINCT_BATCHES = 16
"""Sent in turn. Enough that a batch put in another's place is noticed when the log is read back."""

FITTING_ROUNDS = 10


@dataclass(frozen=True, slots=True)
class Load:
    """What one produce run sends to partition 0 of `topic`; `batch_bytes` is the whole batch, header included."""

    topic: str
    total_bytes: int
    timestamp_ms: int
    batch_bytes: int = 16 * 1024
    record_bytes: int = 1024
    in_flight: int = 5

    @property
    def batch_count(self) -> int:
        return self.total_bytes // self.batch_bytes

    @property
    def records_per_batch(self) -> int:
        return self.batch_bytes // self.record_bytes

    @property
    def record_count(self) -> int:
        return self.batch_count * self.records_per_batch

    @property
    def produced_bytes(self) -> int:
        return self.batch_count * self.batch_bytes

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        return cls(**json.loads(text))


def batches_of(load: Load) -> list[bytes]:
    """The distinct batches. Batch `n` of the run is the one at `n % DISTINCT_BATCHES`."""
    rng = random.Random(load.batch_bytes)
    return [_batch(load, rng) for _ in range(DISTINCT_BATCHES)]


def _batch(load: Load, rng: random.Random) -> bytes:
    """Records of random bytes and equal size, but for the last one, which makes the batch as large as wanted."""
    values = [rng.randbytes(load.record_bytes) for _ in range(load.records_per_batch)]
    for _ in range(FITTING_ROUNDS):
        batch = _build(load, values)
        excess = len(batch) - load.batch_bytes
        if excess == 0:
            return batch
        # The header's 61 bytes and a few a record are over at first; later rounds correct varints that changed length.
        if excess > 0:
            share = -(-excess // len(values))
            values = [value[: len(value) - share] for value in values]
        else:
            values[-1] += rng.randbytes(-excess)
    raise ValueError(f"{load.records_per_batch} records do not fill a batch of {load.batch_bytes} bytes exactly")


def _build(load: Load, values: list[bytes]) -> bytes:
    return build_batch([Record(offset, load.timestamp_ms, None, value) for offset, value in enumerate(values)])


def frames_of(load: Load, batches: list[bytes]) -> list[bytearray]:
    """A whole Produce request for each batch, as a buffer in which the correlation id can be replaced."""
    return [bytearray(_frame(load, batch)) for batch in batches]


def _frame(load: Load, batch: bytes) -> bytes:
    request = ProduceRequest(
        acks=1,
        timeout_ms=30_000,
        topic_data=[TopicProduceData(name=load.topic, partition_data=[PartitionProduceData(index=0, records=batch)])],
    )
    header = RequestHeader(PRODUCE_KEY, PRODUCE_VERSION, 0, "benchmark")
    return b"".join(request_frame(header, True, encode_parts(request, PRODUCE_VERSION)))


class Reply(NamedTuple):
    """What is read of a reply that has the expected size."""

    size: int
    correlation_id: int
    error_code: int
    base_offset: int


class ReplyShape:
    """Where everything stands in a reply without an error, which has always the same size: `size_bytes`, all in all."""

    def __init__(self, topic: str) -> None:
        assert len(topic) < 127, "its length must fit into one byte of a varint"
        # tags and array length 2 B, name with its length, array length 1 B, index 4 B
        self._struct = Struct(f">ii2x{1 + len(topic)}x1x4xhq")
        self.size_bytes = len(canned_reply(topic, 0, 0))

    def read(self, data: memoryview, position: int) -> Reply:
        return Reply(*self._struct.unpack_from(data, position))


def canned_reply(topic: str, correlation_id: int, base_offset: int) -> bytes:
    """A reply without an error, size first."""
    partition = PartitionProduceResponse(index=0, base_offset=base_offset, log_start_offset=0)
    response = ProduceResponse(responses=[TopicProduceResponse(name=topic, partition_responses=[partition])])
    return b"".join(response_frame(correlation_id, True, [encode(response, PRODUCE_VERSION)]))
