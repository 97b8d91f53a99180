"""One partition's log on a disk in memory: files byte by byte, rolling, reading, timestamps, truncation, flushing."""

import struct
from dataclasses import replace
from pathlib import Path

import pytest

from odradek.broker.disk.file_disk import FileDisk
from odradek.broker.disk.memory_disk import Content, MemoryDisk
from odradek.broker.log.config import LogConfig
from odradek.broker.log.log import Log
from odradek.broker.log.log_end import Appended
from odradek.broker.log.segment import remove_files
from odradek.protocol.batches.batch import read_header
from odradek.protocol.batches.compression import Codec
from odradek.protocol.errors import ErrorCode
from tests.broker.log.logs import (
    DIRECTORY,
    STORAGE,
    T0,
    FaultyDisk,
    append,
    assert_same,
    batch,
    contents,
    error_of,
    full,
    open_log,
    read_all,
    small_log,
    stored,
)

ONE = batch(T0)  # every batch with one record of this kind has the same size
SIZE = len(ONE)


def test_a_new_log_is_one_empty_segment() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (0, 0, 0)
    assert contents(disk) == {
        "00000000000000000000.index": b"",
        "00000000000000000000.log": b"",
        "00000000000000000000.timeindex": b"",
    }
    assert log.fetch(0, 100, 0, True).records == b""
    assert log.offset_for_timestamp(0, 0) is None
    assert log.offset_of_max_timestamp(0) is None


def test_append_sets_base_offset_and_leader_epoch_and_touches_nothing_else() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    first, second = batch(T0, T0 + 1, T0 + 2), batch(T0 + 3, codec=Codec.ZSTD)
    assert append(log, first, leader_epoch=4) == Appended(0, 2, -1, False)
    assert append(log, second, leader_epoch=5) == Appended(3, 3, -1, False)
    assert log.log_end_offset == 4
    expected = stored(first, 0, 4) + stored(second, 3, 5)
    assert disk.read_whole(f"{DIRECTORY}/00000000000000000000.log") == expected
    assert log.size_bytes == len(expected)
    log.flush()
    assert disk.read_whole(f"{DIRECTORY}/leader-epoch-checkpoint") == b"0\n2\n4 0\n5 3\n"


def test_index_files_are_what_kafka_writes() -> None:
    """An entry for a batch once more than index.interval.bytes stand between it and the last batch with one."""
    disk = MemoryDisk()
    log = open_log(disk, LogConfig(index_interval_bytes=2 * SIZE))
    for timestamp in (T0 + 5, T0 + 1, T0 + 5, T0 + 3, T0 + 4, T0 + 9, T0 + 9):
        append(log, batch(timestamp))
    log.close()
    files = contents(disk)
    # Batches 3 and 6 stand 3 batches, more than 2 * SIZE bytes, behind the one before them that has an entry.
    assert files["00000000000000000000.index"] == struct.pack(">iiii", 3, 3 * SIZE, 6, 6 * SIZE)
    # The largest timestamps so far, and the first batches to have them: 0, then 5. Closing adds nothing larger.
    assert files["00000000000000000000.timeindex"] == struct.pack(">qiqi", T0 + 5, 0, T0 + 9, 5)


def test_an_offset_entry_names_the_last_offset_of_its_batch() -> None:
    disk = MemoryDisk()
    log = open_log(disk, LogConfig(index_interval_bytes=0))
    append(log, batch(T0, T0 + 1))
    append(log, batch(T0 + 9, T0 + 2, T0 + 3))
    log.close()
    size = len(batch(T0, T0 + 1))
    assert contents(disk)["00000000000000000000.index"] == struct.pack(">ii", 4, size)
    assert contents(disk)["00000000000000000000.timeindex"] == struct.pack(">qi", T0 + 9, 4)


def test_closing_or_rolling_adds_the_last_time_entry() -> None:
    disk = MemoryDisk()
    log = open_log(disk, LogConfig(segment_bytes=2 * SIZE))
    for timestamp in (T0, T0 + 2, T0 + 1):
        append(log, batch(timestamp))
    log.close()
    files = contents(disk)
    assert files["00000000000000000000.timeindex"] == struct.pack(">qi", T0 + 2, 1)
    assert files["00000000000000000002.timeindex"] == struct.pack(">qi", T0 + 1, 0)
    assert files["00000000000000000000.index"] == b""


