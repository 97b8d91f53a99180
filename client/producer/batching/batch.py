"""A producer's batch: records of one partition, from the first append to the bytes that are sent and sent again.

Pure. Records wait as tuples for a few kilobytes and are then encoded many at a time, which costs a third of encoding
each alone and frees what the caller handed over: a full buffer holds little more than the bytes that it will send.
Many that come together are encoded at once, as columns. What is known of the size is therefore exact for the runs that
are encoded, and a bound from above for the tuples.

    append, extend … → close → seal (compress, header) → sent, perhaps again → ended (`result`)

Sealed bytes never change while a socket may hold them: other producer fields (`renumber`) mean other bytes.
(Source: ProducerBatch.java and MemoryRecordsBuilder.java, which encode each record on append.)
"""

from array import array
from collections.abc import Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Final

from odradek.client.errors.base import ClientError
from odradek.protocol.batches.batch import HEADER_SIZE, pack_batch
from odradek.protocol.batches.compression import Codec, compress
from odradek.protocol.batches.record_encoding import AnyRecord, encode_columns, encode_records
from odradek.protocol.batches.records import Headers, iterate_records

if TYPE_CHECKING:  # it knows the event loop, which this module does not
    from odradek.client.producer.results.produce_results import ProduceResult

__all__ = ["BATCH_OVERHEAD_BYTES", "ProducerBatch", "estimated_size"]

RECORD_OVERHEAD_BYTES: Final = 21
"""What a record of up to a mebibyte takes beside key, value and headers, at most: attributes 1, length 4, timestamp 6
(69 years from the batch's first), offset, key length and value length 3 each, number of headers 1. Larger numbers may
make that 36; the difference is counted when the record is encoded."""
SHORT_RECORD_BYTES: Final = 8000
"""Of key and value together, …"""
SHORT_RECORD_OVERHEAD_BYTES: Final = 13
"""… to which so much comes at most while its batch is young and small: attributes 1, timestamp 3 (17 minutes), offset
and the three lengths 2 each, number of headers 1."""
HEADER_OVERHEAD_BYTES: Final = 10
BATCH_OVERHEAD_BYTES: Final = 1536
"""What a batch takes in memory beside its records: objects, and the tuples of the records that are not encoded yet."""
TIMESTAMP_BYTES: Final = 8
"""Of each record the timestamp is kept for its Ack."""
RUN_BYTES: Final = 8 * 1024
"""So much waits as tuples before it is encoded, …"""
PUT_OFF_BYTES: Final = 16 * 1024
"""… or so much more, each time …"""
RUN_RECORDS: Final = 64
"""… that it is fewer records than these: a run costs as much as encoding 20 records, and large ones wait at little cost
beside their bytes."""

COLUMN_RECORDS: Final = 12
"""So many records that come together are encoded as columns, without tuples; of fewer, that costs more."""


