"""A flush that the device did not take: what is refused then, what the next start does, and what may be tried again."""

import errno
import os
from contextlib import suppress
from pathlib import Path

import pytest

from odradek.broker.disk.disk import File
from odradek.broker.disk.file_disk import FileDisk
from odradek.broker.disk.memory_disk import Content
from odradek.broker.log.flush import DataNotSynced
from odradek.broker.log.leftovers import UNSYNCED
from odradek.broker.log.log import Log
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.primitives import Buffer
from tests.broker.log.logs import (
    DIRECTORY,
    STORAGE,
    T0,
    Model,
    append,
    assert_same,
    batch,
    error_of,
    open_log,
)
from tests.broker.log.sync_disk import CONFIG, SyncDisk, flushed, log_with, name
from tests.descriptors import open_below


def failed(log: Log, *, settle: bool = False, with_active: bool = True) -> OSError:
    flush = log.begin_flush(settle=settle, with_active=with_active)
    assert flush is not None
    with pytest.raises(OSError, match="Input/output error") as caught:
        flush.run()
    log.end_flush(flush, caught.value)
    return caught.value


def test_batches_that_the_device_did_not_take_end_all_appends(caplog: pytest.LogCaptureFixture) -> None:
    """Reading goes on, and what was durable before stays so."""
    disk, model = SyncDisk(), Model()
    log = open_log(disk, CONFIG)
    for number in range(3):
        append(log, batch(T0 + number))
        model.append(batch(T0 + number))
    flushed(log, settle=True)
    append(log, batch(T0 + 9))
    model.append(batch(T0 + 9))
    disk.failing = [name(0)]
    assert isinstance(failed(log), DataNotSynced)
    assert (log.durable_offset, log.recovery_point) == (3, 3)
    assert "no more appends until the next start" in caplog.text
    assert disk.exists(f"{DIRECTORY}/{UNSYNCED}")
    assert error_of(lambda: append(log, batch(T0))) is STORAGE
    assert_same(log, model)


def test_the_next_start_hears_of_it_though_the_device_takes_no_sync_at_all() -> None:
    class DeafDisk(SyncDisk):
        is_deaf = False

        def _note(self, name: str) -> None:
            if self.is_deaf:
                raise OSError(errno.EIO, os.strerror(errno.EIO), name)
            super()._note(name)

    disk, model = DeafDisk(), Model()
    log = open_log(disk, CONFIG)
    append(log, batch(T0))
    model.append(batch(T0))
    disk.is_deaf = True
    assert isinstance(failed(log), DataNotSynced)
    log.close_without_flush()
    disk.is_deaf = False
    content = disk.content(name(0))
    assert_same(open_log(disk, CONFIG), model)
    assert disk.content(name(0)) is not content, "what is in doubt is copied to pages that the device has not refused"


