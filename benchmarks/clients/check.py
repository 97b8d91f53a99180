"""What was read back, held against what was sent: each record once, with its key, in its partition, in order, in time.

Nothing here comes from the client under test: batches are fetched by hand, and the partition of a key is what
librdkafka's murmur2 says, which is an oracle to our own client and to the others.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from confluent_kafka import murmur2

from benchmarks.clients.topics import records_of
from benchmarks.contenders.client_load import PARTITION_COUNT, Pair, index_of
from benchmarks.load.wire import Wire
from benchmarks.produce import LogDiffers
from odradek.protocol.batches.records import Record

ANY_PARTITION = -1


@dataclass(slots=True)
class Expected:
    """What a topic has to hold. The partitions of the keys are worked out once, for many runs."""

    records: Sequence[Pair]
    partitions: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.partitions = [
            ANY_PARTITION if key is None else murmur2(key, PARTITION_COUNT) for _value, key in self.records
        ]


@dataclass(slots=True)
class Reckoning:
    """Takes the records of one partition after the other.

    Timestamps have to lie from `since_ms` to `until_ms`; `in_order` says that one task sent the records one by one.
    """

    expected: Expected
    since_ms: int
    until_ms: int
    in_order: bool = True
    _seen: bytearray = field(init=False)

    def __post_init__(self) -> None:
        self._seen = bytearray(len(self.expected.records))

    def take(self, partition: int, records: Iterable[Record]) -> None:
        """All records of a partition. Raises LogDiffers for one that was not sent so, or that came before."""
        sent, partitions, seen = self.expected.records, self.expected.partitions, self._seen
        since_ms, until_ms, in_order = self.since_ms, self.until_ms, self.in_order
        last = -1
        for offset, timestamp_ms, key, value, headers in records:
            index = -1 if value is None else index_of(value)
            if not 0 <= index < len(sent) or sent[index] != (value, key) or headers:
                raise LogDiffers(f"partition {partition}, offset {offset}: {value!r} with key {key!r} was not sent")
            if seen[index]:
                raise LogDiffers(f"partition {partition}, offset {offset}: record {index} is there twice")
            seen[index] = 1
            if partitions[index] not in (ANY_PARTITION, partition):
                raise LogDiffers(f"record {index} is in partition {partition}, its key belongs in {partitions[index]}")
            if in_order and index < last:
                raise LogDiffers(f"partition {partition}, offset {offset}: record {index} comes after {last}")
            if not since_ms <= timestamp_ms <= until_ms:
                raise LogDiffers(f"record {index} has the timestamp {timestamp_ms}, not {since_ms} to {until_ms}")
            last = index

    def close(self) -> None:
        """After the last partition. Raises LogDiffers for a record that was in none."""
        if missing := self._seen.count(0):
            raise LogDiffers(f"{missing} of {len(self._seen)} records are missing, record {self._seen.index(0)} first")


def check_topic(wire: Wire, topic: str, reckoning: Reckoning) -> None:
    """Reads all of a topic. Raises LogDiffers, KafkaError, OSError."""
    for partition in range(PARTITION_COUNT):
        reckoning.take(partition, records_of(wire, topic, partition))
    reckoning.close()
