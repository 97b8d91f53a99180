"""Records as a consumer hands them out: one by one, or many of one partition in columns. Pure.

    batch = await consumer.get_batch()
    for part in batch.parts:                          # one partition each, in columns
        for offset, value in zip(part.offsets, part.values): ...
    for record in batch: ...                          # the same as objects, made when they are looked at

Columns are decoded in one go, and objects are made of them in one go, so neither costs a call a record.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from itertools import chain, repeat
from typing import Any, Final, NamedTuple

from odradek.client.topic_partition import TopicPartition
from odradek.protocol.batches.records import Headers

__all__ = ["ConsumerBatch", "ConsumerRecord", "PartitionRecords"]


class ConsumerRecord(NamedTuple):
    """One record. `timestamp_ms` counts from 1970 and is -1 where there is none.

    `key` and `value` are bytes or None, or what the deserializers have made of them.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: Any
    value: Any
    headers: Headers = ()


_MADE: Final[Callable[[tuple[Any, ...]], ConsumerRecord]] = partial(tuple[Any, ...].__new__, ConsumerRecord)
"""Makes a record of a tuple, without a call of Python code as `_make` would be."""


class PartitionRecords:
    """Records of one partition in columns, in order of their offsets, which may have gaps.

    `next_offset` is where reading goes on behind them, `leader_epoch` that of the last record, -1 where it is not
    known. `headers` is None where no record has any.
    """

    __slots__ = ("headers", "keys", "leader_epoch", "next_offset", "offsets", "partition", "timestamps_ms", "values")

    def __init__(
        self,
        partition: TopicPartition,
        offsets: Sequence[int],
        timestamps_ms: Sequence[int],
        keys: Sequence[Any],
        values: Sequence[Any],
        headers: Sequence[Headers] | None,
        next_offset: int,
        leader_epoch: int = -1,
    ) -> None:
        self.partition = partition
        self.offsets = offsets
        self.timestamps_ms = timestamps_ms
        self.keys = keys
        self.values = values
        self.headers = headers
        self.next_offset = next_offset
        self.leader_epoch = leader_epoch

    def __len__(self) -> int:
        return len(self.offsets)

    def __repr__(self) -> str:
        return f"<{len(self)} records of {self.partition}, from {self.offsets[0] if self.offsets else '–'} on>"

    def records(self) -> list[ConsumerRecord]:
        """Objects for these records, made anew by each call."""
        topic, partition = self.partition
        rows = zip(
            repeat(topic),
            repeat(partition),
            self.offsets,
            self.timestamps_ms,
            self.keys,
            self.values,
            repeat(()) if self.headers is None else self.headers,
            strict=False,
        )
        return list(map(_MADE, rows))

    def split(self, count: int) -> "tuple[PartitionRecords, PartitionRecords]":
        """The first so many records, and the rest. There have to be more than that."""
        assert 0 < count < len(self)
        return self._part(0, count, self.offsets[count]), self._part(count, len(self), self.next_offset)

    def _part(self, start: int, stop: int, next_offset: int) -> "PartitionRecords":
        return PartitionRecords(
            self.partition,
            self.offsets[start:stop],
            self.timestamps_ms[start:stop],
            self.keys[start:stop],
            self.values[start:stop],
            None if self.headers is None else self.headers[start:stop],
            next_offset,
            self.leader_epoch,
        )


class ConsumerBatch:
    """What `get_batch` brings: records of one partition or several. It is empty where nothing came in time."""

    def __init__(self, parts: Sequence[PartitionRecords]) -> None:
        self.parts: Final = tuple(parts)
        """By partition, which may stand there more than once: its records are in order then."""
        self._count = sum(map(len, self.parts))

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[ConsumerRecord]:
        return iter(self.records)

    def __repr__(self) -> str:
        return f"<{self._count} records of {len(self.parts)} part(s)>"

    @cached_property
    def records(self) -> list[ConsumerRecord]:
        """All records as objects, made when they are first looked at."""
        return list(chain.from_iterable(part.records() for part in self.parts))
