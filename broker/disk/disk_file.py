"""A file of `FileDisk`: what `File` (disk.py) promises, on a descriptor that may be evicted between two calls.

    0 ............ size_bytes ............ end of the file on the device
    what was appended | what a failed append left, or what was preallocated

The logical end, `size_bytes`, is kept here and never asked of the device. Behind it there may lie bytes of a batch that
was half-written, which are cut off before anything else is written, or room that was preallocated, which stays until
`truncate`. Nobody reads either.
"""

import errno
import os
from collections.abc import Sequence
from contextlib import suppress
from threading import get_ident

from odradek.broker.disk.disk_descriptors import Descriptor, Descriptors
from odradek.broker.disk.disk_page_cache import PageCache, complete
from odradek.broker.disk.file_slice import FileSlice
from odradek.protocol.primitives import Buffer

# writev refuses more parts than IOV_MAX, 1024 on Linux and macOS.
PARTS_MAX = 1024
_NO_DEVICE = -1


class DescriptorSyncer:
    """Makes the file durable, once, through a descriptor that it holds."""

    __slots__ = ("_descriptor", "_path")

    def __init__(self, descriptor: Descriptor, path: str) -> None:
        self._descriptor: Descriptor | None = descriptor
        self._path = path

    def __call__(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        assert descriptor is not None, "a syncer is called once, and not when it was closed"
        try:
            sync_content(descriptor.number)
        except OSError as error:
            raise named(error, self._path) from None
        finally:
            del descriptor  # an error would hold it as long as anybody holds the error

    def close(self) -> None:
        self._descriptor = None


class DescriptorFile:
    """A file that is open on a disk; `descriptor` and `is_closed` belong to the table of descriptors."""

    __slots__ = (
        "_descriptors",
        "_device",
        "_is_preallocated",
        "_is_torn",
        "_page_cache",
        "descriptor",
        "is_closed",
        "path",
        "size_bytes",
    )

    def __init__(self, descriptors: Descriptors, page_cache: PageCache, path: str, size_bytes: int) -> None:
        self._descriptors = descriptors
        self._page_cache = page_cache
        self._device = _NO_DEVICE
        self._is_preallocated = False
        self._is_torn = False  # bytes of a failed append may lie behind size_bytes
        self.descriptor: Descriptor | None = None
        self.is_closed = False
        self.path = path
        self.size_bytes = size_bytes

    def append(self, parts: Sequence[Buffer]) -> int:
        descriptor = self._descriptors.of(self)
        position = self.size_bytes
        if self._is_torn:
            self._cut_back(descriptor)
        total = sum(map(len, parts))
        try:
            written = os.pwritev(descriptor, parts, position) if len(parts) <= PARTS_MAX else 0
            if written != total:
                write_all(descriptor, parts, position, written)
        except BaseException as error:
            self._is_torn = True
            # A cut that fails is tried again before the next append, which fails as long as the cut does.
            with suppress(OSError):
                self._cut_back(descriptor)
            if isinstance(error, OSError):
                named(error, self.path)
            raise
        self.size_bytes = position + total
        return position

    def _cut_back(self, descriptor: int) -> None:
        self._cut(descriptor, self.size_bytes)
        self._is_torn = self._is_preallocated = False

    def _cut(self, descriptor: int, size_bytes: int) -> None:
        try:
            os.ftruncate(descriptor, size_bytes)
        except OSError as error:
            raise named(error, self.path) from None

    def pread(self, size_bytes: int, position: int, at_least: int | None = None) -> bytes | bytearray:
        if position < 0:
            check_position(position, self.path)
        size_bytes = min(size_bytes, self.size_bytes - position)
        if size_bytes <= 0:
            return b""
        descriptor = self._descriptors.of(self)
        page_cache = self._page_cache
        try:
            if page_cache.thread_id and page_cache.thread_id == get_ident():
                if self._device == _NO_DEVICE:
                    self._device = os.fstat(descriptor).st_dev
                return page_cache.pread(descriptor, self._device, self.path, size_bytes, position, at_least)
            data = os.pread(descriptor, size_bytes, position)
            return data if len(data) == size_bytes else complete(data, descriptor, size_bytes, position)
        except OSError as error:
            raise named(error, self.path) from None

    def slice(self, size_bytes: int, position: int) -> FileSlice | None:
        check_position(position, self.path)
        assert 0 < size_bytes <= self.size_bytes - position, "there is as much"
        if not self._page_cache.is_cached(self._descriptors.of(self), position, size_bytes):
            return None
        return FileSlice(self._descriptors.shared(self), self.path, position, size_bytes)

    def preallocate(self, size_bytes: int) -> None:
        descriptor = self._descriptors.of(self)
        if self._is_torn:
            self._cut_back(descriptor)
        missing = size_bytes - self.size_bytes
        if missing <= 0 or not hasattr(os, "posix_fallocate"):
            return
        self._is_preallocated = True
        try:
            os.posix_fallocate(descriptor, self.size_bytes, missing)
        except OSError as error:
            # It may have taken what there was; should the cut fail, too, `truncate` will do it.
            with suppress(OSError):
                self._cut_back(descriptor)
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                raise named(error, self.path) from None

    def truncate(self, size_bytes: int) -> None:
        assert 0 <= size_bytes <= self.size_bytes, "a file is only ever cut, never extended"
        descriptor = self._descriptors.of(self)
        if size_bytes == self.size_bytes and not self._is_torn and not self._is_preallocated:
            return
        self._cut(descriptor, size_bytes)
        self.size_bytes = size_bytes
        self._is_torn = self._is_preallocated = False

    def syncer(self) -> DescriptorSyncer:
        return DescriptorSyncer(self._descriptors.shared(self), self.path)

    def sync(self) -> None:
        self.syncer()()

    def close(self) -> None:
        self._descriptors.forget(self)


def named(error: OSError, path: str) -> OSError:
    """The same error, with the name of the file, for the kernel knew the descriptor only."""
    if error.errno is not None and not isinstance(error.filename, str):
        error.filename = path
    return error


def check_position(position: int, path: str) -> None:
    """Raises OSError EINVAL, with the file's name, for a position before the file's beginning."""
    if position < 0:
        raise OSError(errno.EINVAL, f"Invalid argument: {position} is no position", path)


def sync_content(descriptor: int) -> None:
    """Returns once the content, and the size that is needed to read it, are on the device."""
    if hasattr(os, "fdatasync"):
        os.fdatasync(descriptor)
    else:
        os.fsync(descriptor)  # macOS


def write_all(descriptor: int, parts: Sequence[Buffer], position: int, written: int = 0) -> None:
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
