"""The only module that opens, writes, syncs and renames files.

Everything above takes a `Disk`, so that tests and `--memory` put `MemoryDisk` (memory_disk.py) in its place and fault
tests put a failing one. What callers rely on, for every implementation (tests/contract/test_disk.py):

* `File.append` writes all of its parts behind `size_bytes`, or leaves `size_bytes` alone and raises OSError. What a
  failed append left behind is cut off at once, and if even that fails, before the next append: bytes of a half-written
  batch never end up between two batches.
* `File.pread` never answers bytes beyond `size_bytes`.
* `write_whole` and `rename` are atomic: a reader, or the next start, finds the old content or the new one.
* Nothing is durable before `sync`, `write_whole` or `sync_dir` returned.

`FileDisk` keeps its descriptors in an LRU: a partition holds three files or more a segment, and a broker may hold tens
of thousands of segments. An evicted file opens again by its path at the next use, so rename files only when closed.
Files belong to the thread that made the disk; helper threads may call `File.sync` and the methods of the disk that take
a path.
"""

import errno
import fcntl
import os
import resource
import shutil
import stat
import sys
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from threading import get_ident
from typing import Protocol

from protocol.primitives import Buffer

# writev refuses more parts than IOV_MAX, 1024 on Linux and macOS.
PARTS_MAX = 1024
# Half of the descriptors allowed, for sockets need the other half; and no more than this where the limit is huge.
DESCRIPTORS_MAX = 32_768
RESERVED_DESCRIPTORS = 20
_EVICTED = -1
_CLOSED = -2


class LockHeld(OSError):
    """Somebody else holds the lock file."""


class Lock(Protocol):
    """A lock file that is ours until `release()` or until the process ends."""

    def release(self) -> None: ...


class File(Protocol):
    """A file that grows at its end only."""

    @property
    def path(self) -> str: ...

    @property
    def size_bytes(self) -> int: ...

    def append(self, parts: Sequence[Buffer]) -> int:
        """Writes all parts at the end and returns the position of the first byte. On OSError nothing was appended."""
        ...

    def pread(self, size_bytes: int, position: int) -> bytes:
        """Up to `size_bytes` bytes from `position`; fewer only where the file ends."""
        ...

    def truncate(self, size_bytes: int) -> None:
        """Cuts the file down to `size_bytes`."""
        ...

    def sync(self) -> None:
        """Returns once the content is on the device."""
        ...

    def close(self) -> None:
        """Gives the descriptor back. Any later use raises OSError (EBADF)."""
        ...


class Disk(Protocol):
    """A tree of files. Paths are text; every method raises OSError as the operating system would."""

    def open(self, path: str) -> File:
        """The file for reading and appending, created when missing. One `File` at a time for each path."""
        ...

    def exists(self, path: str) -> bool: ...

    def is_dir(self, path: str) -> bool: ...

    def list_dir(self, path: str) -> list[str]:
        """Names in the directory, sorted."""
        ...

    def make_dir(self, path: str) -> None:
        """Makes the directory and its parents; no error when it is there."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Moves a file (replacing `target`) or a directory, atomically. Durable after `sync_dir` of the parents."""
        ...

    def remove(self, path: str) -> None: ...

    def remove_tree(self, path: str) -> None:
        """Removes the directory and all below it."""
        ...

    def read_whole(self, path: str) -> bytes: ...

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


class _DescriptorFile:
    """A file of `FileDisk`; `fd` is _EVICTED or _CLOSED while it has no descriptor."""

    __slots__ = ("_disk", "_is_torn", "fd", "path", "size_bytes")

    def __init__(self, disk: "FileDisk", path: str, descriptor: int, size_bytes: int) -> None:
        self._disk = disk
        self.fd = descriptor
        self._is_torn = False  # bytes of a failed append may lie behind size_bytes
        self.path = path
        self.size_bytes = size_bytes

    def append(self, parts: Sequence[Buffer]) -> int:
        descriptor = self._disk.descriptor(self)
        position = self.size_bytes
        if self._is_torn:
            self._cut_back(descriptor)
        total = 0
        for part in parts:
            total += len(part)
        self._is_torn = True
        try:
            written = os.pwritev(descriptor, parts, position) if len(parts) <= PARTS_MAX else 0
            if written != total:
                _write_rest(descriptor, parts, position, written)
        except OSError:
            # A cut that fails is tried again before the next append, which fails as long as the cut does.
            with suppress(OSError):
                self._cut_back(descriptor)
            raise
        self._is_torn = False
        self.size_bytes = position + total
        return position

    def _cut_back(self, descriptor: int) -> None:
        os.ftruncate(descriptor, self.size_bytes)
        self._is_torn = False

    def pread(self, size_bytes: int, position: int) -> bytes:
        size_bytes = min(size_bytes, self.size_bytes - position)
        if size_bytes <= 0:
            return b""
        descriptor = self._disk.descriptor(self)
        data = os.pread(descriptor, size_bytes, position)
        if len(data) == size_bytes:
            return data
        # Linux reads at most 2 GiB - 4 KiB at once; a network file system may answer less than asked, too.
        pieces = [data]
        missing = size_bytes - len(data)
        while pieces[-1] and missing:
            pieces.append(os.pread(descriptor, missing, position + size_bytes - missing))
            missing -= len(pieces[-1])
        return b"".join(pieces)

    def truncate(self, size_bytes: int) -> None:
        assert 0 <= size_bytes <= self.size_bytes, "a file is only ever cut, never extended"
        descriptor = self._disk.descriptor(self)
        if size_bytes == self.size_bytes and not self._is_torn:
            return
        os.ftruncate(descriptor, size_bytes)
        self.size_bytes = size_bytes
        self._is_torn = False

    def sync(self) -> None:
        # With a descriptor of its own: a helper thread may sync while the loop's thread evicts. Opened this late it
        # still reports write-back errors that nobody has seen (Linux errseq_t).
        if self.fd == _CLOSED:
            raise OSError(errno.EBADF, "the file is closed", self.path)
        self._disk.sync_path(self.path, os.O_RDWR)

    def close(self) -> None:
        self._disk.forget(self)


