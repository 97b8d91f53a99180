"""Retention, from the clock to the removal of files, on a broker whose clock and helper threads the test holds.

What is kept is compared with all that was appended: deleted is a beginning of the log, of which nothing was to be kept,
whatever fails in between. What it means for consumers, and when which job runs: test_upkeep_jobs.py.
"""

import random
from collections.abc import Callable, Mapping
from contextlib import suppress

import pytest

from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.log.checkpoint import LOG_START_OFFSETS
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.testing.sim.world.losing_disk import Fate
from tests.broker.keeping import DATA_DIR, DIRECTORY, Kept, read
from tests.broker.log.logs import T0, Crash, FaultyDisk, FaultyLosingDisk, error_of, full

RETENTION_MS = 1000
BY_TIME = {"retention.ms": str(RETENTION_MS)}
SPACING_MS = 100
FATES = 3
"""How often power fails at one step."""
DELAY_S = 61
"""After `file.delete.delay.ms`."""


def filled(
    configs: Mapping[str, str] = BY_TIME,
    *,
    count: int = 12,
    disk: MemoryDisk | None = None,
    spacing_ms: int = SPACING_MS,
) -> Kept:
    """Segments of two batches each; the records lie `spacing_ms` apart, the last one is of T0 + 11 of these."""
    kept = Kept(configs, disk=disk, segment_bytes=160)
    for number in range(count):
        kept.append((b"%d" % number, b""), timestamp_ms=T0 + number * spacing_ms, producer=(1, 0, number))
    assert kept.log.base_offsets == list(range(0, count, 2))
    return kept


def offsets_from(offset: int, count: int = 12) -> list[int]:
    return list(range(offset, count))


def live_and_retired(kept: Kept) -> tuple[list[int], int]:
    """The base offsets of the segments' files, and how many files wait for their removal."""
    logs = [int(name[:20]) for name in kept.names if name.endswith(".log")]
    return logs, sum(name.endswith(".deleted") for name in kept.names)


# --------------------------------------------------------------------------------------------------------- what goes
def test_by_time_segments_go_once_their_newest_record_is_old_enough(caplog: pytest.LogCaptureFixture) -> None:
    kept = filled()
    kept.environment.time_ms = T0 + 5 * SPACING_MS + RETENTION_MS
    caplog.set_level("INFO", "odradek.broker.partitions.maintenance")
    kept.retain()
    assert kept.read.offsets == offsets_from(4), "the record 5 has reached the limit and has not passed it"
    assert f"{DIRECTORY}: deleted 2 segments, 0 to 2,: retention.ms=1000" in caplog.text
    kept.environment.time_ms += 1
    kept.retain()
    assert kept.read.offsets == offsets_from(6)
    assert (
        error_of(lambda: kept.partition.reader.fetch(5, 1000, at_least_one_batch=True)) is ErrorCode.OFFSET_OUT_OF_RANGE
    )
    kept.retain()
    assert kept.read.offsets == offsets_from(6)


def test_by_size_as_much_stays_as_was_asked_for() -> None:
    kept = filled({"retention.ms": "-1", "retention.bytes": "350"})
    size_bytes = [segment.size_bytes for segment in kept.log.segments]
    kept.retain()
    assert kept.log.size_bytes >= 350
    assert kept.log.size_bytes - kept.log.segments[0].size_bytes < 350
    assert [segment.size_bytes for segment in kept.log.segments] == size_bytes[-len(kept.log.segments) :]
    kept.environment.time_ms += 1 << 40
    kept.retain()
    assert kept.log.size_bytes >= 350, "-1 is for ever"


def test_the_active_segment_is_rolled_and_goes_too_and_the_log_goes_on() -> None:
    kept = filled()
    kept.environment.time_ms = T0 + (1 << 40)
    kept.retain()
    assert (kept.log.base_offsets, kept.log.log_start_offset, kept.log.size_bytes) == ([12], 12, 0)
    kept.retain()
    assert kept.log.base_offsets == [12], "an empty segment stays"
    assert kept.append((b"k", b"v"), producer=(1, 0, 12)) == 12
    assert kept.read.offsets == [12]


