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

Once the map is complete, the dirty part's records are asked for a second time, one by one. So beside it stands a byte
for each offset of the dirty part, which says whether the record is its key's newest one (`Newest`), and no key of these
has to be found and hashed again: of 1 GB of records of 1 KiB the second pass takes 0.7 s of CPU where keys come round
and 1.9 s where they come by chance, and took 3.3 and 3.9. It has bytes for 32 million offsets at most; what is behind
is looked up in the map.

Pure. Source: SkimpyOffsetMap.java, Cleaner.buildOffsetMap and buildOffsetMapForSegment in LogCleaner.scala.
"""

from array import array
from collections.abc import Iterable
from hashlib import blake2b
from math import isqrt
from struct import Struct
from typing import Final

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

    @property
    def offsets(self) -> Iterable[int]:
        """The newest offset of each key plus one, in no order; 0 where there is none."""
        return self._offsets

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


NEWEST_OFFSETS_MAX: Final = 32 * 1024**2
_IS_NEWEST: Final = 1
_BEGINS_PLAIN: Final = 2


class Newest:
    """Which records of the dirty part are the newest of their keys, by offset.

    It knows of *plain* batches only: no offset is missing in them, and each record has a key and a value.
    """

    __slots__ = ("_first_offset", "_flags")

    def __init__(self, first_offset: int) -> None:
        self._first_offset = first_offset
        self._flags = bytearray()

    def add_plain(self, header: BatchHeader) -> None:
        """Takes a batch all of whose records are in the map. Batches come in the order of the log."""
        flags, start = self._flags, header.base_offset - self._first_offset
        end = start + header.record_count
        if end <= NEWEST_OFFSETS_MAX:
            flags.extend(bytes(end - len(flags)))
            flags[start] = _BEGINS_PLAIN

    def complete(self, offsets: Iterable[int]) -> None:
        """`offsets`: those of the map, each plus one, 0 for none."""
        flags, behind, size = self._flags, self._first_offset + 1, len(self._flags)
        for number in filter(None, offsets):
            if number - behind < size:
                flags[number - behind] |= _IS_NEWEST

    def of(self, header: BatchHeader) -> bytearray | None:
        """A number for each record, odd where the record is its key's newest one. None where only the map tells."""
        start = header.base_offset - self._first_offset
        if start < 0 or start >= len(self._flags) or not self._flags[start] & _BEGINS_PLAIN:
            return None
        return self._flags[start : start + header.record_count]


def count_newest(flags: bytearray) -> int:
    """How many records `Newest.of` calls the newest."""
    return flags.count(_IS_NEWEST) + flags.count(_IS_NEWEST | _BEGINS_PLAIN)


class OffsetMapBuilder:
    """Fills an `OffsetMap` with a log's dirty part, batch by batch in the order of the log."""

    def __init__(self, offset_map: OffsetMap) -> None:
        self.map = offset_map
        self.records_read = 0
        self.bytes_read = 0
        self._first_dirty_offset = offset_map.latest_offset + 1
        self._next_offset = 0
        self._newest = Newest(self._first_dirty_offset)
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

    def complete(self) -> Newest:
        """Nothing more comes: which records are the newest ones."""
        self._newest.complete(self.map.offsets)
        return self._newest

    def _take_keys(self, header: BatchHeader, data: Buffer) -> bool:
        first_dirty_offset, put = self._first_dirty_offset, self.map.put
        if header.last_offset < first_dirty_offset or not header.record_count:
            return True
        is_plain = header.base_offset >= first_dirty_offset and header.record_count == header.last_offset_delta + 1
        with reading(header):
            for offset, _, key, has_value, _, _ in locate_records(unpack_records(data, header), header):
                if key is None:
                    is_plain = False
                    continue
                is_plain &= has_value
                if offset >= first_dirty_offset and not put(key, offset):
                    self.map.latest_offset = offset - 1
                    return False
        if is_plain:
            self._newest.add_plain(header)
        return True


def _prime_from(number: int) -> int:
    """The smallest prime that is not less than `number`, which is at least 2."""
    while any(number % divisor == 0 for divisor in range(2, isqrt(number) + 1)):
        number += 1
    return number
