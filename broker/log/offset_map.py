"""The newest offset of every key in the dirty part of a log: what compaction decides by.

A hash table as Kafka's: a slot holds the digest of a key, 16 bytes, and an offset, 8 bytes. Two keys of one digest
would be taken for one, and a record be lost: at 128 bits and five million keys the probability of that is 4e-26.
(BLAKE2b, since it takes no longer than Kafka's MD5, of which equal digests can be made.)

It takes what `log.cleaner.dedupe.buffer.size` says: the default of 128 MiB is 5.6 million slots, of which
`log.cleaner.io.buffer.load.factor`, 0.9, may be filled. A dict would take 150 bytes a key, hence 720 MiB for as many;
it would save 0.3 µs a record where a thousand keys are, and 0.8 where half a million are. The table begins small and is
copied into one eight times as large when it is full; while that is done, both are there.

When it can grow no more, the round cleans up to there, and the next one begins there. Every round gets further, if only
by one key.

Pure. Source: SkimpyOffsetMap.java, Cleaner.buildOffsetMap and buildOffsetMapForSegment in LogCleaner.scala.
"""

from array import array
from collections.abc import Iterable
from hashlib import blake2b
from math import isqrt
from struct import Struct

from odradek.broker.log.cleaned_transactions import CleanedTransactions
from odradek.broker.log.producers import AbortedTxn
from odradek.broker.log.uncleanable import check_batch, reading
from odradek.protocol.batches.batch import BatchHeader
from odradek.protocol.batches.records import unpack_records
from odradek.protocol.batches.rewriting import locate_records
from odradek.protocol.primitives import Buffer

SLOT_BYTES = 24
NO_OFFSET = -1

_HALVES = Struct("QQ")
_SLOTS_AT_FIRST = 1024
_GROWTH = 8


class OffsetMap:
    """Keys, by the two halves of their digests, and offsets, kept plus one: a slot with 0 is empty."""

    __slots__ = (
        "_count_max",
        "_firsts",
        "_load_factor",
        "_offsets",
        "_seconds",
        "_size",
        "_slot_count",
        "count",
        "latest_offset",
        "slots_max",
    )

    def __init__(self, first_dirty_offset: int, buffer_bytes: int, load_factor: float = 0.9) -> None:
        """Raises ValueError when not even one key fits."""
        self.slots_max = buffer_bytes // SLOT_BYTES
        self._load_factor = min(load_factor, 1.0)
        if self.slots_max * self._load_factor < 1:
            raise ValueError(
                f"{buffer_bytes} bytes, filled to {load_factor}, do not hold a single key of {SLOT_BYTES} bytes: "
                "raise log.cleaner.dedupe.buffer.size"
            )
        self.latest_offset = first_dirty_offset - 1
        """The map has the newest record of each key up to here. What is behind stays, whatever its key."""
        self.count = 0
        self._make_table(min(self.slots_max, _SLOTS_AT_FIRST))

    def put(self, key: bytes, offset: int) -> bool:
        """Notes the newest offset of a key; False if there is no place for one more."""
        first: int
        second: int
        first, second = _HALVES.unpack(blake2b(key, digest_size=_HALVES.size).digest())
        firsts, seconds, offsets, slot_count = self._firsts, self._seconds, self._offsets, self._slot_count
        slot = first % slot_count
        while offsets[slot]:
            if firsts[slot] == first and seconds[slot] == second:
                offsets[slot] = offset + 1
                return True
            slot = (slot + 1 + second % (slot_count - 1)) % slot_count
        if self.count >= self._count_max:
            return self._grow() and self.put(key, offset)
        firsts[slot], seconds[slot], offsets[slot] = first, second, offset + 1
        self.count += 1
        return True

    def get(self, key: bytes) -> int:
        """The newest offset of a key; -1 when there is none in the dirty part."""
        first: int
        second: int
        first, second = _HALVES.unpack(blake2b(key, digest_size=_HALVES.size).digest())
        firsts, seconds, offsets, slot_count = self._firsts, self._seconds, self._offsets, self._slot_count
        slot = first % slot_count
        while offset := offsets[slot]:
            if firsts[slot] == first and seconds[slot] == second:
                return offset - 1
            slot = (slot + 1 + second % (slot_count - 1)) % slot_count
        return NO_OFFSET

    def _make_table(self, size: int) -> None:
        """Makes an empty table of `size` slots and a few more: their number is a prime, so that steps of any width
        come by all of them, and one is always empty, which ends a search."""
        self._size = size
        self._count_max = max(1, int(size * self._load_factor))
        self._slot_count = slot_count = _prime_from(size + 2)
        self._firsts: array[int] = array("Q", (0,)) * slot_count
        self._seconds: array[int] = array("Q", (0,)) * slot_count
        self._offsets: array[int] = array("q", (0,)) * slot_count

    def _grow(self) -> bool:
        if self._size == self.slots_max:
            return False
        old = zip(self._firsts, self._seconds, self._offsets, strict=True)
        self._make_table(min(self.slots_max, self._size * _GROWTH))
        offsets, slot_count = self._offsets, self._slot_count
        for first, second, offset in old:
            if offset:
                slot = first % slot_count
                while offsets[slot]:
                    slot = (slot + 1 + second % (slot_count - 1)) % slot_count
                self._firsts[slot], self._seconds[slot], offsets[slot] = first, second, offset
        return True


class OffsetMapBuilder:
    """Fills an `OffsetMap` with a log's dirty part, batch by batch in the order of the log."""

    def __init__(self, offset_map: OffsetMap) -> None:
        self.map = offset_map
        self.records_read = 0
        self.bytes_read = 0
        self._first_dirty_offset = offset_map.latest_offset + 1
        self._next_offset = 0
        self._transactions = CleanedTransactions(log_start_offset=0)  # of no matter here

    def add_aborted(self, txns: Iterable[AbortedTxn]) -> None:
        """Takes the rows of the transaction index for a segment, before its batches."""
        self._transactions.add_aborted(txns)

    def feed(self, header: BatchHeader, data: Buffer) -> bool:
        """Takes the next batch; False when the map is full, somewhere within it. Raises UncleanableLog.

        The first batches may lie before the dirty part. Markers and aborted records have no place in the map.
        """
        check_batch(header, data, self._next_offset)
        self._next_offset = header.last_offset + 1
        self.records_read += header.record_count
        self.bytes_read += len(data)
        if not (header.is_control or self._transactions.is_aborted(header) or self._take_keys(header, data)):
            return False
        self.map.latest_offset = max(self.map.latest_offset, header.last_offset)
        return True

    def end_segment(self, next_base_offset: int) -> None:
        """All of a segment has been taken: there is nothing more before the next one, however large the gap."""
        self.map.latest_offset = max(self.map.latest_offset, next_base_offset - 1)

    def _take_keys(self, header: BatchHeader, data: Buffer) -> bool:
        first_dirty_offset, put = self._first_dirty_offset, self.map.put
        if header.last_offset < first_dirty_offset or not header.record_count:
            return True
        with reading(header):
            for offset, _, key, *_ in locate_records(unpack_records(data, header), header):
                if key is not None and offset >= first_dirty_offset and not put(key, offset):
                    self.map.latest_offset = offset - 1
                    return False
        return True


def _prime_from(number: int) -> int:
    """The smallest prime that is not less than `number`, which is at least 2."""
    while any(number % divisor == 0 for divisor in range(2, isqrt(number) + 1)):
        number += 1
    return number
