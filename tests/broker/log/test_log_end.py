"""A follower's log is its leader's: every file byte for byte, whatever the pieces in which the batches came.

The leader appends by `append`, the follower by `append_replicated`, both with the same configuration.
"""

import errno
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.broker.disk.memory_disk import Content, MemoryDisk
from odradek.broker.log.config import LogConfig
from odradek.broker.log.flush import DataNotSynced
from odradek.broker.log.log import Log
from odradek.broker.log.segment_facts import RELATIVE_OFFSET_MAX
from odradek.protocol.batches.batch import iterate_batches
from odradek.protocol.errors import ErrorCode
from tests.broker.log.compacted_logs import data_batch
from tests.broker.log.logs import (
    DIRECTORY,
    T0,
    FaultyDisk,
    Model,
    append,
    assert_same,
    batch,
    contents,
    error_of,
    full,
    known_producers,
    open_log,
    read_all,
    small_log,
    stored,
)
from tests.broker.log.transactions import append_any, data_of, marker_of

LEADER_EPOCH = 1_000
"""Above all that any history has."""


def replicate(leader: Log, follower: Log, size_bytes_max: int | None = None) -> None:
    """Fetches until the follower has everything; `size_bytes_max` in one fetch, of one segment, or (None) everything
    in one: segments need not have the same borders, for instance after another `segment.bytes`."""
    while follower.log_end_offset < leader.log_end_offset:
        offset = follower.log_end_offset
        if size_bytes_max is None:
            data = b"".join(bytes(piece) for piece in pieces_from(leader, offset))
        else:
            data = bytes(leader.fetch(offset, size_bytes_max, leader.log_end_offset, True).records)
        assert follower.append_replicated(data, LEADER_EPOCH, 0) == len(data)


def pieces_from(leader: Log, offset: int) -> Iterator[bytes]:
    while offset < leader.log_end_offset:
        data = bytes(leader.fetch(offset, 1 << 20, leader.log_end_offset, True).records)
        offset = max(header.last_offset for _, header in iterate_batches(data)) + 1
        yield data


def closed_contents(log: Log, disk: MemoryDisk) -> dict[str, bytes]:
    log.close()
    return contents(disk)


# -- the same files ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size_bytes_max", [1, 200, 1 << 20, None])
def test_every_file_is_the_leaders(size_bytes_max: int | None) -> None:
    disk, copy = MemoryDisk(), MemoryDisk()
    leader, model = small_log(disk)
    follower = open_log(copy, leader.config)
    replicate(leader, follower, size_bytes_max)
    assert_same(follower, model)
    assert follower.base_offsets == leader.base_offsets
    assert len(follower.base_offsets) > 4
    files = closed_contents(follower, copy)
    assert files == closed_contents(leader, disk)
    assert {name.rpartition(".")[2] for name in files} >= {"log", "index", "timeindex", "snapshot"}


