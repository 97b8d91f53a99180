"""The only way to files: what a disk promises (`Disk`, `File`), and real files (`FileDisk`).

Everything above takes a `Disk`, so that tests and `--memory` put `MemoryDisk` (memory_disk.py) in its place and fault
tests put a failing one. What callers rely on, for every implementation (tests/contract/test_disk.py):

* `File.append` writes all of its parts behind `size_bytes`, or leaves `size_bytes` alone and raises OSError. What a
  failed append left behind is cut off at once, and if even that fails, before the next append: bytes of a half-written
  batch never end up between two batches.
* `File.pread` never answers bytes beyond `size_bytes`, whatever is preallocated there. A position below 0 is an
  OSError, for such a number comes out of a damaged file.
* An OSError of a file names the file: `strerror: 'path'` is what people read.
* `write_whole` and `rename` are atomic: a reader, or the next start, finds the old content or the new one.
* Nothing is durable before `sync`, a `syncer`, `write_whole`, `write_new` or `sync_dir` returned.
* Within `cached_only` no read waits for the device.

Files and what is open belong to the thread that made the disk, and so does `cached_only`. Helper threads may call what
`File.syncer` returned, `File.sync`, and those methods of the disk that take a path, `open` apart.

`FileDisk` keeps its descriptors in a table (disk_descriptors.py): an evicted file opens again by its path at the next
use, so rename files only when closed. disk_file.py is the file, disk_page_cache.py what can be read without waiting.
"""

import errno
import fcntl
import os
import resource
import shutil
import stat
import sys
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from struct import Struct
from typing import Protocol

from odradek.broker.disk.disk_descriptors import Descriptor, Descriptors
from odradek.broker.disk.disk_file import DescriptorFile, named, sync_content, write_all
from odradek.broker.disk.disk_page_cache import PageCache, read_all
from odradek.broker.disk.file_slice import FileSlice
from odradek.protocol.primitives import Buffer

# Half of the descriptors allowed, for sockets need the other half; and no more than this where the limit is huge.
DESCRIPTORS_MAX = 32_768
RESERVED_DESCRIPTORS = 20
_WHOLE_FILE = Struct("@hhqqi")  # struct flock of 64 bits: type, whence, start, length (0: all of it), process


class LockHeld(OSError):
    """Somebody else holds the lock file."""


class Lock(Protocol):
    """A lock file that is ours until `release()` or until the process ends."""

    def release(self) -> None: ...


class Syncer(Protocol):
    """Makes durable what a file held when it was called: once, in any thread, whatever became of the file meanwhile."""

    def __call__(self) -> None:
        """Returns once the content is on the device. Raises OSError; no second try would prove anything (errseq_t)."""
        ...

    def close(self) -> None:
        """Gives up without syncing. No error when it was called or closed before."""
        ...


class File(Protocol):
    """A file that grows at its end only."""

    @property
    def path(self) -> str: ...

    @property
    def size_bytes(self) -> int:
        """The logical end: where the next append goes and where reads stop."""
        ...

    def append(self, parts: Sequence[Buffer]) -> int:
        """Writes all parts at the end and returns the position of the first byte. On OSError nothing was appended.

        A failed append drops what was preallocated.
        """
        ...

    def pread(self, size_bytes: int, position: int, at_least: int | None = None) -> bytes | bytearray:
        """Up to `size_bytes` bytes from `position`; fewer only where the file ends.

        Within `Disk.cached_only` it raises NotCached (disk_page_cache.py) when not all of them are in memory, unless
        the first `at_least` are: then it answers as many as there are.
        """
        ...

    def slice(self, size_bytes: int, position: int) -> FileSlice | None:
        """These bytes, which the file has, for a socket to take from the page cache; None where they may not all be in
        it, or are no file of the operating system's."""
        ...

    def preallocate(self, size_bytes: int) -> None:
        """Makes room, so that the file on the device is at least `size_bytes` long; `size_bytes` here stays as it is.

        Does nothing where the file system cannot. On OSError (ENOSPC) nothing is preallocated, nor what was before.
        After a crash the room is a tail of zeros, for `open` takes the file's size on the device for its end.
        """
        ...

    def truncate(self, size_bytes: int) -> None:
        """Cuts the file down to `size_bytes`, and drops what is preallocated."""
        ...

    def syncer(self) -> Syncer:
        """What makes the content durable later, perhaps in a helper thread. Call it or close it."""
        ...

    def sync(self) -> None:
        """Returns once the content is on the device."""
        ...

    def close(self) -> None:
        """Gives the descriptor back; what is preallocated stays. Any later use raises OSError (EBADF)."""
        ...


