"""Real files where they fail: full disks, files that vanish, two processes on one lock; and how files are opened."""

import errno
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path

import pytest

from odradek.broker.disk.disk import LockHeld
from odradek.broker.disk.file_disk import FileDisk
from odradek.protocol.primitives import Buffer
from processes.child_process import REPOSITORY
from tests.descriptors import open_below

pwritev = os.pwritev


def full() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("step", ["pwritev", "fsync", "replace"])
def test_a_write_whole_that_fails_leaves_the_old_content_alone(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = FileDisk()
    disk.write_whole(f"{tmp_path}/f", b"old")

    def failing(*_: object) -> int:
        raise full()

    monkeypatch.setattr(os, step, failing)
    with pytest.raises(OSError):
        disk.write_whole(f"{tmp_path}/f", b"new")
    assert disk.list_dir(str(tmp_path)) == ["f"]
    assert disk.read_whole(f"{tmp_path}/f") == b"old"


def test_a_directory_that_is_read_as_a_file_is_named_and_stays_open_nowhere(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError) as caught:
        FileDisk().read_whole(str(tmp_path))
    assert caught.value.filename == str(tmp_path)
    assert str(tmp_path) in str(caught.value)
    assert open_below(tmp_path) == []


def test_write_whole_syncs_the_content_before_the_rename_and_the_directory_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    fsync, replace = os.fsync, os.replace

    def watched_fsync(descriptor: int) -> None:
        steps.append("fsync " + ("directory" if os.path.isdir(f"/proc/self/fd/{descriptor}") else "file"))
        fsync(descriptor)

    def watched_replace(source: str, target: str) -> None:
        steps.append("rename")
        assert Path(source).read_bytes() == b"content"
        replace(source, target)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(os, "replace", watched_replace)
    FileDisk().write_whole(f"{tmp_path}/f", b"content")
    assert steps == ["fsync file", "rename", "fsync directory"]


def test_a_leftover_of_an_interrupted_write_whole_does_not_leak_into_the_next(tmp_path: Path) -> None:
    (tmp_path / "f.tmp").write_bytes(b"the beginning of something long")
    FileDisk().write_whole(f"{tmp_path}/f", b"short")
    assert (tmp_path / "f").read_bytes() == b"short"


@pytest.mark.parametrize("written", range(8))
def test_a_file_that_runs_out_of_room_while_it_is_made_is_removed(
    written: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = [written]

    def little(descriptor: int, parts: Sequence[Buffer], position: int) -> int:
        if not left[0]:
            raise full()
        data = b"".join(parts)[: left[0]]
        left[0] -= len(data)
        return pwritev(descriptor, [data], position)

    monkeypatch.setattr(os, "pwritev", little)
    disk = FileDisk()
    with pytest.raises(OSError) as caught:
        disk.write_new(f"{tmp_path}/f", [b"012", b"", b"34567"])
    assert caught.value.errno == errno.ENOSPC
    assert disk.list_dir(str(tmp_path)) == []
    left[0] = 8
    assert disk.write_new(f"{tmp_path}/f", [b"012", b"", b"34567"]) == 8, "short writes are completed"
    assert disk.read_whole(f"{tmp_path}/f") == b"01234567"


def test_write_new_syncs_what_it_wrote_and_removes_what_it_cannot_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = FileDisk()
    disk.write_new(f"{tmp_path}/other", [b"x"])
    synced: list[tuple[int, int]] = []

    def watched(descriptor: int) -> None:
        status = os.fstat(descriptor)
        synced.append((status.st_ino, status.st_size))
        if len(synced) == 2:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fdatasync", watched)
    assert disk.write_new(f"{tmp_path}/f", [b"ab", b"cd"]) == 4
    assert synced == [((tmp_path / "f").stat().st_ino, 4)]
    with pytest.raises(OSError) as caught:
        disk.write_new(f"{tmp_path}/g", [b"ab"])
    assert caught.value.errno == errno.EIO
    assert disk.list_dir(str(tmp_path)) == ["f", "other"]


def test_write_new_removes_the_file_when_it_is_interrupted(tmp_path: Path) -> None:
    def interrupted() -> Iterator[bytes]:
        yield b"some"
        assert (tmp_path / "f").read_bytes() == b"some", "each part is written before the next is asked for"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        FileDisk().write_new(f"{tmp_path}/f", interrupted())
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_removed_either_does_not_hide_the_first_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stuck(path: str) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)

    def failing(*_: object) -> int:
        raise full()

    monkeypatch.setattr(os, "pwritev", failing)
    monkeypatch.setattr(os, "remove", stuck)
    with pytest.raises(OSError) as caught:
        FileDisk().write_new(f"{tmp_path}/f", [b"x"])
    assert caught.value.errno == errno.ENOSPC


def test_sizes_leaves_out_what_is_no_file_and_what_vanishes_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("b", "a", "gone"):
        (tmp_path / name).write_bytes(name.encode())
    (tmp_path / "directory").mkdir()
    (tmp_path / "link").symlink_to("b")
    (tmp_path / "broken").symlink_to("missing")
    os.mkfifo(tmp_path / "pipe")
    scandir = os.scandir

    def late(path: str) -> object:
        with scandir(path) as entries:
            found = list(entries)
        (tmp_path / "gone").unlink()
        return nullcontext(found)

    monkeypatch.setattr(os, "scandir", late)
    assert list(FileDisk().sizes(str(tmp_path)).items()) == [("a", 1), ("b", 1), ("link", 1)]


def test_a_file_whose_size_is_known_is_opened_without_asking_the_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "f").write_bytes(b"0123")
    disk = FileDisk()
    asked: list[str] = []

    def watched(path: str) -> os.stat_result:
        asked.append(path)
        return stat(path)

    stat = os.stat
    monkeypatch.setattr(os, "stat", watched)
    known = disk.open(f"{tmp_path}/f", 4)
    assert asked == []
    asking = disk.open(f"{tmp_path}/f")
    assert asked == [f"{tmp_path}/f"], "and one look at any other"
    assert disk.open_descriptors == 0
    for file in (known, asking):
        assert file.size_bytes == 4
        assert file.pread(10, 0) == b"0123"