@pytest.mark.parametrize("size_bytes_max", [1, 500, 1 << 20, None])
@pytest.mark.parametrize(
    "config",
    [
        LogConfig(segment_bytes=700),
        LogConfig(segment_ms=20),
        LogConfig(segment_index_bytes=40, index_interval_bytes=0),
        LogConfig(segment_index_bytes=48, index_interval_bytes=150),
    ],
    ids=["by size", "by time", "by full indexes", "by full indexes, and not each batch indexed"],
)
def test_segments_begin_where_the_leaders_do(config: LogConfig, size_bytes_max: int | None) -> None:
    disk, copy = MemoryDisk(), MemoryDisk()
    leader, follower = open_log(disk, config), open_log(copy, config)
    for number in range(60):
        append(leader, batch(T0 + 3 * number + 10 * (number % 4), value=b"v" * (number % 7)), number // 20)
    assert len(leader.base_offsets) > 4
    replicate(leader, follower, size_bytes_max)
    assert follower.base_offsets == leader.base_offsets
    assert closed_contents(follower, copy) == closed_contents(leader, disk)


configs = st.builds(
    LogConfig,
    segment_bytes=st.integers(220, 2000),
    segment_ms=st.sampled_from([20, 1 << 40]),
    segment_index_bytes=st.sampled_from([24, 40, 1 << 20]),
    index_interval_bytes=st.sampled_from([0, 90, 300, 4096]),
    preallocate=st.booleans(),
)
plain = st.tuples(
    st.just("plain"), st.lists(st.integers(T0 - 50, T0 + 50), min_size=1, max_size=4), st.binary(max_size=60)
)
sequenced = st.tuples(st.just("sequenced"), st.integers(0, 2), st.integers(1, 3))
in_txn = st.tuples(st.just("txn"), st.integers(5, 6), st.integers(1, 2))
ended = st.tuples(st.just("end"), st.integers(5, 6), st.booleans())
epoch = st.tuples(st.just("epoch"), st.just(0), st.just(0))
fetched = st.tuples(st.just("fetch"), st.sampled_from([1, 150, 400, 1 << 20, None]), st.just(0))


@settings(max_examples=300)
@given(config=configs, history=st.lists(st.one_of(plain, sequenced, in_txn, ended, epoch, fetched), max_size=40))
def test_any_history_gives_the_same_files(config: LogConfig, history: list[tuple[str, Any, Any]]) -> None:
    """Rolls by size, time and full indexes, epochs, sequences, transactions, and fetches of any size in between."""
    disk, copy = MemoryDisk(), MemoryDisk()
    leader, follower = open_log(disk, config), open_log(copy, config)
    leader_epoch, sequences = 0, dict.fromkeys(range(8), 0)
    for kind, first, second in history:
        if kind == "plain":
            append(leader, batch(*first, value=second), leader_epoch)
        elif kind == "sequenced":
            append(leader, batch(*[T0] * second, producer=(first, 0, sequences[first])), leader_epoch)
            sequences[first] += second
        elif kind == "txn":
            append_any(leader, data_of(first, sequences[first], *[b"v"] * second), leader_epoch)
            sequences[first] += second
        elif kind == "end":
            append_any(leader, marker_of(first, is_abort=second), leader_epoch)
        elif kind == "epoch":
            leader_epoch += 1
        else:
            replicate(leader, follower, first)
    replicate(leader, follower)
    assert known_producers(follower) == known_producers(leader)
    assert follower.producers.first_undecided_offset == leader.producers.first_undecided_offset
    assert follower.epochs.entries == leader.epochs.entries
    assert closed_contents(follower, copy) == closed_contents(leader, disk)


class CountingDisk(MemoryDisk):
    """Counts the writes of each length to `.log` files."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[int] = []

    def write(self, content: Content, data: Any) -> None:
        self.writes.append(len(data))
        super().write(content, data)


def test_batches_of_one_segment_are_written_together() -> None:
    leader, _ = open_log(MemoryDisk()), None
    for number in range(50):
        append(leader, batch(T0 + number))
    data = leader.fetch(0, 1 << 20, 50, True).records
    disk = CountingDisk()
    follower = open_log(disk)
    disk.writes.clear()
    follower.append_replicated(data, LEADER_EPOCH, 0)
    assert len([size for size in disk.writes if size > 12]) == 2, "the first of a segment alone, and the rest"
    assert read_all(follower) == bytes(data)


# -- compacted logs ---------------------------------------------------------------------------------------------------


def test_what_compaction_took_is_missing_at_the_follower_too() -> None:
    follower = open_log(MemoryDisk(), LogConfig(segment_bytes=200))
    data = stored(batch(T0), 5, 1) + stored(batch(T0 + 1), 9, 1) + stored(batch(T0 + 2, T0 + 3), 30, 2)
    assert follower.append_replicated(data, LEADER_EPOCH, 0) == len(data)
    assert (follower.log_start_offset, follower.log_end_offset) == (0, 32)
    assert follower.epochs.entries == ((1, 5), (2, 30))
    assert [header.base_offset for _, header in iterate_batches(read_all(follower))] == [5, 9, 30]


@pytest.mark.parametrize("before", [b"", stored(batch(T0), 0, 1)], ids=["empty", "not empty"])
def test_more_may_be_missing_than_an_index_can_say(before: bytes) -> None:
    disk = MemoryDisk()
    follower = open_log(disk)
    far = 2 * RELATIVE_OFFSET_MAX
    data = before + stored(batch(T0 + 1), far, 1)
    assert follower.append_replicated(data, LEADER_EPOCH, 0) == len(data)
    assert follower.log_end_offset == far + 1
    assert bytes(follower.fetch(5, 1 << 20, far + 1, True).records) == stored(batch(T0 + 1), far, 1)
    follower.close_without_flush()
    reopened = open_log(disk)
    assert reopened.log_end_offset == far + 1
    assert bytes(reopened.fetch(5, 1 << 20, far + 1, True).records) == stored(batch(T0 + 1), far, 1)


def test_a_log_start_within_a_batch_is_kept() -> None:
    """The batch is there as a whole, and its first records are deleted, as at the leader."""
    disk = MemoryDisk()
    follower = open_log(disk, log_start_offset=10)
    data = stored(batch(*[T0] * 5), 8, 1) + stored(batch(T0 + 1), 13, 1)
    assert follower.append_replicated(data, LEADER_EPOCH, 0) == len(data)
    assert (follower.log_start_offset, follower.log_end_offset, follower.base_offsets) == (10, 14, [8])
    assert bytes(follower.fetch(10, 1 << 20, 14, True).records) == data
    assert error_of(lambda: follower.fetch(9, 1 << 20, 14, True)) is ErrorCode.OFFSET_OUT_OF_RANGE
    follower.close_without_flush()
    assert open_log(disk, log_start_offset=10).log_start_offset == 10


@pytest.mark.parametrize("offset", range(12))
def test_a_compacted_log_that_is_cut_ends_where_it_was_cut_or_before(offset: int) -> None:
    """After an unclean election what was compacted may have to go, too: batches with gaps before them."""
    disk = MemoryDisk()
    config = LogConfig(is_compacted=True)
    follower = open_log(disk, config)
    batches = {base + 1: data_batch(base, (b"k", b"v")) for base in (4, 5, 9)}
    follower.append_replicated(b"".join(batches.values()), LEADER_EPOCH, 0)
    follower.truncate_to(offset)
    left = {end: data for end, data in batches.items() if end <= offset}
    end_offset = max(left, default=0)
    assert follower.log_end_offset == end_offset
    assert read_all(follower) == b"".join(left.values())
    follower.close_without_flush()
    assert open_log(disk, config).log_end_offset == end_offset


@pytest.mark.parametrize(("offset", "end_offset"), [(4, 0), (5, 5), (12, 5), (19, 5), (20, 20), (21, 21), (30, 21)])
def test_a_cut_into_what_compaction_took_from_the_end_of_a_segment(offset: int, end_offset: int) -> None:
    disk = MemoryDisk()
    config = LogConfig(is_compacted=True)
    open_log(disk, config).close()
    for base in (4, 20):
        disk.write_whole(f"{DIRECTORY}/{base // 20 * 20:020d}.log", data_batch(base, (b"k", b"v")))
    open_log(disk, config).close()
    log = open_log(disk, config, recovery_point=21)
    assert (log.base_offsets, log.log_end_offset) == ([0, 20], 21)
    log.truncate_to(offset)
    assert log.log_end_offset == end_offset
    log.close_without_flush()
    assert open_log(disk, config).log_end_offset == end_offset


# -- what is refused, and what fails ----------------------------------------------------------------------------------


def test_a_bad_batch_leaves_nothing_of_its_answer() -> None:
    disk = MemoryDisk()
    follower = open_log(disk)
    good, bad = stored(batch(T0), 0, 1), bytearray(stored(batch(T0), 1, 1))
    bad[-1] ^= 1
    assert error_of(lambda: follower.append_replicated(good + bad, LEADER_EPOCH, 0)) is ErrorCode.CORRUPT_MESSAGE
    assert (follower.log_end_offset, follower.size_bytes, follower.epochs.entries) == (0, 0, ())
    assert follower.append_replicated(good, LEADER_EPOCH, 0) == len(good)


def test_a_sequence_that_does_not_fit_is_appended_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """The leader has accepted it: a follower that refused would never have it."""
    follower = open_log(MemoryDisk())
    data = stored(batch(T0, producer=(1, 3, 0)), 0, 1) + stored(batch(T0, producer=(1, 3, 7)), 1, 1)
    data += stored(batch(T0, producer=(1, 2, 0)), 2, 1)
    with caplog.at_level(logging.WARNING):
        assert follower.append_replicated(data, LEADER_EPOCH, 0) == len(data)
    first, second = (record.getMessage() for record in caplog.records)
    assert first.endswith("offset 1: producer 1 with epoch 3 and sequence 7, where 1 was expected")
    assert second.endswith("offset 2: producer 1 with epoch 2, where its epoch was 3 already")
    assert known_producers(follower) == {1: (2, [(0, 0, 2, 2)])}


def test_a_sequence_gap_is_no_warning_where_batches_were_compacted_away(
    caplog: pytest.LogCaptureFixture,
) -> None:
    follower = open_log(MemoryDisk(), LogConfig(is_compacted=True))
    data = stored(batch(T0, producer=(1, 3, 0)), 0, 1) + stored(batch(T0, producer=(1, 3, 7)), 7, 1)
    with caplog.at_level(logging.WARNING):
        assert follower.append_replicated(data, LEADER_EPOCH, 0) == len(data)
    assert not caplog.records


def test_a_sequence_that_fits_needs_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    follower = open_log(MemoryDisk())
    pieces = [batch(T0, T0, producer=(1, 3, 2**31 - 1)), batch(T0, producer=(1, 3, 1)), batch(T0, producer=(1, 4, 0))]
    data = b"".join(stored(piece, offset, 1) for piece, offset in zip(pieces, (0, 2, 3), strict=True))
    with caplog.at_level(logging.WARNING):
        follower.append_replicated(data, LEADER_EPOCH, 0)
    assert not caplog.records


def test_a_full_disk_keeps_what_was_appended_before(caplog: pytest.LogCaptureFixture) -> None:
    disk = FaultyDisk()
    follower = open_log(disk, LogConfig(segment_bytes=300))
    pieces = [stored(batch(T0 + number, value=b"v" * 100), number, 1) for number in range(6)]
    disk.fail_at(700, full, for_good=True)
    assert (
        error_of(lambda: follower.append_replicated(b"".join(pieces), LEADER_EPOCH, 0)) is ErrorCode.KAFKA_STORAGE_ERROR
    )
    end = follower.log_end_offset
    assert 0 < end < 6
    assert read_all(follower) == b"".join(pieces[:end])
    disk.heal()
    with caplog.at_level(logging.WARNING):
        follower.append_replicated(b"".join(pieces[end:]), LEADER_EPOCH, 0)
    assert "appends work again" in caplog.text
    assert read_all(follower) == b"".join(pieces)


def test_a_truncation_that_failed_is_seen_and_can_be_completed() -> None:
    disk = FaultyDisk()
    log = open_log(disk)
    for number in range(4):
        append(log, batch(T0 + number), number)
    disk.fail_at(0, lambda: OSError(errno.EIO, "no"), for_good=True)
    assert error_of(lambda: log.truncate_to(2)) is ErrorCode.KAFKA_STORAGE_ERROR
    assert log.condition.is_half_cut
    disk.heal()
    log.truncate_to(log.log_end_offset)
    assert not log.condition.is_half_cut
    assert [tuple(entry) for entry in log.epochs.entries] == [(number, number) for number in range(log.log_end_offset)]


def test_a_failed_sync_does_not_hide_a_truncation_that_is_half_done() -> None:
    disk = FaultyDisk()
    log = open_log(disk)
    for number in range(4):
        append(log, batch(T0 + number), number)
    flush = log.begin_flush(settle=False)
    assert flush is not None
    disk.fail_at(0, lambda: OSError(errno.EIO, "no"), for_good=True)
    assert error_of(lambda: log.truncate_to(2)) is ErrorCode.KAFKA_STORAGE_ERROR
    log.end_flush(flush, DataNotSynced(errno.EIO, "no"))
    assert (log.condition.is_half_cut, log.condition.is_given_up) == (True, True)
    disk.heal()
    log.truncate_to(log.log_end_offset)
    assert (log.condition.is_half_cut, log.condition.is_given_up) == (False, True)
    assert error_of(lambda: append(log, batch(T0), 5)) is ErrorCode.KAFKA_STORAGE_ERROR


def test_files_of_another_process_are_the_same_after_a_restart() -> None:
    """What was replicated is recovered like anything else."""
    disk = MemoryDisk()
    leader, model = small_log(MemoryDisk())
    follower = open_log(disk, leader.config)
    replicate(leader, follower, 300)
    follower.close_without_flush()
    assert disk.list_dir(DIRECTORY)
    assert_same(open_log(disk, leader.config), model)
    assert isinstance(model, Model)
