"""Losses of power one by one: what a flush has promised is kept where a careless log would lose it.

Each case says what the device had, and what it had not, when power failed (losing_disk.py).
"""

import pytest

from odradek.broker.log.config import LogConfig
from odradek.broker.log.log import Log
from odradek.testing.sim.world.losing_disk import ALL_IS_KEPT, ALL_IS_LOST, Chosen, LosingDisk, Outcome
from tests.broker.log.logs import T0, Model, append, assert_same, batch, known_producers, open_log, read_all

CONFIG = LogConfig(index_interval_bytes=100)


def new_disk() -> LosingDisk:
    disk = LosingDisk()
    disk.make_dir("data")
    disk.sync_dir("")
    return disk


def add(log: Log, model: Model, *, value: bytes = b"v", epoch: int = 0) -> None:
    """One record of a producer that counts on."""
    _, known = model.producers().get(1, (0, []))
    data = batch(T0 + model.log_end_offset, value=value, producer=(1, 0, known[-1][1] + 1 if known else 0))
    append(log, data, epoch)
    model.append(data, epoch)


def filled(disk: LosingDisk, count: int, config: LogConfig = CONFIG) -> tuple[Log, Model]:
    log, model = open_log(disk, config), Model()
    for _ in range(count):
        add(log, model)
    return log, model


def flush(log: Log, *, settle: bool, with_active: bool = True) -> None:
    flush = log.begin_flush(settle=settle, with_active=with_active)
    if flush is not None:
        flush.run()
        log.end_flush(flush)


OUTCOMES = pytest.mark.parametrize("outcome", [ALL_IS_LOST, ALL_IS_KEPT, Chosen(".snapshot"), Chosen(".log")])


@OUTCOMES
@pytest.mark.parametrize("settle", [False, True])
def test_what_was_flushed_is_there(settle: bool, outcome: Outcome) -> None:
    disk = new_disk()
    log, model = filled(disk, 4)
    log.roll(0)
    add(log, model)
    flush(log, settle=settle)
    checkpoint, flushed = log.recovery_point, model.copy()
    add(log, model)
    again = open_log(disk.after_power_failure(outcome), CONFIG, recovery_point=checkpoint)
    assert read_all(again).startswith(b"".join(data for _, _, data in flushed.batches))
    assert again.log_end_offset in (5, 6)


@OUTCOMES
@pytest.mark.parametrize("settle", [False, True])
def test_a_truncation_that_was_flushed_does_not_come_undone(settle: bool, outcome: Outcome) -> None:
    """What follows it stands in a new segment: of the old one nothing but its new end has to reach the device."""
    disk = new_disk()
    log, model = filled(disk, 6)
    log.flush()
    log.truncate_to(3)
    model.truncate_to(3)
    log.roll(0)
    add(log, model, value=b"other", epoch=1)
    flush(log, settle=settle)
    again = open_log(disk.after_power_failure(outcome), CONFIG, recovery_point=log.recovery_point)
    assert_same(again, model)


@OUTCOMES
def test_the_end_of_a_segment_that_gave_back_its_room_does_not_come_undone(outcome: Outcome) -> None:
    """All batches were on the device before it was closed."""
    config = LogConfig(segment_bytes=1000, preallocate=True)
    disk = new_disk()
    log, model = filled(disk, 3, config)
    flush(log, settle=False)
    log.roll(0)
    add(log, model)
    flush(log, settle=True)
    again = open_log(disk.after_power_failure(outcome), config, recovery_point=log.recovery_point)
    assert_same(again, model)


def test_a_snapshot_of_batches_that_are_lost_is_not_believed_later() -> None:
    """A producer would send them again, and be told that they are there."""
    disk = new_disk()
    log, model = filled(disk, 1)
    log.flush()
    for _ in range(3):
        add(log, model)
    log.roll(0)
    disk = disk.after_power_failure(Chosen(".snapshot", f"{4:020d}.log"))
    for _ in range(3):
        log = open_log(disk, CONFIG, recovery_point=1)
        assert known_producers(log) == {1: (0, [(0, 0, 0, 0)])}
        log.close()
        log = open_log(disk, CONFIG, recovery_point=log.recovery_point, is_clean=True)
        assert known_producers(log) == {1: (0, [(0, 0, 0, 0)])}
        log.close_without_flush()


def test_a_snapshot_of_a_log_that_is_lost_as_a_whole_is_not_believed_later() -> None:
    disk = new_disk()
    open_log(disk, CONFIG).flush()
    log, _ = filled(disk, 4)
    log.roll(0)
    disk = disk.after_power_failure(Chosen(".snapshot"))
    for name in disk.list_dir("data/orders-0"):
        if name.endswith(".log"):
            disk.remove(f"data/orders-0/{name}")
    log, model = open_log(disk, CONFIG), Model()
    for number in range(9):
        data = batch(T0, producer=(2, 0, number))
        append(log, data)
        model.append(data)
    log.flush()
    log.close_without_flush()
    assert_same(open_log(disk, CONFIG, recovery_point=log.recovery_point), model)


def test_what_a_start_cut_off_does_not_come_back_under_the_recovery_point() -> None:
    """The first loss of power tore the last batch; it was cut off; then the log rolled and was flushed, or killed."""
    for is_killed in (False, True):
        disk = new_disk()
        log, model = filled(disk, 2)
        log.flush()
        add(log, model, value=b"torn" * 40)
        torn = disk.after_power_failure(Torn())
        model.truncate_to(2)
        log = open_log(torn, CONFIG, recovery_point=2)
        assert_same(log, model)
        log.roll(0)
        if is_killed:
            log.close_without_flush()
            log = open_log(torn, CONFIG, recovery_point=2)
        add(log, model, epoch=1)
        log.flush()
        again = open_log(torn.after_power_failure(ALL_IS_LOST), CONFIG, recovery_point=log.recovery_point)
        assert_same(again, model)


class Torn:
    """Files have their new sizes, and their old pages."""

    def is_kept(self, name: str) -> bool:
        return False

    def size_bytes(self, name: str, old: int, new: int) -> int:
        return new


def test_epochs_are_those_of_the_batches_that_came_back() -> None:
    """The truncation and what was appended after it are lost, but the checkpoint of the epochs was written since."""
    disk = new_disk()
    log, model = filled(disk, 2)
    log.flush()
    log.truncate_to(0)
    add(log, Model(), epoch=7)
    flush(log, settle=True, with_active=False)
    again = open_log(disk.after_power_failure(ALL_IS_LOST), CONFIG, recovery_point=0)
    assert_same(again, model)


@pytest.mark.parametrize("settle", [False, True])
def test_deletions_may_come_undone_and_hide_behind_the_log_start(settle: bool) -> None:
    disk = new_disk()
    log, model = filled(disk, 2)
    for _ in range(3):
        log.roll(0)
        add(log, model)
        add(log, model)
    flush(log, settle=settle)
    log.advance_log_start(4)
    model.advance_log_start(4)
    for outcome in (ALL_IS_LOST, ALL_IS_KEPT, Chosen(f"{0:020d}.log.deleted"), Chosen(f"{2:020d}.log.deleted")):
        after = disk.after_power_failure(outcome)
        again = open_log(after, CONFIG, log_start_offset=4, recovery_point=log.recovery_point)
        assert (again.log_start_offset, again.log_end_offset) == (4, model.log_end_offset)
        assert read_all(again) == b"".join(data for _, _, data in model.readable())
        assert known_producers(again)[1][1][-4:] == model.producers()[1][1][-4:]
