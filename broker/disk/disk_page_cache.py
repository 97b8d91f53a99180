"""What of a file is in the page cache, so that the loop's thread never waits for a device: `Disk.cached_only()`.

Within that block a read answers at once or raises NotCached; then a helper thread reads the range (`Disk.read_range`),
which fetches it into the page cache, and the read is tried again. How a read is kept from waiting depends on the
device that the file is on (stat's st_dev), and the first read there finds it out:

* `preadv` with RWF_NOWAIT where it works (ext4, XFS, btrfs). What is missing shows as a short read or as EAGAIN.
* A plain `pread` where the flag is refused and all is memory: tmpfs and ramfs answer EOPNOTSUPP even for what is hot.
  No call of Python tells the type of a file system; /proc/self/mountinfo lists it beside the device number.
* Anywhere else (overlayfs, FUSE, NFS, macOS) nobody tells: a range is taken for cached if `read_range` has just read
  it, and for nothing else. That this process wrote it a moment ago proves nothing there: many of these keep no pages.
"""

import errno
import os
from enum import Enum, auto
from threading import get_ident
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.broker.disk.cachestat import CacheStat

# A retry finds its range unless so many others were read since.
WARMED_MAX = 64
# Refusing so much costs more than asking for its first byte: there is the buffer, and Linux begins to fetch all that a
# refused read asked for, in the time of the thread that asked (0.4 ms for 1 MiB, 2 ms for 8 MiB).
PROBED_BYTES_MIN = 256 * 1024
_REFUSALS = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)
_MOUNTS = "/proc/self/mountinfo"


class NotCached(Exception):
    """The read would have had to wait for the device. `Disk.read_range` of the same range, then try again."""

    def __init__(self, path: str, position: int, size_bytes: int) -> None:
        super().__init__(f"{path}: {size_bytes} bytes at {position} are not all in memory")
        self.path = path
        self.position = position
        self.size_bytes = size_bytes


class CachedOnly:
    """The block of `Disk.cached_only()`. It holds for the thread that entered it, and may be nested."""

    def __init__(self) -> None:
        self._depth = 0
        # Zero outside of the block, so that a read asks which thread it is in only while somebody is within.
        self.thread_id = 0

    def __enter__(self) -> None:
        thread_id = get_ident()
        assert self.thread_id in (0, thread_id), "the block is for one thread at a time"
        self._depth += 1
        self.thread_id = thread_id

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if not self._depth:
            self.thread_id = 0


class WarmedRanges:
    """The ranges that were read last by helper threads.

    Added to by any thread, hence the tuple: it is replaced whole. A range lost where two do so at once is read again.
    """

    def __init__(self) -> None:
        self._ranges: tuple[tuple[str, int, int], ...] = ()

    def add(self, path: str, position: int, size_bytes: int) -> None:
        self._ranges = (*self._ranges[-(WARMED_MAX - 1) :], (path, position, position + size_bytes))

    def size_at(self, path: str, position: int) -> int:
        """How many bytes from `position` on are in one of them."""
        ends = [end for known, start, end in self._ranges if known == path and start <= position < end]
        return max(ends, default=position) - position


class _Way(Enum):
    """How to read from a device without waiting."""

    NOWAIT = auto()
    PLAIN = auto()
    WARMED = auto()


