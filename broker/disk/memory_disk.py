"""A disk in memory: the same contract as `FileDisk` (disk.py), for `--memory` and for tests.

A directory is a dict, a file a bytearray in it. Relative paths start at the root. `size_bytes_max` makes the disk run
full with ENOSPC, as a real one does. What a test may want to watch or to break passes through a method that a subclass
can override: every byte written through `write`, every one cut through `cut`, room that is preallocated through
`reserve`, every sync of a file through `sync`; and `cached_bytes` says what may be read without waiting.
"""

import errno
import os
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from functools import lru_cache
from threading import get_ident

from odradek.broker.disk.disk import File, Lock, LockHeld, Syncer
from odradek.broker.disk.disk_file import check_position
from odradek.broker.disk.disk_page_cache import CachedOnly, NotCached, WarmedRanges
from odradek.broker.disk.file_slice import FileSlice
from odradek.protocol.primitives import Buffer

# What total_bytes() answers when no limit was given: a number that fits the int64 of DescribeLogDirs.
_UNLIMITED = 1 << 62


class Content(bytearray):
    """The bytes of a file; room that is preallocated behind them is a number until somebody looks at the zeros."""

    reserved_bytes = 0

    @property
    def size_bytes(self) -> int:
        """The size on the disk."""
        return max(len(self), self.reserved_bytes)

    def on_disk(self, start: int, stop: int) -> bytes:
        # A slice, and no view: it takes one step, while the file may be appended to in another thread.
        return bytes(self[start:stop]).ljust(min(stop, self.reserved_bytes) - start, b"\0")


class _Directory:
    __slots__ = ("entries",)

    def __init__(self) -> None:
        self.entries: dict[str, Content | _Directory] = {}

    def used_bytes(self) -> int:
        # Of a copy, for a helper thread may add a file meanwhile.
        return sum(
            entry.size_bytes if isinstance(entry, Content) else entry.used_bytes()
            for entry in list(self.entries.values())
        )


class _MemorySyncer:
    __slots__ = ("_content", "_disk")

    def __init__(self, disk: "MemoryDisk", content: Content) -> None:
        self._disk = disk
        self._content: Content | None = content

    def __call__(self) -> None:
        content, self._content = self._content, None
        assert content is not None, "a syncer is called once, and not when it was closed"
        self._disk.sync(content)

    def close(self) -> None:
        self._content = None


class _MemoryFile:
    __slots__ = ("_content", "_disk", "_is_closed", "path", "size_bytes")

    def __init__(self, disk: "MemoryDisk", path: str, content: Content) -> None:
        self._disk = disk
        self._content = content
        self._is_closed = False
        self.path = path
        self.size_bytes = len(content)

    def append(self, parts: Sequence[Buffer]) -> int:
        self._check_open()
        position = self.size_bytes
        if len(self._content) != position:
            self._disk.cut(self._content, position)
        try:
            for part in parts:
                self._disk.write(self._content, part)
        except OSError:
            self._disk.cut(self._content, position)
            raise
        self.size_bytes = len(self._content)
        return position

    def pread(self, size_bytes: int, position: int, at_least: int | None = None) -> bytes:
        self._check_open()
        check_position(position, self.path)
        size_bytes = min(size_bytes, self.size_bytes - position)
        if size_bytes <= 0:
            return b""
        there = self._disk.readable_bytes(self.path, position, size_bytes)
        if there < (size_bytes if at_least is None else min(at_least, size_bytes)):
            raise NotCached(self.path, position, size_bytes)
        return bytes(memoryview(self._content)[position : position + there])

    def slice(self, size_bytes: int, position: int) -> FileSlice | None:
        check_position(position, self.path)
        return self._disk.slice(self.path, self._content, position, size_bytes)

    def preallocate(self, size_bytes: int) -> None:
        self._check_open()
        if len(self._content) != self.size_bytes:
            self._disk.cut(self._content, self.size_bytes)
        if size_bytes <= self.size_bytes:
            return
        try:
            self._disk.reserve(self._content, size_bytes)
        except OSError:
            self._disk.cut(self._content, self.size_bytes)
            raise

    def truncate(self, size_bytes: int) -> None:
        self._check_open()
        assert 0 <= size_bytes <= self.size_bytes, "a file is only ever cut, never extended"
        self._disk.cut(self._content, size_bytes)
        self.size_bytes = size_bytes

    def syncer(self) -> Syncer:
        self._check_open()
        return _MemorySyncer(self._disk, self._content)

    def sync(self) -> None:
        self.syncer()()

    def close(self) -> None:
        self._is_closed = True

    def _check_open(self) -> None:
        if self._is_closed:
            raise _error(errno.EBADF, self.path)