@pytest.mark.parametrize("policy", ["compact", "delete", "compact,delete"])
def test_segments_below_the_log_start_go_by_any_policy_and_no_others_if_compacted(
    policy: str,
) -> None:
    kept = filled({**BY_TIME, "retention.bytes": "0", "cleanup.policy": policy, "retention.ms": "100000000"})
    kept.delete_records(5)
    assert kept.log.base_offsets == [4, 6, 8, 10]
    kept.environment.time_ms = T0 + (1 << 40)
    kept.retain()
    assert kept.log.log_start_offset == (5 if policy == "compact" else 12)
    assert kept.log.base_offsets == ([4, 6, 8, 10] if policy == "compact" else [12])


def test_a_segment_that_delete_records_could_not_remove_goes_with_the_next_retention() -> None:
    disk = FaultyDisk()
    kept = filled({"cleanup.policy": "compact"}, disk=disk)
    run = kept.checkpoints.writing_log_starts
    assert run()()
    disk.fail_at(0, full, for_good=True)
    kept.log.advance_log_start(5)
    disk.heal()
    assert kept.log.base_offsets == [0, 2, 4, 6, 8, 10]
    kept.retain()
    assert kept.log.base_offsets == [4, 6, 8, 10]
    assert kept.log.log_start_offset == 5


def test_nothing_behind_the_high_watermark_goes() -> None:
    kept = filled()
    kept.partition.high_watermark.restart(5)
    kept.environment.time_ms = T0 + (1 << 40)
    kept.retain()
    assert kept.log.log_start_offset == 4


# ---------------------------------------------------------------------------------------------------- clocks that err
def test_a_record_of_the_far_future_keeps_its_segment_and_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    kept = filled(count=4)
    kept.append((b"k", b"v"), timestamp_ms=T0 + (1 << 40))
    kept.append((b"k", b"v"), timestamp_ms=T0)
    kept.append((b"k", b"v"), timestamp_ms=T0)
    kept.environment.time_ms = T0 + (1 << 30)
    for _ in range(3):
        kept.retain()
    assert kept.read.offsets == [4, 5, 6]
    assert caplog.text.count("Correct the clock") == 1
    kept.delete_records(6)
    kept.retain()
    assert kept.log.log_start_offset == 7
    kept.append((b"k", b"v"), timestamp_ms=T0 + (1 << 41))
    kept.retain()
    assert caplog.text.count("Correct the clock") == 2, "another segment"


def test_a_clock_that_jumps_back_takes_nothing_and_forward_again_goes_on() -> None:
    kept = filled()
    kept.environment.time_ms = T0 + 3 * SPACING_MS + RETENTION_MS + 1
    kept.retain()
    assert kept.read.offsets == offsets_from(4)
    kept.environment.time_ms = 1000
    kept.retain()
    assert kept.append((b"k", b"v"), timestamp_ms=1000, producer=(1, 0, 12)) == 12
    kept.retain()
    assert kept.read.offsets == [*offsets_from(4), 12]
    kept.restart()
    kept.retain()
    assert kept.read.offsets == [*offsets_from(4), 12]
    kept.environment.time_ms = T0 + 5 * SPACING_MS + RETENTION_MS + 1
    kept.retain()
    assert kept.read.offsets == [*offsets_from(6), 12]


def test_segments_without_timestamps_go_by_the_time_of_their_files() -> None:
    kept = Kept(BY_TIME, segment_bytes=160)
    for _ in range(6):
        kept.append((b"k", b"v"), timestamp_ms=-1)
    assert {segment.max_timestamp_ms for segment in kept.log.segments} == {-1}
    kept.retain()
    assert kept.read.offsets == offsets_from(0, 6)
    kept.environment.time_ms += RETENTION_MS + 1
    kept.retain()
    assert kept.log.log_start_offset == 6


# -------------------------------------------------------------------------------------------------- ends and restarts
def kill(kept: Kept) -> None:
    kept.kill_and_start()


def stop(kept: Kept) -> None:
    kept.restart()


@pytest.mark.parametrize("end", [stop, kill])
@pytest.mark.parametrize("offset", [4, 12])
def test_the_log_start_outlives_a_restart_without_a_checkpoint(end: Callable[[Kept], None], offset: int) -> None:
    kept = filled()
    kept.environment.time_ms = T0 + (offset - 1) * SPACING_MS + RETENTION_MS + 1
    kept.retain()
    assert not kept.disk.exists(f"{DATA_DIR}/{LOG_START_OFFSETS}")
    for _ in range(2):
        end(kept)
        assert kept.log.log_start_offset == offset
        assert kept.log.log_end_offset == 12
        assert kept.read.offsets == offsets_from(offset)
        kept.retain()
        assert kept.log.log_start_offset == offset
    assert kept.append((b"k", b"v"), producer=(1, 0, 12)) == 12, "the producer is known although its batches are gone"
    with pytest.raises(KafkaError, match="OUT_OF_ORDER"):
        kept.append((b"k", b"v"), producer=(1, 0, 14))


