"""One answer at a time, put to one partition: what is applied, what is passed over, what a failing disk leaves."""

import errno
import logging
import os

import pytest

from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.log.config import LogConfig
from odradek.broker.replication.follower_state import FetchPosition, Phase
from odradek.broker.replication.following import Following
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import EpochEndOffset, PartitionData
from tests.broker.log.logs import T0, FaultyDisk, append, batch, open_log, read_all, stored
from tests.broker.replication.replicas_world import FollowingReplica

EPOCH = 3
BACKOFF_MS = 1000.0
NOW_MS = 5000.0


def following(disk: MemoryDisk | None = None, config: LogConfig | None = None) -> tuple[Following, FollowingReplica]:
    replica = FollowingReplica(open_log(disk or MemoryDisk(), config), EPOCH)
    return Following(replica, BACKOFF_MS), replica


def answer(
    records: bytes = b"", *, high_watermark: int = 0, log_start_offset: int = 0, error: ErrorCode = ErrorCode.NONE
) -> PartitionData:
    return PartitionData(
        partition_index=0,
        error_code=error,
        high_watermark=high_watermark,
        log_start_offset=log_start_offset,
        records=records,
    )


def at(offset: int, leader_epoch: int = EPOCH, size_bytes: int = 1) -> bytes:
    return stored(batch(T0, value=b"v" * size_bytes), offset, leader_epoch)


def broken() -> OSError:
    return OSError(errno.EIO, os.strerror(errno.EIO))


def test_a_position_is_where_the_log_ends() -> None:
    one, replica = following()
    assert one.position == FetchPosition(EPOCH, 0, -1, 0)
    append(replica.log, batch(T0, T0), 1)
    append(replica.log, batch(T0), 2)
    replica.follow_log_start(1)
    assert one.position == FetchPosition(EPOCH, 3, 2, 1)


def test_a_position_says_no_log_start_that_is_not_on_the_disk() -> None:
    """The leader answers a DeleteRecords for it. Here retention has moved the start while this broker led: the first
    answer has it written down, and then it is said."""
    one, replica = following()
    append(replica.log, batch(T0, T0), EPOCH)
    replica.log.advance_log_start(1)
    assert one.position.log_start_offset == 0
    replica.is_device_slow = True
    one.take(answer(), one.position, NOW_MS, 0)
    assert (replica.log_starts_wanted, one.has_news_soon, one.position.log_start_offset) == ([1], True, 0)
    replica.device_is_done()
    assert (one.has_news_soon, one.position.log_start_offset) == (False, 1)
    one.take(answer(), one.position, NOW_MS, 0)
    assert replica.log_starts_wanted == [1]


def test_records_are_appended_and_then_counted() -> None:
    one, replica = following()
    data = at(0) + at(1)
    assert one.take(answer(data, high_watermark=5), one.position, NOW_MS, 0) == len(data)
    assert (replica.appended_bytes, replica.high_watermark, one.state.lag) == (len(data), 2, 3)
    assert read_all(replica.log) == data


@pytest.mark.parametrize(
    "asked",
    [FetchPosition(EPOCH - 1, 1, EPOCH, 0), FetchPosition(EPOCH, 0, EPOCH, 0), FetchPosition(EPOCH, 1, EPOCH - 1, 0)],
)
def test_an_answer_to_something_else_does_not_fit(asked: FetchPosition) -> None:
    one, replica = following()
    append(replica.log, batch(T0), EPOCH)
    assert one.is_answered_by(one.position)
    assert not one.is_answered_by(asked)


def test_an_answer_does_not_fit_once_the_partition_has_another_epoch_or_waits() -> None:
    one, replica = following()
    asked = one.position
    replica.leader_epoch += 1
    assert not one.is_answered_by(asked)
    replica.leader_epoch -= 1
    one.state.throttled(0.0, 1.0)
    assert not one.is_answered_by(asked)


def test_a_log_start_that_moved_by_itself_makes_no_answer_stale() -> None:
    one, replica = following()
    append(replica.log, batch(T0), EPOCH)
    asked = one.position
    replica.follow_log_start(1)
    assert one.is_answered_by(asked)


def test_a_log_start_of_the_leader_is_followed_up_to_the_log_end() -> None:
    one, replica = following()
    one.take(answer(at(0) + at(1), log_start_offset=9, high_watermark=9), one.position, NOW_MS, 0)
    assert replica.log.log_start_offset == 2
    one.take(answer(log_start_offset=1, high_watermark=9), one.position, NOW_MS, 0)
    assert replica.log.log_start_offset == 2


def test_errors_wait_and_are_told_once(caplog: pytest.LogCaptureFixture) -> None:
    one, replica = following()
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            one.take(answer(error=ErrorCode.KAFKA_STORAGE_ERROR), one.position, NOW_MS, 0)
            assert (one.state.phase, one.state.deadline_ms) == (Phase.WAITING, NOW_MS + BACKOFF_MS)
            one.state.resume()
    assert [record.getMessage() for record in caplog.records] == [
        "<Following orders-0 epoch 3> waits at offset 0: KAFKA_STORAGE_ERROR: the leader answers so"
    ]
    assert replica.log.log_end_offset == 0


def test_an_unknown_error_code_is_an_error() -> None:
    one, _ = following()
    one.take(
        PartitionData(partition_index=0, error_code=9999, high_watermark=3, records=at(0)), one.position, NOW_MS, 0
    )
    assert one.state.phase is Phase.WAITING
    assert one.partition.log.log_end_offset == 0


