"""Compaction loses nothing that a consumer or a producer needs, and keeps nothing else: random logs, compacted round by
round, against the reference in `compacted_logs.py` and against all that was ever appended."""

from dataclasses import dataclass
from itertools import pairwise

from hypothesis import given, note, settings
from hypothesis import strategies as st

from odradek.broker.log.compaction import LastRecord
from odradek.protocol.batches.batch import crc_matches, read_header
from odradek.protocol.batches.compression import Codec
from odradek.protocol.batches.records import Record, iterate_records
from tests.broker.log.compacted_logs import (
    T0,
    KeyValue,
    MemoryLog,
    Round,
    data_batch,
    expected_of_round,
    horizon_of,
    last_of_producers,
    last_values,
    marker_batch,
    open_transactions,
    producer_states,
    read_committed,
)

RETENTION_MS = 100


# ------------------------------------------------------------------------------------------------- histories at random


@dataclass(frozen=True)
class Produce:
    """Producer 0 is none, 1 is idempotent, 2 and 3 write transactions."""

    producer: int
    records: list[KeyValue]
    codec: Codec
    append_time: bool
    header: bool


@dataclass(frozen=True)
class End:
    producer: int
    commit: bool
    bumps_epoch: bool


@dataclass(frozen=True)
class Roll:
    gap: int


@dataclass(frozen=True)
class Clean:
    rolls: bool
    passed_ms: int
    keys_max: int
    segment_bytes: int


Step = Produce | End | Roll | Clean

keys = st.sampled_from([b"a", b"b", b"c", b"dd", b"e" * 20, None])
values = st.one_of(st.none(), st.binary(max_size=3), st.just(b"v" * 100))
produces = st.builds(
    Produce,
    producer=st.integers(0, 3),
    records=st.lists(st.tuples(keys, values), min_size=1, max_size=5),
    codec=st.sampled_from([Codec.NONE, Codec.NONE, Codec.LZ4, Codec.ZSTD]),
    append_time=st.booleans(),
    header=st.booleans(),
)
ends = st.builds(End, producer=st.sampled_from([2, 3]), commit=st.booleans(), bumps_epoch=st.booleans())
cleans = st.builds(
    Clean,
    rolls=st.booleans(),
    passed_ms=st.sampled_from([0, 50, RETENTION_MS, 101]),
    keys_max=st.sampled_from([1, 2, 3, 100]),
    segment_bytes=st.sampled_from([1, 400, 1 << 20]),
)
steps: st.SearchStrategy[Step] = st.one_of(
    produces, produces, ends, st.builds(Roll, gap=st.sampled_from([0, 0, 3, 2**31])), cleans
)
histories = st.lists(steps, min_size=5, max_size=30)


