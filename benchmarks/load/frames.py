"""The load in bytes: record batches of one size, and the Produce requests that carry them, built before the clock runs.

Both contenders get the very same bytes (Produce v9, one batch a request, uncompressed); only the correlation id is
written into a frame when it is sent, and what a `Stamp` makes of the batch: keys, sequences. The bytes follow from
the `Load` alone, so that the process which sends them and the one which reads the log back agree without exchanging
them.
"""

import json
import random
from dataclasses import asdict, dataclass
from struct import Struct
from typing import Self

from odradek.protocol.batches.batch import CRC_RANGE_START
from odradek.protocol.batches.crc32c import crc32c
from odradek.protocol.batches.record_encoding import build_batch
from odradek.protocol.batches.records import Record
from odradek.protocol.codec.codec import encode_parts
from odradek.protocol.frames import RequestHeader, request_frame
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

PRODUCE_KEY = 0
PRODUCE_VERSION = 9
CORRELATION_ID_POSITION = 8
"""Of a request with its size: int32 size, int16 key, int16 version."""
DISTINCT_BATCHES = 16
"""Sent in turn. Enough that a batch put in another's place is noticed when the log is read back."""

TAG_SECTIONS = 3
"""Empty ones end a request, a byte each: of partition, topic and request."""
FITTING_ROUNDS = 10

KEY_BYTES = 8
PLACEHOLDER = 0xFFEE_DDCC_BBAA_0000
"""Stands for the first record's key in a batch that is not stamped yet, where random bytes hardly ever do."""
_KEY = Struct(">Q")
_PRODUCER = Struct(">qhi")  # producer_id, producer_epoch, base_sequence
_PRODUCER_POSITION = 43
_CRC = Struct(">I")
_CRC_POSITION = 17


@dataclass(frozen=True, slots=True)
class Load:
    """What one produce run sends to `topic`; `batch_bytes` is the whole batch, header included.

    Connection `n` sends to partition `n % partitions`, `in_flight` requests at a time, and as much as every other one.
    With a `spread` a single connection sends to so many partitions in turn.
    """

    topic: str
    total_bytes: int
    timestamp_ms: int
    batch_bytes: int = 16 * 1024
    record_bytes: int = 1024
    in_flight: int = 5
    connections: int = 1
    partitions: int = 1
    acks: int = 1
    producer_id: int = -1
    producer_epoch: int = -1
    keys: int = 0
    """How many keys the records have in turn, of `KEY_BYTES` each; none: 0."""
    spread: int = 1

    def __post_init__(self) -> None:
        assert self.spread in (1, self.partitions) and (self.spread == 1 or self.connections == 1)
        assert not self.is_stamped or not (self.is_shared or self.spread > 1), "one writer knows sequences and keys"

    @property
    def batches_per_connection(self) -> int:
        """As many to each of its partitions."""
        return self.total_bytes // self.batch_bytes // self.connections // self.spread * self.spread

    def batches_to(self, partition: int) -> int:
        """How many batches reach a partition."""
        if self.spread > 1:
            return self.batches_per_connection // self.spread
        return len(range(partition, self.connections, self.partitions)) * self.batches_per_connection

    @property
    def batch_count(self) -> int:
        return self.batches_per_connection * self.connections

    @property
    def records_per_batch(self) -> int:
        return self.batch_bytes // self.record_bytes

    @property
    def record_count(self) -> int:
        return self.batch_count * self.records_per_batch

    @property
    def produced_bytes(self) -> int:
        return self.batch_count * self.batch_bytes

    @property
    def is_idempotent(self) -> bool:
        return self.producer_id >= 0

    @property
    def is_stamped(self) -> bool:
        """Whether every batch differs from all others."""
        return self.is_idempotent or self.keys > 0

    @property
    def is_shared(self) -> bool:
        """Whether connections share a partition: then nobody knows at which offset a batch of theirs arrives."""
        return self.connections > self.partitions

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
    keys = [_KEY.pack(PLACEHOLDER + index) if load.keys else None for index in range(len(values))]
    records = [Record(index, load.timestamp_ms, keys[index], value) for index, value in enumerate(values)]
    return build_batch(records)


def key_positions(batch: bytes, load: Load) -> list[int]:
    """Where the keys of its records stand in a batch of `batches_of`."""
    return [batch.index(_KEY.pack(PLACEHOLDER + index)) for index in range(load.records_per_batch)] if load.keys else []


class Stamp:
    """Makes a batch, in place, what is sent: with the keys that are next, and an idempotent producer's sequence."""

    def __init__(self, load: Load, batch: bytes) -> None:
        """Of this batch, or of a copy of it."""
        self._load = load
        self._positions = key_positions(batch, load)

    def apply(self, batch: memoryview, number: int) -> None:
        """Makes it batch `number` of its partition (KIP-98)."""
        load = self._load
        first = number * load.records_per_batch
        for index, position in enumerate(self._positions):
            _KEY.pack_into(batch, position, (first + index) % load.keys)
        if load.is_idempotent:
            _PRODUCER.pack_into(batch, _PRODUCER_POSITION, load.producer_id, load.producer_epoch, first)
        _CRC.pack_into(batch, _CRC_POSITION, crc32c(batch[CRC_RANGE_START:]))


def frames_of(load: Load, batches: list[bytes], partition: int = 0) -> list[bytearray]:
    """A whole Produce request for each batch, as a buffer in which the correlation id can be replaced."""
    return [bytearray(_frame(load, batch, partition)) for batch in batches]


def batch_of(frame: bytearray, load: Load) -> memoryview:
    """The batch in a frame."""
    end = len(frame) - TAG_SECTIONS
    return memoryview(frame)[end - load.batch_bytes : end]


def _frame(load: Load, batch: bytes, partition: int) -> bytes:
    data = [PartitionProduceData(index=partition, records=batch)]
    topics = [TopicProduceData(name=load.topic, partition_data=data)]
    request = ProduceRequest(acks=load.acks, timeout_ms=30_000, topic_data=topics)
    header = RequestHeader(PRODUCE_KEY, PRODUCE_VERSION, 0, "benchmark")
    return b"".join(request_frame(header, True, encode_parts(request, PRODUCE_VERSION)))


def partition_position(load: Load) -> int:
    """Where the partition stands in a frame: where a frame for partition 0 differs from one for -1."""
    batch = bytes(load.batch_bytes)
    pairs = enumerate(zip(_frame(load, batch, 0), _frame(load, batch, -1), strict=True))
    return next(index for index, (of_first, of_other) in pairs if of_first != of_other)
