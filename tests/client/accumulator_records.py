"""Records come to a producer's core: the lower part of the world of `accumulator_world.py`.

They are accepted as by client/producer/accepting/record_intake.py and client/producer/accepting/bulk.py in
client/producer/: at once, after waiting for memory, or many at a time. What was accepted is remembered, with what is
said of its end.
"""

import random
from collections import deque
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any, Final, cast

from odradek.client.producer.batching.accumulator import Accumulator
from odradek.client.producer.batching.batch import BATCH_OVERHEAD_BYTES, ProducerBatch, estimated_size
from odradek.client.producer.batching.limits import Limits
from odradek.client.producer.batching.memory import BufferMemory, Claim
from odradek.client.producer.batching.queues import PartitionQueue
from odradek.client.producer.idempotence.idempotence import Idempotence, Key
from odradek.client.producer.results.produce_results import ProduceResult, Results
from odradek.protocol.batches.compression import Codec
from tests.client.model_broker import Answer, ModelPartition, SentBatch

TOPICS: Final = {"one": 1, "three": 3}
KEYS: Final = [(topic, partition) for topic, count in TOPICS.items() for partition in range(count)]
LINGER_MS: Final = 10.0
TIMEOUT_MS: Final = 5_000.0
COMPRESSED_IN_LOOP_BYTES: Final = 200
"""A larger batch is compressed in a thread, which ends in a step of its own."""
NOW: Final = 1_700_000_000_000

Content = tuple[int, bytes | None, bytes | None, Any]
"""Timestamp, key, value and headers of a record."""


@dataclass(frozen=True)
class Start:
    is_idempotent: bool
    in_flight_max: int = 5
    codec: Codec = Codec.NONE
    retries: int = 10**9
    is_compressible: bool = True
    memory_batches: int = 6
    """`buffer_memory`, in batches without a record."""
    batch_size: int = 400
    request_size: int = 1000


@dataclass(eq=False)
class Waiter:
    """A `send` that waits for memory."""

    topic: str
    partition: int | None
    size: int
    claimed_bytes: int
    claim: Claim | None = None
    is_woken: bool = False

    def wake(self) -> None:
        self.is_woken = True


@dataclass(eq=False)
class Sent:
    """A batch in a request: what its bytes said when they were written."""

    batch: ProducerBatch
    key: Key
    content: SentBatch
    size_bytes: int
    answer: Answer | None = None


@dataclass(eq=False)
class Request:
    batches: list[Sent]
    is_handled: bool = False


@dataclass(eq=False)
class Accepted:
    """A record, and what has been said of its end."""

    key: Key
    content: Content
    result: ProduceResult
    index: int
    accepted_ms: float
    outcomes: list[int | None] = field(default_factory=list[int | None])
    """An offset, or None for a failure: one in the end."""


