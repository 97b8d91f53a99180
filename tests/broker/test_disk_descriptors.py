"""The table of descriptors: who gives way, what happens when the process has none left, and what threads may do."""

import errno
import os
import sys
import threading
from pathlib import Path

import pytest

from broker.disk import FileDisk

os_open, os_dup = os.open, os.dup


def test_at_most_so_many_descriptors_are_open_and_evicted_files_go_on(tmp_path: Path) -> None:
    disk = FileDisk(descriptors_max=3)
    before = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0
    files = [disk.open(f"{tmp_path}/{number}") for number in range(20)]
    for round_ in range(3):
        for number, file in enumerate(files):
            file.append([b"%d:%d " % (number, round_)])
            assert disk.open_descriptors <= 3
    if sys.platform == "linux":
        assert len(os.listdir("/proc/self/fd")) == before + 3
    for number, file in enumerate(files):
        assert file.pread(100, 0) == b"%d:0 %d:1 %d:2 " % (number, number, number)
    for file in files:
        file.close()
    assert disk.open_descriptors == 0
    if sys.platform == "linux":
        assert len(os.listdir("/proc/self/fd")) == before


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
    thread = threading.Thread(target=first.sync)
    thread.start()
    thread.join()
    assert disk.open_descriptors == 1
    second.append([b"y"])
    assert second.pread(2, 0) == b"xy"


def test_a_helper_thread_never_touches_the_descriptor_in_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop's thread may close it in the same moment, and its number may be another file's then."""
    duplicated: list[int] = []

    def watched(descriptor: int) -> int:
        duplicated.append(descriptor)
        return os_dup(descriptor)

    file = FileDisk().open(f"{tmp_path}/f")
    monkeypatch.setattr(os, "dup", watched)
    thread = threading.Thread(target=file.sync)
    thread.start()
    thread.join()
    assert duplicated == []
    file.sync()
    assert len(duplicated) == 1


@pytest.mark.parametrize("refusals", [1, 2])
def test_files_make_room_for_a_second_descriptor_too(
    refusals: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even by the very one that was to be duplicated: then the file is opened by its path."""
    disk = FileDisk()
    files = [disk.open(f"{tmp_path}/{number}") for number in range(2)]
    refused = [OSError(errno.EMFILE, os.strerror(errno.EMFILE))] * refusals

    def crowded(descriptor: int) -> int:
        if refused:
            raise refused.pop()
        return os_dup(descriptor)

    monkeypatch.setattr(os, "dup", crowded)
    syncer = files[1].syncer()
    assert disk.open_descriptors == 2 - refusals
    synced: list[int] = []

    def watched(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_ino)

    monkeypatch.setattr(os, "fdatasync", watched)
    syncer()
    assert synced == [os.stat(files[1].path).st_ino]


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
    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
    assert [error.errno for error in errors] == [errno.EMFILE]
    assert disk.open_descriptors == 1