class _MemoryLock:
    def __init__(self, held: dict[str, None], path: str) -> None:
        self._held = held
        self._path = path

    def release(self) -> None:
        self._held.pop(self._path, None)


class MemoryDisk:
    """Files in memory; what they hold is gone with the process."""

    def __init__(self, size_bytes_max: int | None = None, former: "MemoryDisk | None" = None) -> None:
        """`former`: another one, whose broker is gone, and whose files are these; its locks are not."""
        self.size_bytes_max = size_bytes_max
        self._root: _Directory = _Directory() if former is None else former._root
        self._held: dict[str, None] = {}
        self._cached_only = CachedOnly()
        self._warmed = WarmedRanges()

    @property
    def is_visible_outside(self) -> bool:
        return False

    def write(self, content: Content, data: Buffer) -> None:
        """Adds `data` at the end of a file. On OSError a part of it may have been added."""
        if self.size_bytes_max is not None:
            # What is written into reserved room takes none of the rest.
            room = self.size_bytes_max - self._root.used_bytes() + content.size_bytes - len(content)
            if len(data) > room:
                content += memoryview(data)[: max(room, 0)]
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        content += data

    def cut(self, content: Content, size_bytes: int) -> None:
        """Drops what a file holds behind `size_bytes`, and the room that is reserved."""
        del content[size_bytes:]
        content.reserved_bytes = 0

    def reserve(self, content: Content, size_bytes: int) -> None:
        """Makes room for a file of `size_bytes`. On OSError a part of it may have been reserved."""
        if self.size_bytes_max is not None:
            room = max(self.size_bytes_max - self._root.used_bytes(), 0)
            if size_bytes - content.size_bytes > room:
                content.reserved_bytes = content.size_bytes + room
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        content.reserved_bytes = max(content.reserved_bytes, size_bytes)

    def sync(self, content: Content) -> None:
        """What the file holds now would survive a loss of power. Raises OSError where a test says so."""

    def cached_bytes(self, path: str, position: int, size_bytes: int) -> int:
        """How many of these bytes are in memory, from the first on: all of them, unless a test says otherwise."""
        return size_bytes

    def cached_only(self) -> AbstractContextManager[None]:
        return self._cached_only

    def slice(self, path: str, content: Content, position: int, size_bytes: int) -> FileSlice | None:
        """What `File.slice` answers: nothing here is a file of the operating system's."""
        return None

    def readable_bytes(self, path: str, position: int, size_bytes: int) -> int:
        """How many of these bytes a file may answer now. For `_MemoryFile` only."""
        if self._cached_only.thread_id != get_ident():
            return size_bytes
        warmed = self._warmed.size_at(path, position)
        return min(max(warmed, self.cached_bytes(path, position, size_bytes)), size_bytes)

    def open(self, path: str, size_bytes: int | None = None) -> File:
        parent, name = self._parent(path)
        entry = parent.entries.get(name)
        if isinstance(entry, _Directory):
            raise _error(errno.EISDIR, path)
        if entry is None:
            if size_bytes is not None:
                raise _error(errno.ENOENT, path)
            entry = parent.entries[name] = Content()
        assert size_bytes in (None, entry.size_bytes), "the size was told before the file changed"
        entry += bytes(entry.size_bytes - len(entry))
        return _MemoryFile(self, path, entry)

    def exists(self, path: str) -> bool:
        return self._find(path) is not None

    def is_dir(self, path: str) -> bool:
        return isinstance(self._find(path), _Directory)

    def list_dir(self, path: str) -> list[str]:
        return sorted(self._directory(path).entries)

    def sizes(self, path: str) -> dict[str, int]:
        entries = sorted(self._directory(path).entries.items())
        return {name: entry.size_bytes for name, entry in entries if isinstance(entry, Content)}

    def make_dir(self, path: str) -> None:
        directory = self._root
        for name in _parts(path):
            entry = directory.entries.setdefault(name, _Directory())
            if not isinstance(entry, _Directory):
                raise _error(errno.EEXIST, path)
            directory = entry

    def rename(self, source: str, target: str) -> None:
        source_parent, source_name = self._parent(source)
        target_parent, target_name = self._parent(target)
        moved = source_parent.entries.get(source_name)
        replaced = target_parent.entries.get(target_name)
        if moved is None:
            raise _error(errno.ENOENT, source)
        if isinstance(moved, _Directory):
            if isinstance(replaced, Content):
                raise _error(errno.ENOTDIR, target)
            if replaced is not None and replaced.entries:
                raise _error(errno.ENOTEMPTY, target)
        elif isinstance(replaced, _Directory):
            raise _error(errno.EISDIR, target)
        del source_parent.entries[source_name]
        target_parent.entries[target_name] = moved

    def remove(self, path: str) -> None:
        self._content(path)
        parent, name = self._parent(path)
        del parent.entries[name]

    def remove_tree(self, path: str) -> None:
        self._directory(path)
        parent, name = self._parent(path)
        del parent.entries[name]

    def read_whole(self, path: str) -> bytes:
        content = self._content(path)
        return content.on_disk(0, content.size_bytes)

    def read_range(self, path: str, position: int, size_bytes: int) -> bytes:
        data = self._content(path).on_disk(position, position + size_bytes)
        self._warmed.add(path, position, size_bytes)
        return data

    def write_new(self, path: str, parts: Iterable[Buffer]) -> int:
        file = self.open(path)
        try:
            file.truncate(0)
            for part in parts:
                file.append([part])
            file.sync()
        except Exception:
            with suppress(OSError):
                self.remove(path)
            raise
        finally:
            file.close()
        return file.size_bytes

    def write_whole(self, path: str, data: Buffer) -> None:
        parent, name = self._parent(path)
        if isinstance(parent.entries.get(name), _Directory):
            raise _error(errno.EISDIR, path)
        content = Content()
        self.write(content, data)
        self.sync(content)
        parent.entries[name] = content

    def sync_dir(self, path: str) -> None:
        self._directory(path)

    def lock(self, path: str) -> Lock:
        path = "/".join(_parts(path))
        if path in self._held:
            raise LockHeld(errno.EWOULDBLOCK, "another running broker holds the lock file", path)
        self.open(path).close()
        self._held[path] = None
        return _MemoryLock(self._held, path)

    def free_bytes(self, path: str) -> int:
        return self.total_bytes(path) - self._root.used_bytes()

    def total_bytes(self, path: str) -> int:
        self._directory(path)
        return _UNLIMITED if self.size_bytes_max is None else self.size_bytes_max

    def _find(self, path: str) -> Content | _Directory | None:
        entry: Content | _Directory | None = self._root
        for name in _parts(path):
            if not isinstance(entry, _Directory):
                return None
            entry = entry.entries.get(name)
        return entry

    def _directory(self, path: str) -> _Directory:
        match self._find(path):
            case _Directory() as directory:
                return directory
            case None:
                raise _error(errno.ENOENT, path)
            case _:
                raise _error(errno.ENOTDIR, path)

    def _content(self, path: str) -> Content:
        match self._find(path):
            case Content() as content:
                return content
            case None:
                raise _error(errno.ENOENT, path)
            case _:
                raise _error(errno.EISDIR, path)

    def _parent(self, path: str) -> tuple[_Directory, str]:
        *parents, name = _parts(path) or ("",)
        return self._directory("/".join(parents)), name


@lru_cache(maxsize=4096)
def _parts(path: str) -> tuple[str, ...]:
    return tuple(part for part in os.path.normpath(path).split("/") if part not in ("", "."))


def _error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)
