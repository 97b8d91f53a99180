"""Reading without waiting: from a device that was made to forget, from /dev/shm, and where the kernel tells nothing.

A file is made cold by writing it past the page cache (O_DIRECT), which forgets what it had of it. A read that is
refused may start to fetch what it missed: so what depends on the cold is tried a few times, each time anew.
"""

import errno
import mmap
import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from odradek.broker.disk import disk_page_cache
from odradek.broker.disk.disk import File
from odradek.broker.disk.disk_page_cache import (
    PROBED_BYTES_MIN,
    WARMED_MAX,
    NotCached,
    PageCache,
    WarmedRanges,
    file_system_type,
)
from odradek.broker.disk.file_disk import FileDisk

SIZE = 4 << 20
CONTENT = os.urandom(1 << 10) * (SIZE >> 10)
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - it is the tmpfs that every Linux has
ALIGNED = mmap.mmap(-1, SIZE)  # as O_DIRECT wants it
ALIGNED[:] = CONTENT
ATTEMPTS = 50
KEPT = 64 << 10


@pytest.fixture
def file(tmp_path: Path) -> File:
    file = FileDisk().open(f"{tmp_path}/f")
    file.append([CONTENT])
    return file


@pytest.fixture
def disk(tmp_path: Path, file: File) -> FileDisk:
    """Another one, which has not seen the file: `opened` opens it there."""
    return FileDisk()


def opened(disk: FileDisk, file: File) -> File:
    return disk.open(file.path)


@pytest.fixture
def device(file: File) -> None:
    """The file is on a device that tells what is in memory."""
    if not hasattr(os, "RWF_NOWAIT"):
        pytest.skip(f"{sys.platform} has no RWF_NOWAIT")
    descriptor = os.open(file.path, os.O_RDONLY)
    try:
        os.preadv(descriptor, [bytearray(1)], 0, os.RWF_NOWAIT)
    except OSError as error:
        pytest.skip(f"the file system of the temporary directory does not take RWF_NOWAIT: {error}")
    finally:
        os.close(descriptor)
    try:
        make_cold(file)
        Path(file.path).read_bytes()
    except OSError as error:
        pytest.skip(f"the file system of the temporary directory does not take O_DIRECT: {error}")


def make_cold(file: File, keep_bytes: int = 0) -> None:
    """Nothing of the file is in memory then, but for the first bytes."""
    descriptor = os.open(file.path, os.O_WRONLY | os.O_DIRECT)
    try:
        assert os.pwrite(descriptor, ALIGNED, 0) == SIZE
    finally:
        os.close(descriptor)
    descriptor = os.open(file.path, os.O_RDONLY)
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)  # no readahead
        os.pread(descriptor, keep_bytes, 0)
    finally:
        os.close(descriptor)


def refused(
    disk: FileDisk, file: File, size_bytes: int, position: int, at_least: int | None = None, *, keep_bytes: int = 0
) -> NotCached:
    """The refusal to read from the cold file."""
    for _ in range(ATTEMPTS):
        make_cold(file, keep_bytes)
        try:
            with disk.cached_only():
                file.pread(size_bytes, position, at_least)
        except NotCached as missing:
            return missing
    return pytest.fail(f"not once in {ATTEMPTS} times was a cold file not read")


