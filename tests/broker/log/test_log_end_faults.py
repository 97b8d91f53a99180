"""A follower's log cut short at every step: what was replicated and cut off survives a disk that fails or loses power.

A history is a list of answers of leaders, and of truncations when another one comes. It runs once for every step of the
disk: with a process that dies there, with a disk that fails there, and on one that loses power there. After each, the
log is a beginning of what it should be, with the epochs that its batches say, and goes on from there: who follows
fetches again from the log's end.
"""

import random
from collections.abc import Callable

import pytest

from odradek.broker.log.batches import walk
from odradek.broker.log.config import LogConfig
from odradek.broker.log.log import Log
from odradek.protocol.batches.batch import iterate_batches
from odradek.protocol.errors import KafkaError
from odradek.testing.sim.world.losing_disk import Fate, LosingDisk
from tests.broker.log.logs import (
    DIRECTORY,
    STORAGE,
    T0,
    Crash,
    FaultyDisk,
    Model,
    batch,
    full,
    known_producers,
    open_log,
    read_all,
)

CONFIG = LogConfig(segment_bytes=260, index_interval_bytes=80, segment_index_bytes=48)
LEADER_EPOCH = 9


def leader_model(*batches: tuple[bytes, int]) -> Model:
    """A leader's log: batches with their epochs."""
    model = Model()
    for data, leader_epoch in batches:
        model.append(data, leader_epoch)
    return model


SHARED = [
    (batch(T0, producer=(1, 0, 0)), 0),
    (batch(T0 + 5, T0 + 4, producer=(1, 0, 1)), 0),
    (batch(T0 + 6, value=b"vvvvv"), 0),
    (batch(T0 + 7, producer=(2, 3, 40)), 1),
]
FIRST = leader_model(*SHARED, (batch(T0 + 8, T0 + 9, producer=(1, 0, 3)), 1), (batch(T0 + 10, producer=(2, 3, 41)), 1))
SECOND = leader_model(*SHARED, (batch(T0 + 11, producer=(1, 1, 0)), 2), (batch(T0 + 12), 2), (batch(T0 + 13), 4))
PARTED = 5
"""The first leader's log and the second's are equal up to here."""


def follow(log: Log, leader: Model, count: int) -> None:
    """Fetches, `count` batches at a time, until nothing is missing."""
    while log.log_end_offset < leader.log_end_offset:
        missing = [data for first, _, data in leader.batches if first >= log.log_end_offset]
        log.append_replicated(b"".join(missing[:count]), LEADER_EPOCH, 0)


def change_leader(log: Log) -> None:
    """What the comparison with the second leader comes to."""
    log.truncate_to(min(PARTED, log.log_end_offset) if has_epochs_of(log, SECOND) else PARTED)


def has_epochs_of(log: Log, leader: Model) -> bool:
    """Whether everything in the log is the leader's."""
    data = read_all(log)
    return b"".join(data for _, _, data in leader.batches).startswith(data)


def finish(log: Log, leader: Model) -> None:
    """What a follower does whatever it finds: it cuts off what the leader has not, and fetches the rest."""
    if log.condition.is_half_cut:
        log.truncate_to(log.log_end_offset)
    if not has_epochs_of(log, leader):
        log.truncate_to(PARTED)
    follow(log, leader, 2)
    assert read_all(log) == b"".join(data for _, _, data in leader.batches)
    assert [tuple(entry) for entry in log.epochs.entries] == leader.epochs
    assert known_producers(log) == leader.producers()


HISTORIES: dict[str, list[Callable[[Log], None]]] = {
    "one by one": [lambda log: follow(log, FIRST, 1)],
    "together": [lambda log: follow(log, FIRST, 9)],
    "synced on the way": [lambda log: follow(log, FIRST, 2), lambda log: log.flush()],
    "another leader": [
        lambda log: follow(log, FIRST, 3),
        lambda log: log.flush(),
        change_leader,
        lambda log: follow(log, SECOND, 2),
        lambda log: log.flush(),
    ],
    "everything anew": [
        lambda log: follow(log, FIRST, 9),
        lambda log: log.truncate_fully_and_start_at(0),
        lambda log: follow(log, SECOND, 9),
    ],
}


def target(name: str) -> Model:
    return SECOND if name in ("another leader", "everything anew") else FIRST


def steps_of(name: str) -> list[int]:
    disk = FaultyDisk()
    disk.make_dir(DIRECTORY)
    log = open_log(disk, CONFIG)
    disk.count_anew()
    for operation in HISTORIES[name]:
        operation(log)
    finish(log, target(name))
    return disk.telling_steps()


