"""Records in bulk: `send_batch` feeds slices of them into the accumulator, column by column, and gathers their
`BulkAcks`.

What a record costs is the loop over it, so there is as little of one as can be: sizes and partitions are made by the
hundred in comprehensions and C, and whole runs are encoded into a batch as columns. The event loop gets its turns:
after TURN_BYTES, and after TURN_MS wherever code of the caller's runs, which may be slow (the iterables, see
`odradek.client.taking`; interceptors, serializers and partitioner). Where memory is short the next record waits for it,
as with `send`.

Records of a partition keep their order. Those of different partitions are accepted grouped by partition, a slice at a
time. Once everything that was accepted has ended, `BulkAcks` tells where it is; or BatchError, what failed.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from itertools import accumulate, chain
from operator import add, itemgetter
from typing import Any, Final, NamedTuple

from odradek.client.errors.client_errors import (
    ClientError,
    InvalidPartition,
    PartitionerFailed,
    RecordTooLarge,
    SerializationError,
)
from odradek.client.producer.accepting.record_intake import RecordIntake, are_timestamps
from odradek.client.producer.accepting.record_transform import Record, RecordTransform
from odradek.client.producer.batching.batch import (
    RECORD_OVERHEAD_BYTES,
    SHORT_RECORD_BYTES,
    SHORT_RECORD_OVERHEAD_BYTES,
)
from odradek.client.producer.batching.queues import PartitionQueue, TopicQueues
from odradek.client.producer.hooks.interceptors import lasting
from odradek.client.producer.record import RecordHeaders
from odradek.client.producer.results.bulk_acks import BulkAcks
from odradek.client.producer.results.delivery import Delivery
from odradek.client.taking import TURN_MS, Taking
from odradek.protocol.murmur2 import partitions_for_keys
from odradek.runtime.environment import NS_PER_MS
from odradek.runtime.tasks import breathe

REFUSALS: Final = (RecordTooLarge, SerializationError, InvalidPartition, PartitionerFailed)
"""Of one record; the others go on."""
SLICE: Final = 2048
"""So many records are taken from the caller's iterables at a time, at most, …"""
SLICE_BYTES: Final = 1024 * 1024
"""… or so many bytes, by the size of those before; …"""
SLICE_FIRST: Final = 64
"""… and so many at first: the brokers have something to do while the next ones are taken."""
SLICE_GROWTH: Final = 4
TURN_BYTES: Final = 256 * 1024
"""The loop gets a turn after so much: while a whole slice is fed, its broker would run out of work, for the socket does
not take so much at once. (With records of 1 KiB a bulk takes 1.00 of the client's CPU time, without turns 1.09. A turn
every 128 KiB makes smaller requests: 4 % more time. Every 512 KiB: 10 % more.)"""
UNEQUAL: Final = "values, keys, timestamps_ms and headers of send_batch must be equally many"


Picker = Callable[[Sequence[Any]], Sequence[Any]]


def picker(indexes: Sequence[int]) -> Picker:
    """What takes the items at these indexes, at least one, out of a sequence."""
    if len(indexes) == 1:
        index = indexes[0]
        return lambda column: (column[index],)
    return itemgetter(*indexes)


class Columns(NamedTuple):
    """A slice of records. `timestamps_ms` None: the moment at which they are accepted."""

    values: Sequence[Any]
    keys: Sequence[Any] | None = None
    timestamps_ms: Sequence[int] | None = None
    headers: Sequence[RecordHeaders] | None = None

    def picked(self, pick: "Picker") -> "Columns":
        """Some of the records, without headers."""
        keys = None if self.keys is None else pick(self.keys)
        timestamps_ms = None if self.timestamps_ms is None else pick(self.timestamps_ms)
        return Columns(pick(self.values), keys, timestamps_ms)

    def record(self, topic: str, partition: int | None, index: int) -> Record:
        return (
            topic,
            self.values[index],
            None if self.keys is None else self.keys[index],
            partition,
            () if self.headers is None else lasting(self.headers[index]),
            None if self.timestamps_ms is None else self.timestamps_ms[index],
        )


class Run:
    """Records of a slice that go to one partition, or wherever the sticky partitioner says (`queue` None).

    `ends[i]` is the sum of the sizes of all records up to i; those before `at` have been accepted.
    """

    __slots__ = ("at", "columns", "ends", "indexes", "queue")

    def __init__(
        self, queue: PartitionQueue | None, columns: Columns, sizes: Sequence[int], indexes: Sequence[int]
    ) -> None:
        self.queue = queue
        self.columns = columns
        self.ends = list(accumulate(sizes))
        self.indexes = indexes
        self.at = 0

    @property
    def accepted_bytes(self) -> int:
        return self.ends[self.at - 1] if self.at else 0


