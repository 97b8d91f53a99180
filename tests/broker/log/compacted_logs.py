"""What the tests of compaction share: a log in memory whose batches are made by hand, compacted as the broker does it,
and a reference in obvious Python that says what must be left of it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from struct import Struct

from odradek.broker.log.cleanable import Cleanable, cleanable, grouped
from odradek.broker.log.compaction import Cleaning, LastRecord
from odradek.broker.log.offset_map import SLOT_BYTES, Newest, OffsetMap, OffsetMapBuilder
from odradek.broker.log.producers import AbortedTxn
from odradek.broker.log.segment_facts import SegmentFacts
from odradek.protocol.batches.batch import BatchHeader, pack_batch, read_header, rebuild_batch
from odradek.protocol.batches.compression import Codec
from odradek.protocol.batches.record_encoding import build_batch, encode_records
from odradek.protocol.batches.records import Headers, Record, iterate_records

T0 = 1_700_000_000_000
HORIZON_BIT = 0x40
MARKER_KEY = Struct(">hh")
MARKER_VALUE = Struct(">hi")

KeyValue = tuple[bytes | None, bytes | None]


def data_batch(
    base_offset: int,
    *records: KeyValue,
    timestamp_ms: int = T0,
    producer: tuple[int, int, int] = (-1, -1, -1),
    is_transactional: bool = False,
    codec: Codec = Codec.NONE,
    append_time_ms: int | None = None,
    headers: Headers = (),
) -> bytes:
    """Records a millisecond apart; `producer` is id, epoch, base sequence."""
    data = build_batch(
        [
            Record(base_offset + delta, timestamp_ms + delta, key, value, headers)
            for delta, (key, value) in enumerate(records)
        ],
        base_offset=base_offset,
        codec=codec,
        leader_epoch=3,
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=producer[2],
        is_transactional=is_transactional,
    )
    if append_time_ms is None:
        return data
    return rebuild_batch(
        read_header(data), data[61:], codec=codec, max_timestamp=append_time_ms, is_log_append_time=True
    )


def marker_batch(offset: int, producer_id: int, epoch: int, *, is_commit: bool, timestamp_ms: int = T0) -> bytes:
    key, value = MARKER_KEY.pack(0, int(is_commit)), MARKER_VALUE.pack(0, 7)
    return pack_batch(
        encode_records([Record(offset, timestamp_ms, key, value)], offset, timestamp_ms),
        record_count=1,
        last_offset_delta=0,
        base_timestamp=timestamp_ms,
        max_timestamp=timestamp_ms,
        base_offset=offset,
        leader_epoch=3,
        producer_id=producer_id,
        producer_epoch=epoch,
        is_transactional=True,
        is_control=True,
    )


# ------------------------------------------------------------------------------------------------------ reading a log


def is_commit(data: bytes) -> bool:
    """Of a control batch with its marker in it."""
    (record,) = iterate_records(data)
    return record.key == MARKER_KEY.pack(0, 1)


def read_committed(batches: Iterable[bytes], aborted: Iterable[AbortedTxn], start: int = 0) -> list[Record]:
    """As a consumer reads: it takes the list of aborted transactions that overlap what it reads, drops a producer's
    records from the first offset on, and forgets that at the abort marker (KIP-98)."""
    to_come = sorted((txn.first_offset, txn.producer_id) for txn in aborted if txn.last_offset >= start)
    dropped: set[int] = set()
    found: list[Record] = []
    for data in batches:
        header = read_header(data)
        if header.last_offset < start:
            continue
        while to_come and to_come[0][0] <= header.last_offset:
            dropped.add(to_come.pop(0)[1])
        if header.is_control:
            if header.record_count and not is_commit(data):
                dropped.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in dropped):
            found += [record for record in iterate_records(data) if record.offset >= start]
    return found


def last_values(records: Iterable[Record]) -> dict[bytes, bytes]:
    """Of each key the last value; keys that were deleted last are not there."""
    values = {record.key: record.value for record in records}
    return {key: value for key, value in values.items() if key is not None and value is not None}


def producer_states(batches: Iterable[bytes]) -> dict[int, tuple[int, int]]:
    """Of each producer its epoch and its last sequence under that, -1 where there is none, as a new replica finds
    them. A marker that was taken out of its batch says nothing."""
    states: dict[int, tuple[int, int]] = {}
    for header in map(read_header, batches):
        if header.producer_id < 0 or (header.is_control and not header.record_count):
            continue
        epoch, sequence = states.get(header.producer_id, (-1, -1))
        if header.producer_epoch != epoch:
            sequence = -1
        states[header.producer_id] = header.producer_epoch, sequence if header.is_control else header.last_sequence
    return states


def open_transactions(batches: Iterable[bytes]) -> dict[int, int]:
    """By producer id, the first offset of a transaction that no marker has ended; it limits what is stable."""
    first_offsets: dict[int, int] = {}
    for header in map(read_header, batches):
        if header.is_control:
            if header.record_count:
                first_offsets.pop(header.producer_id, None)
        elif header.is_transactional:
            first_offsets.setdefault(header.producer_id, header.base_offset)
    return first_offsets


def last_of_producers(batches: Iterable[bytes]) -> dict[int, LastRecord]:
    """The last data offset and the epoch of each producer, None where there is nothing but a marker under it."""
    last: dict[int, LastRecord] = {}
    for header in map(read_header, batches):
        known = last.get(header.producer_id)
        if header.producer_id < 0:
            continue
        if not header.is_control:
            last[header.producer_id] = LastRecord(header.last_offset, header.producer_epoch)
        elif known is None or known.epoch != header.producer_epoch:
            last[header.producer_id] = LastRecord(None, header.producer_epoch)
    return last


# -------------------------------------------------------------------------------------------------------------- a log


@dataclass
class MemorySegment:
    base_offset: int
    batches: list[bytes] = field(default_factory=list[bytes])
    rows: list[AbortedTxn] = field(default_factory=list[AbortedTxn])

    @property
    def facts(self) -> SegmentFacts:
        return SegmentFacts(self.base_offset, sum(map(len, self.batches)))


@dataclass
class Round:
    """What a round did."""

    range: Cleanable
    end_offset: int
    cleaning: Cleaning
    before: list[bytes]
    """All batches of the segments that were cleaned."""
    after: list[bytes | None]
    """What became of each."""


@dataclass
class MemoryLog:
    """A log that is compacted, and beside it all that was ever appended."""

    segments: list[MemorySegment] = field(default_factory=lambda: [MemorySegment(0)])
    appended: list[bytes] = field(default_factory=list[bytes])
    aborted: list[AbortedTxn] = field(default_factory=list[AbortedTxn])
    next_offset: int = 0
    checkpoint: int | None = None

    @property
    def batches(self) -> list[bytes]:
        return [data for segment in self.segments for data in segment.batches]

    @property
    def rows(self) -> list[AbortedTxn]:
        return [row for segment in self.segments for row in segment.rows]

    @property
    def last_stable_offset(self) -> int:
        return min(open_transactions(self.appended).values(), default=self.next_offset)

    def append(self, data: bytes) -> None:
        """`data` has the next offset already. An abort marker brings its row, if it ends anything."""
        header = read_header(data)
        assert header.base_offset == self.next_offset
        if header.is_control and not is_commit(data):
            first_offset = open_transactions(self.appended).get(header.producer_id)
            if first_offset is not None:
                row = AbortedTxn(header.producer_id, first_offset, header.last_offset, self.last_stable_offset)
                self.segments[-1].rows.append(row)
                self.aborted.append(row)
        self.appended.append(data)
        self.segments[-1].batches.append(data)
        self.next_offset = header.last_offset + 1

    def roll(self, gap: int = 0) -> None:
        """Begins a segment, after offsets that are missing, as a log that was truncated and fetched again may have."""
        if self.segments[-1].batches:
            self.next_offset += gap
            self.segments.append(MemorySegment(self.next_offset))

    def rows_for(self, number: int) -> list[AbortedTxn]:
        """The rows that overlap a segment: they stand in its own index and in those of later ones."""
        base_offset = self.segments[number].base_offset
        end = self.segments[number + 1].base_offset if number + 1 < len(self.segments) else self.next_offset
        later = [row for segment in self.segments[number:] for row in segment.rows]
        return [row for row in later if row.last_offset >= base_offset and row.first_offset < end]

    def range(self, now_ms: int) -> Cleanable:
        return cleanable(
            [segment.facts for segment in self.segments],
            self.checkpoint,
            log_start_offset=0,
            log_end_offset=self.next_offset,
            last_stable_offset=self.last_stable_offset,
            deletes=False,
            min_compaction_lag_ms=0,
            max_compaction_lag_ms=1 << 62,
            now_ms=now_ms,
        )

    def clean(
        self, now_ms: int, *, keys_max: int = 1000, delete_retention_ms: int = 100, segment_bytes: int = 1 << 20
    ) -> Round:
        """One round, as the broker does it, even when nothing is dirty: that is how old tombstones go."""
        limits = self.range(now_ms)
        offset_map = OffsetMap(limits.first_dirty_offset, keys_max * SLOT_BYTES, load_factor=1.0)
        newest = self._map(offset_map, limits)
        cleaning = Cleaning(
            offset_map,
            last_of_producers(self.appended),
            log_start_offset=0,
            first_uncleanable_offset=limits.first_uncleanable_offset,
            delete_retention_ms=delete_retention_ms,
            now_ms=now_ms,
            newest=newest,
        )
        groups = grouped(
            [segment.facts for segment in self.segments],
            end_offset=cleaning.end_offset,
            first_uncleanable_offset=limits.first_uncleanable_offset,
            segment_bytes=segment_bytes,
            segment_index_bytes=1 << 20,
        )
        cleaned: list[MemorySegment] = []
        done = Round(limits, cleaning.end_offset, cleaning, [], [])
        number = 0
        for group in groups:
            target = MemorySegment(group[0].base_offset)
            for facts in group:
                assert facts.base_offset == self.segments[number].base_offset
                cleaning.add_aborted(self.rows_for(number))
                for data in self.segments[number].batches:
                    kept = cleaning.feed(read_header(data), data)
                    done.before.append(data)
                    done.after.append(None if kept is None else bytes(kept))
                    target.batches += [] if kept is None else [bytes(kept)]
                number += 1
            target.rows = cleaning.take_aborted()
            cleaned.append(target)
        self.segments[:number] = cleaned
        self.checkpoint = cleaning.end_offset
        return done

    def _map(self, offset_map: OffsetMap, limits: Cleanable) -> Newest:
        builder = OffsetMapBuilder(offset_map)
        for number, segment in enumerate(self.segments[:-1]):
            next_base_offset = self.segments[number + 1].base_offset
            if next_base_offset <= limits.first_dirty_offset or segment.base_offset >= limits.first_uncleanable_offset:
                continue
            builder.add_aborted(self.rows_for(number))
            if not all(builder.feed(read_header(data), data) for data in segment.batches):
                break
            builder.end_segment(next_base_offset)
        return builder.complete()


# ------------------------------------------------------------------------------------------------------ the reference


@dataclass
class Expected:
    """What must come of a batch: which records, and the delete horizon, if it has one."""

    records: list[Record]
    horizon_ms: int | None


def horizon_of(header: BatchHeader) -> int | None:
    return header.base_timestamp if header.attributes & HORIZON_BIT else None


def expected_of_round(
    before: Sequence[bytes],
    aborted: Iterable[AbortedTxn],
    producers: dict[int, LastRecord],
    limits: Cleanable,
    end_offset: int,
    now_ms: int,
    delete_retention_ms: int,
) -> list[Expected | None]:
    """What must become of each batch that a round cleans, by the rules as one would say them."""
    headers = [read_header(data) for data in before]
    was_aborted = [
        header.is_transactional
        and any(
            txn.producer_id == header.producer_id and txn.first_offset <= header.base_offset <= txn.last_offset
            for txn in aborted
        )
        for header in headers
    ]
    newest: dict[bytes, int] = {}
    for data, header, is_aborted in zip(before, headers, was_aborted, strict=True):
        if not header.is_control and not is_aborted:
            newest |= {r.key: r.offset for r in iterate_records(data) if r.key is not None and r.offset < end_offset}

    def has_data_left(number: int) -> bool:
        """Whether a batch is left between this marker and the one before it of its producer."""
        for header in reversed(headers[:number]):
            if header.producer_id == headers[number].producer_id:
                return header.is_transactional and not header.is_control
        return False

    expected: list[Expected | None] = []
    for number, (data, header) in enumerate(zip(before, headers, strict=True)):
        records = list(iterate_records(data))
        horizon_ms = horizon_of(header)
        is_over = horizon_ms is not None and now_ms >= horizon_ms
        gets_horizon = False
        last = producers.get(header.producer_id, LastRecord(-5, -5))
        carries_epoch = last.last_data_offset is None and header.is_control and header.producer_epoch == last.epoch
        if header.is_control:
            if records and not has_data_left(number):
                gets_horizon = horizon_ms is None
                records = [] if is_over and not carries_epoch else records
        elif was_aborted[number]:
            records = []
        else:
            records = [
                r
                for r in records
                if r.offset >= end_offset
                or (r.key is not None and newest[r.key] == r.offset and (r.value is not None or not is_over))
            ]
            tombstones = [r.offset for r in records if r.value is None]
            gets_horizon = horizon_ms is None and bool(tombstones) and max(tombstones) < end_offset
        is_last_of_round = header.last_offset + 1 == limits.first_uncleanable_offset
        keeps_header = header.last_offset == last.last_data_offset or carries_epoch or is_last_of_round
        if records:
            expected.append(Expected(records, now_ms + delete_retention_ms if gets_horizon else horizon_ms))
        else:
            expected.append(Expected([], None) if keeps_header else None)
    return expected