def test_batches_of_a_later_epoch_alone_wait_for_the_metadata() -> None:
    one, replica = following()
    assert one.take(answer(at(0, EPOCH + 1), high_watermark=1), one.position, NOW_MS, 0) == 0
    assert one.state.phase is Phase.WAITING
    assert one.state.deadline_ms < NOW_MS + BACKOFF_MS
    assert (replica.log.log_end_offset, replica.high_watermark) == (0, 0)


def test_a_divergence_cuts_and_nothing_else() -> None:
    one, replica = following()
    for number in range(4):
        append(replica.log, batch(T0 + number), number // 2)
    diverging = answer(high_watermark=4)
    diverging.diverging_epoch = EpochEndOffset(epoch=0, end_offset=1)
    assert one.take(diverging, one.position, NOW_MS, 0) == 0
    assert (replica.truncations, replica.log.log_end_offset, replica.high_watermark) == ([1], 1, 0)
    assert one.state.phase is Phase.FETCHING


def test_a_divergence_that_cannot_be_cuts_nothing() -> None:
    one, replica = following()
    append(replica.log, batch(T0), 1)
    diverging = answer()
    diverging.diverging_epoch = EpochEndOffset(epoch=2, end_offset=0)
    one.take(diverging, one.position, NOW_MS, 0)
    assert (replica.truncations, replica.log.log_end_offset, one.state.phase) == ([], 1, Phase.WAITING)


def test_a_disk_that_fails_half_way_has_told_of_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """The partition hears of the growth: its syncs and its rolled segments must not be forgotten."""
    disk = FaultyDisk()
    one, replica = following(disk, LogConfig(segment_bytes=300))
    grown: list[int] = []
    monkeypatch.setattr(replica, "appended_as_follower", grown.append)
    disk.fail_at(700, broken, for_good=True)
    one.take(answer(b"".join(at(number, size_bytes=100) for number in range(6))), one.position, NOW_MS, 0)
    assert 0 < replica.log.log_end_offset < 6
    assert grown == [0]
    assert (one.state.phase, one.state.deadline_ms) == (Phase.WAITING, NOW_MS + BACKOFF_MS)


def test_a_truncation_that_fails_is_completed_before_anything_is_claimed() -> None:
    disk = FaultyDisk()
    one, replica = following(disk)
    for number in range(4):
        append(replica.log, batch(T0 + number), number // 2)
    diverging = answer()
    diverging.diverging_epoch = EpochEndOffset(epoch=0, end_offset=1)
    disk.fail_at(1, broken, for_good=True)
    one.take(diverging, one.position, NOW_MS, 0)
    assert replica.log.condition.is_half_cut
    assert one.state.phase is Phase.WAITING
    one.state.resume()
    one.complete_truncation(NOW_MS)
    assert replica.log.condition.is_half_cut
    assert one.state.phase is Phase.WAITING
    disk.heal()
    one.state.resume()
    one.complete_truncation(NOW_MS)
    assert not replica.log.condition.is_half_cut
    assert one.position == FetchPosition(EPOCH, 1, 0, 0)
    assert one.take(answer(at(1)), one.position, NOW_MS, 0)


@pytest.mark.parametrize(
    ("offsets", "end", "phase"),
    [((7, 9), 7, Phase.FETCHING), ((0, 9), 2, Phase.WAITING), (None, 2, Phase.WAITING)],
)
def test_what_follows_from_the_leaders_offsets(offsets: tuple[int, int] | None, end: int, phase: Phase) -> None:
    one, replica = following()
    append(replica.log, batch(T0, T0), 1)
    asked = one.position
    one.take(answer(error=ErrorCode.OFFSET_OUT_OF_RANGE), asked, NOW_MS, 0)
    assert one.state.phase is Phase.COMPARING
    one.compare(offsets, asked, NOW_MS)
    assert (replica.log.log_end_offset, one.state.phase) == (end, phase)


@pytest.mark.parametrize(("batches", "level"), [(0, logging.INFO), (2, logging.WARNING)])
def test_that_a_log_is_emptied_is_a_warning_where_it_holds_anything(
    batches: int, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    """A new replica of a topic whose log start is above 0 comes by here, too."""
    one, replica = following()
    for _ in range(batches):
        append(replica.log, batch(T0), 1)
    asked = one.position
    one.take(answer(error=ErrorCode.OFFSET_OUT_OF_RANGE), asked, NOW_MS, 0)
    with caplog.at_level(logging.INFO):
        one.compare((7, 9), asked, NOW_MS)
    (told,) = [record for record in caplog.records if "restarts at offset 7" in record.getMessage()]
    assert told.levelno == level


def test_offsets_for_a_former_epoch_cut_nothing() -> None:
    one, replica = following()
    append(replica.log, batch(T0, T0), 1)
    asked = one.position
    one.take(answer(error=ErrorCode.OFFSET_OUT_OF_RANGE), asked, NOW_MS, 0)
    replica.leader_epoch += 1
    one.compare((7, 9), asked, NOW_MS)
    assert (replica.log.log_end_offset, one.state.phase) == (2, Phase.WAITING)


def test_an_empty_log_behind_its_leaders_end_goes_back_to_it() -> None:
    one, replica = following()
    replica.log.truncate_fully_and_start_at(50)
    asked = one.position
    one.take(answer(error=ErrorCode.OFFSET_OUT_OF_RANGE), asked, NOW_MS, 0)
    one.compare((0, 9), asked, NOW_MS)
    assert (replica.log.log_start_offset, replica.log.log_end_offset) == (9, 9)
