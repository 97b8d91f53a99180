"""Compaction of a partition, round by round, from what was appended to what a consumer and a producer find.

What happens beside a round: test_cleaner_meanwhile.py. What fails within one: log/test_swap_faults.py.
"""

import asyncio
from collections.abc import Callable

import pytest

from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.log.checkpoint import CLEANED_OFFSETS, read_offsets
from odradek.broker.log.producers import AbortedTxn
from odradek.protocol.batches.batch import read_header
from odradek.protocol.errors import KafkaError
from tests.broker.keeping import (
    COMPACTED,
    DATA_DIR,
    DELETE_RETENTION_MS,
    DIRECTORY,
    Kept,
    compacted,
    keyed,
)
from tests.broker.log.compacted_logs import (
    MemoryLog,
    data_batch,
    last_values,
    marker_batch,
    producer_states,
    read_committed,
)
from tests.broker.log.logs import T0, read_all
from tests.broker.log.swap import lay_down, markers_of, transactions


def stop(kept: Kept) -> None:
    kept.restart()


def kill(kept: Kept) -> None:
    kept.kill_and_start()


ENDS = pytest.mark.parametrize("end", [stop, kill])
End = Callable[[Kept], None]


def clean_again(kept: Kept, after_ms: int = 0) -> None:
    """A round over everything, whether it is due or not: a record makes it so."""
    kept.environment.time_ms += after_ms
    kept.append((b"other", b""))
    kept.roll()
    kept.append((b"other", b""))
    kept.clean()


# ------------------------------------------------------------------------------------------------------------- records
@ENDS
def test_of_each_key_the_newest_record_stays_at_its_offset(end: End) -> None:
    kept = compacted(*keyed(20))
    kept.clean()
    for _ in range(2):
        assert kept.read.offsets == [15, 16, 17, 18, 19], "the last of each key, and the active segment"
        assert kept.read.values == {b"key-0": b"18", b"key-1": b"19", b"key-2": b"17"}
        assert kept.log.log_end_offset == 20
        assert kept.log.log_start_offset == 0
        end(kept)


def test_a_reader_at_an_offset_that_is_gone_goes_on_at_the_next() -> None:
    kept = compacted(*keyed(20))
    kept.clean()
    for offset in range(20):
        data = kept.partition.reader.fetch(offset, 1 << 20, at_least_one_batch=True).records
        assert read_header(data).base_offset == max(15, offset)


def test_segments_become_as_few_as_their_size_allows() -> None:
    kept = compacted(*keyed(20, keys=14), segment_bytes=160)
    before = kept.log.base_offsets
    assert len(before) == 10
    kept.clean()
    assert kept.log.base_offsets == [0, 18]
    kept.remove_retired()
    names = [name for name in kept.names if name.endswith(".log")]
    assert names == [f"{0:020d}.log", f"{18:020d}.log"]
    assert not any(name.endswith((".deleted", ".swap", ".cleaned")) for name in kept.names)


def test_a_tombstone_stays_for_delete_retention_ms_and_the_value_is_gone_before() -> None:
    kept = compacted((b"k", b"v"), (b"stays", b""), (b"k", None), (b"x", b""), (b"x", b""))
    kept.clean()
    assert kept.read.values[b"k"] is None
    assert 0 not in kept.read.offsets
    clean_again(kept, DELETE_RETENTION_MS - 1)
    assert kept.read.values[b"k"] is None
    clean_again(kept, 1)
    assert b"k" not in kept.read.values
    assert kept.read.values[b"stays"] == b""


def test_what_is_written_after_a_tombstone_stays() -> None:
    kept = compacted((b"k", None), (b"y", b""), (b"k", b"new"), (b"y", b""), (b"x", b""))
    kept.clean()
    clean_again(kept, 2 * DELETE_RETENTION_MS)
    assert kept.read.values[b"k"] == b"new"


def test_records_without_a_key_go_and_that_is_said(caplog: pytest.LogCaptureFixture) -> None:
    kept = compacted((None, b"1"), (b"k", b"2"), (None, b"3"), (b"k", b"4"), (b"k", b"5"))
    kept.clean()
    assert [record.key for record in kept.read.records] == [b"k", b"k"]
    assert f"{DIRECTORY}: dropped 2 records without key" in caplog.text