@pytest.mark.parametrize("last_chance", ["flush", "close", "close_without_flush"])
def test_the_next_start_is_told_as_soon_as_the_device_takes_it(
    last_chance: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A device that fails once may fail twice: without the mark the next start trusts pages that were never written."""

    class FullDisk(SyncDisk):
        is_full = False

        def open(self, path: str, size_bytes: int | None = None) -> File:
            if self.is_full and not self.exists(path):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
            return super().open(path, size_bytes)

    disk = FullDisk()
    log = log_with(disk, 3)
    disk.is_full, disk.failing = True, [name(0)]
    failed(log)
    with pytest.raises(KafkaError, match="could not be synced"):
        log.flush()
    assert not disk.exists(f"{DIRECTORY}/{UNSYNCED}")
    assert "while it is not there, restart the machine before the broker" in caplog.text
    disk.is_full = False
    with suppress(KafkaError):
        getattr(log, last_chance)()
    content = disk.content(UNSYNCED)
    assert disk.read_whole(f"{DIRECTORY}/{UNSYNCED}") == b"the log could not be synced: [Errno 5] Input/output error"
    log.close_without_flush()
    assert disk.content(UNSYNCED) is content, "written once"


@pytest.mark.parametrize(
    "what", ["orders-0", "data", name(0, ".index"), name(4, ".snapshot"), "=leader-epoch-checkpoint"]
)
def test_what_is_not_batches_may_fail_and_is_synced_by_the_next_flush(what: str) -> None:
    disk = SyncDisk()
    log = log_with(disk, 8)
    disk.failing = [what]
    assert not isinstance(failed(log, settle=True), DataNotSynced)
    assert (log.durable_offset, log.recovery_point) == (0, 0)
    assert not disk.exists(f"{DIRECTORY}/{UNSYNCED}")
    append(log, batch(T0))
    flushed(log, settle=True)
    assert (log.durable_offset, log.recovery_point) == (9, 9)


def test_after_a_failure_no_later_sync_proves_anything() -> None:
    """The kernel reports an error once; a second sync of those pages succeeds, though they are lost (errseq_t)."""
    disk = SyncDisk()
    log = log_with(disk, 6)
    closed = log.begin_flush(settle=True, with_active=False)
    everything = log.begin_flush(settle=False)
    assert closed is not None
    assert everything is not None
    disk.failing = [name(0)]
    with pytest.raises(DataNotSynced) as caught:
        closed.run()
    everything.run()
    log.end_flush(closed, caught.value)
    log.end_flush(everything)
    assert (log.durable_offset, log.recovery_point) == (0, 0)


def test_after_a_failure_no_flush_moves_anything() -> None:
    disk = SyncDisk()
    log = log_with(disk, 6)
    disk.failing = [name(0)]
    failed(log)
    try:
        log.flush()
    except KafkaError as error:
        assert error.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert (log.durable_offset, log.recovery_point) == (0, 0)


def test_a_log_that_could_not_be_synced_is_not_closed_as_if_it_had_been() -> None:
    """So that the next start copies all that is in doubt: from the recovery point on."""
    disk = SyncDisk()
    log = log_with(disk, 6)
    disk.failing = [name(0)]
    failed(log)
    with pytest.raises(KafkaError, match="could not be synced"):
        log.close()
    assert log.recovery_point == 0


def test_the_next_start_copies_what_is_in_doubt_before_it_serves_it(caplog: pytest.LogCaptureFixture) -> None:
    disk, model = SyncDisk(), Model()
    log = open_log(disk, CONFIG)
    for number in range(9):
        append(log, batch(T0 + number, producer=(1, 0, number)))
        model.append(batch(T0 + number, producer=(1, 0, number)))
        if number == 5:
            flushed(log, settle=True, with_active=False)
    disk.failing = [name(4)]
    failed(log)
    log.close_without_flush()
    disk.take_synced()
    contents = {base: disk.content(name(base)) for base in (0, 4, 8)}
    log = open_log(disk, CONFIG, recovery_point=4, is_clean=True)
    assert_same(log, model)
    for base in (4, 8):
        assert disk.content(name(base)) is not contents[base], "a new file"
        assert f"{name(base)}: copied" in caplog.text
    assert disk.content(name(0)) is contents[0], "before the recovery point"
    assert "orders-0" in disk.take_synced(), "so are their names"
    assert not disk.exists(f"{DIRECTORY}/{UNSYNCED}")
    append(log, batch(T0 + 50))
    model.append(batch(T0 + 50))
    log.close()
    assert_same(open_log(disk, CONFIG, recovery_point=log.recovery_point, is_clean=True), model)


@pytest.mark.parametrize("step", range(6))
def test_a_start_that_dies_while_it_copies_is_done_again(step: int) -> None:
    class Dies(Exception):
        pass

    class DyingDisk(SyncDisk):
        steps_left: int | None = None

        def _note(self, name: str) -> None:
            if self.steps_left is not None:
                self.steps_left -= 1
                if self.steps_left < 0:
                    raise Dies
            super()._note(name)

        def rename(self, source: str, target: str) -> None:
            self._note(f"{source} {target}")
            super().rename(source, target)

    disk, model = DyingDisk(), Model()
    log = open_log(disk, CONFIG)
    for number in range(9):
        append(log, batch(T0 + number))
        model.append(batch(T0 + number))
    disk.failing = [name(4)]
    failed(log)
    log.close_without_flush()
    disk.steps_left = step
    with pytest.raises(Dies):
        open_log(disk, CONFIG)
    disk.steps_left = None
    assert disk.exists(f"{DIRECTORY}/{UNSYNCED}")
    assert_same(open_log(disk, CONFIG), model)
    assert not [found for found in disk.list_dir(DIRECTORY) if found.endswith(".tmp")]


def test_a_flush_that_cannot_begin_leaves_no_descriptor_behind(tmp_path: Path) -> None:
    disk = FileDisk(descriptors_max=8)
    log = Log.open(disk, os.path.join(tmp_path, "orders-0"), CONFIG, 0)
    for number in range(9):
        append(log, batch(T0 + number))
    log.segments[1].file.close()
    with pytest.raises(KafkaError):
        log.begin_flush(settle=False)
    assert len(open_below(tmp_path)) == disk.open_descriptors
    log.close_without_flush()


def test_rows_that_could_not_be_written_are_not_taken_for_settled() -> None:
    """A row of an index that waits in memory would be gone after the next stop, and no start would look for it."""

    class NoRoom(SyncDisk):
        is_full = False

        def write(self, content: Content, data: Buffer) -> None:
            if self.is_full and self._name_of(content).endswith("index"):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            super().write(content, data)

    disk = NoRoom()
    log = log_with(disk, 8)
    disk.is_full = True
    with pytest.raises(KafkaError, match="KAFKA_STORAGE_ERROR"):
        log.flush()
    assert log.recovery_point == 0
    disk.is_full = False
    log.flush()
    assert log.recovery_point == 8


def test_whoever_owns_the_log_is_told_of_each_failure_of_the_disk() -> None:
    """Of an append, a read, and a sync: the very errors that callers get as KAFKA_STORAGE_ERROR."""

    class Gone(SyncDisk):
        is_gone = False

        def write(self, content: Content, data: Buffer) -> None:
            if self.is_gone:
                raise OSError(errno.EIO, "write")
            super().write(content, data)

        def readable_bytes(self, path: str, position: int, size_bytes: int) -> int:
            if self.is_gone:
                raise OSError(errno.EIO, "read")
            return super().readable_bytes(path, position, size_bytes)

    disk = Gone()
    log = open_log(disk, CONFIG)
    told: list[OSError] = []
    log.on_disk_error = told.append
    append(log, batch(T0))
    assert told == []
    disk.is_gone = True
    assert error_of(lambda: append(log, batch(T0))) is STORAGE
    assert error_of(lambda: log.fetch(0, 1000, log.log_end_offset, True)) is STORAGE
    disk.is_gone = False
    disk.failing = [name(0)]
    error = failed(log)
    assert [str(each) for each in told] == ["[Errno 5] write", "[Errno 5] read", str(error)]