def test_files_are_removed_after_the_delay_by_helper_threads() -> None:
    kept = filled({**BY_TIME, "file.delete.delay.ms": "12345"})
    kept.environment.time_ms = T0 + 3 * SPACING_MS + RETENTION_MS + 1
    kept.retain()
    assert live_and_retired(kept) == ([4, 6, 8, 10], 6), "they have another name at once"
    assert len(kept.tasks) == 1
    kept.pass_s(12)
    assert live_and_retired(kept) == ([4, 6, 8, 10], 6)
    kept.pass_s(1)
    assert live_and_retired(kept) == ([4, 6, 8, 10], 0)
    kept.retain()
    assert len(kept.tasks) == 0


@pytest.mark.parametrize("end", [stop, kill])
def test_files_that_were_not_removed_are_removed_by_the_next_start(end: Callable[[Kept], None]) -> None:
    kept = filled()
    kept.environment.time_ms = T0 + 3 * SPACING_MS + RETENTION_MS + 1
    kept.retain()
    end(kept)
    assert live_and_retired(kept) == ([4, 6, 8, 10], 0)
    assert len(kept.tasks) == 0


def test_a_file_that_cannot_be_removed_is_left_to_the_next_start(caplog: pytest.LogCaptureFixture) -> None:
    class Stubborn(MemoryDisk):
        is_stubborn = True

        def remove(self, path: str) -> None:
            if self.is_stubborn and path.endswith("0.log.deleted"):
                raise full()
            super().remove(path)

    disk = Stubborn()
    kept = filled(disk=disk)
    kept.environment.time_ms = T0 + 3 * SPACING_MS + RETENTION_MS + 1
    kept.retain()
    kept.pass_s(DELAY_S)
    assert [name for name in kept.names if name.endswith(".deleted")] == [f"{0:020d}.log.deleted"]
    assert "the next start tries again" in caplog.text
    disk.is_stubborn = False
    kept.restart()
    assert live_and_retired(kept) == ([4, 6, 8, 10], 0)


def test_a_topic_that_was_deleted_before_its_files_were_due_takes_them_along(caplog: pytest.LogCaptureFixture) -> None:
    kept = filled()
    kept.environment.time_ms = T0 + 3 * SPACING_MS + RETENTION_MS + 1
    kept.retain()
    kept.disk.remove_tree(DIRECTORY)
    kept.pass_s(DELAY_S)
    assert caplog.text == ""


# -------------------------------------------------------------------------------------------------- disks and processes
def aged(disk: MemoryDisk, *, everything: bool) -> Kept:
    """A log of which the first four records, or all, are too old. The recovery point is written down."""
    kept = filled(disk=disk)
    kept.settle()
    kept.environment.time_ms = T0 + (11 if everything else 3) * SPACING_MS + RETENTION_MS + 1
    return kept


def work(kept: Kept) -> None:
    kept.retain()
    kept.pass_s(DELAY_S)
    kept.settle()


def steps_of(*, everything: bool) -> list[int]:
    disk = FaultyDisk()
    kept = aged(disk, everything=everything)
    disk.count_anew()
    work(kept)
    return disk.telling_steps()


def check(kept: Kept, *, everything: bool, may_forget: bool) -> None:
    """The log is all that was appended but for whole segments that were to go.

    `may_forget`: the snapshot of the roll may have failed, so that a start knows what the batches say that are left.
    """
    log = kept.log
    found = read(log)
    assert found.offsets == offsets_from(log.log_start_offset)
    assert [record.key for record in found.records] == [b"%d" % offset for offset in found.offsets]
    assert log.log_start_offset in range(0, 13 if everything else 5, 2)
    assert log.log_end_offset == 12
    (known,) = (state for _, state in log.producers.states())
    assert known.last_sequence == 11 or (may_forget and known.last_sequence == 9)


