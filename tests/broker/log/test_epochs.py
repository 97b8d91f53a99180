"""The epoch cache: KIP-101's answers, written before they count, and the same after a restart."""

from collections.abc import Callable

import pytest

from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.log.epochs import EpochCache, EpochEntry
from tests.broker.log.logs import FaultyDisk, full


def cache(disk: MemoryDisk, *entries: tuple[int, int]) -> EpochCache:
    disk.make_dir("d")
    epochs = EpochCache(disk, "d")
    for epoch, start_offset in entries:
        epochs.assign(epoch, start_offset)
    epochs.flush()
    return epochs


def restarted(disk: MemoryDisk) -> list[tuple[int, int]]:
    return [(entry.epoch, entry.start_offset) for entry in EpochCache(disk, "d").entries]


def test_epochs_are_kept_in_kafkas_checkpoint() -> None:
    disk = MemoryDisk()
    cache(disk, (0, 0), (3, 10), (4, 25))
    assert disk.read_whole("d/leader-epoch-checkpoint") == b"0\n3\n0 0\n3 10\n4 25\n"
    assert restarted(disk) == [(0, 0), (3, 10), (4, 25)]


def test_an_epoch_begins_once() -> None:
    disk = MemoryDisk()
    epochs = cache(disk, (1, 10))
    epochs.assign(1, 12)
    assert epochs.entries == (EpochEntry(1, 10),)
    epochs.assign(1, 8)
    assert epochs.entries == (EpochEntry(1, 8),), "it began earlier than was known"


def test_an_epoch_without_records_gives_way_to_the_next() -> None:
    assert restarted_after((1, 10), (2, 10)) == [(2, 10)]
    assert restarted_after((1, 5), (2, 10), (3, 10)) == [(1, 5), (3, 10)]


def test_entries_that_contradict_a_new_one_go() -> None:
    assert restarted_after((1, 5), (2, 10), (3, 20), (2, 7)) == [(1, 5), (2, 7)]
    assert restarted_after((1, 5), (2, 10), (3, 20), (4, 6)) == [(1, 5), (4, 6)]


def restarted_after(*entries: tuple[int, int]) -> list[tuple[int, int]]:
    disk = MemoryDisk()
    cache(disk, *entries)
    return restarted(disk)


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (-1, (-1, -1)),
        (0, (0, 10)),  # older than all that is known: its own number, and where the first known one begins
        (1, (1, 20)),
        (2, (2, 30)),
        (3, (2, 30)),  # there was no epoch 3
        (4, (2, 30)),
        (5, (5, 99)),  # the newest ends where the log ends
        (6, (-1, -1)),
    ],
)
def test_end_offset_for_answers_as_kip_101_says(asked: int, answer: tuple[int, int]) -> None:
    assert cache(MemoryDisk(), (1, 10), (2, 20), (5, 30)).end_offset_for(asked, 99) == answer


def test_without_epochs_nothing_is_known() -> None:
    epochs = cache(MemoryDisk())
    assert epochs.latest == -1
    assert epochs.end_offset_for(0, 5) == (-1, -1)
    assert epochs.end_offset_for(-1, 5) == (-1, -1)
    assert epochs.epoch_for(0) == -1


def test_epoch_for_an_offset() -> None:
    epochs = cache(MemoryDisk(), (1, 10), (2, 20))
    assert [epochs.epoch_for(offset) for offset in (9, 10, 19, 20, 1000)] == [-1, 1, 1, 2, 2]
    assert epochs.latest == 2


@pytest.mark.parametrize(
    ("end_offset", "kept"),
    [(31, 3), (30, 2), (21, 2), (20, 1), (10, 0), (0, 0)],
)
def test_truncation_from_the_end_is_durable(end_offset: int, kept: int) -> None:
    disk = MemoryDisk()
    epochs = cache(disk, (1, 10), (2, 20), (5, 30))
    epochs.truncate_from_end(end_offset)
    assert restarted(disk) == [(1, 10), (2, 20), (5, 30)][:kept] == [tuple(entry) for entry in epochs.entries]


@pytest.mark.parametrize(
    ("start_offset", "left"),
    [
        (5, [(1, 10), (2, 20), (5, 30)]),
        (10, [(1, 10), (2, 20), (5, 30)]),
        (15, [(1, 15), (2, 20), (5, 30)]),
        (20, [(2, 20), (5, 30)]),
        (29, [(2, 29), (5, 30)]),
        (99, [(5, 99)]),
    ],
)
def test_truncation_from_the_start_keeps_the_epoch_of_the_log_start(
    start_offset: int, left: list[tuple[int, int]]
) -> None:
    epochs = cache(MemoryDisk(), (1, 10), (2, 20), (5, 30))
    epochs.truncate_from_start(start_offset)
    assert [tuple(entry) for entry in epochs.entries] == left


def test_what_cannot_be_written_has_not_happened() -> None:
    disk = FaultyDisk()
    epochs = cache(disk, (1, 10), (2, 20))
    disk.fail_at(0, full, for_good=True)
    changes: list[Callable[[], None]] = [lambda: epochs.truncate_from_end(0), epochs.clear]
    for change in changes:
        with pytest.raises(OSError):
            change()
        assert epochs.latest == 2
    disk.heal()
    epochs.clear()
    assert epochs.latest == -1
    assert restarted(disk) == []


def test_an_epoch_is_written_by_the_next_flush_that_can() -> None:
    """To begin it costs nothing: the batches say it, too."""
    disk = FaultyDisk()
    epochs = cache(disk, (1, 10))
    disk.fail_at(0, full, for_good=True)
    epochs.assign(3, 30)
    assert epochs.latest == 3
    with pytest.raises(OSError):
        epochs.flush()
    disk.heal()
    assert restarted(disk) == [(1, 10)]
    epochs.flush()
    assert restarted(disk) == [(1, 10), (3, 30)]
    disk.fail_at(0, full, for_good=True)
    epochs.flush()
    epochs.assign(3, 30)
    epochs.flush()


@pytest.mark.parametrize("content", [b"nonsense", b"0\n1\n1 2 3\n", b"0\n1\na b\n", b"\xff"])
def test_a_corrupt_checkpoint_counts_as_none_and_is_logged(content: bytes, caplog: pytest.LogCaptureFixture) -> None:
    disk = MemoryDisk()
    disk.make_dir("d")
    disk.write_whole("d/leader-epoch-checkpoint", content)
    assert restarted(disk) == []
    assert "taken from the batches" in caplog.text