def test_a_segment_is_rolled_when_the_next_batch_would_make_it_too_large() -> None:
    log = open_log(MemoryDisk(), LogConfig(segment_bytes=3 * SIZE))
    for _ in range(7):
        append(log, ONE)
    assert log.base_offsets == [0, 3, 6]
    log.config = LogConfig(segment_bytes=2 * SIZE)
    for _ in range(2):
        append(log, ONE)
    assert log.base_offsets == [0, 3, 6, 8], "a new configuration holds from the next append on"


def test_a_segment_is_rolled_when_its_first_batch_is_older_than_segment_ms() -> None:
    """By the records' time, which may stand still or go back, whatever the clock says."""
    log = open_log(MemoryDisk(), LogConfig(segment_ms=100), now_ms=T0)
    for timestamp in (T0, T0 + 100, T0 - 50, T0 + 101, T0 + 150, T0 + 201, T0 + 202):
        append(log, batch(timestamp), now_ms=T0 + 5000)
    assert log.base_offsets == [0, 3, 6]


def test_batches_without_timestamp_roll_by_the_clock() -> None:
    log = open_log(MemoryDisk(), LogConfig(segment_ms=100), now_ms=1000)
    for now_ms in (1000, 1100, 1101, 1150):
        append(log, batch(-1), now_ms=now_ms)
    assert log.base_offsets == [0, 2]


def test_rolling_by_time_counts_from_the_first_batch_after_a_restart_too() -> None:
    disk = MemoryDisk()
    log = open_log(disk, LogConfig(segment_ms=100))
    append(log, batch(T0))
    append(log, batch(T0 + 90))
    log.close()
    log = open_log(disk, LogConfig(segment_ms=100))
    append(log, batch(T0 + 101))
    assert log.base_offsets == [0, 2]


@pytest.mark.parametrize(("index_bytes", "entries"), [(8 * 4, 1), (8 * 5, 2), (8 * 2, 0)])
def test_a_segment_is_rolled_when_an_index_is_full(index_bytes: int, entries: int) -> None:
    """The time index keeps a place free for the last entry, hence it uses one of the two in 32 bytes."""
    disk = MemoryDisk()
    log = open_log(disk, LogConfig(index_interval_bytes=0, segment_index_bytes=index_bytes))
    for number in range(9):
        append(log, batch(T0 + number))
    log.close()
    assert log.base_offsets == list(range(0, 9, entries + 1))
    for name, content in contents(disk).items():
        assert "index" not in name or len(content) <= max(index_bytes, 12)


def test_a_segment_is_rolled_before_a_relative_offset_exceeds_an_int32() -> None:
    """A batch may leave offsets out, as compaction does: here one jumps to the end of what the indexes can hold."""
    disk = MemoryDisk()
    open_log(disk).close()
    name = f"{DIRECTORY}/00000000000000000000.log"
    disk.open(name).append([stored(ONE, 0), stored(ONE, 2**31 - 3)])
    log = open_log(disk, LogConfig(index_interval_bytes=0))
    assert log.log_end_offset == 2**31 - 2
    append(log, batch(T0, T0))  # its last offset is 2**31 - 1, the largest relative one
    assert log.base_offsets == [0]
    append(log, batch(T0))
    assert log.base_offsets == [0, 2**31]
    assert read_header(bytes(log.fetch(2**31 - 1, 1000, 2**31, True).records)).last_offset == 2**31 - 1
    log.close()
    assert open_log(disk).log_end_offset == 2**31 + 1


def test_a_batch_larger_than_a_segment_is_refused_and_one_as_large_is_not() -> None:
    log = open_log(MemoryDisk(), LogConfig(segment_bytes=SIZE))
    assert append(log, ONE).base_offset == 0
    assert error_of(lambda: append(log, batch(T0, value=b"vv"))) is ErrorCode.RECORD_LIST_TOO_LARGE
    assert append(log, ONE).base_offset == 1


def test_duplicates_are_answered_and_not_appended() -> None:
    log = open_log(MemoryDisk())
    append(log, ONE)
    sent = batch(T0 + 7, T0 + 3, producer=(9, 0, 0))
    assert append(log, sent) == Appended(1, 2, -1, False)
    assert append(log, sent) == Appended(1, 2, T0 + 7, True)
    assert log.log_end_offset == 3
    assert error_of(lambda: append(log, batch(producer=(9, 0, 3)))) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert error_of(lambda: append(log, batch(is_transactional=True))) is ErrorCode.INVALID_TXN_STATE
    assert log.size_bytes == SIZE + len(sent)