class PageCache(CachedOnly):
    """Reads for `FileDisk` within the block."""

    def __init__(self) -> None:
        super().__init__()
        self.warmed = WarmedRanges()
        self._nowait: int = getattr(os, "RWF_NOWAIT", 0) if hasattr(os, "preadv") else 0
        self._ways: dict[int, _Way] = {}
        self._cachestat: CacheStat | None = None

    def is_cached(self, descriptor: int, position: int, size_bytes: int) -> bool:
        """Whether all of these bytes are known to be in memory. False where nobody tells."""
        if self._cachestat is None:
            from odradek.broker.disk.cachestat import CacheStat  # ctypes: a start can do without

            self._cachestat = CacheStat()
        return self._cachestat.is_cached(descriptor, position, size_bytes)

    def pread(
        self, descriptor: int, device: int, path: str, size_bytes: int, position: int, at_least: int | None
    ) -> bytes | bytearray:
        """`size_bytes` from `position`, without waiting; `at_least` bytes will do. Fewer where the file ends.

        Raises NotCached and OSError.
        """
        assert position >= 0, "an error of EINVAL would be taken for a refusal of the flag"
        way = self._ways.get(device)
        if way is None:
            way = self._ways[device] = _Way.NOWAIT if self._nowait else _without_flag(device)
        if way is _Way.NOWAIT:
            try:
                return self._pread_nowait(descriptor, path, size_bytes, position, at_least)
            except OSError as error:
                if error.errno not in _REFUSALS:
                    raise
                way = self._ways[device] = _without_flag(device)
        if way is _Way.WARMED:
            there = min(self.warmed.size_at(path, position), size_bytes)
            if there < (size_bytes if at_least is None else min(at_least, size_bytes)):
                raise NotCached(path, position, size_bytes)
            size_bytes = there
        return read_all(descriptor, size_bytes, position)

    def _pread_nowait(
        self, descriptor: int, path: str, size_bytes: int, position: int, at_least: int | None
    ) -> bytearray:
        # Filling the new buffer with zeros costs a fifth of the read. To probe the range and then pread it would cost
        # as much as the read, and a page may go between the two; so would a copy out of a buffer that is kept.
        data = bytearray()
        try:
            if size_bytes >= PROBED_BYTES_MIN:
                os.preadv(descriptor, (bytearray(1),), position, self._nowait)
            data = bytearray(size_bytes)
            count = os.preadv(descriptor, (data,), position, self._nowait)
        except BlockingIOError:
            count = 0  # not even the first byte is there
        if count < size_bytes:
            # The size tells a file that was cut behind our back from a gap in the cache: the answer 0 does not, for
            # Linux 5.9 and 5.10 give it for both (preadv2(2), BUGS).
            is_enough = at_least is not None and count >= at_least
            if not is_enough and position + count < os.fstat(descriptor).st_size:
                raise NotCached(path, position, size_bytes)
            del data[count:]
        return data


def read_all(descriptor: int, size_bytes: int, position: int) -> bytes:
    """`size_bytes` from `position`, waiting for the device; fewer only where the file ends."""
    return complete(os.pread(descriptor, size_bytes, position), descriptor, size_bytes, position)


def complete(data: bytes, descriptor: int, size_bytes: int, position: int) -> bytes:
    """Reads on after `data`, where a read stopped short.

    Linux reads at most 2 GiB - 4 KiB at once; a network file system may answer less than asked, too.
    """
    pieces = [data]
    missing = size_bytes - len(data)
    while pieces[-1] and missing:
        pieces.append(os.pread(descriptor, missing, position + size_bytes - missing))
        missing -= len(pieces[-1])
    return data if len(pieces) == 1 else b"".join(pieces)


def _without_flag(device: int) -> _Way:
    try:
        with open(_MOUNTS, encoding="utf-8", errors="surrogateescape") as stream:
            mounts = stream.read()
    except OSError:
        return _Way.WARMED  # not Linux
    return _Way.PLAIN if file_system_type(device, mounts) in ("tmpfs", "ramfs") else _Way.WARMED


def file_system_type(device: int, mounts: str) -> str | None:
    """The type of the mounted file system with this st_dev, by the text of mountinfo (proc_pid_mountinfo(5)).

        25 24 0:23 / /dev/shm rw,relatime shared:4 - tmpfs tmpfs rw,size=24684084k
              ^ major:minor                          ^ type

    None when it is not listed, as with btrfs, whose files carry device numbers of their own.
    """
    wanted = f"{os.major(device)}:{os.minor(device)}"
    for line in mounts.split("\n"):
        mount, _, file_system = line.partition(" - ")
        if mount.split(" ", 3)[2:3] == [wanted]:
            return file_system.split(" ", 1)[0]
    return None
