"""What a storage device holds when power fails: a memory disk that knows what of it was synced.

    disk = LosingDevice()
    ...
    after = disk.after_power_failure(Fate(random.Random(seed)))

As `LosingDisk` (tests/broker/log), whose outcomes it takes: of a file the content at its last sync is safe; what was
changed since is kept or dropped sector by sector; of a directory the names at its last sync are safe, and each later
change happened or did not. This one is made for long runs of whole brokers: a sync costs nothing, directories are
renamed and removed, and a file whose sync failed has lost what that sync was about, although the page cache still
shows it and later syncs succeed (Linux marks the pages clean).

Several of them may share one device, one after the other: `LosingDevice(former)` is what the next process opens.
"""

import posixpath
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from odradek.broker.disk.disk import File
from odradek.broker.disk.memory_disk import Content, MemoryDisk
from odradek.protocol.primitives import Buffer
from odradek.testing.sim.world.losing_disk import Outcome

SECTOR_BYTES: Final = 512

Names = dict[str, object]
"""What a directory holds: files (Content) and directories, by name."""
Change = Callable[[Names], None]


@dataclass(slots=True)
class _SafeFile:
    """What the device holds of a file: its first `common_bytes` as they are now, and then `tail`."""

    content: Content
    common_bytes: int = 0
    tail: bytes = b""
    size_bytes: int = 0
    """With what was preallocated, which is zeros."""
    holes: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """What a sync that failed was about: it is not there, whatever is synced later."""


@dataclass(slots=True)
class _SafeDirectory:
    """What the device holds of a directory, and what was done to its names since."""

    directory: object
    names: Names = field(default_factory=dict[str, object])
    changes: list[tuple[str, Change]] = field(default_factory=list[tuple[str, Change]])


