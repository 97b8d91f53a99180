"""What a loss of power leaves of renamings from a directory to another: all of one, or nothing of it."""

import random

import pytest

from odradek.testing.sim.world.losing_disk import ALL_IS_LOST, Fate, LosingDisk

FATES = [Fate(random.Random(seed)) for seed in range(20)]


def two_directories() -> LosingDisk:
    disk = LosingDisk()
    for path in ("from/below", "to"):
        disk.make_dir(path)
    disk.sync_dir("")
    disk.sync_dir("from")
    disk.write_whole("from/file", b"file")
    disk.write_whole("from/below/deep", b"deep")
    return disk


def test_a_file_that_moves_is_in_one_of_both_directories() -> None:
    found: dict[bool, None] = {}
    for fate in FATES:
        disk = two_directories()
        disk.rename("from/file", "to/other")
        after = disk.after_power_failure(fate)
        assert after.exists("from/file") != after.exists("to/other")
        found[after.exists("to/other")] = None
    assert len(found) == 2, "either happened"


@pytest.mark.parametrize("synced", ["from", "to"])
def test_a_renaming_is_safe_once_either_directory_is_synced(synced: str) -> None:
    disk = two_directories()
    disk.open("from/new").close()  # a change of the directory that is not safe yet
    disk.rename("from/file", "to/other")
    disk.rename("from/new", "to/new")
    disk.sync_dir(synced)
    after = disk.after_power_failure(ALL_IS_LOST)
    assert (after.list_dir("from"), after.list_dir("to")) == (["below"], ["new", "other"])
    assert after.read_whole("to/other") == b"file"
    disk.sync_dir("from")
    disk.sync_dir("to")
    after = disk.after_power_failure(ALL_IS_LOST)
    assert (after.list_dir("from"), after.list_dir("to")) == (["below"], ["new", "other"])


def test_a_directory_moves_with_what_is_safe_in_it() -> None:
    disk = two_directories()
    disk.open("from/below/fresh").append([b"not synced"])
    disk.rename("from", "to/moved")
    disk.write_whole("to/moved/below/later", b"later")
    lost = disk.after_power_failure(ALL_IS_LOST)
    assert lost.list_dir("from/below") == ["deep", "fresh", "later"], "write_whole has synced the directory"
    assert lost.list_dir("to") == []
    disk.sync_dir("to")
    safe = disk.after_power_failure(ALL_IS_LOST)
    assert safe.list_dir("") == ["to"]
    assert safe.read_whole("to/moved/below/deep") == b"deep"
    assert safe.read_whole("to/moved/below/fresh") == b""
    assert safe.read_whole("to/moved/below/later") == b"later"
