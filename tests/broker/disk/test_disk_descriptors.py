"""The table of descriptors: who gives way, what happens when the process has none left, and what threads may do."""

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from odradek.broker.disk.file_disk import FileDisk
from tests.descriptors import open_below

os_open = os.open


def watched_syncs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The descriptors that are synced from now on."""
    synced: list[int] = []
    monkeypatch.setattr(os, "fdatasync", synced.append)
    return synced


def in_a_thread(work: Callable[[], None]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def test_at_most_so_many_descriptors_are_open_and_evicted_files_go_on(tmp_path: Path) -> None:
    disk = FileDisk(descriptors_max=3)
    files = [disk.open(f"{tmp_path}/{number}") for number in range(20)]
    for round_ in range(3):
        for number, file in enumerate(files):
            file.append([b"%d:%d " % (number, round_)])
            assert disk.open_descriptors <= 3
    assert len(open_below(tmp_path)) == 3
    for number, file in enumerate(files):
        assert file.pread(100, 0) == b"%d:0 %d:1 %d:2 " % (number, number, number)
    for file in files:
        file.close()
    assert disk.open_descriptors == 0
    assert open_below(tmp_path) == []


def test_the_least_recently_used_file_is_evicted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = FileDisk(descriptors_max=2)
    hot, cold, new = (disk.open(f"{tmp_path}/{name}") for name in ("hot", "cold", "new"))
    for file in (hot, cold, hot, new):
        file.append([b"x"])
    opened: list[str] = []

    def watched(path: str, flags: int, mode: int = 0o777) -> int:
        opened.append(path)
        return os_open(path, flags, mode)

    monkeypatch.setattr(os, "open", watched)
    for file in (hot, new, cold):
        file.pread(1, 0)
    assert opened == [cold.path]


def test_an_evicted_file_that_was_removed_is_not_made_again(tmp_path: Path) -> None:
    disk = FileDisk(descriptors_max=1)
    gone = disk.open(f"{tmp_path}/gone")
    disk.open(f"{tmp_path}/other")
    disk.remove(gone.path)
    with pytest.raises(FileNotFoundError):
        gone.append([b"x"])
    assert disk.list_dir(str(tmp_path)) == ["other"]


def test_files_not_used_yet_hold_no_descriptor(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / str(number)).write_bytes(b"old")
    disk = FileDisk()
    files = [disk.open(f"{tmp_path}/{number}") for number in range(5)]
    assert disk.open_descriptors == 0
    assert [file.size_bytes for file in files] == [3] * 5
    assert files[3].pread(3, 0) == b"old"
    assert disk.open_descriptors == 1


def test_when_the_process_runs_out_of_descriptors_files_give_theirs_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = FileDisk()
    files = [disk.open(f"{tmp_path}/{number}") for number in range(4)]
    room = [False, False, True]

    def crowded(path: str, flags: int, mode: int = 0o777) -> int:
        if not room.pop(0):
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), path)
        return os_open(path, flags, mode)

    monkeypatch.setattr(os, "open", crowded)
    new = disk.open(f"{tmp_path}/new")
    assert disk.open_descriptors == 3, "two files gave way to the new one"
    monkeypatch.setattr(os, "open", os_open)
    for file in (*files, new):
        file.append([b"x"])

    def none_left(path: str, flags: int, mode: int = 0o777) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), path)

    monkeypatch.setattr(os, "open", none_left)
    with pytest.raises(OSError) as caught:
        disk.open(f"{tmp_path}/refused")
    assert caught.value.errno == errno.EMFILE


def test_a_helper_thread_syncs_a_file_that_the_loops_thread_has_evicted(tmp_path: Path) -> None:
    """It takes a descriptor of its own, so that neither the cache nor anybody's descriptor changes under the other."""
    disk = FileDisk(descriptors_max=1)
    first, second = disk.open(str(tmp_path / "first")), disk.open(str(tmp_path / "second"))
    second.append([b"x"])  # evicts the first
    in_a_thread(first.sync)
    assert disk.open_descriptors == 1
    second.append([b"y"])
    assert second.pread(2, 0) == b"xy"


def test_a_helper_thread_never_touches_the_descriptor_in_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop's thread may let it go in the same moment, and its number may be another file's then."""
    synced = watched_syncs(monkeypatch)
    file = FileDisk().open(f"{tmp_path}/f")
    file.sync()
    in_a_thread(file.sync)
    file.sync()
    assert synced[0] == synced[2] != synced[1]


@pytest.mark.parametrize("how", ["evicted", "removed"])
def test_who_sends_a_file_holds_its_descriptor_whatever_becomes_of_the_file(how: str, tmp_path: Path) -> None:
    """A syncer does, too: test_disk_file.py."""
    disk = FileDisk(descriptors_max=1)
    file = disk.open(f"{tmp_path}/f")
    file.append([b"content"])
    part = file.slice(7, 0)
    assert part is not None
    if how == "evicted":
        disk.open(f"{tmp_path}/other").append([b"x"])
    else:
        file.close()
        disk.remove(file.path)
    others = [os.open(tmp_path, os.O_RDONLY) for _ in range(5)]  # who would get its number
    try:
        assert part.read() == b"content"
    finally:
        for descriptor in others:
            os.close(descriptor)


def test_sync_of_an_evicted_file_reopens_it_for_the_table_and_of_a_closed_one_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = FileDisk(descriptors_max=1)
    first, second = (disk.open(f"{tmp_path}/{number}") for number in range(2))
    second.append([b"x"])
    synced = watched_syncs(monkeypatch)
    first.sync()
    first.sync()
    assert synced[0] == synced[1]
    assert disk.open_descriptors == 1
    first.close()
    with pytest.raises(OSError) as caught:
        first.sync()
    assert caught.value.errno == errno.EBADF


def test_files_make_room_to_sync_an_evicted_one_if_a_shared_descriptor_frees_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = FileDisk(descriptors_max=2)
    evicted, shared, other = (disk.open(f"{tmp_path}/{number}") for number in range(3))
    syncers = [shared.syncer()]
    open_before = len(open_below(tmp_path))

    def crowded(path: str, flags: int, mode: int = 0o777) -> int:
        if disk.open_descriptors:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), path)
        return os_open(path, flags, mode)

    monkeypatch.setattr(os, "open", crowded)
    syncers.append(evicted.syncer())
    monkeypatch.setattr(os, "open", os_open)
    assert disk.open_descriptors == 1, "both others gave way: the first of them is still held by its syncer"
    assert len(open_below(tmp_path)) == open_before
    synced: list[int] = []
    monkeypatch.setattr(os, "fdatasync", lambda number: synced.append(os.fstat(number).st_ino))  # pyright: ignore
    for syncer in syncers:
        syncer()
    assert synced == [os.stat(file.path).st_ino for file in (shared, evicted)]
    other.append([b"x"])


def test_a_helper_thread_that_finds_no_descriptor_takes_none_from_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = FileDisk()
    file = disk.open(f"{tmp_path}/f")
    errors: list[OSError] = []

    def none_left(path: str, flags: int, mode: int = 0o777) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), path)

    def read() -> None:
        try:
            disk.read_range(file.path, 0, 1)
        except OSError as error:
            errors.append(error)

    monkeypatch.setattr(os, "open", none_left)
    in_a_thread(read)
    assert [error.errno for error in errors] == [errno.EMFILE]
    assert disk.open_descriptors == 1