# ------------------------------------------------------------------------------------------------------------ when due
def test_a_log_is_left_alone_until_enough_of_it_is_dirty() -> None:
    kept = compacted(*keyed(20))
    kept.clean()
    assert kept.checkpoint == 18
    ratio = {**COMPACTED, "min.cleanable.dirty.ratio": "0.6"}
    kept.configs = ratio
    kept.restart()
    size_bytes = [segment.size_bytes for segment in kept.log.segments]
    kept.append((b"a", b""))
    kept.roll()
    kept.clean()
    assert kept.checkpoint == 18, f"half of it is dirty: {size_bytes}"
    for _ in range(3):
        kept.append((b"a", bytes(60)))
        kept.roll()
    kept.clean()
    assert kept.checkpoint == kept.log.log_end_offset


def test_young_records_are_spared_and_old_ones_wait_no_longer() -> None:
    kept = Kept({**COMPACTED, "min.compaction.lag.ms": "5000"}, segment_bytes=160)
    for number in range(10):
        kept.append((b"k", b"%d" % number), timestamp_ms=T0 + 1000 * number)
    kept.environment.time_ms = T0 + 10_000
    kept.clean()
    assert kept.read.offsets == [5, *range(6, 10)], "segment 6 has records of less than 5 s"
    kept.environment.time_ms = T0 + 14_000
    kept.clean()
    assert kept.read.offsets == [7, 8, 9]
    lazy = Kept({**COMPACTED, "min.cleanable.dirty.ratio": "1", "max.compaction.lag.ms": "5000"}, segment_bytes=160)
    for number in range(10):
        lazy.append((b"k", b"%d" % number), timestamp_ms=T0)
    lazy.environment.time_ms = T0 + 5000
    lazy.clean()
    assert lazy.checkpoint is None
    lazy.environment.time_ms += 1
    lazy.clean()
    assert lazy.read.offsets == [7, 8, 9]


def test_nothing_is_done_where_the_cleaner_is_off_or_the_topic_is_not_compacted() -> None:
    for configs, settings in ((COMPACTED, {"log.cleaner.enable": "false"}), ({"cleanup.policy": "delete"}, {})):
        kept = Kept(configs, settings, segment_bytes=160)
        for record in keyed(20):
            kept.append(record)
        before = read_all(kept.log)
        kept.clean()
        assert read_all(kept.log) == before
        assert kept.checkpoint is None


def test_with_both_policies_it_is_compacted_and_what_is_old_goes() -> None:
    configs = {**COMPACTED, "cleanup.policy": "compact,delete", "retention.ms": "1000"}
    kept = Kept(configs, segment_bytes=160)
    for number in range(10):
        kept.append((b"%d" % (number % 7), b""), timestamp_ms=T0 + 100 * number)
    kept.clean()
    assert kept.read.offsets == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    kept.environment.time_ms = T0 + 1600
    kept.retain()
    assert kept.read.offsets == [6, 7, 8, 9]
    kept.restart()
    kept.clean()
    assert kept.read.offsets == [6, 7, 8, 9]
    assert kept.log.log_start_offset == 6


# ---------------------------------------------------------------------------------------------------------- checkpoint
@ENDS
def test_the_next_round_begins_where_the_last_one_ended(end: End) -> None:
    kept = compacted(*keyed(20))
    kept.clean()
    assert read_offsets(kept.disk, f"{DATA_DIR}/{CLEANED_OFFSETS}") == {("orders", 0): 18}
    end(kept)
    assert kept.checkpoint == 18
    before = kept.log.segments.changes
    kept.clean()
    assert kept.log.segments.changes == before, "nothing is dirty"
    clean_again(kept)
    assert kept.checkpoint == 21


@pytest.mark.parametrize("offset", [10_000, 3])
def test_an_impossible_checkpoint_is_reset_and_the_log_compacted_from_its_start(
    offset: int, caplog: pytest.LogCaptureFixture
) -> None:
    kept = compacted(*keyed(20))
    kept.delete_records(5)
    kept.stop()
    kept.disk.write_whole(f"{DATA_DIR}/{CLEANED_OFFSETS}", b"0\n1\norders 0 %d\n" % offset)
    kept.start()
    kept.clean()
    assert kept.checkpoint == 18
    assert kept.read.offsets == [15, 16, 17, 18, 19]
    assert caplog.text.count(f"the cleaner checkpoint {offset} lies") == 1
    assert read_offsets(kept.disk, f"{DATA_DIR}/{CLEANED_OFFSETS}") == {("orders", 0): 18}


