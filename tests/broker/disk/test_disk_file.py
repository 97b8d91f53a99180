"""A file on the device where it fails: writes cut at every byte, cuts that fail, room that is not there, syncs."""

import errno
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from odradek.broker.disk.disk import File
from odradek.broker.disk.file_disk import FileDisk
from odradek.protocol.primitives import Buffer
from tests.descriptors import open_below

PARTS = (b"0123", bytearray(b"456789ab"), memoryview(b"cdef"))
WHOLE = b"0123456789abcdef"

pwritev, ftruncate, posix_fallocate = os.pwritev, os.ftruncate, os.posix_fallocate


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


class Cuts:
    """Stands in for os.ftruncate: fails so many times, then works; and notes what it was asked for."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.asked: list[int] = []

    def __call__(self, descriptor: int, length: int) -> None:
        self.asked.append(length)
        if len(self.asked) <= self.failures:
            raise broken()
        ftruncate(descriptor, length)


def full() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def broken() -> OSError:
    return OSError(errno.EIO, os.strerror(errno.EIO))


def file_at(tmp_path: Path, content: bytes = b"before", disk: FileDisk | None = None) -> File:
    file = (disk or FileDisk()).open(f"{tmp_path}/f")
    file.append([content])
    return file


def size_of(file: File) -> int:
    return Path(file.path).stat().st_size


# ------------------------------------------------------------------------------------------------ appending and reading
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
    cuts = Cuts()
    monkeypatch.setattr(os, "ftruncate", cuts)
    with pytest.raises(OSError) as caught:
        file.append(PARTS)
    assert caught.value.errno == errno.ENOSPC
    assert file.size_bytes == 6
    assert Path(file.path).read_bytes() == b"before"
    assert file.append([b" after"]) == 6
    assert Path(file.path).read_bytes() == b"before after"
    assert cuts.asked == [6]


def test_truncate_makes_up_for_a_cut_that_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = file_at(tmp_path)
    cuts = Cuts(1)
    monkeypatch.setattr(os, "pwritev", Writes(5, full()))
    monkeypatch.setattr(os, "ftruncate", cuts)
    with pytest.raises(OSError):
        file.append(PARTS)
    assert size_of(file) == 11
    file.truncate(6)
    assert Path(file.path).read_bytes() == b"before"
    assert file.append([b" after"]) == 6
    assert cuts.asked == [6, 6], "and nothing is left to be cut before an append"


@pytest.mark.parametrize("written", range(1, len(WHOLE)))
def test_where_even_the_cut_fails_it_is_made_up_for_before_the_next_append(
    written: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cuts = Cuts(2)
    file = FileDisk().open(f"{tmp_path}/f")
    file.append([b"before"])
    monkeypatch.setattr(os, "pwritev", Writes(written, full()))
    monkeypatch.setattr(os, "ftruncate", cuts)
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
    assert cuts.asked == [6, 6, 6]
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


# ---------------------------------------------------------------------------------------------------------- preallocate
def test_what_a_failed_append_left_in_preallocated_room_is_cut_off_with_the_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = file_at(tmp_path)
    file.preallocate(1000)
    assert size_of(file) == 1000
    monkeypatch.setattr(os, "pwritev", Writes(5, full()))
    with pytest.raises(OSError):
        file.append(PARTS)
    assert Path(file.path).read_bytes() == b"before"
    assert file.append([b" after"]) == 6
    assert Path(file.path).read_bytes() == b"before after"
    cuts = Cuts()
    monkeypatch.setattr(os, "ftruncate", cuts)
    file.truncate(12)
    assert cuts.asked == [], "the room is gone already"


def test_no_room_is_made_behind_what_a_failed_append_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = file_at(tmp_path)
    file.preallocate(1000)
    monkeypatch.setattr(os, "pwritev", Writes(5, full()))
    monkeypatch.setattr(os, "ftruncate", Cuts(2))
    with pytest.raises(OSError):
        file.append(PARTS)
    assert Path(file.path).read_bytes() == b"before01234" + bytes(989)
    with pytest.raises(OSError) as caught:
        file.preallocate(500)
    assert caught.value.errno == errno.EIO
    file.preallocate(500)
    assert Path(file.path).read_bytes() == b"before" + bytes(494)


@pytest.mark.parametrize("cut_fails", [False, True])
def test_where_there_is_no_room_the_file_stays_as_long_as_it_was(
    cut_fails: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`posix_fallocate` may have taken a part of the room when it fails: here it has."""

    def little(descriptor: int, position: int, length: int) -> None:
        posix_fallocate(descriptor, position, length // 2)
        raise full()

    file = file_at(tmp_path)
    file.preallocate(500)
    monkeypatch.setattr(os, "posix_fallocate", little)
    with monkeypatch.context() as patch:
        if cut_fails:
            patch.setattr(os, "ftruncate", Cuts(1))
        with pytest.raises(OSError) as caught:
            file.preallocate(1000)
    assert caught.value.errno == errno.ENOSPC
    assert size_of(file) == (503 if cut_fails else 6)
    assert (file.size_bytes, file.pread(100, 0)) == (6, b"before")
    file.truncate(6)
    assert size_of(file) == 6, "what could not be cut at once goes later"
    assert file.append([b" after"]) == 6
    assert Path(file.path).read_bytes() == b"before after"


@pytest.mark.parametrize("number", [errno.EOPNOTSUPP, errno.EINVAL])
def test_a_file_system_that_cannot_preallocate_is_put_up_with(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    file = file_at(tmp_path)
    file.preallocate(1000)
    assert size_of(file) == 6
    monkeypatch.delattr(os, "posix_fallocate")
    file.preallocate(1000)
    assert size_of(file) == 6


def test_only_what_is_not_there_yet_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []

    def watched(descriptor: int, position: int, length: int) -> None:
        asked.append((position, length))
        posix_fallocate(descriptor, position, length)

    monkeypatch.setattr(os, "posix_fallocate", watched)
    file = file_at(tmp_path)
    for size_bytes in (0, 5, 6, 1000):
        file.preallocate(size_bytes)
    assert asked == [(6, 994)]


def test_a_file_without_anything_behind_its_end_is_not_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = file_at(tmp_path)
    file.preallocate(1000)
    file.truncate(6)
    cuts = Cuts()
    monkeypatch.setattr(os, "ftruncate", cuts)
    file.truncate(6)
    assert cuts.asked == []
    file.preallocate(1000)
    file.truncate(6)
    assert cuts.asked == [6]


# ------------------------------------------------------------------------------------------------------------- syncers
class Synced:
    """Stands in for os.fdatasync: notes the file, and fails as told."""

    def __init__(self, error: OSError | None = None) -> None:
        self.inodes: list[int] = []
        self.error = error

    def __call__(self, descriptor: int) -> None:
        self.inodes.append(os.fstat(descriptor).st_ino)
        if self.error is not None:
            raise self.error


def renamed(disk: FileDisk, file: File) -> None:
    disk.rename(file.path, file.path + ".moved")
    disk.write_new(file.path, [b"another file under the name"])


FATES: dict[str, Callable[[FileDisk, File], object]] = {
    "closed": lambda disk, file: file.close(),
    "evicted": lambda disk, file: disk.open(file.path + ".other"),
    "removed": lambda disk, file: disk.remove(file.path),
    "renamed": renamed,
}


@pytest.mark.parametrize("was_evicted", [False, True], ids=["open", "evicted before"])
@pytest.mark.parametrize("fate", list(FATES))
def test_a_syncer_syncs_the_file_it_was_made_for_whatever_became_of_it(
    fate: str, was_evicted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = FileDisk(descriptors_max=1)
    file = file_at(tmp_path, disk=disk)
    inode = os.stat(file.path).st_ino
    if was_evicted:
        disk.open(f"{tmp_path}/second")
    syncer = file.syncer()
    FATES[fate](disk, file)
    synced = Synced()
    monkeypatch.setattr(os, "fdatasync", synced)
    thread = threading.Thread(target=syncer)
    thread.start()
    thread.join()
    assert synced.inodes == [inode]


@pytest.mark.parametrize("error", [None, broken()], ids=["synced", "failed"])
def test_a_syncer_is_the_last_who_holds_the_descriptor_of_a_closed_file(
    error: OSError | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fdatasync", Synced(error))
    file = file_at(tmp_path)
    syncer = file.syncer()
    file.close()
    assert open_below(tmp_path) == [file.path]
    if error is None:
        syncer()
    else:
        with pytest.raises(OSError) as caught:
            syncer()
        assert caught.value is error
    assert open_below(tmp_path) == []


def test_a_syncer_that_is_closed_or_dropped_gives_its_descriptor_back_without_a_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = Synced()
    monkeypatch.setattr(os, "fdatasync", synced)
    file = file_at(tmp_path)
    closed, dropped = file.syncer(), file.syncer()
    file.close()
    assert open_below(tmp_path) == [file.path]
    closed.close()
    closed.close()
    assert open_below(tmp_path) == [file.path]
    del dropped
    assert open_below(tmp_path) == []
    assert synced.inodes == []


def test_where_there_is_no_fdatasync_fsync_does_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = Synced()
    file = file_at(tmp_path)
    monkeypatch.delattr(os, "fdatasync", raising=False)
    monkeypatch.setattr(os, "fsync", synced)
    file.sync()
    file.syncer()()
    assert synced.inodes == [os.stat(file.path).st_ino] * 2


def test_a_closed_file_has_no_syncer(tmp_path: Path) -> None:
    file = file_at(tmp_path)
    file.close()
    with pytest.raises(OSError, match="closed"):
        file.syncer()