class Arrivals:
    """The real objects, what the world knows of them, and records that come."""

    def __init__(self, start: Start) -> None:
        self.start = start
        self.now_ms = 1_000_000.0
        self.memory = BufferMemory(start.memory_batches * BATCH_OVERHEAD_BYTES)
        self.idempotence = Idempotence() if start.is_idempotent else None
        self.results = Results(cast(Any, None), lambda: self.now_ms)
        limits = Limits(
            batch_size=start.batch_size,
            linger_ms=LINGER_MS,
            delivery_timeout_ms=TIMEOUT_MS,
            retry_backoff_ms=100,
            retry_backoff_max_ms=1000,
            max_request_size=start.request_size,
            is_serial=start.in_flight_max == 1,
            codec=start.codec,
        )
        self.accumulator = Accumulator(limits, self.memory, self.results, self.idempotence, lambda: 0.4)
        self.leaders: dict[Key, tuple[int, int]] = dict.fromkeys(KEYS, (0, 1))
        for name, count in TOPICS.items():
            self.accumulator.topic(name).update(count, range(count))
        self.brokers = {key: ModelPartition() for key in KEYS}
        self.limits: dict[str, int] = dict.fromkeys(TOPICS, 10**9)
        """The brokers' max.message.bytes."""
        self.connections: tuple[deque[Request], deque[Request]] = (deque(), deque())
        self.compressing: dict[int, list[ProducerBatch]] = {}
        self.waiters: list[Waiter] = []
        self.records: dict[int, Accepted] = {}
        self.request_count: int = 0
        self.refused_count: int = 0
        self.next_id = 1000
        self.plain_count = 0
        self.skipped: dict[Key, int] = dict.fromkeys(KEYS, 0)

    def leader_of(self, topic: str, partition: int) -> tuple[int, int]:
        return self.leaders[topic, partition]

    def value(self, size: int) -> bytes:
        """A value that names its record: by its number in the order of acceptance."""
        number = len(self.records)
        filling = b"." * size if self.start.is_compressible else random.Random(number).randbytes(size)
        return b"%d:" % number + filling

    def queue(self, topic: str, partition: int | None, size: int) -> PartitionQueue:
        queues = self.accumulator.topic(topic)
        if partition is not None:
            return queues.partitions[partition]
        return self.accumulator.sticky_queue(queues, size, self.leader_of)

    def send(self, topic: str, partition: int | None, value_size: int, *, may_wait: bool) -> bool:
        """A record comes. False: there is no room for it, and it waits or is dropped."""
        content: Content = (NOW + len(self.records), b"k" if value_size % 2 else None, self.value(value_size), ())
        size = estimated_size(*content[1:])
        accumulator = self.accumulator
        if partition is not None:
            batch = accumulator.append(accumulator.topic(topic).partitions[partition], *content, size)
        else:
            batch = accumulator.append_sticky(accumulator.topic(topic), *content, size)
        if batch is None:
            queue = self.queue(topic, partition, size)
            batch = accumulator.begin(queue, *content, size, self.now_ms)
            if batch is not None and partition is None:
                queue.topic.sticky.appended(size, queue.is_complete)
        if batch is not None:
            assert not self.waiters, "it overtook one that waits"
            self.accepted(batch, content)
        elif may_wait:
            waiter = Waiter(topic, partition, value_size, size + BATCH_OVERHEAD_BYTES)
            self.waiters.append(waiter)
            waiter.claim = self.memory.queue(waiter.claimed_bytes, waiter.wake)
        else:
            assert self.memory.is_exhausted or self.waiters
        return batch is not None

    def accepted(self, batch: ProducerBatch, content: Content) -> None:
        """The last record of the batch."""
        assert batch.deadline_ms <= self.now_ms + TIMEOUT_MS
        number = len(self.records)
        self.records[number] = Accepted(batch.key, content, batch.result, batch.count - 1, self.now_ms)
        batch.result.add_callback(batch.count - 1, self.ended, number, copy_context(), True)

    def ended(self, number: int) -> None:
        record = self.records[number]
        result, index = record.result.locate(record.index)
        assert result.is_done
        record.outcomes.append(None if result.peek(index) is not None else result.ack(index).offset)

    def resume(self) -> None:
        """Those whose claims were granted go on, in the order of the grants."""
        while self.waiters and self.waiters[0].is_woken:
            waiter = self.waiters.pop(0)
            content: Content = (NOW + len(self.records), None, self.value(waiter.size), ())
            size = estimated_size(*content[1:])
            if size + BATCH_OVERHEAD_BYTES > waiter.claimed_bytes:  # its number has become longer while it waited
                self.memory.give_back(waiter.claimed_bytes)
                continue
            queue = self.queue(waiter.topic, waiter.partition, size)
            begun = self.accumulator.begin(queue, *content, size, self.now_ms, waiter.claimed_bytes)
            assert begun is not None
            self.accepted(begun, content)
            if waiter.partition is None:
                queue.topic.sticky.appended(size, queue.is_complete)

    def cancel(self, number: int) -> None:
        if self.waiters:
            waiter = self.waiters.pop(number % len(self.waiters))
            assert waiter.claim is not None
            self.memory.cancel(waiter.claim)

    def send_many(self, topic: str, partition: int | None, value_size: int, count: int) -> None:
        """As send_batch feeds a slice: as many as fit, else one; it stops where it would wait.

        An even number of records has one timestamp.
        """
        first = len(self.records)
        values = [b"%d:" % (first + n) + b"," * value_size for n in range(count)]
        times = [NOW + first + (0 if count % 2 == 0 else n) for n in range(count)]
        contents: list[Content] = [
            (timestamp_ms, None, value, ()) for timestamp_ms, value in zip(times, values, strict=True)
        ]
        sizes = [estimated_size(*content[1:]) for content in contents]
        ends = [sum(sizes[: n + 1]) for n in range(count)]
        at = 0
        while at < count:
            queue = self.queue(topic, partition, sizes[at])
            timestamps_ms = times[0] if count % 2 == 0 else times
            taken = self.accumulator.extend(queue, timestamps_ms, None, values, ends, at, self.now_ms)
            if taken:
                batch = queue.open
                assert batch is not None
            else:
                begun = self.accumulator.begin(queue, *contents[at], sizes[at], self.now_ms)
                if begun is None:
                    return
                batch, taken = begun, 1
            assert not self.waiters
            last = batch.count
            for n in range(taken):
                # As if each had just come.
                number = len(self.records)
                index = last - taken + n
                self.records[number] = Accepted(queue.key, contents[at + n], batch.result, index, self.now_ms)
                batch.result.add_callback(index, self.ended, number, copy_context(), True)
            if partition is None:
                queue.topic.sticky.appended(sum(sizes[at : at + taken]), queue.is_complete)
            at += taken