class LosingDevice(MemoryDisk):
    """See the module."""

    def __init__(self, former: "LosingDevice | None" = None) -> None:
        super().__init__()
        self._files: dict[int, _SafeFile] = {}
        self._directories: dict[int, _SafeDirectory] = {}
        if former is None:
            self._directories[id(self._directory(""))] = _SafeDirectory(self._directory(""))
        else:
            of_former: Any = former
            self._root, self.size_bytes_max = of_former._root, of_former.size_bytes_max
            self._files, self._directories = former._files, former._directories

    # -- power fails -----------------------------------------------------------------------------------------------

    def after_power_failure(self, outcome: Outcome) -> "LosingDevice":
        """The device as the next start finds it. All that is left is safe then."""
        after = LosingDevice()
        after.size_bytes_max = self.size_bytes_max
        self._revive(self._directory(""), "", after, outcome)
        return after

    def _revive(self, directory: object, path: str, after: "LosingDevice", outcome: Outcome) -> None:
        safe = self._directories[id(directory)]
        names = dict(safe.names)
        for name, change in safe.changes:
            if outcome.is_kept(name):
                change(names)
        for name, entry in sorted(names.items()):
            below = posixpath.join(path, name)
            if isinstance(entry, Content):
                MemoryDisk.write_whole(after, below, self._left_of(name, entry, outcome))
                after._note_whole(below)
            else:
                after.make_dir(below)
                self._revive(entry, below, after, outcome)
        after.sync_dir(path)

    def _left_of(self, name: str, content: Content, outcome: Outcome) -> bytes:
        new = content.on_disk(0, content.size_bytes)
        safe = self._files.get(id(content))
        old = b"" if safe is None else self._safe_bytes(safe)
        if old == new:
            return new
        size_bytes = outcome.size_bytes(name, len(old), len(new))
        left = bytearray()
        for start in range(0, size_bytes, SECTOR_BYTES):
            end = min(start + SECTOR_BYTES, size_bytes)
            was, now = old[start:end], new[start:end]
            sector = was if was == now else (now if outcome.is_kept(name) else was)
            left += sector.ljust(end - start, b"\0")
        return bytes(left)

    @staticmethod
    def _safe_bytes(safe: _SafeFile) -> bytes:
        held = bytearray(safe.content[: safe.common_bytes])
        for start, stop in safe.holes:
            held[start:stop] = bytes(min(stop, len(held)) - min(start, len(held)))
        return bytes(held + safe.tail).ljust(safe.size_bytes, b"\0")

    # -- what is synced --------------------------------------------------------------------------------------------

    def sync(self, content: Content) -> None:
        super().sync(content)
        self._mark_safe(content)

    def _mark_safe(self, content: Content) -> _SafeFile:
        safe = self._files.setdefault(id(content), _SafeFile(content))
        safe.common_bytes, safe.tail, safe.size_bytes = len(content), b"", content.size_bytes
        return safe

    def content(self, path: str) -> Content:
        """The file as it is, for `sync_failed`."""
        return self._content(path)

    def sync_failed(self, content: Content) -> None:
        """What was not safe yet of this file will never be, though later syncs say so."""
        known = self._files.get(id(content))
        begin = 0 if known is None else known.common_bytes
        if begin < len(content):
            self._mark_safe(content).holes.append((begin, len(content)))

    def sync_dir(self, path: str) -> None:
        super().sync_dir(path)
        safe = self._directories[id(self._directory(path))]
        for _, change in safe.changes:
            change(safe.names)
        safe.changes.clear()

    # -- what changes content --------------------------------------------------------------------------------------

    def cut(self, content: Content, size_bytes: int) -> None:
        safe = self._files.get(id(content))
        if safe is not None and size_bytes < safe.common_bytes:
            safe.tail = bytes(content[size_bytes : safe.common_bytes]) + safe.tail
            safe.common_bytes = size_bytes
            safe.holes = [(start, min(stop, size_bytes)) for start, stop in safe.holes if start < size_bytes]
        super().cut(content, size_bytes)

    # -- what changes names ----------------------------------------------------------------------------------------

    def _note(self, path: str, change: Callable[[Names, str], None]) -> None:
        parent, name = self._parent(path)
        self._directories[id(parent)].changes.append((name, lambda names: change(names, name)))

    def _note_entry(self, path: str) -> None:
        entry = self._find(path)
        self._note(path, lambda names, name: names.update({name: entry}))

    def _note_whole(self, path: str) -> None:
        """A file was made, with all that it holds, durably."""
        self._mark_safe(self._content(path))
        self._note_entry(path)

    def open(self, path: str, size_bytes: int | None = None) -> File:
        is_new = not self.exists(path)
        file = super().open(path, size_bytes)
        if is_new:
            self._note_entry(path)
        return file

    def write_whole(self, path: str, data: Buffer) -> None:
        """In the steps of `FileDisk`."""
        temporary = path + ".tmp"
        if self.exists(temporary):
            self.remove(temporary)
        try:
            file = self.open(temporary)
            file.append([data])
            file.sync()
            file.close()
            self.rename(temporary, path)
        except OSError:
            if self.exists(temporary):
                self.remove(temporary)
            raise
        self.sync_dir(posixpath.dirname(path))

    def make_dir(self, path: str) -> None:
        path = posixpath.normpath(path)
        parent = posixpath.dirname(path)
        if not self.is_dir(parent):
            self.make_dir(parent)
        is_new = not self.exists(path)
        super().make_dir(path)
        if is_new:
            directory = self._directory(path)
            self._directories[id(directory)] = _SafeDirectory(directory)
            self._note_entry(path)

    def rename(self, source: str, target: str) -> None:
        super().rename(source, target)
        source, target = posixpath.normpath(source), posixpath.normpath(target)
        if posixpath.dirname(source) != posixpath.dirname(target):
            self._note(source, _forget)
            self._note_entry(target)
            return
        old = posixpath.basename(source)

        def change(names: Names, name: str) -> None:
            if old in names:
                names[name] = names.pop(old)

        self._note(target, change)

    def remove(self, path: str) -> None:
        super().remove(path)
        self._note(path, _forget)

    def remove_tree(self, path: str) -> None:
        """File by file, as `FileDisk` does it."""
        for name in self.list_dir(path):
            below = posixpath.join(path, name)
            if self.is_dir(below):
                self.remove_tree(below)
            else:
                self.remove(below)
        super().remove_tree(path)
        self._note(path, _forget)


def _forget(names: Names, name: str) -> None:
    names.pop(name, None)