class Disk(Protocol):
    """A tree of files. Paths are text; every method raises OSError as the operating system would."""

    def open(self, path: str, size_bytes: int | None = None) -> File:
        """The file for reading and appending, created when missing. One `File` at a time for each path.

        With the size that `sizes` has just told, the file is taken for granted and the device is not asked.
        """
        ...

    def cached_only(self) -> AbstractContextManager[None]:
        """A block in which `File.pread` answers what is in memory, and raises NotCached instead of waiting.

        Nothing may be awaited within. Whoever catches NotCached lets a helper thread `read_range` that range and tries
        again; the memory may be short, so let the third try wait.
        """
        ...

    def exists(self, path: str) -> bool: ...

    def is_dir(self, path: str) -> bool: ...

    def list_dir(self, path: str) -> list[str]:
        """Names in the directory, sorted."""
        ...

    def sizes(self, path: str) -> dict[str, int]:
        """The files in the directory, sorted by name, with their sizes on the device. Directories are left out."""
        ...

    def make_dir(self, path: str) -> None:
        """Makes the directory and its parents; no error when it is there."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Moves a file (replacing `target`) or a directory, atomically. Durable after `sync_dir` of the parents."""
        ...

    def remove(self, path: str) -> None: ...

    def remove_tree(self, path: str) -> None:
        """Removes the directory and all below it; a symbolic link, and nothing of what it leads to."""
        ...

    def read_whole(self, path: str) -> bytes: ...

    def read_range(self, path: str, position: int, size_bytes: int) -> bytes:
        """Reads what is on the device, waiting for it; fewer bytes only where the file ends there."""
        ...

    def write_new(self, path: str, parts: Iterable[Buffer]) -> int:
        """Makes the file, or empties it, writes the parts, syncs, and returns the size. Any exception removes the file.

        Each part is written before the next is asked for. The name is durable after `sync_dir`.
        """
        ...

    def write_whole(self, path: str, data: Buffer) -> None:
        """Replaces the whole content, atomically and durably."""
        ...

    def sync_dir(self, path: str) -> None:
        """Makes creations, renames and removals in the directory durable."""
        ...

    def lock(self, path: str) -> Lock:
        """Takes the lock file, created when missing. Raises LockHeld."""
        ...

    def free_bytes(self, path: str) -> int: ...

    def total_bytes(self, path: str) -> int: ...


def raise_descriptor_limit() -> int:
    """Raises the soft limit of open files to the hard one, and returns it. For the process, so the server calls it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):
        return soft  # macOS refuses an unlimited hard limit; what we have must do
    return hard


def descriptor_budget() -> int:
    """How many descriptors files may hold under the present limit."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return DESCRIPTORS_MAX if soft == resource.RLIM_INFINITY else max(4, min(soft // 2, DESCRIPTORS_MAX))


def socket_budget() -> int:
    """How many descriptors are left for connections, with some in hand for listening, locks and short-lived files."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return sys.maxsize if soft == resource.RLIM_INFINITY else max(4, soft - descriptor_budget() - RESERVED_DESCRIPTORS)


class _HeldLock:
    """A lock file that is held: the kernel gives it back when the process dies, however it dies."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _lock_record(descriptor: int) -> None:
    """Takes the other kind of lock, fcntl(2)'s, which Apache Kafka holds on a directory (FileChannel.tryLock); flock(2)
    and it do not know of each other. Raises OSError when somebody holds it.

    Where the system has it, for the open file and not for the process: that is not given back when another descriptor
    of the file is closed.
    """
    set_lock: int | None = getattr(fcntl, "F_OFD_SETLK", None)
    if set_lock is None:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    else:
        fcntl.fcntl(descriptor, set_lock, _WHOLE_FILE.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))


