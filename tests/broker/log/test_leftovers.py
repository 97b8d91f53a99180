"""What an interrupted removal, compaction or rename left behind is finished, at whatever step it was interrupted.

A directory is made by hand and tidied; then again, with a process that dies after each step of the tidying.
"""

from collections.abc import Mapping

import pytest

from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.log.leftovers import UNSYNCED, tidy
from tests.broker.log.logs import T0, Crash, FaultyDisk, batch, stored

DIRECTORY = "data/orders-0"


def name(base_offset: int, suffix: str = ".log") -> str:
    return f"{base_offset:020d}{suffix}"


def one(offset: int, value: bytes = b"v") -> bytes:
    return stored(batch(T0, value=value), offset)


def disk_with(files: Mapping[str, bytes]) -> FaultyDisk:
    disk = FaultyDisk()
    disk.make_dir(DIRECTORY)
    for file, content in files.items():
        disk.write_whole(f"{DIRECTORY}/{file}", content)
    return disk


def files_of(disk: MemoryDisk) -> dict[str, bytes]:
    return {file: disk.read_whole(f"{DIRECTORY}/{file}") for file in disk.list_dir(DIRECTORY)}


SEGMENTS = {
    name(base, suffix): one(base) if suffix == ".log" else b""
    for base in (0, 10, 20)
    for suffix in (".log", ".index", ".timeindex")
}


def test_what_belongs_to_a_log_is_told_apart() -> None:
    files = {
        **SEGMENTS,
        name(10, ".txnindex"): b"",
        name(10, ".snapshot"): b"s",
        name(25, ".snapshot"): b"s",
        "leader-epoch-checkpoint": b"",
        "partition.metadata": b"",
    }
    disk = disk_with(files)
    contents = tidy(disk, DIRECTORY)
    assert contents.base_offsets == [0, 10, 20]
    assert contents.snapshots == [10, 25]
    assert contents.sizes == {file: len(content) for file, content in files.items()}
    assert not contents.is_unsynced
    assert files_of(disk) == files


def test_an_empty_directory_is_an_empty_log() -> None:
    contents = tidy(disk_with({}), DIRECTORY)
    assert (contents.base_offsets, contents.snapshots, contents.sizes) == ([], [], {})


def test_the_sign_of_a_failed_sync_is_seen_and_stays(caplog: pytest.LogCaptureFixture) -> None:
    """Whoever mends the log removes it."""
    disk = disk_with({**SEGMENTS, UNSYNCED: b"why"})
    assert tidy(disk, DIRECTORY).is_unsynced
    assert disk.exists(f"{DIRECTORY}/{UNSYNCED}")
    assert "left alone" not in caplog.text


FOREIGN = [
    "0.log",
    name(1, ".log.bak"),
    "x.log",
    "9" * 20 + ".log",
    "notes.deleted",
    name(3, ".log.cleaned.swap"),
    name(3, ".log.0123456789abcde.cleaned"),
    name(3, ".log.0123456789abcdef.swap"),
    name(3, ".log.0123456789ABCDEF.cleaned"),
    name(10, ".snapshot.swap"),
    chr(0x663) * 20 + ".log",
]


def test_other_files_are_left_alone_and_named_once(caplog: pytest.LogCaptureFixture) -> None:
    disk = disk_with({**SEGMENTS, **dict.fromkeys(FOREIGN, b"not ours")})
    directories = ["kept", name(777, ".log"), name(778, ".log.deleted"), name(779, ".log.swap")]
    for directory in directories:
        disk.make_dir(f"{DIRECTORY}/{directory}")
    contents = tidy(disk, DIRECTORY)
    assert (contents.base_offsets, contents.snapshots) == ([0, 10, 20], [])
    (line,) = [record.getMessage() for record in caplog.records if "left alone" in record.getMessage()]
    for file in (*FOREIGN, *directories):
        assert file in line
        assert disk.exists(f"{DIRECTORY}/{file}")


@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex", ".txnindex", ".snapshot"])
@pytest.mark.parametrize("ending", [".deleted", ".cleaned", ".0123456789abcdef.cleaned"])
def test_removals_are_finished_and_compactions_that_were_not_are_forgotten(suffix: str, ending: str) -> None:
    disk = disk_with({**SEGMENTS, name(0, suffix) + ending: b"x", name(99, suffix) + ending: b"x"})
    tidy(disk, DIRECTORY)
    assert files_of(disk) == SEGMENTS


