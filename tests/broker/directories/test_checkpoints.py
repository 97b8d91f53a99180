"""What the data directory says of all its logs: read, written in any order, damaged at any bit; the clean marker."""

import errno
import os
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.directories.checkpoints import CLEAN_SHUTDOWN, Checkpoints, Key
from odradek.broker.disk.memory_disk import Content, MemoryDisk
from odradek.broker.log.checkpoint import (
    CLEANED_OFFSETS,
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
    CorruptCheckpoint,
)

DATA_DIR = "data"
OFFSETS: dict[Key, int] = {("orders", 0): 4711, ("orders", 12): 0, ("a.b_c-1", 3): 2**63 - 1}
GOLDEN = b"0\n3\na.b_c-1 3 9223372036854775807\norders 0 4711\norders 12 0\n"
FILES = {
    "log_starts": LOG_START_OFFSETS,
    "recovery_points": RECOVERY_POINTS,
    "high_watermarks": HIGH_WATERMARKS,
    "cleaned": CLEANED_OFFSETS,
}


@pytest.fixture
def disk() -> MemoryDisk:
    return new_disk()


def new_disk() -> MemoryDisk:
    disk = MemoryDisk()
    disk.make_dir(DATA_DIR)
    return disk


def loaded(disk: MemoryDisk) -> Checkpoints:
    checkpoints = Checkpoints(disk, DATA_DIR)
    checkpoints.load()
    return checkpoints


def offsets_of(checkpoints: Checkpoints, which: str) -> dict[Key, int]:
    offsets: dict[Key, int] = getattr(checkpoints, which)
    return offsets


def write(checkpoints: Checkpoints, which: str, offsets: Mapping[Key, int]) -> None:
    offsets_of(checkpoints, which).update(offsets)
    assert getattr(checkpoints, f"writing_{which}")()()


def test_a_directory_without_any_of_them_is_a_new_one(disk: MemoryDisk) -> None:
    checkpoints = loaded(disk)
    assert all(offsets_of(checkpoints, which) == {} for which in FILES)
    assert not checkpoints.was_clean


@pytest.mark.parametrize("which", list(FILES))
def test_names_and_bytes_are_kafka_s(disk: MemoryDisk, which: str) -> None:
    write(Checkpoints(disk, DATA_DIR), which, OFFSETS)
    assert disk.list_dir(DATA_DIR) == [FILES[which]]
    assert disk.read_whole(f"{DATA_DIR}/{FILES[which]}") == GOLDEN
    checkpoints = loaded(disk)
    for other in FILES:
        assert offsets_of(checkpoints, other) == (OFFSETS if other == which else {})


@given(
    offsets=st.dictionaries(
        st.tuples(st.from_regex(r"[a-zA-Z0-9._-]{1,30}", fullmatch=True), st.integers(0, 2**31 - 1)),
        st.integers(0, 2**63 - 1),
        max_size=20,
    )
)
def test_any_offsets_are_the_same_again(offsets: dict[Key, int]) -> None:
    disk = new_disk()
    write(Checkpoints(disk, DATA_DIR), "recovery_points", offsets)
    assert loaded(disk).recovery_points == offsets


def test_what_is_written_is_what_was_known_when_it_was_asked_for(disk: MemoryDisk) -> None:
    """A helper thread writes it later, while the loop goes on."""
    checkpoints = Checkpoints(disk, DATA_DIR)
    checkpoints.recovery_points["orders", 0] = 1
    writing = checkpoints.writing_recovery_points()
    checkpoints.recovery_points["orders", 0] = 2
    assert writing()
    assert loaded(disk).recovery_points == {("orders", 0): 1}


def test_an_older_state_never_replaces_a_newer_one(disk: MemoryDisk) -> None:
    checkpoints = Checkpoints(disk, DATA_DIR)
    writes: list[Callable[[], bool]] = []
    for offset in (1, 2, 3):
        checkpoints.log_starts["orders", 0] = offset
        writes.append(checkpoints.writing_log_starts())
    assert writes[1]()
    assert not writes[0]()
    assert loaded(disk).log_starts == {("orders", 0): 2}
    assert writes[2]()
    assert loaded(disk).log_starts == {("orders", 0): 3}


class FailingDisk(MemoryDisk):
    is_failing = False

    def sync(self, content: Content) -> None:
        if self.is_failing:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        super().sync(content)


def test_a_write_that_fails_leaves_the_old_file_and_may_be_tried_again() -> None:
    disk = FailingDisk()
    disk.make_dir(DATA_DIR)
    checkpoints = Checkpoints(disk, DATA_DIR)
    write(checkpoints, "log_starts", {("orders", 0): 1})
    checkpoints.log_starts["orders", 0] = 2
    writing = checkpoints.writing_log_starts()
    disk.is_failing = True
    with pytest.raises(OSError, match="Input/output error"):
        writing()
    assert loaded(disk).log_starts == {("orders", 0): 1}
    disk.is_failing = False
    assert writing()
    assert loaded(disk).log_starts == {("orders", 0): 2}