class Bulk:
    """One `send_batch` on its way."""

    def __init__(
        self,
        acceptance: RecordIntake,
        topic: str,
        partition: int | None,
        preparation: RecordTransform | None,
        watch: Callable[[Delivery], None] | None,
    ) -> None:
        self.acks = BulkAcks()
        self.unsent: list[int] = []
        """Indexes of records that were taken from the caller and not accepted when it stopped."""
        self.fed_bytes = 0
        self._turn_bytes = 0  # accepted since the loop had a turn
        self._turn_ms = acceptance.monotonic_ms()  # when it had one; looked at where code of the caller's runs
        self._queues: dict[PartitionQueue, None] = {}  # that plain records went to
        self._acceptance = acceptance
        self._accumulator = acceptance.accumulator
        self._topic = topic
        self._partition = partition
        self._preparation = preparation
        self._watch = watch

    def errors(self) -> dict[int, ClientError]:
        """Of the records that failed or were refused, by index; those in `unsent` are not among them."""
        unsent = set(self.unsent)
        return {index: error for index, error in self.acks.errors().items() if index not in unsent}

    def end(self) -> None:
        """Nothing comes any more. The last batches of a large bulk are sent at once: what should they wait for?

        Those of small ones linger, so that the bulks of many tasks share batches.
        """
        if self.acks.given > SLICE_FIRST:
            for queue in self._queues:
                self._accumulator.close_open(queue)

    async def feed(self, columns: Columns) -> None:
        """Accepts a slice. Raises what `accept_waiting` raises where it has to stop; `unsent` has the rest then."""
        start = self.acks.given
        count = len(columns.values)
        self.acks.given += count
        sizes = self._plain_sizes(columns)
        self.fed_bytes += sum(sizes or ())
        at = 0
        runs: list[Run] = []
        try:
            if sizes is None:
                self._turn_ms = self._acceptance.monotonic_ms()
                while at < count:
                    size = await self._feed_one(columns.record(self._topic, self._partition, at), start + at)
                    at += 1
                    await self._breathe(size, self._acceptance.monotonic_ms() - self._turn_ms)
                return
            queues = await self._acceptance.topic_waiting(self._topic)
            try:
                runs = self._runs(queues, columns, sizes, start)
            except InvalidPartition as why:
                self._refuse(range(start, start + count), why)
                return
            for run in runs:
                while run.at < len(run.ends):
                    await self._feed_some(run)
        except BaseException as why:
            rest = (run.indexes[run.at :] for run in runs) if runs else (range(start + at, start + count),)
            self._leave(chain.from_iterable(rest), why)
            raise

    def leave(self, count: int, why: Exception) -> None:
        """So many more records were taken from the caller, and are not sent because of this."""
        start = self.acks.given
        self.acks.given += count
        self._leave(range(start, start + count), why)

    def _leave(self, indexes: Iterable[int], why: BaseException) -> None:
        indexes = sorted(indexes)
        self.unsent += indexes
        self._refuse(indexes, why if isinstance(why, ClientError) else ClientError(f"not accepted: {why!r}"))

    def _refuse(self, indexes: Iterable[int], error: ClientError) -> None:
        for index in indexes:
            self.acks.refuse(index, error)

    def _plain_sizes(self, columns: Columns) -> list[int] | None:
        """The estimated sizes of records that can be accepted column by column; None: each needs a closer look."""
        acceptance = self._acceptance
        if (
            self._preparation is not None
            or self._watch is not None
            or acceptance.has_partitioner
            or columns.headers is not None
        ):
            return None
        if columns.timestamps_ms is not None and not are_timestamps(columns.timestamps_ms):
            return None
        lengths = _lengths(columns.values)
        if lengths is None:
            return None
        if columns.keys is not None:
            key_lengths = _lengths(columns.keys)
            if key_lengths is None:
                return None
            lengths = list(map(add, lengths, key_lengths))
        longest = max(lengths)
        is_short = longest <= SHORT_RECORD_BYTES and columns.timestamps_ms is None
        overhead = SHORT_RECORD_OVERHEAD_BYTES if is_short else RECORD_OVERHEAD_BYTES
        return [length + overhead for length in lengths] if longest + overhead <= acceptance.size_max else None

    def _runs(self, queues: TopicQueues, columns: Columns, sizes: list[int], start: int) -> list[Run]:
        """Divides a slice by partition; where that is not the given order, `acks` is told."""
        everything = range(start, start + len(sizes))
        if self._partition is not None:
            return [Run(self._acceptance.own_partition(queues, self._partition), columns, sizes, everything)]
        if columns.keys is None or self._acceptance.ignores_keys:
            return [Run(None, columns, sizes, everything)]
        groups: defaultdict[int, list[int]] = defaultdict(list)
        partitions = partitions_for_keys(columns.keys, queues.partition_count)
        for index, partition in enumerate(partitions):
            groups[partition].append(index)
        runs: list[Run] = []
        for partition, group in groups.items():
            pick = picker(group)
            runs.append(Run(queues.partitions[partition], columns.picked(pick), pick(sizes), pick(everything)))
        return runs

    async def _feed_some(self, run: Run) -> None:
        """Accepts what fits into a batch, else one record after waiting for memory."""
        accumulator = self._accumulator
        # Looked up again each time, as by `accept`: after a turn of the loop the producer may be closed.
        queues = await self._acceptance.topic_waiting(self._topic)
        at, ends = run.at, run.ends
        accepted_bytes = run.accepted_bytes
        size = ends[at] - accepted_bytes
        queue = run.queue
        if queue is None:
            queue = accumulator.sticky_queue(queues, size, self._acceptance.leader_of)
        columns = run.columns
        now_ms = self._acceptance.monotonic_ms()
        timestamps_ms = columns.timestamps_ms
        moment_ms = self._acceptance.now_ns() // NS_PER_MS
        count = accumulator.extend(queue, timestamps_ms or moment_ms, columns.keys, columns.values, ends, at, now_ms)
        if count:
            self._acceptance.tell(queue, now_ms)
            assert queue.open is not None
            batch = queue.open
        else:
            count = 1
            batch = await self._acceptance.accept_in(
                queue,
                moment_ms if timestamps_ms is None else timestamps_ms[at],
                None if columns.keys is None else columns.keys[at],
                columns.values[at],
                size,
            )
        run.at += count
        accepted_bytes = run.accepted_bytes - accepted_bytes
        self._queues[queue] = None
        if run.queue is None:
            queues.sticky.appended(accepted_bytes, queue.is_complete)
        self.acks.add(batch.result, batch.count - count, run.indexes[at : run.at])
        await self._breathe(accepted_bytes)

    async def _breathe(self, accepted_bytes: int, elapsed_ms: float = 0.0) -> None:
        """Gives the loop a turn where so much more, or so much time since the last one, makes one due."""
        self._turn_bytes += accepted_bytes
        if self._turn_bytes >= TURN_BYTES or elapsed_ms >= TURN_MS:
            self._turn_bytes = 0
            await breathe()
            self._turn_ms = self._acceptance.monotonic_ms()

    async def _feed_one(self, record: Record, index: int) -> int:
        """Accepts a record of any kind, and returns the bytes of key and value.

        One that can never be accepted is refused, and the others go on.
        """
        try:
            if self._preparation is not None:
                record = self._preparation.prepared(*record)
        except SerializationError as why:
            self.acks.refuse(index, why)
            return 0
        size = sum(len(part) for part in record[1:3] if isinstance(part, bytes))
        self.fed_bytes += size
        try:
            batch = await self._acceptance.accept_waiting(*record)
        except ClientError as why:
            if self._preparation is not None:
                self._preparation.refused(record, why)
            if not isinstance(why, REFUSALS):
                raise
            self.acks.refuse(index, why)
            return size
        self.acks.add(batch.result, batch.count - 1, (index,))
        if self._watch is not None:
            self._watch(Delivery(batch.result, batch.count - 1))
        return size


