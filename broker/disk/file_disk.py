"""Real files: `FileDisk` keeps what disk.py promises.

It keeps its descriptors in a table (disk_descriptors.py): an evicted file opens again by its path at the next use, so
rename files only when closed. disk_file.py is the file, disk_page_cache.py what can be read without waiting.
"""

import errno
import fcntl
import os
import shutil
import stat
from collections.abc import Iterable
from contextlib import AbstractContextManager, suppress
from struct import Struct

from odradek.broker.disk.descriptor_limits import descriptor_budget
from odradek.broker.disk.disk import File, Lock, LockHeld
from odradek.broker.disk.disk_descriptors import Descriptor, Descriptors
from odradek.broker.disk.disk_file import DescriptorFile, named, sync_content, write_all
from odradek.broker.disk.disk_page_cache import PageCache, read_all
from odradek.broker.disk.open_files import OWNER_ALONE
from odradek.protocol.primitives import Buffer

_WHOLE_FILE = Struct("@hhqqi")  # struct flock of 64 bits: type, whence, start, length (0: all of it), process


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
    def is_visible_outside(self) -> bool:
        return True

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
        os.makedirs(path, OWNER_ALONE, exist_ok=True)

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
