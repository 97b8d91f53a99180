"""What a device holds when power fails: what was synced, and of the rest whatever the outcome says."""

import random
from collections.abc import Callable

import pytest

from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.testing.sim.world.device import LosingDevice
from odradek.testing.sim.world.losing_disk import ALL_IS_KEPT, ALL_IS_LOST, Fate


def disk_with_directory() -> LosingDevice:
    disk = LosingDevice()
    disk.make_dir("data")
    disk.sync_dir("")
    return disk


def tree(disk: MemoryDisk, path: str = "") -> dict[str, object]:
    """All that is there: files as bytes, directories as dicts."""
    found: dict[str, object] = {}
    for name in disk.list_dir(path):
        below = f"{path}/{name}"
        found[name] = tree(disk, below) if disk.is_dir(below) else disk.read_whole(below)
    return found


def lost(disk: LosingDevice) -> dict[str, object]:
    return tree(disk.after_power_failure(ALL_IS_LOST))


def kept(disk: LosingDevice) -> dict[str, object]:
    return tree(disk.after_power_failure(ALL_IS_KEPT))


def test_what_was_synced_is_safe_and_the_rest_is_not() -> None:
    disk = disk_with_directory()
    file = disk.open("data/log")
    file.append([b"safe"])
    file.sync()
    disk.sync_dir("data")
    file.append([b", and not"])
    assert lost(disk) == {"data": {"log": b"safe"}}
    assert kept(disk) == {"data": {"log": b"safe, and not"}}


def test_a_file_whose_name_was_not_synced_is_gone() -> None:
    disk = disk_with_directory()
    file = disk.open("data/log")
    file.append([b"synced"])
    file.sync()
    assert lost(disk) == {"data": {}}


def test_a_cut_that_was_not_synced_may_not_have_happened() -> None:
    disk = disk_with_directory()
    file = disk.open("data/log")
    file.append([b"0123456789"])
    file.sync()
    disk.sync_dir("data")
    file.truncate(4)
    file.append([b"ab"])
    assert lost(disk) == {"data": {"log": b"0123456789"}}
    file.truncate(2)
    assert lost(disk) == {"data": {"log": b"0123456789"}}
    file.sync()
    assert lost(disk) == {"data": {"log": b"01"}}


def test_what_a_failed_sync_was_about_is_lost_even_when_a_later_one_succeeds() -> None:
    disk = disk_with_directory()
    file = disk.open("data/log")
    file.append([b"safe"])
    file.sync()
    disk.sync_dir("data")
    file.append([b"gone"])
    disk.sync_failed(disk.content("data/log"))
    file.append([b"safe again"])
    file.sync()
    assert disk.read_whole("data/log") == b"safegonesafe again"
    assert lost(disk) == {"data": {"log": b"safe\0\0\0\0safe again"}}
    file.truncate(4)
    file.append([b"new"])
    file.sync()
    assert lost(disk) == {"data": {"log": b"safenew"}}


def test_whole_files_are_the_old_or_the_new_one() -> None:
    disk = disk_with_directory()
    disk.write_whole("data/checkpoint", b"old")
    assert lost(disk) == {"data": {"checkpoint": b"old"}}
    for share in (0.0, 0.5, 1.0):
        for seed in range(20):
            again = disk_with_directory()
            again.write_whole("data/checkpoint", b"old")
            file = again.open("data/checkpoint.tmp")
            file.append([b"new"])
            file.sync()
            again.rename("data/checkpoint.tmp", "data/checkpoint")
            found = tree(again.after_power_failure(Fate(random.Random(seed), share)))["data"]
            assert isinstance(found, dict)
            assert found["checkpoint"] in (b"old", b"new")


def test_a_directory_keeps_what_it_holds_when_its_new_name_is_lost() -> None:
    disk = disk_with_directory()
    disk.make_dir("data/orders-0")
    file = disk.open("data/orders-0/log")
    file.append([b"x"])
    file.sync()
    disk.sync_dir("data/orders-0")
    disk.sync_dir("data")
    disk.rename("data/orders-0", "data/orders-0-delete")
    assert lost(disk) == {"data": {"orders-0": {"log": b"x"}}}
    assert kept(disk) == {"data": {"orders-0-delete": {"log": b"x"}}}
    disk.sync_dir("data")
    assert lost(disk) == {"data": {"orders-0-delete": {"log": b"x"}}}


def test_a_removed_directory_may_come_back_in_part() -> None:
    disk = disk_with_directory()
    disk.make_dir("data/orders-0")
    for name in ("a", "b"):
        disk.open(f"data/orders-0/{name}").close()
    disk.sync_dir("data/orders-0")
    disk.sync_dir("data")
    disk.remove_tree("data/orders-0")
    assert tree(disk) == {"data": {}}
    assert lost(disk) == {"data": {"orders-0": {"a": b"", "b": b""}}}
    found = [tree(disk.after_power_failure(Fate(random.Random(seed)))) for seed in range(30)]
    assert {"data": {"orders-0": {"b": b""}}} in found
    disk.sync_dir("data")
    assert lost(disk) == {"data": {}}


def test_room_that_was_preallocated_is_zeros_afterwards() -> None:
    disk = disk_with_directory()
    file = disk.open("data/log")
    file.append([b"x"])
    file.preallocate(4)
    file.sync()
    disk.sync_dir("data")
    assert lost(disk) == {"data": {"log": b"x\0\0\0"}}


def test_the_next_process_finds_what_the_last_one_wrote_synced_or_not() -> None:
    disk = disk_with_directory()
    file = disk.open("data/log")
    file.append([b"safe"])
    file.sync()
    disk.sync_dir("data")
    file.append([b"r"])
    after = LosingDevice(disk)
    assert after.read_whole("data/log") == b"safer"
    assert lost(after) == {"data": {"log": b"safe"}}
    again = after.open("data/log")
    again.sync()
    assert lost(disk) == {"data": {"log": b"safer"}}


def remove(disk: LosingDevice) -> None:
    disk.remove("data/log")


def rename(disk: LosingDevice) -> None:
    disk.rename("data/log", "data/new")


@pytest.mark.parametrize("work", [remove, rename])
def test_a_change_of_a_name_is_whole(work: Callable[[LosingDevice], None]) -> None:
    for seed in range(20):
        disk = disk_with_directory()
        disk.write_whole("data/log", b"x" * 2_000)
        before = tree(disk)
        work(disk)
        assert tree(disk.after_power_failure(Fate(random.Random(seed)))) in (before, tree(disk))
