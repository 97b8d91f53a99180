"""What our producer is given to send against real brokers, who sends it, and whether all of it is there afterwards.

A record follows from its number alone (`Records`), so that a million of them need not be kept. Writers send a share
each, in chunks, and every chunk in another way (`Way`); `Sent` keeps what was acknowledged. `check` reads the topic
back with librdkafka, which shares no code with us, and compares everything.
"""

import random
import time
from array import array
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any, Final, NamedTuple

from confluent_kafka import Consumer, Message, TopicPartition
from kafka.partitioner.default import murmur2

from odradek import Ack, BufferFull, Delivery, Producer
from odradek.client.producer.record import RecordHeaders
from tests.compat.watermarks import watermarks

SIZE_MAX: Final = 100 * 1024
NOBODY: Final = -1
READ_TIMEOUT_S: Final = 30.0


class Way(IntEnum):
    """How a chunk is sent."""

    SEND = 0
    NOWAIT = 1
    BULK = 2
    """With everything that a record may have."""
    BULK_OF_KEYS = 3
    BULK_OF_VALUES = 4


class Wanted(NamedTuple):
    """A record as it is handed over. None: left to the producer."""

    value: bytes | None
    key: bytes | None = None
    partition: int | None = None
    headers: RecordHeaders = ()
    timestamp_ms: int | None = None