def is_of_a_leader(log: Log) -> bool:
    """The log is the beginning of one leader's log."""
    return has_epochs_of(log, FIRST) or has_epochs_of(log, SECOND)


def has_gap(log: Log) -> bool:
    """Whether the log's end is not that of its last batch."""
    end = 0
    for segment in log.segments:
        for _, header in walk(segment.file, 0, segment.size_bytes):
            if header.base_offset != end:
                return True
            end = header.last_offset + 1
    return end != log.log_end_offset


def check_epochs(log: Log) -> None:
    """They are those of the batches."""
    found: list[tuple[int, int]] = []
    for _, header in iterate_batches(read_all(log)):
        if not found or header.partition_leader_epoch > found[-1][0]:
            found.append((header.partition_leader_epoch, header.base_offset))
    assert [tuple(entry) for entry in log.epochs.entries if entry.start_offset < log.log_end_offset] == found


@pytest.mark.parametrize("name", list(HISTORIES))
def test_a_process_that_dies_at_any_step_goes_on_from_there(name: str) -> None:
    for step in steps_of(name):
        disk = FaultyDisk()
        disk.make_dir(DIRECTORY)
        log = open_log(disk, CONFIG)
        disk.fail_at(step, Crash, for_good=True)
        with pytest.raises(Crash):
            for operation in HISTORIES[name]:
                operation(log)
            finish(log, target(name))
            raise Crash
        disk.heal()
        log = open_log(disk, CONFIG)
        assert is_of_a_leader(log)
        check_epochs(log)
        finish(log, target(name))


@pytest.mark.parametrize("name", list(HISTORIES))
@pytest.mark.parametrize("for_good", [False, True], ids=["once", "until there is room"])
def test_a_disk_that_fails_at_any_step_leaves_what_was_there(for_good: bool, name: str) -> None:
    """The follower waits, looks again, and goes on."""
    failures = 0
    for step in steps_of(name):
        disk = FaultyDisk()
        disk.make_dir(DIRECTORY)
        log = open_log(disk, CONFIG)
        disk.fail_at(step, full, for_good=for_good)
        try:
            for operation in HISTORIES[name]:
                operation(log)
        except KafkaError as error:
            assert error.code is STORAGE
            failures += 1
        disk.heal()
        assert is_of_a_leader(log)
        if log.is_distrusted:  # after a failed sync nothing goes before a restart
            log.close_without_flush()
            log = open_log(disk, CONFIG)
        finish(log, target(name))
    assert failures > 5


@pytest.mark.parametrize("name", ["synced on the way", "another leader"])
def test_power_that_fails_leaves_what_was_on_the_device(name: str) -> None:
    """A follower cuts its log at the checkpoint's recovery point: behind it batches may be missing, also between others
    and at the beginning. It fetches from its log's end on, and would never get them. What stands before is a leader's.
    """
    gaps = 0
    for seed in range(150):
        rng = random.Random(seed)
        disk = LosingDisk()
        disk.make_dir("data")
        disk.sync_dir("")
        log = open_log(disk, CONFIG)
        recovery_point = 0
        for operation in HISTORIES[name][: rng.randint(1, len(HISTORIES[name]))]:
            operation(log)
            recovery_point = log.recovery_point
        after = disk.after_power_failure(Fate(rng, rng.choice([0.1, 0.5, 0.9])))
        log = open_log(after, CONFIG, recovery_point=recovery_point)
        gaps += has_gap(log)
        log.truncate_to(recovery_point)
        assert log.log_end_offset == recovery_point
        assert is_of_a_leader(log)
        check_epochs(log)
        finish(log, target(name))
    assert gaps, "without the cut some of these logs would lack batches in the middle"


def test_deleted_records_of_the_first_batch_stay_deleted_if_the_disk_fills_midway() -> None:
    """A follower's log that begins within a batch: it is appended as a whole, and the log starts within it still."""
    leader = leader_model((batch(T0, T0, T0, T0), 0), (batch(T0), 0), (batch(T0), 0))
    answer = b"".join(data for _, _, data in leader.batches)
    for step in range(2 * len(answer)):
        disk = FaultyDisk()
        disk.make_dir(DIRECTORY)
        log = open_log(disk, CONFIG)
        log.truncate_fully_and_start_at(2)
        disk.fail_at(step, full, for_good=True)
        try:
            log.append_replicated(answer, LEADER_EPOCH, 0)
        except KafkaError:
            assert log.log_start_offset == min(2, log.log_end_offset)
        else:
            assert (log.log_start_offset, log.log_end_offset) == (2, leader.log_end_offset)
            return
    pytest.fail("the disk never took all of it")
