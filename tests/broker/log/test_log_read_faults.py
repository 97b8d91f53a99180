"""Reads and index files that fail in the middle of an append or a roll: the batch is in the log, or it is not.

A disk fails the nth access to files of one kind: opening, reading, cutting.
"""

import errno
import os

import pytest

from odradek.broker.disk.disk import File
from odradek.broker.disk.memory_disk import Content, MemoryDisk
from odradek.broker.log.config import LogConfig
from odradek.broker.log.log import Log
from odradek.protocol.errors import KafkaError
from tests.broker.log.logs import DIRECTORY, STORAGE, T0, Model, append, assert_same, batch, open_log

CONFIG = LogConfig(segment_bytes=300, index_interval_bytes=80)


class FailingDisk(MemoryDisk):
    """Once armed, the nth access to a file whose name ends with `suffix` fails; later ones do not."""

    def __init__(self) -> None:
        super().__init__()
        self._suffix = ""
        self._accesses_left = -1

    def arm(self, suffix: str, accesses: int) -> None:
        self._suffix, self._accesses_left = suffix, accesses

    @property
    def has_failed(self) -> bool:
        return self._accesses_left < 0

    def _access(self, path: str) -> None:
        if self._accesses_left >= 0 and path.endswith(self._suffix):
            self._accesses_left -= 1
            if self._accesses_left < 0:
                raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    def open(self, path: str, size_bytes: int | None = None) -> File:
        self._access(path)
        return super().open(path, size_bytes)

    def readable_bytes(self, path: str, position: int, size_bytes: int) -> int:
        self._access(path)
        return super().readable_bytes(path, position, size_bytes)

    def cut(self, content: Content, size_bytes: int) -> None:
        names = [name for name in self.list_dir(DIRECTORY) if self._find(f"{DIRECTORY}/{name}") is content]
        self._access(names[0] if names else "")
        super().cut(content, size_bytes)


def written(count: int = 20) -> tuple[FailingDisk, Log, Model]:
    disk, model = FailingDisk(), Model()
    disk.make_dir(DIRECTORY)
    log = open_log(disk, CONFIG)
    for number in range(count):
        append(log, batch(T0 + number, producer=(1, 0, number)))
        model.append(batch(T0 + number, producer=(1, 0, number)))
    return disk, log, model


def add(log: Log, model: Model, number: int) -> bool:
    data = batch(T0 + number, value=b"new")
    try:
        append(log, data, 1)
    except KafkaError as error:
        assert error.code is STORAGE
        return False
    model.append(data, 1)
    return True


def cut(log: Log, offset: int) -> bool:
    try:
        log.truncate_to(offset)
    except KafkaError as error:
        assert error.code is STORAGE
        return False
    return True


@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex"])
def test_a_segment_that_was_not_looked_at_yet_becomes_the_active_one(suffix: str) -> None:
    """After a start, a truncation within it does that, and there is room in it for appends."""
    larger = LogConfig(segment_bytes=10_000, index_interval_bytes=80)
    failed = 0
    for accesses in range(12):
        disk, log, model = written()
        log.close()
        log = open_log(disk, larger, recovery_point=log.recovery_point, is_clean=True)
        end = log.base_offsets[2] - 1
        disk.arm(suffix, accesses)
        while not cut(log, end):
            failed += 1
        model.truncate_to(end)
        for number in range(30, 34):
            while not add(log, model, number):
                failed += 1
        disk.arm("", -1)
        assert_same(log, model)
        log.close()
        again = open_log(disk, CONFIG, recovery_point=log.recovery_point, is_clean=True)
        assert_same(again, model)
        assert again.offset_of_max_timestamp(1000) == log_max(model)
    assert failed
    assert failed >= (suffix == ".timeindex")


def log_max(model: Model) -> tuple[int, int, int]:
    return (T0 + 33, model.log_end_offset - 1, 1)


@pytest.mark.parametrize("preallocate", [False, True])
@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex"])
def test_a_roll_that_fails_at_any_access(suffix: str, preallocate: bool) -> None:
    """After it and a stop, or a kill, all is found by offset and by time."""
    config = LogConfig(segment_bytes=300, index_interval_bytes=80, preallocate=preallocate)
    for is_clean in (True, False):
        for accesses in range(14):
            disk, model = FailingDisk(), Model()
            disk.make_dir(DIRECTORY)
            log = open_log(disk, config)
            add(log, model, 1)
            add(log, model, 9)
            add(log, model, 5)
            disk.arm(suffix, accesses)
            try:
                log.roll(0)
            except KafkaError as error:
                assert error.code is STORAGE
            for number in range(10, 13):
                while not add(log, model, number):
                    assert disk.has_failed
            disk.arm("", -1)
            assert_same(log, model)
            if is_clean:
                log.close()
            else:
                log.close_without_flush()
            log = open_log(disk, config, recovery_point=log.recovery_point, is_clean=is_clean)
            assert_same(log, model)
            for timestamp in range(T0, T0 + 14):
                assert log.offset_for_timestamp(timestamp, 100) == model.offset_for_timestamp(timestamp, 100)
            log.close()


@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex", ".txnindex"])
def test_a_truncation_that_fails_at_any_access_is_done_again(suffix: str) -> None:
    """Until it is, what is before the offset stays readable."""
    for accesses in range(20):
        disk, log, model = written()
        kept = model.copy()
        kept.truncate_to(6)
        disk.arm(suffix, accesses)
        try:
            log.truncate_to(6)
        except KafkaError as error:
            assert error.code is STORAGE
            disk.arm("", -1)
            for offset in range(6):
                assert bytes(log.fetch(offset, 0, 6, True).records) == kept.read(offset, 0, 6, True), (accesses, offset)
            log.truncate_to(6)
        disk.arm("", -1)
        assert_same(log, kept)
        add(log, kept, 50)
        assert_same(log, kept)
