"""What a start costs: after a clean stop the end of the last segment, after a kill what the recovery point leaves.

A disk counts the files opened and the bytes read; then the flushed part of the log is made ten times as long.
"""

from collections import Counter
from pathlib import Path

import pytest

from odradek.broker.disk.file_disk import FileDisk
from odradek.broker.log.config import LogConfig
from odradek.broker.log.log import Log
from odradek.protocol.batches.batch import HEADER_SIZE
from tests.broker.log.counting_disk import CountingDisk
from tests.broker.log.logs import DIRECTORY, T0, Model, append, assert_same, batch, known_producers, open_log
from tests.broker.log.transactions import TxnModel, assert_transactions

VALUE = bytes(300)
SEGMENT_BYTES = 20_000
CONFIG = LogConfig(segment_bytes=SEGMENT_BYTES, index_interval_bytes=1024)
BIG = LogConfig(segment_bytes=1 << 30, index_interval_bytes=1024)
PER_SEGMENT = SEGMENT_BYTES // len(batch(value=VALUE))
SNAPSHOT_BYTES_MAX = 1000


def filled(log: Log, count: int) -> None:
    """Two idempotent producers, an epoch each ten batches."""
    for number in range(log.log_end_offset, log.log_end_offset + count):
        data = batch(T0 + number, value=VALUE, producer=(number % 2, 0, number // 2))
        append(log, data, leader_epoch=number // 10)


def written(count: int, config: LogConfig = CONFIG) -> tuple[CountingDisk, Log]:
    disk = CountingDisk()
    log = open_log(disk, config)
    filled(log, count)
    return disk, log


def flush_closed(log: Log) -> None:
    """What the broker does after each roll."""
    flush = log.begin_flush(settle=True, with_active=False)
    assert flush is not None
    flush.run()
    log.end_flush(flush)


def started(disk: CountingDisk, before: Log, config: LogConfig = CONFIG, *, is_clean: bool = False) -> Log:
    """The log as the next process opens it; the disk has counted that alone."""
    disk.forget()
    return open_log(disk, config, recovery_point=before.recovery_point, is_clean=is_clean)


def file(base_offset: int, suffix: str = ".log") -> str:
    return f"{base_offset:020d}{suffix}"


# -- after a clean stop -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("segment_count", [3, 30])
def test_after_a_clean_stop_only_the_end_of_the_last_segment_is_read(segment_count: int) -> None:
    disk, log = written(segment_count * PER_SEGMENT - 10)
    assert len(log.base_offsets) == segment_count
    expected = known_producers(log)
    log.close()
    again = started(disk, log, is_clean=True)
    last = again.base_offsets[-1]
    own = {file(last), file(last, ".index"), file(last, ".timeindex"), file(again.log_end_offset, ".snapshot")}
    assert disk.touched == {*own, "leader-epoch-checkpoint"}
    assert disk.bytes_read[f"{DIRECTORY}/{file(last)}"] < 6 * (4096 + 2 * HEADER_SIZE)
    assert disk.all_bytes_read - disk.bytes_read[f"{DIRECTORY}/leader-epoch-checkpoint"] < 30_000
    assert disk.bytes_written == 0
    assert known_producers(again) == expected
    assert again.recovery_point == again.durable_offset == again.log_end_offset == log.log_end_offset


def test_the_size_of_the_last_segment_does_not_matter_either() -> None:
    reads: list[int] = []
    for count in (500, 5000):
        disk, log = written(count, BIG)
        log.close()
        started(disk, log, BIG, is_clean=True)
        reads.append(disk.all_bytes_read - disk.bytes_read[f"{DIRECTORY}/leader-epoch-checkpoint"])
    assert abs(reads[1] - reads[0]) < 2 * 4096
    assert max(reads) < 30_000


def test_no_descriptor_is_held_for_older_segments(tmp_path: Path) -> None:
    directory = str(tmp_path / "orders-0")
    log = Log.open(FileDisk(), directory, CONFIG, 0)
    filled(log, 30 * PER_SEGMENT)
    log.close()
    disk = FileDisk()
    log = Log.open(disk, directory, CONFIG, 0, recovery_point=log.recovery_point, is_clean=True)
    assert len(log.base_offsets) == 30
    assert disk.open_descriptors <= 4
    log.close()


def test_older_segments_are_opened_by_who_reads_them() -> None:
    disk, log = written(6 * PER_SEGMENT)
    log.close()
    again = started(disk, log, is_clean=True)
    disk.forget()
    assert len(again.fetch(2 * PER_SEGMENT + 5, 1000, again.log_end_offset, True).records) > 0
    assert disk.touched == {file(2 * PER_SEGMENT), file(2 * PER_SEGMENT, ".index")}


def test_aborted_transactions_of_older_segments_cost_nothing_at_the_start() -> None:
    disk, model = CountingDisk(), TxnModel()
    log = open_log(disk, LogConfig(segment_bytes=400))
    for _ in range(20):
        model.write(log, 1, b"x" * 100)
        model.end(log, 1, is_abort=True)
    log.close()
    again = started(disk, log, LogConfig(segment_bytes=400), is_clean=True)
    last = again.base_offsets[-1]
    read = {path.rpartition("/")[2] for path, count in disk.bytes_read.items() if count}
    assert not [name for name in read if name.endswith(".txnindex") and int(name[:20]) < last]
    assert_transactions(again, model)


# -- after a kill -----------------------------------------------------------------------------------------------------


def test_after_a_kill_the_bytes_read_depend_on_what_was_not_flushed_alone() -> None:
    """Ten times as many flushed segments: the very same bytes."""
    reads: list[Counter[str]] = []
    for segment_count in (3, 30):
        disk, log = written(segment_count * PER_SEGMENT + 7)
        flush_closed(log)
        log.close_without_flush()
        again = started(disk, log)
        last = again.base_offsets[-1]
        assert last == segment_count * PER_SEGMENT
        suffixes = (".log", ".index", ".timeindex", ".snapshot")
        own = {file(last, suffix) for suffix in suffixes}
        before = {file(again.base_offsets[-2], suffix) for suffix in suffixes}
        others = {"leader-epoch-checkpoint", file(again.log_end_offset, ".snapshot")}
        assert own <= disk.touched <= own | before | others, "of the one before perhaps the end"
        read: Counter[str] = Counter()
        for path, count in disk.bytes_read.items():
            read[path.rpartition(".")[2]] += count if path.endswith(suffixes) else 0
        reads.append(read)
    assert max(read.pop("snapshot") for read in reads) <= SNAPSHOT_BYTES_MAX
    assert reads[0] == reads[1]


def test_they_grow_with_what_was_not_flushed() -> None:
    reads: list[int] = []
    for unflushed in (5, 50, 500):
        disk, log = written(3 * PER_SEGMENT)
        flush_closed(log)
        filled(log, unflushed)
        log.close_without_flush()
        started(disk, log)
        reads.append(disk.all_bytes_read - disk.bytes_read[f"{DIRECTORY}/leader-epoch-checkpoint"])
    size_bytes = len(batch(value=VALUE))
    assert 30 * size_bytes < reads[1] - reads[0]
    assert 400 * size_bytes < reads[2] - reads[1] < 500 * size_bytes * 3


def test_what_was_flushed_of_the_last_segment_is_not_read_again() -> None:
    """The recovery point lies within the segment: after a clean stop, or where the broker settles by the clock."""
    reads: list[int] = []
    for flushed in (200, 2000):
        disk, log = written(flushed, BIG)
        log.flush()
        filled(log, 20)
        log.close_without_flush()
        started(disk, log, BIG)
        reads.append(disk.bytes_read[f"{DIRECTORY}/{file(0)}"])
    assert abs(reads[1] - reads[0]) < 2 * 4096


def test_a_kill_soon_after_a_clean_stop_costs_no_more_than_the_stop_left() -> None:
    reads: list[int] = []
    for flushed in (200, 2000):
        disk, log = written(flushed, BIG)
        log.close()
        again = started(disk, log, BIG, is_clean=True)
        again.close_without_flush()
        started(disk, again, BIG)
        reads.append(disk.bytes_read[f"{DIRECTORY}/{file(0)}"])
    assert abs(reads[1] - reads[0]) < 2 * 4096


# -- what a clean stop claims, and what is there ----------------------------------------------------------------------


def test_a_kill_after_a_clean_start_is_recovered() -> None:
    disk, log = written(2 * PER_SEGMENT)
    log.close()
    again = started(disk, log, is_clean=True)
    filled(again, 30)
    again.close_without_flush()
    torn = started(disk, again)
    assert torn.log_end_offset == again.log_end_offset
    assert known_producers(torn) == known_producers(again)


@pytest.mark.parametrize("cut", [1, 50, 61, 400])
def test_a_segment_that_is_shorter_than_the_clean_stop_left_it_is_recovered(
    cut: int, caplog: pytest.LogCaptureFixture
) -> None:
    disk, log = written(2 * PER_SEGMENT - 3)
    log.close()
    path = f"{DIRECTORY}/{file(log.base_offsets[-1])}"
    disk.write_whole(path, disk.read_whole(path)[:-cut])
    again = started(disk, log, is_clean=True)
    whole = 1 + cut // (len(batch(value=VALUE)) + 4)
    assert log.log_end_offset - whole - 1 <= again.log_end_offset < log.log_end_offset
    assert again.recovery_point <= again.log_end_offset
    filled(again, 1)


@pytest.mark.parametrize("recovery_point", [-1, 0, 1, 7, PER_SEGMENT, 10**6, 2**62])
def test_any_recovery_point_opens_the_log_whole(recovery_point: int) -> None:
    """One beyond the end may be left by a checkpoint that is newer than the log: what is there, is there."""
    disk, model = CountingDisk(), Model()
    log = open_log(disk, LogConfig(segment_bytes=400, index_interval_bytes=100))
    for number in range(20):
        append(log, batch(T0 + number, producer=(1, 0, number)))
        model.append(batch(T0 + number, producer=(1, 0, number)))
    log.flush()
    log.close_without_flush()
    log = open_log(disk, LogConfig(segment_bytes=400, index_interval_bytes=100), recovery_point=recovery_point)
    assert_same(log, model)
    assert log.durable_offset == log.recovery_point == max(0, min(recovery_point, 20))


def test_an_empty_segment_left_by_a_failed_roll_loses_nothing_after_a_clean_stop() -> None:
    """The roll made its files, could not go on, and nobody could remove them; the log went on in the segment before."""
    disk, log = written(20)
    filled(log, 5)
    for suffix in (".log", ".index", ".timeindex"):
        disk.write_whole(f"{DIRECTORY}/{file(20, suffix)}", b"")
    log.close()
    again = started(disk, log, is_clean=True)
    assert again.log_end_offset == 25
    assert len(again.fetch(22, 1000, 25, True).records) > 0
