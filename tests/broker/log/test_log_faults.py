"""Histories cut short at every step: at each byte written and each other change, the disk fails or the process dies.

A history is a list of operations on a small log that rolls, truncates, deletes, changes epochs and is closed. It runs
once for every step that it takes: with a disk that fails once there, with one that fails from there on until somebody
makes room, with one on which not even the cut-back works, and with a process that dies there. After each, the log is
compared with the model: what was acknowledged is there, what was refused is not.
"""

from collections.abc import Callable, Iterator

import pytest

from odradek.broker.disk.memory_disk import Content
from odradek.broker.log.config import LogConfig
from odradek.broker.log.log import Log
from odradek.protocol.errors import KafkaError
from tests.broker.log.logs import (
    DIRECTORY,
    STORAGE,
    T0,
    Crash,
    FaultyDisk,
    Model,
    append,
    assert_same,
    batch,
    full,
    open_log,
)

CONFIG = LogConfig(segment_bytes=260, index_interval_bytes=80, segment_index_bytes=48)

Operation = Callable[[Log, Model], None]


def appending(data: bytes, leader_epoch: int) -> Operation:
    def operation(log: Log, model: Model) -> None:
        append(log, data, leader_epoch)
        model.append(data, leader_epoch)

    return operation


def truncating(offset: int) -> Operation:
    def operation(log: Log, model: Model) -> None:
        log.truncate_to(offset)
        model.truncate_to(offset)

    return operation


def advancing(offset: int) -> Operation:
    def operation(log: Log, model: Model) -> None:
        # As partitions do it: the checkpoint is written first, so that the model knows of it whatever happens.
        model.advance_log_start(offset)
        log.advance_log_start(offset)

    return operation


def flushing(log: Log, _: Model) -> None:
    log.flush()


APPENDS = [
    appending(batch(T0, producer=(1, 0, 0)), 0),
    appending(batch(T0 + 5, T0 + 4, producer=(1, 0, 1)), 0),
    appending(batch(T0 + 6, value=b"vvvvv"), 0),
    appending(batch(T0 + 7, producer=(2, 3, 40)), 1),
    appending(batch(T0 + 8, T0 + 9, T0 + 2, producer=(1, 0, 3)), 1),
    appending(batch(T0 + 10, producer=(2, 3, 41)), 1),
    appending(batch(T0 + 11, producer=(1, 1, 0)), 2),
    appending(batch(T0 + 12), 2),
]
TRUNCATIONS = [truncating(8), truncating(4), truncating(0)]
HISTORIES: dict[str, list[Operation]] = {
    "appends and rolls": [*APPENDS, flushing],
    "truncations": [*APPENDS, *TRUNCATIONS[:2], appending(batch(T0 + 20, producer=(1, 7, 0)), 3)],
    "a truncation of everything": [*APPENDS[:5], TRUNCATIONS[2], appending(batch(T0 + 20), 3)],
    "deletions": [*APPENDS, advancing(3), advancing(7), appending(batch(T0 + 20), 3), flushing],
}


def run(disk: FaultyDisk, history: list[Operation], model: Model) -> Iterator[int]:
    """Runs a history; yields the number of each operation before it runs."""
    log = open_log(disk, CONFIG)
    for number, operation in enumerate(history):
        yield number
        operation(log, model)
    yield len(history)
    log.close()


def steps_of(history: list[Operation]) -> list[int]:
    disk = FaultyDisk()
    disk.make_dir(DIRECTORY)
    disk.count_anew()
    for _ in run(disk, history, Model()):
        pass
    return disk.telling_steps()


def attempt(operation: Operation, log: Log, model: Model) -> bool:
    try:
        operation(log, model)
    except KafkaError as error:
        assert error.code is STORAGE
        return False
    return True


class UncuttableDisk(FaultyDisk):
    """Where a write fails, the cut-back fails, too, as often as `cuts_fail` says."""

    cuts_fail = 0

    def cut(self, content: Content, size_bytes: int) -> None:
        if size_bytes < len(content) and self.cuts_fail:
            self.cuts_fail -= 1
            raise full()
        super().cut(content, size_bytes)


@pytest.mark.parametrize("name", list(HISTORIES))
@pytest.mark.parametrize("for_good", [False, True], ids=["once", "until there is room"])
@pytest.mark.parametrize("cuts_fail", [0, 2], ids=["cut back", "not even cut back"])
def test_a_disk_that_fails_at_any_step_loses_nothing(cuts_fail: int, for_good: bool, name: str) -> None:
    """Each failed operation is tried again, as a client or a follower would, and so is all of it after a restart."""
    history = HISTORIES[name]
    failed_steps = 0
    for step in steps_of(history):
        disk, model = UncuttableDisk(), Model()
        disk.make_dir(DIRECTORY)
        log = open_log(disk, CONFIG)
        disk.fail_at(step, full, for_good=for_good)
        disk.cuts_fail = cuts_fail
        for operation in history:
            for _ in range(2):
                if attempt(operation, log, model):
                    break
                failed_steps += 1
            else:
                # Still no room: what was acknowledged is readable all the same. Then there is room.
                if operation in APPENDS:
                    assert_same(log, model)
                disk.heal()
                disk.cuts_fail = 0
                if not attempt(operation, log, model):
                    # After a failed fsync nothing goes before a restart.
                    assert operation is flushing
                    log.close_without_flush()
                    log = open_log(disk, CONFIG, log_start_offset=model.log_start_offset)
        disk.heal()
        disk.cuts_fail = 0
        assert_same(log, model, may_forget=True)
        log.close_without_flush()
        reopened = open_log(disk, CONFIG, log_start_offset=model.log_start_offset)
        assert_same(reopened, model, may_forget=True)
    assert failed_steps > 20


@pytest.mark.parametrize("name", list(HISTORIES))
def test_a_process_that_dies_at_any_step_has_lost_nothing_acknowledged(name: str) -> None:
    """An append is all or nothing; a truncation may have happened in part, and is done again by whoever wanted it."""
    history = HISTORIES[name]
    halves = 0
    for step in steps_of(history):
        disk, model = FaultyDisk(), Model()
        disk.make_dir(DIRECTORY)
        disk.fail_at(step, Crash, for_good=True)
        reached = 0
        with pytest.raises(Crash):
            for number in run(disk, history, model):
                reached = number
        disk.heal()
        log = open_log(disk, CONFIG, log_start_offset=model.log_start_offset)
        if log.log_end_offset != model.log_end_offset:
            assert history[reached] in TRUNCATIONS
            history[reached](log, model)
            halves += 1
        assert_same(log, model, may_forget=True)
        append(log, batch(T0 + 99), 9)
        model.append(batch(T0 + 99), 9)
        assert_same(log, model, may_forget=True)
        log.close()
        log = open_log(disk, CONFIG, log_start_offset=model.log_start_offset)
        assert_same(log, model, may_forget=True)
    assert (halves > 0) == name.startswith(("truncations", "a truncation"))