class FileDisk:
    """Real files."""

    def __init__(self, descriptors_max: int | None = None) -> None:
        self._descriptors = Descriptors(descriptor_budget() if descriptors_max is None else descriptors_max)
        self._page_cache = PageCache()

    @property
    def open_descriptors(self) -> int:
        return len(self._descriptors)

    def open(self, path: str, size_bytes: int | None = None) -> File:
        descriptor = None
        if size_bytes is None:
            try:
                status = os.stat(path)
            except FileNotFoundError:
                descriptor = Descriptor(self._descriptors.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL))
                size_bytes = 0
            else:
                if stat.S_ISDIR(status.st_mode):
                    raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
                size_bytes = status.st_size
        file = DescriptorFile(self._descriptors, self._page_cache, path, size_bytes)
        if descriptor is not None:
            self._descriptors.admit(file, descriptor)
        return file

    def cached_only(self) -> AbstractContextManager[None]:
        return self._page_cache

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_dir(self, path: str) -> bool:
        return os.path.isdir(path)

    def list_dir(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    def sizes(self, path: str) -> dict[str, int]:
        sizes: dict[str, int] = {}
        with os.scandir(path) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # removed since it was listed
                    if entry.is_file():
                        sizes[entry.name] = entry.stat().st_size
        return dict(sorted(sizes.items()))

    def make_dir(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def remove(self, path: str) -> None:
        os.remove(path)

    def remove_tree(self, path: str) -> None:
        if os.path.islink(path):
            os.remove(path)
        else:
            shutil.rmtree(path)

    def read_whole(self, path: str) -> bytes:
        descriptor = self._descriptors.open(path, os.O_RDONLY)
        try:
            with open(descriptor, "rb", closefd=False) as stream:
                return stream.read()
        except OSError as error:
            raise named(error, path) from None
        finally:
            os.close(descriptor)

    def read_range(self, path: str, position: int, size_bytes: int) -> bytes:
        descriptor = self._descriptors.open(path, os.O_RDONLY)
        try:
            data = read_all(descriptor, size_bytes, position)
        except OSError as error:
            raise named(error, path) from None
        finally:
            os.close(descriptor)
        self._page_cache.warmed.add(path, position, size_bytes)
        return data

    def write_new(self, path: str, parts: Iterable[Buffer]) -> int:
        descriptor = self._descriptors.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        size_bytes = 0
        try:
            try:
                for part in parts:
                    write_all(descriptor, (part,), size_bytes)
                    size_bytes += len(part)
                sync_content(descriptor)
            finally:
                os.close(descriptor)
        except BaseException as error:
            with suppress(OSError):
                os.remove(path)
            if isinstance(error, OSError):
                named(error, path)
            raise
        return size_bytes

    def write_whole(self, path: str, data: Buffer) -> None:
        temporary = path + ".tmp"
        descriptor = self._descriptors.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            try:
                write_all(descriptor, (data,), 0)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.replace(temporary, path)
        except OSError as error:
            if os.path.exists(temporary):
                os.remove(temporary)
            raise named(error, path) from None
        self.sync_dir(os.path.dirname(path) or ".")

    def sync_dir(self, path: str) -> None:
        descriptor = self._descriptors.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        except OSError as error:
            raise named(error, path) from None
        finally:
            os.close(descriptor)

    def lock(self, path: str) -> Lock:
        descriptor = self._descriptors.open(path, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _lock_record(descriptor)
        except OSError as error:
            os.close(descriptor)
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                raise LockHeld(errno.EWOULDBLOCK, "another running broker holds the lock file", path) from error
            raise
        return _HeldLock(descriptor)

    def free_bytes(self, path: str) -> int:
        status = os.statvfs(path)
        return status.f_bavail * status.f_frsize

    def total_bytes(self, path: str) -> int:
        status = os.statvfs(path)
        return status.f_blocks * status.f_frsize