def check_end(kept: Kept, *, everything: bool, may_forget: bool = False) -> None:
    """The next time it comes to its end."""
    check(kept, everything=everything, may_forget=may_forget)
    work(kept)
    offset = 12 if everything else 4
    assert kept.read.offsets == offsets_from(offset)
    assert live_and_retired(kept) == ([12] if everything else [4, 6, 8, 10], 0)
    kept.restart()
    assert (kept.log.log_start_offset, kept.read.offsets) == (offset, offsets_from(offset))


@pytest.mark.parametrize("everything", [False, True], ids=["some of it", "all of it"])
def test_a_process_that_dies_at_any_step_leaves_a_right_log(everything: bool) -> None:
    for step in steps_of(everything=everything):
        disk = FaultyDisk()
        kept = aged(disk, everything=everything)
        disk.fail_at(step, Crash, for_good=True)
        with pytest.raises(Crash):
            work(kept)
        disk.heal()
        kept.kill_and_start()
        assert live_and_retired(kept)[1] == 0
        check_end(kept, everything=everything)


@pytest.mark.parametrize("everything", [False, True], ids=["some of it", "all of it"])
def test_power_that_fails_at_any_step_leaves_a_log_without_a_hole(everything: bool) -> None:
    """Of names that were changed since the last sync of the directory any may be on the device, and any other not."""
    rng = random.Random()
    for step in steps_of(everything=everything):
        disk = FaultyLosingDisk()
        kept = aged(disk, everything=everything)
        kept.run(kept.partition.durability.sync_all())
        for directory in ("", DATA_DIR):
            disk.sync_dir(directory)
        disk.fail_at(step, Crash, for_good=True)
        with suppress(Crash):  # with the last steps done before, there may be fewer
            work(kept)
        for _ in range(FATES):
            seed = rng.getrandbits(32)
            left = disk.after_power_failure(Fate(random.Random(seed)))
            assert read_contiguously(Kept(BY_TIME, disk=left, segment_bytes=160)), (step, seed)


def read_contiguously(kept: Kept) -> bool:
    """Whether a consumer gets every offset from the log's start to its end."""
    return kept.read.offsets == list(range(kept.log.log_start_offset, kept.log.log_end_offset))


def test_a_leader_whose_term_ends_meanwhile_deletes_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be cut by its next leader, and what stands there then is another record."""
    kept = filled()
    kept.environment.time_ms = T0 + 7 * SPACING_MS + RETENTION_MS + 1
    partition, log = kept.partition, kept.log
    sync_dir = kept.disk.sync_dir

    def end_term(path: str) -> None:
        sync_dir(path)
        if partition.is_leader:
            partition.become_follower(1, partition.leader_epoch + 1)

    monkeypatch.setattr(kept.disk, "sync_dir", end_term)
    kept.retain()
    assert (log.log_start_offset, log.base_offsets) == (2, [2, 4, 6, 8, 10])


def test_a_segment_that_cannot_be_deleted_ends_the_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the next deletion takes two, whose names may reach the device in another order: a hole."""
    kept = filled()
    kept.environment.time_ms = T0 + 7 * SPACING_MS + RETENTION_MS + 1
    log, sync_dir, first = kept.log, kept.disk.sync_dir, list[int]()

    def note(path: str) -> None:
        first.append(log.base_offsets[0])
        sync_dir(path)

    def fail_once(old: str, new: str) -> None:
        del old, new
        monkeypatch.undo()
        monkeypatch.setattr(kept.disk, "sync_dir", note)
        raise full()

    monkeypatch.setattr(kept.disk, "rename", fail_once)
    kept.retain()
    assert (first, log.base_offsets[0]) == ([], 0)
    kept.retain()
    assert first == [2, 4, 6, 8]


@pytest.mark.parametrize("for_good", [False, True], ids=["once", "until it is healed"])
@pytest.mark.parametrize("everything", [False, True], ids=["some of it", "all of it"])
def test_a_disk_that_fails_at_any_step_leaves_a_right_log(everything: bool, for_good: bool) -> None:
    for step in steps_of(everything=everything):
        disk = FaultyDisk()
        kept = aged(disk, everything=everything)
        disk.fail_at(step, full, for_good=for_good)
        work(kept)
        check(kept, everything=everything, may_forget=False)
        disk.heal()
        check(kept, everything=everything, may_forget=False)
        kept.kill_and_start()
        check_end(kept, everything=everything, may_forget=everything)