def estimated_size(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """The bytes that a record takes in a batch at most, uncompressed. (Large numbers: see RECORD_OVERHEAD_BYTES.)"""
    size = RECORD_OVERHEAD_BYTES
    if key is not None:
        size += len(key)
    if value is not None:
        size += len(value)
    for name, content in headers:
        size += HEADER_OVERHEAD_BYTES + len(name.encode()) + (0 if content is None else len(content))
    return size


class ProducerBatch:
    """One batch. `size` counts bytes, header included, before compression."""

    __slots__ = (
        "_encoded_size",
        "_runs",
        "attempt_leader",
        "attempts",
        "base_sequence",
        "base_timestamp",
        "capacity",
        "codec",
        "count",
        "created_ms",
        "deadline_ms",
        "encode_at",
        "encoded",
        "expected_ratio",
        "in_flight",
        "is_closed",
        "is_queued",
        "is_transactional",
        "key",
        "last_error",
        "max_timestamp",
        "order",
        "partition",
        "pending",
        "producer_epoch",
        "producer_id",
        "result",
        "retry_at_ms",
        "size",
        "timestamps",
        "topic",
    )

    def __init__(
        self, result: "ProduceResult", capacity: int, order: tuple[int, ...], created_ms: float, deadline_ms: float
    ) -> None:
        self.topic = result.topic
        self.partition = result.partition
        self.key = (result.topic, result.partition)
        self.result = result
        self.capacity = capacity
        self.order = order
        """Sorts the batches of a partition as they were begun, with parts where the whole was."""
        self.created_ms = created_ms
        self.deadline_ms = deadline_ms
        self.size = HEADER_SIZE
        self.encode_at = min(capacity, RUN_BYTES)
        self.count = 0
        self.pending: list[AnyRecord] = []
        self._runs: list[bytes] = []
        self._encoded_size = HEADER_SIZE
        self.timestamps: array[int] = array("q")
        self.base_timestamp = -1
        self.max_timestamp = -1
        self.is_closed = False
        self.codec = Codec.NONE
        self.expected_ratio = 1.0
        """How many bytes each byte of its records is expected to become by compression."""
        self.encoded: bytes | None = None
        self.is_transactional = False
        # Of the attempts to send it.
        self.attempts = 0
        self.last_error: ClientError | None = None
        self.retry_at_ms = created_ms
        self.attempt_leader: tuple[int, int] | None = None
        """Node and leader epoch of the last attempt; None: it was never drained."""
        self.is_queued = False
        """It waits in the queue of its partition."""
        self.in_flight = False
        """Drained, and neither answered nor given back: a socket or a thread may hold its bytes."""
        # Of idempotence; -1: none.
        self.producer_id = -1
        self.producer_epoch = -1
        self.base_sequence = -1

    @property
    def is_full(self) -> bool:
        return self.is_closed or self.size >= self.capacity

    @property
    def has_sequence(self) -> bool:
        return self.base_sequence >= 0

    @property
    def is_part(self) -> bool:
        """Whether it is part of a batch that was split."""
        return len(self.order) > 1

    @property
    def memory_bytes(self) -> int:
        """What it takes of `buffer_memory`, from its beginning to its end: compression does not lower it."""
        return BATCH_OVERHEAD_BYTES + self.size - HEADER_SIZE + TIMESTAMP_BYTES * len(self.timestamps)

    # ----------------------------------------------------------------------------------------------- filling
    def append(self, timestamp_ms: int, key: bytes | None, value: bytes | None, headers: Headers, size: int) -> None:
        """Adds a record of this `estimated_size`. Whether it fits is for the caller to say."""
        self.pending.append((self.count, timestamp_ms, key, value, headers))
        self.count += 1
        self.size += size

    def extend(
        self,
        timestamps_ms: Sequence[int] | int,
        keys: Sequence[bytes] | None,
        values: Sequence[bytes],
        size: int,
    ) -> int:
        """Adds records of these estimated sizes together. One timestamp, no `keys`: the same for all.

        Many that have one timestamp are encoded at once. Returns what `encode_pending` does.
        """
        shrunk_bytes = 0
        run: bytes | None = None
        if len(values) >= COLUMN_RECORDS and isinstance(timestamps_ms, int):
            shrunk_bytes = self.encode_pending()
            base_timestamp = self.base_timestamp if self._runs else timestamps_ms
            run = encode_columns(keys, values, self.count, timestamps_ms - base_timestamp)
        timestamps = _equal(timestamps_ms, len(values)) if isinstance(timestamps_ms, int) else timestamps_ms
        numbers = range(self.count, self.count + len(values))
        self.count += len(values)
        self.size += size
        if run is not None:
            return shrunk_bytes + self._add_run(run, timestamps, timestamps[0])
        self.pending += zip(numbers, timestamps, keys or repeat(None), values, repeat(()), strict=False)
        return shrunk_bytes

    def encode_pending(self) -> int:
        """Encodes the records that wait as tuples. Returns by how much `memory_bytes` shrank, or grew if negative."""
        pending = self.pending
        if not pending:
            return 0
        timestamps = [record[1] for record in pending]
        run = encode_records(pending, 0, self.base_timestamp if self._runs else timestamps[0])
        pending.clear()
        if len(different := set(timestamps)) == 1:  # as most have that come one after the other
            return self._add_run(run, _equal(timestamps[0], len(timestamps)), timestamps[0])
        return self._add_run(run, timestamps, max(different))

    def _add_run(self, run: bytes, timestamps: Sequence[int], max_timestamp: int) -> int:
        """Adds what has just been encoded, after which nothing waits any more. Returns what `encode_pending` does."""
        if not self._runs:
            self.base_timestamp = self.max_timestamp = timestamps[0]
        self.max_timestamp = max(self.max_timestamp, max_timestamp)
        self.timestamps.extend(timestamps)
        self._runs.append(run)
        self._encoded_size += len(run)
        shrunk_bytes = self.size - self._encoded_size - TIMESTAMP_BYTES * len(timestamps)
        self.size = self._encoded_size
        self.encode_at = min(self.capacity, self.size + RUN_BYTES)
        return shrunk_bytes

    def put_off_encoding(self) -> bool:
        """Lets what waits grow further, if it is few records. False: it is to be encoded."""
        if len(self.pending) >= RUN_RECORDS:
            return False
        self.encode_at = min(self.capacity, self.size + PUT_OFF_BYTES)
        return True

    def close(self) -> int:
        """No more records. Returns what `encode_pending` does."""
        shrunk_bytes = self.encode_pending()
        self.is_closed = True
        self.result.count = self.count
        self.result.timestamps = self.timestamps
        return shrunk_bytes

    # ---------------------------------------------------------------------------------------- what is sent
    def compressed(self, codec: Codec, level: int | None) -> Sequence[bytes]:
        """The records as they will be sent, in parts. It changes nothing, so a thread may do it."""
        assert self.is_closed
        return self._runs if codec is Codec.NONE else (compress(codec, b"".join(self._runs), level),)

    def seal(self, payload: Sequence[bytes], codec: Codec) -> None:
        """Puts the header before what `compressed` returned, in place of the runs."""
        assert self.is_closed
        self.codec = codec
        self.encoded = self._packed(*payload)
        self._runs.clear()

    def renumber(self, producer_id: int, producer_epoch: int, base_sequence: int) -> None:
        """Gives the batch other producer fields, hence other bytes: those before may still be on their way."""
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        if self.encoded is not None:
            self.encoded = self._packed(memoryview(self.encoded)[HEADER_SIZE:])

    def _packed(self, *payload: bytes | memoryview) -> bytes:
        return pack_batch(
            *payload,
            record_count=self.count,
            last_offset_delta=self.count - 1,
            base_timestamp=self.base_timestamp,
            max_timestamp=self.max_timestamp,
            codec=self.codec,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=self.base_sequence,
            is_transactional=self.is_transactional,
        )

    @property
    def sent_bytes(self) -> int:
        """What it takes in a request: exact once sealed, else the size before compression."""
        return self.size if self.encoded is None else len(self.encoded)

    @property
    def compression_ratio(self) -> float:
        """How many bytes each byte of its records became, or is expected to become until it is sealed."""
        if self.encoded is None:
            return self.expected_ratio
        return (len(self.encoded) - HEADER_SIZE) / (self.size - HEADER_SIZE)

    def drop_bytes(self) -> None:
        """Frees the records once nobody will send them again."""
        self.encoded = None
        self._runs.clear()
        self.pending.clear()

    # ------------------------------------------------------------------------------------------------ splitting
    def split(self) -> "list[ProducerBatch]":
        """Two batches of half the bytes each, with at least a record in each, in place of this closed one.

        They are as old as it is, are expected to compress as it did, and count as not tried.
        """
        assert self.is_closed
        assert self.count > 1
        ratio = self.compression_ratio
        whole = self.encoded or self._packed(*self._runs)
        records = list(iterate_records(whole, size_bytes_max=self.size))
        sizes = [len(encode_records((record,), 0, self.base_timestamp)) for record in records]
        cut = _middle(sizes)
        results = self.result.split((cut, self.count - cut))
        parts: list[ProducerBatch] = []
        for result, part_of in zip(results, (slice(cut), slice(cut, None)), strict=True):
            order = (*self.order, len(parts))
            part = ProducerBatch(result, self.capacity, order, self.created_ms, self.deadline_ms)
            for record, size in zip(records[part_of], sizes[part_of], strict=True):
                part.append(record.timestamp_ms, record.key, record.value, record.headers, size)
            part.close()
            part.expected_ratio = ratio
            part.is_transactional = self.is_transactional
            parts.append(part)
        return parts


def _equal(number: int, count: int) -> "array[int]":
    """Equal numbers: what they extend, they extend faster than a list does."""
    return array("q", (number,)) * count


def _middle(sizes: Sequence[int]) -> int:
    """Where to cut a sequence of at least two, so that both sides come closest to half of the sum."""
    half = sum(sizes) / 2
    total = 0
    for index, size in enumerate(sizes):
        if total + size / 2 >= half:
            assert index > 0, "no size is nothing"
            return index
        total += size
    raise AssertionError("the sizes reach half of their sum")