def test_a_checkpoint_that_cannot_be_read_costs_a_round_and_no_more() -> None:
    kept = compacted(*keyed(20))
    kept.clean()
    kept.stop()
    kept.disk.write_whole(f"{DATA_DIR}/{CLEANED_OFFSETS}", b"nonsense")
    kept.start()
    assert kept.checkpoint is None
    kept.clean()
    assert kept.read.offsets == [15, 16, 17, 18, 19]
    assert kept.checkpoint == 18


# ------------------------------------------------------------------------------------------------------------ producers
@ENDS
def test_idempotent_producers_go_on_and_are_told_of_duplicates(end: End) -> None:
    kept = Kept(COMPACTED, segment_bytes=160)
    for number in range(8):
        kept.append((b"k", b"1"), producer=(1, 0, number))
        kept.append((b"k", b"2"), producer=(2, 3, 100 + number))
    kept.append((b"k", b"3"))
    kept.roll()
    kept.append((b"k", b"4"))
    kept.clean()
    assert kept.read.offsets == [16, 17], "of the producers only headers are left"
    assert [header.base_offset for header in kept.read.headers] == [14, 15, 16, 17]
    end(kept)
    assert kept.append((b"k", b"2"), producer=(2, 3, 107)) == 15, "a duplicate"
    with pytest.raises(KafkaError, match="OUT_OF_ORDER"):
        kept.append((b"k", b"1"), producer=(1, 0, 9))
    assert kept.append((b"k", b"1"), producer=(1, 0, 8)) == 18
    assert kept.append((b"k", b"2"), producer=(2, 4, 0)) == 19
    with pytest.raises(KafkaError, match="INVALID_PRODUCER_EPOCH"):
        kept.append((b"k", b"2"), producer=(2, 3, 108))


@ENDS
def test_what_was_aborted_goes_and_what_was_committed_can_be_read(end: End) -> None:
    disk, log = MemoryDisk(), transactions()
    appended = log.batches
    disk.make_dir(DATA_DIR)
    lay_down(disk, log)
    kept = Kept(COMPACTED, disk=disk, segment_bytes=160)
    kept.append((b"k", b"v"))
    rows = [AbortedTxn(2, 0, 4, 5)]
    assert kept.log.segments.aborted(0, 6) == rows
    kept.clean()
    for _ in range(2):
        found = kept.read
        assert 0 not in found.offsets
        assert 2 not in found.offsets
        assert markers_of(found.batches) == [(3, True), (2, False)]
        (row,) = kept.log.segments.aborted(0, 6)  # a header is left of the producer's last batch, before the marker
        assert (row.producer_id, row.last_offset) == (2, 4)
        committed = read_committed(found.batches, [row])
        assert last_values(committed) == last_values(read_committed(appended, rows)) | {b"k": b"v"}
        states = producer_states(found.batches)
        assert {key: states[key] for key in (2, 3)} == producer_states(appended)
        end(kept)


@pytest.mark.parametrize("key", [b"\0\0\0\0", b"\0\0\0\1"])
def test_a_record_whose_key_is_that_of_a_marker_takes_no_marker_away(key: bytes) -> None:
    """The key of each abort and of each commit (KAFKA-14055)."""
    disk, log = MemoryDisk(), transactions()
    disk.make_dir(DATA_DIR)
    lay_down(disk, log)
    kept = Kept(COMPACTED, disk=disk, segment_bytes=160)
    before = markers_of(kept.read.batches)
    assert before
    for number in range(3):
        kept.append((key, b"%d" % number))
    kept.roll()
    kept.clean()
    assert markers_of(kept.read.batches) == before
    assert kept.read.values[key] == b"2"
    assert not {b"0", b"1"} & {record.value for record in kept.read.records}, "it was compacted"