def test_what_was_forgotten_is_not_written_any_more(disk: MemoryDisk) -> None:
    checkpoints = Checkpoints(disk, DATA_DIR)
    for which in FILES:
        write(checkpoints, which, OFFSETS)
    checkpoints.forget(("orders", 0))
    checkpoints.tidy()
    again = loaded(disk)
    for which in FILES:
        assert {*offsets_of(again, which)} == {*OFFSETS} - {("orders", 0)}, (
            "a new topic of that name must not begin there"
        )
    for path in disk.list_dir(DATA_DIR):
        disk.remove(f"{DATA_DIR}/{path}")
    checkpoints.forget(("nowhere", 0))
    checkpoints.tidy()
    assert disk.list_dir(DATA_DIR) == [], "there was nothing to tidy"


# -- damage -----------------------------------------------------------------------------------------------------------


def test_log_starts_that_cannot_be_read_end_the_start(disk: MemoryDisk) -> None:
    disk.write_whole(f"{DATA_DIR}/{LOG_START_OFFSETS}", b"0\n2\norders 0 1\n")
    with pytest.raises(CorruptCheckpoint, match=LOG_START_OFFSETS):
        loaded(disk)


@pytest.mark.parametrize(
    ("which", "consequence"),
    [
        ("recovery_points", "every log is read as a whole"),
        ("high_watermarks", "they begin at the log starts"),
        ("cleaned", "every log counts as not compacted"),
    ],
)
@pytest.mark.parametrize("content", [b"\xff", b"1\n0\n", b"0\n1\norders 0\n", b"0\n1\norders 0 x\n", b"0\n9\n"])
def test_the_others_are_done_without(
    disk: MemoryDisk, which: str, consequence: str, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    checkpoints = Checkpoints(disk, DATA_DIR)
    for other in FILES:
        write(checkpoints, other, OFFSETS)
    disk.write_whole(f"{DATA_DIR}/{FILES[which]}", content)
    again = loaded(disk)
    assert consequence in caplog.text
    for other in FILES:
        assert offsets_of(again, other) == ({} if other == which else OFFSETS)


def test_a_flipped_bit_is_noticed_or_changes_one_entry() -> None:
    """There is no checksum in Kafka's format: a digit that becomes another one is believed, and so is another name."""
    changed = 0
    for position in range(len(GOLDEN)):
        for bit in range(8):
            disk = new_disk()
            broken = GOLDEN[:position] + bytes([GOLDEN[position] ^ 1 << bit]) + GOLDEN[position + 1 :]
            disk.write_whole(f"{DATA_DIR}/{LOG_START_OFFSETS}", broken)
            try:
                found = loaded(disk).log_starts
            except CorruptCheckpoint:
                continue
            assert len({*found.items()} ^ {*OFFSETS.items()}) <= 2, broken
            assert all(offset >= 0 for offset in found.values()), broken
            changed += found != OFFSETS
    assert changed


# -- the marker -------------------------------------------------------------------------------------------------------


def test_the_marker_is_taken_away_by_the_start_that_finds_it() -> None:
    synced: list[str] = []

    class Watched(MemoryDisk):
        def sync_dir(self, path: str) -> None:
            synced.append(path)
            super().sync_dir(path)

    disk = Watched()
    disk.make_dir(DATA_DIR)
    Checkpoints(disk, DATA_DIR).mark_clean()
    assert disk.read_whole(f"{DATA_DIR}/{CLEAN_SHUTDOWN}") == b'{"version": 0, "brokerEpoch": -1}'
    assert loaded(disk).was_clean
    assert not disk.exists(f"{DATA_DIR}/{CLEAN_SHUTDOWN}")
    assert synced == [DATA_DIR], "or a loss of power would bring it back"
    assert not loaded(disk).was_clean


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff\x00", b'{"version":0,"brokerEpoch":7}'])
def test_the_marker_counts_whatever_it_holds(disk: MemoryDisk, content: bytes) -> None:
    """Before KIP-966 it was empty. No flipped bit can make a clean stop of a crash, or the other way round."""
    disk.write_whole(f"{DATA_DIR}/{CLEAN_SHUTDOWN}", content)
    assert loaded(disk).was_clean


def test_a_start_that_cannot_read_the_log_starts_leaves_the_marker_for_the_next(disk: MemoryDisk) -> None:
    Checkpoints(disk, DATA_DIR).mark_clean()
    disk.write_whole(f"{DATA_DIR}/{LOG_START_OFFSETS}", b"damaged")
    with pytest.raises(CorruptCheckpoint):
        loaded(disk)
    disk.remove(f"{DATA_DIR}/{LOG_START_OFFSETS}")
    assert loaded(disk).was_clean