def _lengths(column: Sequence[Any]) -> list[int] | None:
    """Of a column of bytes and nothing else; else None."""
    return list(map(len, column)) if set(map(type, column)) == {bytes} else None


def check_lengths(columns: Mapping[str, Iterable[Any]]) -> None:
    """Raises ValueError where columns are known beforehand to be of unequal length, so that nothing is sent then."""
    if len({len(column) for column in columns.values() if isinstance(column, Sized)}) > 1:
        raise ValueError(UNEQUAL)


async def feed_all(bulk: Bulk, columns: Mapping[str, Iterable[Any]]) -> None:
    """Feeds the columns, by their names in `Columns`, with a turn of the loop between two slices.

    Where a column ends before the others, or raises an error, the records before that are fed; then it raises
    ValueError, or that error. Raises also what `Bulk.feed` raises.
    """
    taking = Taking(columns)
    stride = SLICE_FIRST
    while True:
        taken, failure = await taking.take(stride)
        counts = {name: len(items) for name, items in taken.items()}
        count = min(counts.values())
        if count < max(counts.values()):
            failure = ValueError(UNEQUAL) if failure is None else failure
            taken = {name: items[:count] for name, items in taken.items()}
        if count:
            bulk.fed_bytes = 0
            await bulk.feed(Columns(**taken))
            stride = max(1, min(SLICE, SLICE_GROWTH * stride, SLICE_BYTES * count // max(1, bulk.fed_bytes)))
        if failure is not None:
            bulk.leave(counts["values"] - count, failure)
            raise failure
        if not count:
            return
        await breathe()