def test_producers_are_known_again_after_a_restart() -> None:
    disk = MemoryDisk()
    log = open_log(disk, LogConfig(segment_bytes=3 * SIZE))
    for sequence in range(7):
        append(log, batch(T0 + sequence, producer=(9, 2, sequence)))
    log.close()
    log = open_log(disk)
    assert append(log, batch(T0 + 2, producer=(9, 2, 2))) == Appended(2, 2, T0 + 2, True)
    assert error_of(lambda: append(log, batch(producer=(9, 2, 1)))) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert error_of(lambda: append(log, batch(producer=(9, 1, 7)))) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert append(log, batch(producer=(9, 2, 7))).base_offset == 7


def test_where_timestamps_stand_still_the_offset_index_alone_fills_up() -> None:
    disk = MemoryDisk()
    log = open_log(disk, LogConfig(index_interval_bytes=0, segment_index_bytes=36))
    for _ in range(12):
        append(log, batch(T0))
    assert log.base_offsets == [0, 5, 10], "four entries of eight bytes, for every batch but the first"


def test_after_a_truncation_index_entries_are_due_as_if_the_log_was_never_longer() -> None:
    disk, other = MemoryDisk(), MemoryDisk()
    log, never_longer = (
        open_log(disk, LogConfig(index_interval_bytes=150)),
        open_log(other, LogConfig(index_interval_bytes=150)),
    )
    for number in range(12):
        append(log, batch(T0 + number))
    log.truncate_to(7)
    for number in range(7, 12):
        append(log, batch(T0 + number))
    for number in range(12):
        append(never_longer, batch(T0 + number))
    log.close()
    never_longer.close()
    assert contents(disk) == contents(other)


def test_after_truncation_to_nothing_rolling_by_time_counts_from_the_new_first_batch() -> None:
    log = open_log(MemoryDisk(), LogConfig(segment_ms=100))
    append(log, batch(T0))
    log.truncate_to(0)
    append(log, batch(T0 + 500))
    append(log, batch(T0 + 550))
    assert log.base_offsets == [0]
    append(log, batch(T0 + 601))
    assert log.base_offsets == [0, 2]


@pytest.mark.parametrize("offset", range(41))
def test_truncation_keeps_what_ends_before_it(offset: int) -> None:
    """At every offset, and the log goes on there as one that never was longer: files, epochs and producers."""
    disk = MemoryDisk()
    log, model = small_log(disk)
    log.truncate_to(offset)
    model.truncate_to(offset)
    assert_same(log, model)
    more = batch(T0 + 500, T0 + 1000, producer=(0, 1, 0))
    append(log, more, leader_epoch=7)
    model.append(more, leader_epoch=7)
    assert_same(log, model)
    assert log.offset_for_timestamp(T0 + 501, 1000) == model.offset_for_timestamp(T0 + 501, 1000)
    log.close()
    assert_same(open_log(disk), model)


def test_truncation_below_the_log_starts_anew() -> None:
    disk = MemoryDisk()
    log, _ = small_log(disk)
    log.advance_log_start(20)
    first = log.base_offsets[0]
    assert first > 5
    log.truncate_to(5)
    assert (log.log_start_offset, log.log_end_offset, log.base_offsets, log.size_bytes) == (5, 5, [5], 0)
    assert log.epochs.latest == -1
    assert len(log.producers) == 0
    append(log, ONE, leader_epoch=9)
    log.close()
    log = open_log(disk)
    assert (log.log_start_offset, log.log_end_offset) == (5, 6)
    assert [tuple(entry) for entry in log.epochs.entries] == [(9, 5)]


@pytest.mark.parametrize("offset", [0, 7, 1000])
def test_a_full_truncation_leaves_an_empty_log_at_the_offset(offset: int) -> None:
    disk = MemoryDisk()
    log, _ = small_log(disk)
    log.truncate_fully_and_start_at(offset)
    assert (log.log_start_offset, log.log_end_offset, log.base_offsets) == (offset, offset, [offset])
    assert read_all(log) == b""
    assert [name for name in contents(disk) if name.endswith(".log")] == [f"{offset:020d}.log"]
    append(log, ONE, leader_epoch=9)
    assert read_all(log) == stored(ONE, offset, 9)