# -------------------------------------------------------------------------------------------------------- a real device
@pytest.mark.usefixtures("device")
def test_cold_data_is_not_waited_for_and_hot_data_is_answered(disk: FileDisk, file: File) -> None:
    file = opened(disk, file)
    for position, size_bytes in ((0, 100), (SIZE // 2, SIZE)):
        missing = refused(disk, file, size_bytes, position)
        assert (missing.path, missing.position) == (file.path, position)
        assert missing.size_bytes == min(size_bytes, SIZE - position), "no more than the file has"
        assert str(missing).startswith(f"{file.path}: ")
        make_cold(file)
        wanted = CONTENT[position : position + size_bytes]
        assert disk.read_range(file.path, position, missing.size_bytes) == wanted
        with disk.cached_only():
            assert file.pread(size_bytes, position) == wanted
    make_cold(file)
    assert file.pread(SIZE, 0) == CONTENT, "outside of the block it is waited for"
    with disk.cached_only():
        assert file.pread(SIZE, 0) == CONTENT


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize(
    ("size_bytes", "asked"),
    [(PROBED_BYTES_MIN - 1, [PROBED_BYTES_MIN - 1]), (PROBED_BYTES_MIN, [1, PROBED_BYTES_MIN]), (SIZE, [1, SIZE])],
)
def test_to_refuse_a_large_read_one_byte_is_asked_for(
    size_bytes: int, asked: list[int], disk: FileDisk, file: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    preadv = os.preadv

    def watched(descriptor: int, buffers: Sequence[bytearray], position: int, flags: int = 0) -> int:
        sizes.append(len(buffers[0]))
        if is_cold:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return preadv(descriptor, buffers, position, flags)

    monkeypatch.setattr(os, "preadv", watched)
    is_cold = True
    with pytest.raises(NotCached), disk.cached_only():
        opened(disk, file).pread(size_bytes, 0)
    assert sizes == asked[:1]
    is_cold = False
    sizes.clear()
    with disk.cached_only():
        assert opened(disk, file).pread(size_bytes, 0) == CONTENT[:size_bytes]
    assert sizes == asked


@pytest.mark.usefixtures("device")
def test_what_was_just_appended_is_hot(disk: FileDisk, file: File) -> None:
    file = opened(disk, file)
    file.append([CONTENT])
    with disk.cached_only():
        assert file.pread(SIZE, SIZE) == CONTENT


@pytest.mark.usefixtures("device")
def test_a_range_that_was_read_before_but_is_cold_again_is_refused_again(disk: FileDisk, file: File) -> None:
    """Where the kernel tells, nothing is taken for cached because somebody read it once."""
    file = opened(disk, file)
    disk.read_range(file.path, 0, SIZE)
    refused(disk, file, SIZE, 0)


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("at_least", [1, KEPT])
def test_the_beginning_that_is_there_is_answered_to_those_who_can_use_it(
    at_least: int, disk: FileDisk, file: File
) -> None:
    file = opened(disk, file)
    for _ in range(ATTEMPTS):
        make_cold(file, KEPT)
        with disk.cached_only():
            data = file.pread(SIZE, 0, at_least)
        assert KEPT <= len(data) <= SIZE
        assert data == CONTENT[: len(data)]
        if len(data) < SIZE:
            return
    pytest.fail(f"not once in {ATTEMPTS} times was a part all that was answered")


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("at_least", [None, SIZE - 1, SIZE, SIZE + 1])
def test_a_beginning_that_is_not_enough_is_refused(at_least: int | None, disk: FileDisk, file: File) -> None:
    missing = refused(disk, opened(disk, file), SIZE, 0, at_least, keep_bytes=KEPT)
    assert (missing.position, missing.size_bytes) == (0, SIZE), "the whole range, for the beginning may go meanwhile"


@pytest.mark.usefixtures("device")
def test_the_cold_rest_of_a_file_does_not_matter(disk: FileDisk, file: File) -> None:
    file = opened(disk, file)
    make_cold(file, KEPT)
    with disk.cached_only():
        assert file.pread(100, KEPT - 100) == CONTENT[KEPT - 100 : KEPT]
    refused(disk, file, 100, SIZE - 100, 1, keep_bytes=KEPT)


@pytest.mark.usefixtures("device")
def test_a_file_that_was_cut_behind_our_back_ends_where_it_ends(disk: FileDisk, file: File) -> None:
    file = opened(disk, file)
    os.truncate(file.path, 1000)
    with disk.cached_only():
        assert file.pread(SIZE, 0) == CONTENT[:1000]
        assert file.pread(SIZE, 2000) == b""


@pytest.mark.usefixtures("device")
def test_a_kernel_that_answers_nothing_in_the_middle_of_a_file_is_not_believed(
    disk: FileDisk, file: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Linux 5.9 and 5.10 do, where they should say EAGAIN (preadv2(2), BUGS)."""

    def nothing(*_: object) -> int:
        return 0

    monkeypatch.setattr(os, "preadv", nothing)
    with pytest.raises(NotCached), disk.cached_only():
        opened(disk, file).pread(100, 0)


@pytest.mark.usefixtures("device")
def test_the_block_is_for_the_thread_that_entered_it(disk: FileDisk, file: File) -> None:
    """A helper thread that recovers a log at the same time waits, as it may."""
    file = opened(disk, file)
    make_cold(file)
    read: list[bytes | bytearray] = []
    thread = threading.Thread(target=lambda: read.append(file.pread(100, 0)))
    with disk.cached_only():
        thread.start()
        thread.join()
    assert read == [CONTENT[:100]]


@pytest.mark.usefixtures("device")
def test_the_inner_of_two_blocks_does_not_end_the_outer_one(disk: FileDisk, file: File) -> None:
    file = opened(disk, file)
    with disk.cached_only():
        refused(disk, file, SIZE, 0)
        refused(disk, file, SIZE, 0)
        for _ in range(ATTEMPTS):
            make_cold(file)
            try:
                file.pread(SIZE, 0)
            except NotCached:
                return
    pytest.fail(f"not once in {ATTEMPTS} times was a cold file not read")


@pytest.mark.usefixtures("device")
def test_an_error_of_the_device_is_no_gap_and_no_refusal(
    disk: FileDisk, file: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    file = opened(disk, file)
    with monkeypatch.context() as patch:
        patch.setattr(os, "preadv", broken)
        with pytest.raises(OSError) as caught, disk.cached_only():
            file.pread(100, 0)
    assert caught.value.errno == errno.EIO
    with disk.cached_only():
        assert file.pread(100, 0) == CONTENT[:100]


# ------------------------------------------------------------------------------------------------------------ in memory
@pytest.mark.skipif(not SHARED_MEMORY.is_dir(), reason="there is no /dev/shm")
@pytest.mark.parametrize("has_flag", [True, False])
def test_tmpfs_refuses_the_flag_and_never_waits(has_flag: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not has_flag:
        monkeypatch.delattr(os, "RWF_NOWAIT", raising=False)
    disk = FileDisk()
    path = f"{SHARED_MEMORY}/odradek-test-{os.getpid()}-{has_flag}"
    try:
        file = disk.open(path)
        file.append([CONTENT])
        with disk.cached_only():
            assert file.pread(SIZE, 0) == CONTENT
            assert file.pread(100, SIZE - 10) == CONTENT[-10:]
        file.close()
    finally:
        os.unlink(path)


MOUNTS = """\
22 27 0:21 / /proc rw,relatime - proc proc rw
25 24 0:23 / /dev/shm rw,relatime shared:4 master:1 - tmpfs tmpfs rw,size=24684084k
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
28 27 0:25 / /mnt/with\\040blank\x0bin\u2028it rw - ramfs ramfs rw

no mount at all
"""


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        (os.makedev(0, 23), "tmpfs"),
        (os.makedev(254, 0), "ext4"),
        (os.makedev(0, 25), "ramfs"),
        (os.makedev(0, 2), None),
        (os.makedev(27, 1), None),
    ],
)
def test_the_type_of_a_file_system_is_found_by_its_device(device: int, expected: str | None) -> None:
    assert file_system_type(device, MOUNTS) == expected


# --------------------------------------------------------------------------------------------------- where nobody tells
class Refusing:
    """Stands in for os.preadv on a file system that does not know the flag."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, descriptor: int, buffers: Sequence[bytearray], position: int, flags: int = 0) -> int:
        self.calls += 1
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))


@pytest.fixture(params=["no flag", "no preadv", "no mounts", "refused"])
def blind(request: pytest.FixtureRequest, file: File, monkeypatch: pytest.MonkeyPatch) -> FileDisk:
    """A disk that cannot tell what is in memory."""
    if file_system_type(os.stat(file.path).st_dev, mounts()) in ("tmpfs", "ramfs"):
        pytest.skip("the temporary directory is in memory")
    match request.param:
        case "no flag":
            monkeypatch.delattr(os, "RWF_NOWAIT", raising=False)
        case "no preadv":
            monkeypatch.delattr(os, "preadv", raising=False)
        case "no mounts":
            monkeypatch.setattr(disk_page_cache, "_MOUNTS", file.path + ".missing")
            monkeypatch.setattr(os, "preadv", Refusing())
        case _:
            monkeypatch.setattr(os, "preadv", Refusing())
    return FileDisk()


def mounts() -> str:
    path = Path("/proc/self/mountinfo")
    return path.read_text(errors="surrogateescape") if path.exists() else ""


def test_where_nobody_tells_only_what_was_just_read_is_taken_for_cached(blind: FileDisk, file: File) -> None:
    file = opened(blind, file)
    with pytest.raises(NotCached) as caught, blind.cached_only():
        file.pread(1000, SIZE - 500)
    assert (caught.value.position, caught.value.size_bytes) == (SIZE - 500, 500)
    blind.read_range(file.path, 100, 50)
    with blind.cached_only():
        assert file.pread(50, 100) == CONTENT[100:150]
        assert file.pread(10, 140) == CONTENT[140:150]
        assert file.pread(5, 110) == CONTENT[110:115]
        assert file.pread(1000, 140, at_least=10) == CONTENT[140:150], "and no byte more"
        for size_bytes, position, at_least in ((51, 100, None), (50, 99, 1), (1, 150, 1), (1000, 140, 11)):
            with pytest.raises(NotCached):
                file.pread(size_bytes, position, at_least)
    assert file.pread(SIZE, 0) == CONTENT


def test_a_range_behind_the_end_counts_as_read(blind: FileDisk, file: File) -> None:
    """Otherwise a file that was cut behind our back would be read again and again."""
    file = opened(blind, file)
    os.truncate(file.path, 100)
    blind.read_range(file.path, 50, 1000)
    with blind.cached_only():
        assert file.pread(1000, 50) == CONTENT[50:100]


def test_a_device_that_refused_the_flag_is_not_asked_again(
    file: File, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    preadv = Refusing()
    monkeypatch.setattr(os, "preadv", preadv)
    monkeypatch.setattr(disk_page_cache, "_MOUNTS", file.path + ".missing")  # nor can it be looked up as tmpfs
    monkeypatch.setattr(os, "RWF_NOWAIT", 8, raising=False)
    disk = FileDisk()
    other = disk.open(f"{tmp_path}/other")
    other.append([b"x"])
    with disk.cached_only():
        for each in (opened(disk, file), other, opened(disk, file)):
            with pytest.raises(NotCached):
                each.pread(1, 0)
    assert preadv.calls == 1


@pytest.mark.usefixtures("device")
def test_a_second_device_is_asked_for_itself(disk: FileDisk, file: File, monkeypatch: pytest.MonkeyPatch) -> None:
    page_cache = PageCache()
    device, other = os.stat(file.path).st_dev, os.makedev(4000, 0)
    descriptor = os.open(file.path, os.O_RDONLY)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(os, "preadv", Refusing())
            with pytest.raises(NotCached):
                page_cache.pread(descriptor, other, file.path, 10, 0, None)
        assert page_cache.pread(descriptor, device, file.path, 10, 0, None) == CONTENT[:10]
        with pytest.raises(NotCached):
            page_cache.pread(descriptor, other, file.path, 10, 0, None)
    finally:
        os.close(descriptor)


def test_the_last_ranges_are_remembered() -> None:
    ranges = WarmedRanges()
    assert ranges.size_at("f", 0) == 0
    ranges.add("f", 10, 20)
    ranges.add("f", 15, 100)
    ranges.add("f", 12, 5)
    assert [ranges.size_at("f", position) for position in (9, 10, 15, 114, 115)] == [0, 20, 100, 1, 0]
    assert ranges.size_at("g", 10) == 0
    for position in range(WARMED_MAX - 1):
        ranges.add("h", position, 1)
    assert [ranges.size_at("f", position) for position in (10, 15, 12)] == [0, 2, 5]
    ranges.add("h", WARMED_MAX, 1)
    assert ranges.size_at("f", 12) == 0
    assert ranges.size_at("h", 0) == 1