def test_a_file_that_was_taken_for_granted_but_is_gone_is_not_made_again(tmp_path: Path) -> None:
    disk = FileDisk()
    file = disk.open(f"{tmp_path}/gone", 4)
    with pytest.raises(FileNotFoundError):
        file.append([b"x"])
    assert disk.list_dir(str(tmp_path)) == []


HOLDER = """
import sys
from odradek.broker.disk.file_disk import FileDisk
FileDisk().lock(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""


def test_a_lock_is_held_against_other_processes_until_they_are_killed(tmp_path: Path) -> None:
    path = f"{tmp_path}/.lock"
    command = [sys.executable, "-c", HOLDER, path]
    with subprocess.Popen(command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(LockHeld):
            FileDisk().lock(path)
        holder.kill()
        holder.wait()
        FileDisk().lock(path).release()


RECORD_HOLDER = """
import fcntl, sys
file = open(sys.argv[1], "a")
try:
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    print("refused", flush=True)
else:
    print("held", flush=True)
    sys.stdin.read()
"""


def test_the_lock_of_apache_kafka_is_respected_and_apache_kafka_respects_ours(tmp_path: Path) -> None:
    """FileChannel.tryLock takes a record lock (fcntl), which knows nothing of flock."""
    path = f"{tmp_path}/.lock"
    command = [sys.executable, "-c", RECORD_HOLDER, path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(LockHeld):
            FileDisk().lock(path)
        holder.kill()
    lock = FileDisk().lock(path)
    with pytest.raises(LockHeld):
        FileDisk().lock(path)  # which closes a descriptor of the file, and that must not cost us the lock
    assert subprocess.run(command, capture_output=True, check=True, timeout=60).stdout == b"refused\n"
    lock.release()


def test_a_lock_file_that_cannot_be_opened_is_no_held_lock(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        FileDisk().lock(f"{tmp_path}/missing/.lock")