class History:
    """Takes the steps, and after each round compares with the reference and with the log as it was written."""

    def __init__(self) -> None:
        self.log = MemoryLog()
        self.now_ms = T0
        self.epochs = {1: 0, 2: 0, 3: 0}
        self.sequences = {1: 0, 2: 2**31 - 3, 3: 0}

    def take(self, step: Step) -> None:
        match step:
            case Produce():
                self.produce(step)
            case End():
                self.end(step)
            case Roll():
                self.log.roll(step.gap)
            case Clean():
                if step.rolls:
                    self.log.roll()
                self.now_ms += step.passed_ms
                self.clean(step.keys_max, step.segment_bytes)

    def produce(self, step: Produce) -> None:
        producer = (-1, -1, -1)
        if step.producer:
            sequence = self.sequences[step.producer]
            producer = step.producer, self.epochs[step.producer], sequence
            self.sequences[step.producer] = (sequence + len(step.records)) % 2**31
        self.log.append(
            data_batch(
                self.log.next_offset,
                *step.records,
                timestamp_ms=self.now_ms,
                producer=producer,
                is_transactional=step.producer >= 2,
                codec=step.codec,
                append_time_ms=self.now_ms + 7 if step.append_time else None,
                headers=(("h", b"x"), ("h", None)) if step.header else (),
            )
        )

    def end(self, step: End) -> None:
        """A marker comes where a transaction is open, and as a fence where none is."""
        if step.bumps_epoch:
            self.epochs[step.producer] += 1
            self.sequences[step.producer] = 0
        epoch = self.epochs[step.producer]
        offset = self.log.next_offset
        self.log.append(marker_batch(offset, step.producer, epoch, is_commit=step.commit, timestamp_ms=self.now_ms))

    def clean(self, keys_max: int = 1000, segment_bytes: int = 1 << 20) -> Round:
        before = self.log.batches
        done = self.log.clean(
            self.now_ms, keys_max=keys_max, delete_retention_ms=RETENTION_MS, segment_bytes=segment_bytes
        )
        note(f"cleaned to {done.end_offset}: {[read_header(data)[::12] for data in self.log.batches]}")
        if done.range.cleanable_bytes:
            assert done.end_offset > done.range.first_dirty_offset, "a round gets further"
        assert self.log.batches[len([kept for kept in done.after if kept is not None]) :] == before[len(done.before) :]
        expected = expected_of_round(
            done.before,
            self.log.aborted,
            last_of_producers(self.log.appended),
            done.range,
            done.end_offset,
            self.now_ms,
            RETENTION_MS,
        )
        for old, new, wanted in zip(done.before, done.after, expected, strict=True):
            assert (new is None) == (wanted is None)
            if new is not None and wanted is not None:
                assert list(iterate_records(new)) == wanted.records
                assert horizon_of(read_header(new)) == wanted.horizon_ms
                assert_same_batch(old, new)
        self.compare_with_what_was_written()
        return done

    def compare_with_what_was_written(self) -> None:
        cleaned, written = self.log.batches, self.log.appended
        assert all(one.last_offset < other.base_offset for one, other in pairwise(map(read_header, cleaned)))
        committed = read_committed(written, self.log.aborted)
        left = read_committed(cleaned, self.log.rows)
        assert is_subsequence(left, committed)
        assert last_values(left) == last_values(committed)
        for start in {read_header(data).base_offset + 1 for data in written[::3]}:
            assert read_committed(cleaned, self.log.rows, start) == [r for r in left if r.offset >= start]
        assert producer_states(cleaned) == producer_states(written)
        assert open_transactions(cleaned) == open_transactions(written)
        for segment in self.log.segments:
            markers = [read_header(data).last_offset for data in segment.batches if read_header(data).is_control]
            assert [row.last_offset for row in segment.rows if row.last_offset not in markers] == []

    def settle(self) -> None:
        """Ends what is open, and cleans until nothing more can happen."""
        for producer in open_transactions(self.log.appended):
            self.end(End(producer, commit=True, bumps_epoch=False))
        self.produce(Produce(0, [(b"z", b"z")], Codec.NONE, append_time=False, header=False))
        self.log.roll()
        for _ in range(6):
            self.now_ms += RETENTION_MS
            self.clean()


def is_subsequence(part: list[Record], whole: list[Record]) -> bool:
    rest = iter(whole)
    return all(record in rest for record in part)


def assert_same_batch(old: bytes, new: bytes) -> None:
    """Whatever became of its records: the same offsets and producer, a right checksum, and the right timestamps."""
    before, after = read_header(old), read_header(new)
    assert crc_matches(new)
    if after.record_count == before.record_count and horizon_of(after) == horizon_of(before):
        assert new == old, "an untouched batch has the same bytes"
    changing = {"batch_length": 0, "crc": 0, "attributes": 0, "base_timestamp": 0, "max_timestamp": 0}
    assert before._replace(**changing, record_count=0) == after._replace(**changing, record_count=0)
    flags = 0x38  # LogAppendTime, transactional, control
    assert before.attributes & flags == after.attributes & flags
    assert after.codec is (before.codec if after.record_count else Codec.NONE)
    if before.is_log_append_time or not after.record_count:
        assert after.max_timestamp == before.max_timestamp
    else:
        assert after.max_timestamp == max(record.timestamp_ms for record in iterate_records(new))


@settings(max_examples=100)
@given(histories)
def test_every_round_does_what_the_rules_say_and_loses_nothing(history: list[Step]) -> None:
    log = History()
    for step in history:
        log.take(step)
    log.settle()


@settings(max_examples=100)
@given(histories)
def test_in_the_end_only_the_newest_values_are_left(history: list[Step]) -> None:
    """No tombstone, no record without key, of each key at most one. Markers stand behind a batch of their transaction
    or carry their producer's epoch; headers without records are a producer's last batch, or the round's."""
    log = History()
    for step in history:
        log.take(step)
    log.settle()
    last_round = log.clean()
    assert last_round.after == last_round.before, "nothing is left to do"
    data = [batch for batch in log.log.batches if not read_header(batch).is_control]
    records = [record for batch in data for record in iterate_records(batch)]
    assert [record for record in records if record.key is None or record.value is None] == []
    assert len({record.key for record in records}) == len(records)
    assert last_values(records) == last_values(read_committed(log.log.appended, log.log.aborted))
    live = last_of_producers(log.log.appended)
    with_data = {read_header(batch).producer_id for batch in data}
    for header in map(read_header, log.log.batches):
        last = live.get(header.producer_id, LastRecord(-5, -5))
        if header.is_control and header.record_count:
            assert header.producer_id in with_data or last == (None, header.producer_epoch)
        elif not header.record_count:
            assert header.last_offset in (last.last_data_offset, last_round.end_offset - 1)