def test_advancing_the_log_start_deletes_the_segments_before_it() -> None:
    disk = MemoryDisk()
    log, model = small_log(disk)
    bases = log.base_offsets
    log.advance_log_start(bases[2] - 1)
    assert log.base_offsets == bases[1:], "the segment that holds the log start stays"
    log.advance_log_start(bases[2])
    assert log.base_offsets == bases[2:]
    remove_files(disk, log.segments.take_retired())
    assert log.segments.take_retired() == []
    assert [name for name in disk.list_dir(DIRECTORY) if name < f"{bases[2]:020d}"] == []
    log.advance_log_start(3)
    assert log.log_start_offset == bases[2], "never back"
    model.advance_log_start(bases[2])
    model.batches = model.readable()
    model.batches = [entry for entry in model.batches if entry[0] >= bases[2]]
    assert read_all(log) == b"".join(data for _, _, data in model.batches)
    log.advance_log_start(log.log_end_offset)
    assert log.base_offsets == bases[-1:], "the active segment stays"
    assert error_of(lambda: log.advance_log_start(log.log_end_offset + 1)) is ErrorCode.OFFSET_OUT_OF_RANGE


def test_the_log_start_of_the_checkpoint_holds_after_a_restart() -> None:
    disk = MemoryDisk()
    log, _ = small_log(disk)
    end = log.log_end_offset
    epoch_at_9 = log.epochs.epoch_for(9)
    log.close()
    log = open_log(disk, log_start_offset=9)
    assert (log.log_start_offset, log.log_end_offset) == (9, end)
    assert tuple(log.epochs.entries[0]) == (epoch_at_9, 9)
    log.close()
    log = open_log(disk, log_start_offset=end + 10)
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (end + 10, end + 10, 0)
    log.close()
    assert open_log(MemoryDisk(), log_start_offset=33).log_end_offset == 33


def test_a_truncation_that_failed_must_be_completed_before_the_next_append() -> None:
    disk = FaultyDisk()
    log, model = small_log(disk)
    disk.fail_at(4, full, for_good=True)
    assert error_of(lambda: log.truncate_to(3)) is STORAGE
    disk.heal()
    assert error_of(lambda: append(log, ONE, leader_epoch=9)) is STORAGE
    log.truncate_to(3)
    model.truncate_to(3)
    assert_same(log, model)
    append(log, ONE, leader_epoch=9)


def test_an_epoch_without_records_is_forgotten_even_where_nothing_is_cut() -> None:
    """As in UnifiedLog.truncateTo: a leader was deposed before its first append."""
    log = open_log(MemoryDisk())
    append(log, ONE, leader_epoch=1)
    log.epochs.assign(2, 1)
    log.truncate_to(1)
    assert [tuple(entry) for entry in log.epochs.entries] == [(1, 0)]


def test_a_closed_log_takes_nothing() -> None:
    log = open_log(MemoryDisk())
    append(log, ONE)
    log.close()
    assert error_of(lambda: append(log, ONE)) is STORAGE
    assert error_of(lambda: log.fetch(0, 100, 1, True)) is STORAGE


def test_closing_without_flush_lets_the_directory_be_renamed(tmp_path: Path) -> None:
    disk = FileDisk()
    log = Log.open(disk, f"{tmp_path}/orders-0", LogConfig(), 0)
    append(log, ONE)
    log.close_without_flush()
    assert disk.open_descriptors == 0
    disk.rename(f"{tmp_path}/orders-0", f"{tmp_path}/orders-0.0123-delete")
    disk.remove_tree(f"{tmp_path}/orders-0.0123-delete")


def test_an_epoch_begins_with_its_first_record() -> None:
    disk = FaultyDisk()
    log = open_log(disk)
    append(log, ONE, leader_epoch=1)
    disk.fail_at(0, full, for_good=True)
    assert error_of(lambda: append(log, ONE, leader_epoch=2)) is STORAGE
    disk.heal()
    assert (log.epochs.latest, log.log_end_offset) == (1, 1)
    with pytest.raises(AssertionError):
        append(log, ONE, leader_epoch=0)
    append(log, ONE, leader_epoch=2)
    assert log.epochs.end_offset_for(1, 2) == (1, 1)


def test_the_first_record_of_an_epoch_waits_for_no_device() -> None:
    """Kafka's clients would see it: each partition that a producer comes to for the first time took a millisecond."""
    disk = FaultyDisk()
    log = open_log(disk)
    disk.count_anew()
    append(log, ONE, leader_epoch=1)
    assert disk.steps == len(ONE), "nothing but its own bytes was written, and nothing was synced"


def test_a_deleted_segment_takes_no_epoch_with_it() -> None:
    """The only batches that said where it began are gone after that, without a flush in between."""
    disk = MemoryDisk()
    log = open_log(disk, LogConfig(segment_bytes=len(ONE)))
    for epoch in (1, 2, 2, 2):
        append(log, ONE, leader_epoch=epoch)
    log.advance_log_start(3)
    again = open_log(disk, log_start_offset=3)
    assert [tuple(entry) for entry in again.epochs.entries] == [(2, 3)]