def test_indexes_without_their_log_and_halves_of_small_files_go() -> None:
    disk = disk_with(
        {
            **SEGMENTS,
            **{name(99, suffix): b"x" for suffix in (".index", ".timeindex", ".txnindex")},
            **{name(10, f"{suffix}.tmp"): b"x" for suffix in (".log", ".txnindex")},
            "leader-epoch-checkpoint.tmp": b"0\n",
            "partition.metadata.tmp": b"ver",
        }
    )
    contents = tidy(disk, DIRECTORY)
    assert files_of(disk) == SEGMENTS
    assert not [file for file in contents.sizes if file not in SEGMENTS]


def test_a_snapshot_needs_no_segment() -> None:
    disk = disk_with({**SEGMENTS, name(15, ".snapshot"): b"s"})
    assert tidy(disk, DIRECTORY).snapshots == [15]


# -- compactions ------------------------------------------------------------------------------------------------------

NEW = one(0, b"compacted") + one(13, b"compacted")
SWAP = {
    name(0, ".log.swap"): NEW,
    name(0, ".index.swap"): b"",
    name(0, ".timeindex.swap"): b"",
    name(0, ".txnindex.swap"): b"t",
}
SWAPPED = {
    name(0): NEW,
    name(0, ".index"): b"",
    name(0, ".timeindex"): b"",
    name(0, ".txnindex"): b"t",
    **{file: content for file, content in SEGMENTS.items() if file.startswith(name(20, ""))},
}


def test_a_compaction_that_came_to_its_end_takes_the_place_of_what_it_was_made_of() -> None:
    """What begins within its offsets goes; what comes behind them stays."""
    disk = disk_with({**SEGMENTS, name(0, ".txnindex"): b"old", name(10, ".txnindex"): b"old", **SWAP})
    contents = tidy(disk, DIRECTORY)
    assert contents.base_offsets == [0, 20]
    assert files_of(disk) == SWAPPED
    assert contents.sizes == {file: len(content) for file, content in SWAPPED.items()}


def test_of_a_compaction_that_left_nothing_an_empty_segment_takes_the_place() -> None:
    disk = disk_with({**SEGMENTS, name(0, ".log.swap"): b"", name(0, ".index.swap"): b""})
    tidy(disk, DIRECTORY)
    assert files_of(disk)[name(0)] == b""
    assert disk.exists(f"{DIRECTORY}/{name(10)}")


def test_a_segment_of_which_only_the_first_record_was_kept_goes_too() -> None:
    disk = disk_with({**SEGMENTS, name(0, ".log.swap"): one(0) + one(10)})
    assert tidy(disk, DIRECTORY).base_offsets == [0, 20]


def test_two_of_them() -> None:
    disk = disk_with({**SEGMENTS, **SWAP, name(20, ".log.swap"): one(22, b"too")})
    assert tidy(disk, DIRECTORY).base_offsets == [0, 20]
    files = files_of(disk)
    assert files.pop(name(20)) == one(22, b"too")
    assert files == {file: content for file, content in SWAPPED.items() if not file.startswith(name(20, ""))}


@pytest.mark.parametrize("damaged", [NEW[:-1], NEW + b"\0", b"\xff" * 90])
def test_one_that_is_damaged_is_kept_aside_and_what_it_was_made_of_stays(
    damaged: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    disk = disk_with({**SEGMENTS, **SWAP, name(0, ".log.swap"): damaged})
    assert tidy(disk, DIRECTORY).base_offsets == [0, 10, 20]
    assert files_of(disk) == {**SEGMENTS, name(0, ".log.swap.damaged"): damaged}
    assert "kept aside" in caplog.text


LEFT = {
    "a compaction under way": {
        **SEGMENTS,
        name(0, ".log.0123456789abcdef.cleaned"): NEW,
        name(0, ".index.cleaned"): b"x",
    },
    "a compaction that is done": {**SEGMENTS, name(0, ".txnindex"): b"old", **SWAP},
    "a removal": {**SEGMENTS, name(5, ".log.deleted"): one(5), name(5, ".index"): b"", name(5, ".timeindex"): b""},
}


@pytest.mark.parametrize("what", list(LEFT))
def test_a_process_that_dies_while_it_tidies_up_leaves_it_to_the_next(what: str) -> None:
    """After each step: the next one comes to the same end, and at each moment the records are there once."""
    whole = disk_with(LEFT[what])
    expected = tidy(whole, DIRECTORY)
    for step in range(100):
        disk = disk_with(LEFT[what])
        disk.fail_at(step, Crash, for_good=True)
        try:
            tidy(disk, DIRECTORY)
        except Crash:
            disk.heal()
        else:
            assert step > 1
            break
        assert tidy(disk, DIRECTORY) == expected, step
        assert files_of(disk) == files_of(whole), step
    else:
        pytest.fail("it never came to an end")
