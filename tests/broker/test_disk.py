"""Real files where they fail: writes cut at every byte, full disks, too few descriptors, two processes on one lock."""

import errno
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from broker import disk as disk_module
from broker.disk import FileDisk, LockHeld, descriptor_budget, raise_descriptor_limit, socket_budget
from protocol.primitives import Buffer

PARTS = (b"0123", bytearray(b"456789ab"), memoryview(b"cdef"))
WHOLE = b"0123456789abcdef"

pwritev, ftruncate, os_open = os.pwritev, os.ftruncate, os.open


class Writes:
    """Stands in for os.pwritev: the next call writes `counts[0]` bytes only, and so on; an OSError is raised."""

    def __init__(self, *script: int | OSError) -> None:
        self.script = list(script)

    def __call__(self, descriptor: int, parts: Sequence[Buffer], position: int) -> int:
        step = self.script.pop(0) if self.script else None
        if isinstance(step, OSError):
            raise step
        data = b"".join(parts)
        return pwritev(descriptor, [data if step is None else data[:step]], position)


def full() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("written", range(1, len(WHOLE)))
def test_a_short_write_is_completed(written: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = FileDisk().open(f"{tmp_path}/f")
    file.append([b"before"])
    monkeypatch.setattr(os, "pwritev", Writes(written, 1))
    assert file.append(PARTS) == 6
    assert file.size_bytes == 22
    assert Path(file.path).read_bytes() == b"before" + WHOLE


@pytest.mark.parametrize("written", range(len(WHOLE)))
def test_a_write_that_fails_half_way_is_cut_off_at_once(
    written: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = FileDisk().open(f"{tmp_path}/f")
    file.append([b"before"])
    monkeypatch.setattr(os, "pwritev", Writes(written, full()) if written else Writes(full()))
    with pytest.raises(OSError) as caught:
        file.append(PARTS)
    assert caught.value.errno == errno.ENOSPC
    assert file.size_bytes == 6
    assert Path(file.path).read_bytes() == b"before"
    assert file.append([b" after"]) == 6
    assert Path(file.path).read_bytes() == b"before after"


@pytest.mark.parametrize("written", range(1, len(WHOLE)))
def test_where_even_the_cut_fails_it_is_made_up_for_before_the_next_append(
    written: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cuts: list[int] = []

    def broken(descriptor: int, length: int) -> None:
        cuts.append(length)
        if len(cuts) <= 2:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        ftruncate(descriptor, length)

    file = FileDisk().open(f"{tmp_path}/f")
    file.append([b"before"])
    monkeypatch.setattr(os, "pwritev", Writes(written, full()))
    monkeypatch.setattr(os, "ftruncate", broken)
    with pytest.raises(OSError) as caught:
        file.append(PARTS)
    assert caught.value.errno == errno.ENOSPC, "the first error is the one that tells"
    assert Path(file.path).read_bytes() == b"before" + WHOLE[:written]
    assert file.size_bytes == 6
    assert file.pread(100, 0) == b"before", "what was not appended is not read"
    with pytest.raises(OSError) as caught:
        file.append([b"!"])
    assert caught.value.errno == errno.EIO, "no append while the leftover stands"
    assert file.append([b"!"]) == 6
    assert cuts == [6, 6, 6]
    assert Path(file.path).read_bytes() == b"before!"


def test_a_file_that_takes_nothing_is_an_error_and_no_endless_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = FileDisk().open(f"{tmp_path}/f")
    monkeypatch.setattr(os, "pwritev", Writes(3, 0))
    with pytest.raises(OSError, match="takes no more bytes"):
        file.append(PARTS)
    assert Path(file.path).read_bytes() == b""


def test_short_reads_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = FileDisk().open(f"{tmp_path}/f")
    file.append([WHOLE])
    pread = os.pread

    def short(descriptor: int, size: int, position: int) -> bytes:
        return pread(descriptor, min(size, 3), position)

    monkeypatch.setattr(os, "pread", short)
    assert file.pread(100, 1) == WHOLE[1:]
    os.truncate(file.path, 8)
    assert file.pread(100, 1) == WHOLE[1:8], "a file that was cut behind our back ends where it ends"


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


HOLDER = """
import sys
from broker.disk import FileDisk
FileDisk().lock(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""


def test_a_lock_is_held_against_other_processes_until_they_are_killed(tmp_path: Path) -> None:
    path = f"{tmp_path}/.lock"
    command = [sys.executable, "-c", HOLDER, path]
    root = Path(disk_module.__file__).parents[1]
    with subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(LockHeld):
            FileDisk().lock(path)
        holder.kill()
        holder.wait()
        FileDisk().lock(path).release()


def test_a_lock_file_that_cannot_be_opened_is_no_held_lock(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        FileDisk().lock(f"{tmp_path}/missing/.lock")


LIMITS = """
import resource
from broker.disk import descriptor_budget, raise_descriptor_limit
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
assert descriptor_budget() == 32
assert raise_descriptor_limit() == hard
assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
"""


def test_the_soft_limit_of_open_files_is_raised_to_the_hard_one() -> None:
    """In a process of its own, for a limit cannot be put back by everybody."""
    root = Path(disk_module.__file__).parents[1]
    subprocess.run([sys.executable, "-c", LIMITS], cwd=root, check=True)


def test_files_take_half_of_the_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    def limit(soft: int) -> int:
        def both(_: int) -> tuple[int, int]:
            return soft, soft

        monkeypatch.setattr(resource, "getrlimit", both)
        return descriptor_budget()

    assert limit(1024) == 512
    assert limit(2) == 4
    assert limit(1 << 30) == 32_768
    assert limit(resource.RLIM_INFINITY) == 32_768


def test_a_limit_that_cannot_be_raised_is_put_up_with(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ValueError("current limit exceeds maximum limit")

    def limits(_: int) -> tuple[int, int]:
        return 256, -1

    monkeypatch.setattr(resource, "getrlimit", limits)
    monkeypatch.setattr(resource, "setrlimit", refuse)
    assert raise_descriptor_limit() == 256


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


def test_a_closed_file_cannot_be_synced(tmp_path: Path) -> None:
    file = FileDisk().open(str(tmp_path / "file"))
    file.close()
    with pytest.raises(OSError, match="closed"):
        file.sync()


@pytest.mark.parametrize(
    ("soft", "files", "sockets"),
    [
        (1024, 512, 492),
        (64, 32, 12),
        (10, 5, 4),
        (1 << 20, 32_768, (1 << 20) - 32_788),
        (resource.RLIM_INFINITY, 32_768, sys.maxsize),
    ],
)
def test_files_and_connections_share_the_descriptors(
    monkeypatch: pytest.MonkeyPatch, soft: int, files: int, sockets: int
) -> None:
    def limits(_: int) -> tuple[int, int]:
        return soft, soft

    monkeypatch.setattr(resource, "getrlimit", limits)
    assert (descriptor_budget(), socket_budget()) == (files, sockets)
