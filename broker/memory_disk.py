"""A disk in memory: the same contract as `FileDisk` (disk.py), for `--memory` and for tests.

A directory is a dict, a file a bytearray in it. Relative paths start at the root. `size_bytes_max` makes the disk run
full with ENOSPC, as a real one does. Every byte written passes through `write`, every one cut through `cut`, so that a
subclass can fail there.
"""

import errno
import os
from collections.abc import Sequence

from broker.disk import File, Lock, LockHeld
from protocol.primitives import Buffer

# What total_bytes() answers when no limit was given: a number that fits the int64 of DescribeLogDirs.
_UNLIMITED = 1 << 62


class _Directory:
    __slots__ = ("entries",)

    def __init__(self) -> None:
        self.entries: dict[str, bytearray | _Directory] = {}

    def used_bytes(self) -> int:
        return sum(
            len(entry) if isinstance(entry, bytearray) else entry.used_bytes() for entry in self.entries.values()
        )


class _MemoryFile:
    __slots__ = ("_content", "_disk", "_is_closed", "path", "size_bytes")

    def __init__(self, disk: "MemoryDisk", path: str, content: bytearray) -> None:
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

    def pread(self, size_bytes: int, position: int) -> bytes:
        self._check_open()
        end = min(position + max(size_bytes, 0), self.size_bytes)
        return bytes(memoryview(self._content)[position:end])

    def truncate(self, size_bytes: int) -> None:
        self._check_open()
        assert 0 <= size_bytes <= self.size_bytes, "a file is only ever cut, never extended"
        self._disk.cut(self._content, size_bytes)
        self.size_bytes = size_bytes

    def sync(self) -> None:
        self._check_open()

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

    def __init__(self, size_bytes_max: int | None = None) -> None:
        self.size_bytes_max = size_bytes_max
        self._root = _Directory()
        self._held: dict[str, None] = {}

    def write(self, content: bytearray, data: Buffer) -> None:
        """Adds `data` at the end of a file. On OSError a part of it may have been added."""
        if self.size_bytes_max is not None:
            room = self.size_bytes_max - self._root.used_bytes()
            if len(data) > room:
                content += memoryview(data)[: max(room, 0)]
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        content += data

    def cut(self, content: bytearray, size_bytes: int) -> None:
        """Drops what a file holds behind `size_bytes`."""
        del content[size_bytes:]

    def open(self, path: str) -> File:
        parent, name = self._parent(path)
        entry = parent.entries.get(name)
        if isinstance(entry, _Directory):
            raise _error(errno.EISDIR, path)
        if entry is None:
            entry = parent.entries[name] = bytearray()
        return _MemoryFile(self, path, entry)

    def exists(self, path: str) -> bool:
        return self._find(path) is not None

    def is_dir(self, path: str) -> bool:
        return isinstance(self._find(path), _Directory)

    def list_dir(self, path: str) -> list[str]:
        return sorted(self._directory(path).entries)

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
            if isinstance(replaced, bytearray):
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
        return bytes(self._content(path))

    def write_whole(self, path: str, data: Buffer) -> None:
        parent, name = self._parent(path)
        if isinstance(parent.entries.get(name), _Directory):
            raise _error(errno.EISDIR, path)
        content = bytearray()
        self.write(content, data)
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

    def _find(self, path: str) -> bytearray | _Directory | None:
        entry: bytearray | _Directory | None = self._root
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

    def _content(self, path: str) -> bytearray:
        match self._find(path):
            case bytearray() as content:
                return content
            case None:
                raise _error(errno.ENOENT, path)
            case _:
                raise _error(errno.EISDIR, path)

    def _parent(self, path: str) -> tuple[_Directory, str]:
        *parents, name = _parts(path) or [""]
        return self._directory("/".join(parents)), name


def _parts(path: str) -> list[str]:
    return [part for part in os.path.normpath(path).split("/") if part not in ("", ".")]


def _error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)
