"""The disk of a broker in a thread: another one's files behind its gate (gate.py), given back when the broker is gone.

Of a process that is killed, the operating system closes files and releases locks; here `release` does.
"""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from weakref import WeakSet

from odradek.broker.disk.disk import Disk, File, Lock, Syncer
from odradek.broker.disk.file_slice import FileSlice
from odradek.protocol.primitives import Buffer
from odradek.testing.hosting.gate import Gate


class GatedDisk:
    """A `Disk` of which each call goes through the gate first."""

    def __init__(self, disk: Disk, gate: Gate) -> None:
        self._disk = disk
        self._gate = gate
        self._files: WeakSet[_GatedFile] = WeakSet()
        self._locks: list[Lock] = []

    def release(self) -> None:
        """The broker is gone: closes what it has open, and gives its locks back. In no loop's thread but its own."""
        for file in list(self._files):
            with suppress(OSError):
                file.file.close()
        for lock in self._locks:
            lock.release()
        self._locks.clear()

    @property
    def is_visible_outside(self) -> bool:
        return self._disk.is_visible_outside

    def open(self, path: str, size_bytes: int | None = None) -> File:
        self._gate.check()
        file = _GatedFile(self._disk.open(path, size_bytes), self._gate)
        self._files.add(file)
        return file

    def cached_only(self) -> AbstractContextManager[None]:
        return self._disk.cached_only()

    def exists(self, path: str) -> bool:
        self._gate.check()
        return self._disk.exists(path)

    def is_dir(self, path: str) -> bool:
        self._gate.check()
        return self._disk.is_dir(path)

    def list_dir(self, path: str) -> list[str]:
        self._gate.check()
        return self._disk.list_dir(path)

    def sizes(self, path: str) -> dict[str, int]:
        self._gate.check()
        return self._disk.sizes(path)

    def make_dir(self, path: str) -> None:
        self._gate.check()
        self._disk.make_dir(path)

    def rename(self, source: str, target: str) -> None:
        self._gate.check()
        self._disk.rename(source, target)

    def remove(self, path: str) -> None:
        self._gate.check()
        self._disk.remove(path)

    def remove_tree(self, path: str) -> None:
        self._gate.check()
        self._disk.remove_tree(path)

    def read_whole(self, path: str) -> bytes:
        self._gate.check()
        return self._disk.read_whole(path)

    def read_range(self, path: str, position: int, size_bytes: int) -> bytes:
        self._gate.check()
        return self._disk.read_range(path, position, size_bytes)

    def write_new(self, path: str, parts: Iterable[Buffer]) -> int:
        self._gate.check()
        return self._disk.write_new(path, self._each(parts))

    def write_whole(self, path: str, data: Buffer) -> None:
        self._gate.check()
        self._disk.write_whole(path, data)

    def sync_dir(self, path: str) -> None:
        self._gate.check()
        self._disk.sync_dir(path)

    def lock(self, path: str) -> Lock:
        self._gate.check()
        lock = _GatedLock(self._disk.lock(path), self._gate)
        self._locks.append(lock.lock)
        return lock

    def free_bytes(self, path: str) -> int:
        self._gate.check()
        return self._disk.free_bytes(path)

    def total_bytes(self, path: str) -> int:
        self._gate.check()
        return self._disk.total_bytes(path)

    def _each(self, parts: Iterable[Buffer]) -> Iterable[Buffer]:
        for part in parts:
            self._gate.check()
            yield part


class _GatedLock:
    __slots__ = ("_gate", "lock")

    def __init__(self, lock: Lock, gate: Gate) -> None:
        self.lock = lock
        self._gate = gate

    def release(self) -> None:
        self._gate.check()
        self.lock.release()


class _GatedFile:
    __slots__ = ("__weakref__", "_gate", "file")

    def __init__(self, file: File, gate: Gate) -> None:
        self.file = file
        self._gate = gate

    @property
    def path(self) -> str:
        return self.file.path

    @property
    def size_bytes(self) -> int:
        return self.file.size_bytes

    def append(self, parts: Sequence[Buffer]) -> int:
        self._gate.check()
        return self.file.append(parts)

    def pread(self, size_bytes: int, position: int, at_least: int | None = None) -> bytes | bytearray:
        self._gate.check()
        return self.file.pread(size_bytes, position, at_least)

    def slice(self, size_bytes: int, position: int) -> FileSlice | None:
        self._gate.check()
        return self.file.slice(size_bytes, position)

    def preallocate(self, size_bytes: int) -> None:
        self._gate.check()
        self.file.preallocate(size_bytes)

    def truncate(self, size_bytes: int) -> None:
        self._gate.check()
        self.file.truncate(size_bytes)

    def syncer(self) -> Syncer:
        self._gate.check()
        return _GatedSyncer(self.file.syncer(), self._gate)

    def sync(self) -> None:
        self._gate.check()
        self.file.sync()

    def close(self) -> None:
        self._gate.check()
        self.file.close()


class _GatedSyncer:
    __slots__ = ("_gate", "_syncer")

    def __init__(self, syncer: Syncer, gate: Gate) -> None:
        self._syncer = syncer
        self._gate = gate

    def __call__(self) -> None:
        self._gate.check()
        self._syncer()

    def close(self) -> None:
        self._syncer.close()