class Records:
    """Records by their numbers: of 0 B to 100 KiB, most of them small, and half of each can be compressed."""

    def __init__(self, seed: int, partition_count: int, chunk: int = 1_000) -> None:
        rng = random.Random(seed)
        self.chunk = chunk
        # Near the present: Kafka rolls and deletes segments, and forgets producers, by the timestamps of records.
        self._time_ms = int(time.time() * 1000)
        self.partition_count = partition_count
        self._bytes = b"".join(rng.randbytes(64) + bytes(64) for _ in range(8 * 1024))
        sizes = [min(SIZE_MAX, int(16 / rng.uniform(1e-4, 1)) - 16) for _ in range(4093)]
        self._sizes = [0, 1, SIZE_MAX, *sizes]
        self._keys = [b"", *(rng.randbytes(rng.randrange(1, 40)) for _ in range(299))]
        # kafka-python's murmur2, not ours.
        self._partitions = {key: (murmur2(key) & 0x7FFFFFFF) % partition_count for key in self._keys}
        self._headers: list[RecordHeaders] = [
            (),
            (("trace", rng.randbytes(8)),),
            (("a", b""), ("a", None), ("ö", b"1")),
        ]

    def __getitem__(self, number: int) -> Wanted:
        chance = number * 2_654_435_761 >> 4
        start = chance % (len(self._bytes) - SIZE_MAX)
        value = self._bytes[start : start + self._sizes[chance % len(self._sizes)]]
        key = self._keys[chance % 7919 % len(self._keys)]
        way = self.way(number)
        if way is Way.BULK_OF_VALUES:
            # One partition for all of every second such bulk.
            bulk = number // self.chunk // len(Way)
            return Wanted(value, partition=bulk // 2 % self.partition_count if bulk % 2 else None)
        if way is Way.BULK_OF_KEYS:
            return Wanted(value, key)
        own = number // 19 % self.partition_count if number % 19 == 0 and way is not Way.BULK else None
        headers = self._headers[number // 7 % len(self._headers)]
        return Wanted(value if number % 97 else None, key if number % 3 else None, own, headers, self._time_ms + number)

    def way(self, number: int) -> Way:
        return Way(number // self.chunk % len(Way))

    def partition_of(self, wanted: Wanted) -> int | None:
        """Where it has to be. None: anywhere."""
        if wanted.partition is None and wanted.key is not None:
            return self._partitions[wanted.key]
        return wanted.partition


class Sent:
    """What was acknowledged, by the numbers of the records."""

    def __init__(self, count: int) -> None:
        self.partitions, self.offsets, self.timestamps_ms = (array("q", (NOBODY,)) * count for _ in range(3))
        self.count = 0

    def grow(self, by: int) -> range:
        """Makes room for more records; their numbers."""
        before = len(self.offsets)
        for column in (self.partitions, self.offsets, self.timestamps_ms):
            column.extend((NOBODY,) * by)
        return range(before, before + by)

    def note(self, number: int, ack: Ack) -> None:
        assert self.offsets[number] == NOBODY, "acknowledged once"
        assert ack.offset >= 0
        self.partitions[number] = ack.partition
        self.offsets[number] = ack.offset
        self.timestamps_ms[number] = ack.timestamp_ms
        self.count += 1

    def logs(self, partition_count: int) -> list[list[int]]:
        """The numbers of the records in each partition, in the order of their offsets."""
        logs: list[dict[int, int]] = [{} for _ in range(partition_count)]
        for number, (partition, offset) in enumerate(zip(self.partitions, self.offsets, strict=True)):
            assert offset not in logs[partition], f"{partition}, {offset}: acknowledged for two records"
            logs[partition][offset] = number
        for partition, log in enumerate(logs):
            assert sorted(log) == list(range(len(log))), f"partition {partition} has offsets that nobody was told"
        return [[log[offset] for offset in range(len(log))] for log in logs]


class Writer:
    """Sends the records with these `numbers`, one after the other."""

    def __init__(self, producer: Producer, topic: str, records: Records, numbers: range, sent: Sent) -> None:
        self.numbers = numbers
        self._producer = producer
        self._topic = topic
        self._records = records
        self._sent = sent
        self._pending: list[tuple[int, Delivery]] = []

    async def run(self) -> None:
        size = self._records.chunk
        for start in range(0, len(self.numbers), size):
            chunk = self.numbers[start : start + size]
            if self._records.way(chunk[0]) <= Way.NOWAIT:
                await self._send_each(chunk)
            else:
                await self._send_bulk(chunk, [self._records[number] for number in chunk])
            if len(self._pending) >= 4 * size:
                await self._settle()
        await self._settle()

    async def _send_each(self, chunk: Sequence[int]) -> None:
        for number in chunk:
            value, *rest = self._records[number]
            more: dict[str, Any] = dict(zip(Wanted._fields[1:], rest, strict=True))
            try:
                if self._records.way(number) is Way.SEND:
                    delivery = await self._producer.send(self._topic, value, **more)
                else:
                    delivery = self._producer.send_nowait(self._topic, value, **more)
            except BufferFull:
                delivery = await self._producer.send(self._topic, value, **more)
            self._pending.append((number, delivery))

    async def _send_bulk(self, chunk: Sequence[int], wanted: Sequence[Wanted]) -> None:
        values, keys, partitions, headers, timestamps_ms = zip(*wanted, strict=True)
        way = self._records.way(chunk[0])
        acks = await self._producer.send_batch(
            self._topic,
            iter(values),
            None if way is Way.BULK_OF_VALUES else keys,
            partition=partitions[0],
            headers=headers if way is Way.BULK else None,
            timestamps_ms=timestamps_ms if way is Way.BULK else None,
        )
        for number, ack in zip(chunk, acks, strict=True):
            self._sent.note(number, ack)

    async def _settle(self) -> None:
        acks = await self._producer.gather(delivery for _, delivery in self._pending)
        for (number, _), ack in zip(self._pending, acks, strict=True):
            self._sent.note(number, ack)
        self._pending.clear()


def check(bootstrap: str, topic: str, records: Records, sent: Sent, share: int) -> None:
    """Raises AssertionError unless every record is there once, as it was sent and where it was acknowledged.

    `share`: how many records each writer sent, one after the other.
    """
    logs = sent.logs(records.partition_count)
    for log in logs:
        newest: dict[int, int] = {}
        for number in log:
            writer = number // share
            assert newest.get(writer, NOBODY) < number, "what one task sends to a partition keeps its order"
            newest[writer] = number
    left = sum(map(len, logs))
    for message in read_back(bootstrap, topic, {partition: len(log) for partition, log in enumerate(logs)}):
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        number = logs[partition][offset]
        check_record(message, number, records, sent)
        left -= 1
    assert left == 0


def check_record(message: Message, number: int, records: Records, sent: Sent) -> None:
    wanted = records[number]
    found = (message.value(), message.key(), tuple(message.headers() or ()))
    assert found == (wanted.value, wanted.key, tuple(wanted.headers)), f"record {number}"
    expected = records.partition_of(wanted)
    assert expected in (None, message.partition()), f"record {number} with key {wanted.key!r}"
    _, timestamp_ms = message.timestamp()
    assert timestamp_ms == sent.timestamps_ms[number], f"record {number}: what was acknowledged"
    assert wanted.timestamp_ms in (None, timestamp_ms), f"record {number}: what was sent"


def read_back(
    bootstrap: str, topic: str, ends: dict[int, int], starts: Mapping[int, int] | None = None
) -> Iterator[Message]:
    """The topic from its beginning; each partition ends at its offset in `ends`, and has no gaps.

    `starts`: where the partitions' logs start; None: at 0.
    """
    starts = dict.fromkeys(ends, 0) if starts is None else starts
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False, "check.crcs": True}
    )
    try:
        consumer.assign([TopicPartition(topic, partition, starts[partition]) for partition in ends])
        at = {partition: starts[partition] for partition in ends}
        while left := sum(ends.values()) - sum(at.values()):
            messages = consumer.consume(min(left, 10_000), READ_TIMEOUT_S)
            assert messages, f"nothing more at {at}, where the ends are {ends}"
            for message in messages:
                assert message.error() is None, message.error()
                partition = message.partition()
                assert partition is not None
                assert message.offset() == at[partition]
                at[partition] += 1
                yield message
        for partition, end in ends.items():
            assert watermarks(consumer, topic, partition) == (starts[partition], end)
    finally:
        consumer.close()
