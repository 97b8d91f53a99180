"""What a server holds after a run, read back and compared with what was sent: every batch, in order, and nothing else.

A broker puts base offset and leader epoch before position 16 of a batch, and changes nothing after it. Where several
connections wrote to one partition their batches lie in any order there: each has to be one of those that were sent, and
each of those has to be there as often as it was.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from benchmarks.load.frames import DISTINCT_BATCHES, Load, Stamp, batches_of
from benchmarks.load.wire import EARLIEST, LATEST, Wire, fetch, offsets_of
from odradek.protocol.batches.batch import BatchHeader, crc_matches, iterate_batches

UNCHANGED_FROM = 16


class LogDiffers(Exception):
    """What a server holds is not what it acknowledged."""


def compare_log(wire: Wire, load: Load) -> None:
    """Reads the topic back. Raises LogDiffers unless it holds the load's batches, all and nothing else."""
    compare_partitions(wire, load, range(load.partitions))


def compare_partitions(wire: Wire, load: Load, partitions: Sequence[int]) -> None:
    """The same of some partitions: those that the broker leads. Raises LogDiffers."""
    expected = _Expected(load)
    starts, ends = (offsets_of(wire, load.topic, place, partitions) for place in (EARLIEST, LATEST))
    for partition, start, end in zip(partitions, starts, ends, strict=True):
        record_count = load.batches_to(partition) * load.records_per_batch
        if (start, end) != (0, record_count):
            name = f"{load.topic}-{partition}"
            raise LogDiffers(f"{name} reaches from {start} to {end}, sent were {record_count} records")
        if load.is_shared:
            _compare_in_any_order(wire, load, partition, end, expected)
        else:
            _compare_in_order(wire, load, partition, end, expected)


def _compare_in_order(wire: Wire, load: Load, partition: int, end: int, expected: "_Expected") -> None:
    number = 0
    for header, held in batches_in(wire, load.topic, partition, end):
        if held[UNCHANGED_FROM:] != expected.batch(number * load.spread + partition % load.spread):
            name = f"{load.topic}-{partition}"
            raise LogDiffers(f"{name}: batch {number} at offset {header.base_offset} is not the one that was sent")
        number += 1
    assert number == load.batches_to(partition), "equal batches fill equal offsets"


def _compare_in_any_order(wire: Wire, load: Load, partition: int, end: int, expected: "_Expected") -> None:
    held = Counter(bytes(batch[UNCHANGED_FROM:]) for _header, batch in batches_in(wire, load.topic, partition, end))
    sent = Counter[bytes]()
    for number in range(load.batches_per_connection):
        sent[bytes(expected.batch(number))] += load.batches_to(partition) // load.batches_per_connection
    if held != sent:
        raise LogDiffers(f"{load.topic}-{partition} does not hold each batch as often as it was sent")


def batches_in(
    wire: Wire, topic: str, partition: int, end: int, *, has_gaps: bool = False
) -> Iterator[tuple[BatchHeader, memoryview]]:
    """The batches of a partition from 0 to `end`, undamaged, without a gap unless one may be. Raises LogDiffers."""
    offset = 0
    while offset < end:
        data = memoryview(fetch(wire, topic, offset, partition))
        before = offset
        for position, header in iterate_batches(data):
            batch = data[position : position + header.size_bytes]
            if header.base_offset < offset or (header.base_offset != offset and not has_gaps):
                raise LogDiffers(f"{topic}-{partition}: offset {header.base_offset} is read instead of {offset}")
            if not crc_matches(batch):
                raise LogDiffers(f"{topic}-{partition}: the checksum of the batch at offset {offset} is wrong")
            yield header, batch
            offset = header.last_offset + 1
        if offset == before:
            raise LogDiffers(f"{topic}-{partition}: nothing is read at offset {offset} of {end}")


class _Expected:
    """What was sent to each partition."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._batches = batches_of(load)
        self._unchanged = [memoryview(batch)[UNCHANGED_FROM:] for batch in self._batches]
        self._stamps = [Stamp(load, batch) for batch in self._batches]

    def batch(self, number: int) -> memoryview:
        """Batch `number` of a connection, from `UNCHANGED_FROM` on."""
        at = number % DISTINCT_BATCHES
        if not self._load.is_stamped:
            return self._unchanged[at]
        stamped = memoryview(bytearray(self._batches[at]))
        self._stamps[at].apply(stamped, number)
        return stamped[UNCHANGED_FROM:]