def _write_rest(descriptor: int, parts: Sequence[Buffer], position: int, written: int) -> None:
    """Completes a short write, or one with too many parts for a single call."""
    skip = written
    rest: list[memoryview] = []
    for part in parts:
        if skip < len(part):
            rest.append(memoryview(part)[skip:])
        skip = max(0, skip - len(part))
    position += written
    while rest:
        count = os.pwritev(descriptor, rest[:PARTS_MAX], position)
        if count == 0:
            raise OSError(errno.EIO, "the file takes no more bytes")
        position += count
        while rest and count >= len(rest[0]):
            count -= len(rest.pop(0))
        if count:
            rest[0] = rest[0][count:]


class _FlockLock:
    """A lock file held with flock(2): the kernel gives it back when the process dies, however it dies."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class FileDisk:
    """Real files."""

    def __init__(self, descriptors_max: int | None = None) -> None:
        self._descriptors_max = descriptor_budget() if descriptors_max is None else descriptors_max
        assert self._descriptors_max >= 1
        self._open: OrderedDict[_DescriptorFile, None] = OrderedDict()  # least recently used first
        self._thread_id = get_ident()

    def open(self, path: str) -> File:
        try:
            status = os.stat(path)
        except FileNotFoundError:
            descriptor = self._os_open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
            file = _DescriptorFile(self, path, descriptor, 0)
            self._admit(file)
            return file
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return _DescriptorFile(self, path, _EVICTED, status.st_size)

    def descriptor(self, file: _DescriptorFile) -> int:
        """The file's descriptor, opened again when it was evicted. For `_DescriptorFile` only."""
        descriptor = file.fd
        if descriptor >= 0:
            self._open.move_to_end(file)
            return descriptor
        if descriptor == _CLOSED:
            raise OSError(errno.EBADF, "the file is closed", file.path)
        file.fd = self._os_open(file.path, os.O_RDWR)
        self._admit(file)
        return file.fd

    def forget(self, file: _DescriptorFile) -> None:
        """Closes the file for good. For `_DescriptorFile` only."""
        if file in self._open:
            del self._open[file]
            os.close(file.fd)
        file.fd = _CLOSED

    @property
    def open_descriptors(self) -> int:
        return len(self._open)

    def _admit(self, file: _DescriptorFile) -> None:
        self._open[file] = None
        while len(self._open) > self._descriptors_max:
            self._evict()

    def _evict(self) -> None:
        file, _ = self._open.popitem(last=False)
        os.close(file.fd)
        file.fd = _EVICTED

    def _os_open(self, path: str, flags: int) -> int:
        while True:
            try:
                return os.open(path, flags | os.O_CLOEXEC, 0o644)
            except OSError as error:
                # Sockets took more than their half: give up cached descriptors before giving up the operation.
                # A helper thread must not: the loop's thread may be using the descriptor that would be closed.
                is_ours = get_ident() == self._thread_id
                if error.errno not in (errno.EMFILE, errno.ENFILE) or not self._open or not is_ours:
                    raise
                self._evict()

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_dir(self, path: str) -> bool:
        return os.path.isdir(path)

    def list_dir(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    def make_dir(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def remove(self, path: str) -> None:
        os.remove(path)

    def remove_tree(self, path: str) -> None:
        shutil.rmtree(path)

    def read_whole(self, path: str) -> bytes:
        descriptor = self._os_open(path, os.O_RDONLY)
        with os.fdopen(descriptor, "rb") as stream:
            return stream.read()

    def write_whole(self, path: str, data: Buffer) -> None:
        temporary = path + ".tmp"
        descriptor = self._os_open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            try:
                _write_rest(descriptor, (data,), 0, 0)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.replace(temporary, path)
        except OSError:
            if os.path.exists(temporary):
                os.remove(temporary)
            raise
        self.sync_dir(os.path.dirname(path) or ".")

    def sync_dir(self, path: str) -> None:
        self.sync_path(path, os.O_RDONLY)

    def sync_path(self, path: str, flags: int) -> None:
        descriptor = self._os_open(path, flags)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def lock(self, path: str) -> Lock:
        descriptor = self._os_open(path, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                raise LockHeld(errno.EWOULDBLOCK, "another running broker holds the lock file", path) from error
            raise
        return _FlockLock(descriptor)

    def free_bytes(self, path: str) -> int:
        status = os.statvfs(path)
        return status.f_bavail * status.f_frsize

    def total_bytes(self, path: str) -> int:
        status = os.statvfs(path)
        return status.f_blocks * status.f_frsize