def test_markers_go_when_their_transactions_are_gone_and_their_horizon_has_come() -> None:
    disk, log = MemoryDisk(), transactions()
    # Both producers write once more, so that nothing of the transactions is kept for their sequences.
    for producer in (2, 3):
        log.append(data_batch(log.next_offset, (b"last", b""), producer=(producer, 0, 2), is_transactional=True))
        log.append(marker_batch(log.next_offset, producer, 0, is_commit=True))
    disk.make_dir(DATA_DIR)
    lay_down(disk, log)
    kept = Kept(COMPACTED, disk=disk, segment_bytes=160)
    kept.append((b"b", b"newer"))
    clean_again(kept)
    assert markers_of(kept.read.batches) == [(3, True), (2, False), (2, True), (3, True)]
    assert kept.log.segments.aborted(0, 6) == [AbortedTxn(2, 0, 4, 5)], "the round met data of it"
    clean_again(kept)
    assert kept.log.segments.aborted(0, 6) == []
    clean_again(kept, DELETE_RETENTION_MS - 1)
    assert markers_of(kept.read.batches) == [(3, True), (2, False), (2, True), (3, True)]
    clean_again(kept, 1)
    assert markers_of(kept.read.batches) == [(2, True), (3, True)], "behind the last batch of each"
    assert [name for name in kept.names if name.endswith(".txnindex")] == []


def test_an_open_transaction_holds_compaction_up() -> None:
    disk, log = MemoryDisk(), MemoryLog()
    for value in (b"1", b"2"):
        log.append(data_batch(log.next_offset, (b"k", value)))
        log.roll()
    log.append(data_batch(log.next_offset, (b"k", b"open"), producer=(4, 0, 0), is_transactional=True))
    log.roll()
    log.append(data_batch(log.next_offset, (b"k", b"3")))
    disk.make_dir(DATA_DIR)
    lay_down(disk, log)
    kept = Kept(COMPACTED, disk=disk, segment_bytes=160)
    kept.roll()
    kept.append((b"k", b"4"))
    kept.clean()
    assert kept.read.offsets == [1, 2, 3, 4]
    assert kept.checkpoint == 2


def test_a_producer_is_known_after_its_snapshots_are_lost_and_its_batches_deleted() -> None:
    kept = Kept(COMPACTED, segment_bytes=350, group_bytes=1)
    kept.append((b"a", b"1"), producer=(1, 0, 0))
    kept.roll()
    kept.append((b"a", b"2"))
    kept.clean()
    kept.kill()
    for name in kept.names:
        if name.endswith(".snapshot"):
            kept.disk.remove(f"{DIRECTORY}/{name}")
    kept.start()
    kept.delete_records(1)
    kept.kill_and_start()
    assert [(each, state.last_sequence) for each, state in kept.log.producers.states()] == [(1, 0)]
    kept.stop()


def test_what_is_appended_behind_a_cut_is_not_compacted_yet() -> None:
    """After an unclean election what was compacted may have to go, too: a stale checkpoint would spare what comes
    in its place."""
    kept = Kept(COMPACTED, segment_bytes=350, group_bytes=1)
    for _ in range(8):
        kept.append((b"a", b"v" * 30), (b"a", b"v" * 30))
    kept.clean()
    assert kept.checkpoint == 12
    kept.log.truncate_to(4)
    kept.partition.truncated()
    kept.run(asyncio.sleep(0))
    for _ in range(8):
        kept.append((b"a", b"w" * 30), (b"a", b"w" * 30))
    assert kept.checkpoint == 4
    assert read_offsets(kept.disk, f"{DATA_DIR}/{CLEANED_OFFSETS}") == {("orders", 0): 4}


def test_a_truncation_to_the_active_segment_start_leaves_the_compacted_one_as_it_is() -> None:
    """Which is not walked at the next start, after a kill: no batch of it says where the epoch began any more, nor that
    producer 2 was ever there, whose newest batch was the one that is truncated."""
    kept = Kept(COMPACTED, segment_bytes=350, group_bytes=1)
    kept.append((b"a", b"1"), producer=(2, 0, 0))
    while len(kept.log.base_offsets) == 1:
        kept.append((b"a", b"v" * 30), (b"a", b"v" * 30))
    active = kept.log.base_offsets[-1]
    kept.append((b"a", b"2"), producer=(2, 0, 1))
    kept.clean()
    kept.log.truncate_to(active)
    kept.settle()
    kept.kill_and_start()
    assert kept.log.base_offsets == [0, active]
    assert [tuple(entry) for entry in kept.log.epochs.entries] == [(0, 0)]
    assert [(each, state.last_sequence) for each, state in kept.log.producers.states()] == [(2, 0)]
    kept.stop()
