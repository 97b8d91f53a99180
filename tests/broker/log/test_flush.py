"""A flush: what it waits for, in which order, and what it means when it ends.

How it may fail is in test_flush_failures.py.
"""

import os
import threading

import pytest

from odradek.broker.disk.file_disk import FileDisk
from odradek.broker.log.log import Log
from tests.broker.log.logs import (
    DIRECTORY,
    T0,
    append,
    batch,
)
from tests.broker.log.sync_disk import CONFIG, SyncDisk, flushed, log_with, name

# -- what is synced ---------------------------------------------------------------------------------------------------


def test_durable_needs_the_batches_and_the_names_of_their_files_and_no_more() -> None:
    disk = SyncDisk()
    log = log_with(disk, 8)
    assert log.base_offsets == [0, 4]
    flushed(log, settle=False)
    assert disk.take_synced() == [name(0), name(4), "orders-0", "data"]
    assert (log.durable_offset, log.recovery_point) == (8, 0)
    append(log, batch(T0))
    flushed(log, settle=False)
    assert disk.take_synced() == [name(8), "orders-0", "data"]
    append(log, batch(T0))
    flushed(log, settle=False)
    assert disk.take_synced() == [name(8)], "no file has come since"
    assert log.begin_flush(settle=False) is None, "nothing has"


def test_settled_needs_what_is_derived_from_them_too_and_the_batches_first() -> None:
    disk = SyncDisk()
    log = log_with(disk, 8)
    flushed(log, settle=True)
    synced = disk.take_synced()
    assert synced[:2] == [name(0), name(4)]
    indexes = {name(base, suffix) for base in (0, 4) for suffix in (".index", ".timeindex")}
    derived = {*indexes, name(4, ".snapshot"), "=leader-epoch-checkpoint", "orders-0", "data"}
    assert derived <= {*synced[2:]} <= {*derived, name(8, ".snapshot")}
    assert (log.durable_offset, log.recovery_point) == (8, 8)
    assert log.begin_flush(settle=True) is None


def test_what_is_durable_need_not_be_synced_again_to_be_settled() -> None:
    disk = SyncDisk()
    log = log_with(disk, 8)
    flushed(log, settle=False)
    disk.take_synced()
    flushed(log, settle=True)
    assert not [synced for synced in disk.take_synced() if synced.endswith(".log")]
    assert log.recovery_point == 8


def test_rows_that_wait_in_memory_are_written_before_they_are_synced() -> None:
    disk = SyncDisk()
    log = log_with(disk, 8)
    assert disk.read_whole(f"{DIRECTORY}/{name(4, '.index')}") == b""
    flushed(log, settle=True)
    assert len(disk.read_whole(f"{DIRECTORY}/{name(4, '.index')}")) == 8


def test_without_the_active_segment_the_recovery_point_is_where_that_begins() -> None:
    disk = SyncDisk()
    log = log_with(disk, 9)
    assert log.base_offsets == [0, 4, 8]
    flushed(log, settle=True, with_active=False)
    synced = disk.take_synced()
    assert name(8) not in synced
    assert name(8, ".snapshot") in synced, "a start behind a kill begins with this one"
    assert (log.durable_offset, log.recovery_point) == (8, 8)
    assert log.begin_flush(settle=True, with_active=False) is None
    assert log.begin_flush(settle=False) is not None


def test_a_new_epoch_alone_is_worth_a_flush() -> None:
    log = log_with(SyncDisk(), 3)
    flushed(log, settle=True)
    log.epochs.assign(5, 3)
    assert log.begin_flush(settle=False) is None
    flushed(log, settle=True)
    assert not log.epochs.is_stale


# -- what happens meanwhile -------------------------------------------------------------------------------------------


def test_what_is_appended_meanwhile_waits_for_the_next_flush() -> None:
    log = log_with(SyncDisk(), 3)
    flush = log.begin_flush(settle=True)
    assert flush is not None
    append(log, batch(T0))
    flush.run()
    log.end_flush(flush)
    assert (log.durable_offset, log.recovery_point) == (3, 3)
    flushed(log, settle=True)
    assert (log.durable_offset, log.recovery_point) == (4, 4)


def test_a_segment_that_comes_meanwhile_has_its_name_synced_by_the_next_flush() -> None:
    disk = SyncDisk()
    log = log_with(disk, 3)
    flush = log.begin_flush(settle=False)
    assert flush is not None
    log.roll(0)
    flush.run()
    log.end_flush(flush)
    disk.take_synced()
    flushed(log, settle=False)
    assert disk.take_synced() == ["orders-0", "data"]


def test_flushes_may_end_in_another_order() -> None:
    log = log_with(SyncDisk(), 3)
    first = log.begin_flush(settle=True)
    append(log, batch(T0))
    second = log.begin_flush(settle=True)
    assert first is not None
    assert second is not None
    second.run()
    log.end_flush(second)
    first.run()
    log.end_flush(first)
    assert (log.durable_offset, log.recovery_point) == (4, 4)


@pytest.mark.parametrize("settle", [False, True])
def test_after_a_truncation_a_flush_that_began_before_proves_nothing(settle: bool) -> None:
    log = log_with(SyncDisk(), 3)
    flush = log.begin_flush(settle=settle)
    assert flush is not None
    log.truncate_to(1)
    append(log, batch(T0, T0, T0, value=b"other"), leader_epoch=1)
    flush.run()
    log.end_flush(flush)
    assert log.durable_offset <= 1
    assert log.recovery_point <= 1
    flushed(log, settle=True)
    assert (log.durable_offset, log.recovery_point) == (4, 4)


def test_files_may_be_renamed_deleted_and_closed_meanwhile(tmp_path: "os.PathLike[str]") -> None:
    """On real files: the descriptors are taken at the beginning."""
    disk = FileDisk(descriptors_max=4)
    directory = os.path.join(tmp_path, "orders-0")
    log = Log.open(disk, directory, CONFIG, 0)
    for number in range(9):
        append(log, batch(T0 + number))
    flush = log.begin_flush(settle=True)
    assert flush is not None
    log.advance_log_start(6)
    for path in log.segments.take_retired():
        disk.remove(path)
    log.close_without_flush()
    thread = threading.Thread(target=flush.run)
    thread.start()
    thread.join()
    log.end_flush(flush)
    assert log.recovery_point == 9