def test_a_full_disk_is_logged_once_and_so_is_its_end(caplog: pytest.LogCaptureFixture) -> None:
    disk = FaultyDisk()
    log = open_log(disk)
    append(log, ONE)
    disk.fail_at(0, full, for_good=True)
    for _ in range(3):
        assert error_of(lambda: append(log, ONE)) is STORAGE
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert "No space left" in caplog.text
    disk.heal()
    append(log, ONE)
    append(log, ONE)
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]
    assert read_all(log) == stored(ONE, 0) + stored(ONE, 1) + stored(ONE, 2)


def test_config_is_replaced_as_a_whole() -> None:
    config = LogConfig()
    assert (config.segment_bytes, config.segment_ms) == (1073741824, 604800000)
    assert (config.segment_index_bytes, config.index_interval_bytes) == (10485760, 4096)
    assert replace(config, segment_bytes=1).segment_bytes == 1


def test_preallocated_segments_take_space_at_once_and_free_the_rest_when_complete() -> None:
    disk = MemoryDisk()
    config = LogConfig(segment_bytes=3 * SIZE, preallocate=True)
    log = open_log(disk, config)
    first, second = (f"{DIRECTORY}/{base:020d}.log" for base in (0, 3))
    append(log, ONE)
    assert len(disk.read_whole(first)) == 3 * SIZE
    assert log.size_bytes == SIZE, "what is not written is not there"
    for _ in range(3):
        append(log, ONE)
    assert len(disk.read_whole(first)) == len(disk.read_whole(second)) == 3 * SIZE
    log.close()
    assert disk.read_whole(second) == stored(ONE, 3)


def test_what_a_killed_process_had_preallocated_is_given_back_without_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    disk = MemoryDisk()
    config = LogConfig(segment_bytes=10 * SIZE, preallocate=True)
    log = open_log(disk, config)
    for _ in range(2):
        append(log, ONE)
    log.close_without_flush()
    log = open_log(disk, config)
    assert (log.log_end_offset, log.size_bytes) == (2, 2 * SIZE)
    assert disk.read_whole(f"{DIRECTORY}/{0:020d}.log") == stored(ONE, 0) + stored(ONE, 1)
    assert [record.levelname for record in caplog.records if record.levelname != "INFO"] == []


class ReservelessDisk(MemoryDisk):
    """Has room for what is written, and refuses to reserve any while `is_full`."""

    is_full = False

    def reserve(self, content: Content, size_bytes: int) -> None:
        if self.is_full:
            raise full()
        super().reserve(content, size_bytes)


def test_a_preallocation_without_room_makes_no_segment() -> None:
    disk = ReservelessDisk()
    log = open_log(disk, LogConfig(segment_bytes=SIZE, preallocate=True))
    append(log, ONE)
    disk.is_full = True
    assert error_of(lambda: append(log, ONE)) is STORAGE
    assert log.base_offsets == [0]
    disk.is_full = False
    assert append(log, ONE).base_offset == 1
    assert read_all(log) == stored(ONE, 0) + stored(ONE, 1)


@pytest.mark.parametrize(("chance", "until_ms"), [(0.0, 100), (0.5, 70), (0.99, 41)])
def test_a_random_part_of_the_jitter_is_taken_off_the_age_of_each_segment(chance: float, until_ms: int) -> None:
    """So that the segments of many partitions, begun together, do not all end together."""
    config = LogConfig(segment_ms=100, segment_jitter_ms=60)
    log = Log.open(MemoryDisk(), DIRECTORY, config, 0, random=lambda: chance)
    append(log, batch(T0))
    log.roll(0)
    append(log, batch(T0))
    append(log, batch(T0 + until_ms))
    assert log.base_offsets == [0, 1]
    append(log, batch(T0 + until_ms + 1))
    assert log.base_offsets == [0, 1, 3]


def test_jitter_is_never_more_than_the_age_itself() -> None:
    log = Log.open(MemoryDisk(), DIRECTORY, LogConfig(segment_ms=10, segment_jitter_ms=1000), 0, random=lambda: 0.999)
    append(log, batch(T0))
    log.roll(0)
    append(log, batch(T0))
    append(log, batch(T0 + 1))
    assert log.base_offsets == [0, 1]
    append(log, batch(T0 + 2))
    assert log.base_offsets == [0, 1, 3]
