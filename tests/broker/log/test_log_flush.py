"""What is made durable, when, and what follows when the device does not take it."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from odradek.broker.disk.file_disk import FileDisk
from odradek.broker.disk.memory_disk import Content, MemoryDisk
from odradek.broker.log.config import LogConfig
from odradek.broker.log.log import Log
from tests.broker.log.logs import DIRECTORY, STORAGE, append, batch, error_of, full, open_log

ONE = batch()
SIZE = len(ONE)


def test_flush_syncs_what_is_new_and_the_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not Path("/proc/self/fd").exists():
        pytest.skip("needs /proc to name what is synced")
    disk = FileDisk()
    disk.make_dir(f"{tmp_path}/data")
    log = Log.open(disk, f"{tmp_path}/data/orders-0", LogConfig(segment_bytes=2 * SIZE), 0)
    synced: list[str] = []

    def watch(sync: Callable[[int], None]) -> Callable[[int], None]:
        def watched(descriptor: int) -> None:
            synced.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
            sync(descriptor)

        return watched

    append(log, ONE)
    monkeypatch.setattr(os, "fsync", watch(os.fsync))
    monkeypatch.setattr(os, "fdatasync", watch(os.fdatasync))
    log.flush()
    first = "00000000000000000000"
    data = [f"{first}.log", f"{first}.timeindex", f"{first}.index"]
    names = ["orders-0", "data"]
    epochs = ["leader-epoch-checkpoint.tmp", "orders-0"]
    assert synced == [*data, f"{1:020d}.snapshot", *epochs, *names], (
        "batches first, and the names that say where they are last"
    )
    synced.clear()
    log.flush()
    assert synced == []
    append(log, ONE)
    log.flush()
    assert synced == [*data, f"{2:020d}.snapshot", *names]
    synced.clear()
    append(log, ONE)
    append(log, ONE)
    append(log, ONE)
    log.flush()
    assert synced == [
        *(f"{base}.log" for base in (f"{2:020d}", f"{4:020d}")),
        *(f"{base}.{suffix}" for base in (f"{2:020d}", f"{4:020d}") for suffix in ("timeindex", "index")),
        *(f"{offset:020d}.snapshot" for offset in (2, 4, 5)),
        *names,
    ], "what was complete and synced before is not synced again"
    assert log.recovery_point == 5


class SyncingDisk(MemoryDisk):
    """Notes what is synced, and fails to sync files with the ending `failing`."""

    def __init__(self) -> None:
        super().__init__()
        self.synced: list[str] = []
        self.failing = "nothing"

    def content_of(self, name: str) -> object:
        """What the name stands for now: another object once it was replaced."""
        return self._find(f"{DIRECTORY}/{name}") if self.exists(f"{DIRECTORY}/{name}") else None

    def sync(self, content: Content) -> None:
        paths = {name: f"{DIRECTORY}/{name}" for name in self.list_dir(DIRECTORY)}
        name = next(
            (name for name, path in paths.items() if self._find(path) is content), "of a file that has no name yet"
        )
        if name.endswith(self.failing):
            raise full()
        self.synced.append(name)


def test_what_is_appended_after_a_truncation_is_synced_again() -> None:
    disk = SyncingDisk()
    log = open_log(disk)
    for _ in range(3):
        append(log, ONE)
    log.flush()
    log.truncate_to(1)
    assert (log.durable_offset, log.recovery_point) == (1, 0), "what was cut in the segment is not settled"
    append(log, ONE)
    disk.synced.clear()
    log.flush()
    assert disk.synced[0] == "00000000000000000000.log"
    assert (log.durable_offset, log.recovery_point) == (2, 2)


def test_a_flush_that_a_truncation_overtook_says_nothing_of_what_was_appended_since() -> None:
    log = open_log(SyncingDisk())
    for _ in range(3):
        append(log, ONE)
    flush = log.begin_flush(settle=True)
    assert flush is not None
    log.truncate_to(1)
    append(log, ONE)
    append(log, ONE)
    flush.run()
    log.end_flush(flush)
    assert (log.durable_offset, log.recovery_point) == (0, 0)
    log.flush()
    assert (log.durable_offset, log.recovery_point) == (3, 3)


def test_an_acknowledgement_flush_syncs_batches_only_and_moves_no_recovery_point() -> None:
    disk = SyncingDisk()
    log = open_log(disk, LogConfig(segment_bytes=len(ONE)))
    append(log, ONE)
    append(log, ONE)
    flush = log.begin_flush(settle=False)
    assert flush is not None
    append(log, ONE)
    flush.run()
    log.end_flush(flush)
    assert disk.synced == [f"{base:020d}.log" for base in (0, 1)]
    assert (log.durable_offset, log.recovery_point, log.log_end_offset) == (2, 0, 3)
    flush = log.begin_flush(settle=False)
    assert flush is not None
    flush.run()
    log.end_flush(flush)
    assert log.begin_flush(settle=False) is None, "there is nothing to wait for"
    assert log.begin_flush(settle=True) is not None


def test_files_that_go_while_they_are_synced_fail_nothing() -> None:
    log = open_log(MemoryDisk(), LogConfig(segment_bytes=len(ONE)))
    for _ in range(3):
        append(log, ONE)
    flush = log.begin_flush(settle=True)
    assert flush is not None
    log.advance_log_start(2)
    flush.run()
    log.end_flush(flush)
    assert log.recovery_point == 3


def test_after_a_failed_sync_the_log_takes_no_more_appends_until_the_next_start(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """And the next start copies what is in doubt, for the kernel calls its pages clean by now."""
    disk = SyncingDisk()
    log = open_log(disk, LogConfig(segment_bytes=3 * len(ONE)))
    for _ in range(4):
        append(log, ONE)
    log.flush()
    for _ in range(3):
        append(log, ONE)
    disk.failing = ".log"
    assert error_of(log.flush) is STORAGE
    disk.failing = "nothing"
    assert error_of(lambda: append(log, ONE)) is STORAGE
    assert bytes(log.fetch(0, 1000, 7, True).records), "what is there may be read"
    log.truncate_to(6)
    assert error_of(lambda: append(log, ONE)) is STORAGE, "no truncation makes up for it"
    log.close_without_flush()
    caplog.clear()
    before = {name: disk.content_of(name) for name in disk.list_dir(DIRECTORY) if name.endswith(".log")}
    log = open_log(disk, LogConfig(segment_bytes=3 * len(ONE)), recovery_point=4)
    copied = [name for name, content in before.items() if disk.content_of(name) is not content]
    assert copied == [f"{3:020d}.log", f"{6:020d}.log"], "the first one lies before the recovery point"
    assert caplog.text.count("copied to a new file") == 2
    assert append(log, ONE).base_offset == 6
    log.close()
    caplog.clear()
    assert open_log(disk).log_end_offset == 7
    assert "copied" not in caplog.text, "once"
