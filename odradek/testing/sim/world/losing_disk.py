"""A disk that loses power: what was not synced may be gone, in part or as a whole, in any order.

    disk = LosingDisk()
    ...
    after = disk.after_power_failure(Fate(random.Random(seed)))

Of a file the content at its last sync is safe. What was changed since is kept, dropped, or kept page by page: a page
that was never written reads as zeros, and the size may be the old one, the new one, or between. Of a directory the
names at its last sync are safe. Each creation, renaming and removal since happened or did not, whichever the
order, but a renaming is never half done: one from a directory to another is safe in both once either is synced, as it
is one transaction of the journal. That is less than ext4 gives, and all that POSIX does.
"""

import posixpath
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, Self

from odradek.broker.disk.disk import File
from odradek.broker.disk.memory_disk import Content, MemoryDisk
from odradek.protocol.primitives import Buffer

PAGE_BYTES = 64


class Outcome(Protocol):
    """What becomes of something that was not synced: a page of the file, or a change of a name in its directory."""

    def is_kept(self, name: str) -> bool: ...

    def size_bytes(self, name: str, old: int, new: int) -> int: ...


class Fate:
    """By chance. Whole runs that lose all or nothing come about by `share`, the probability to be kept."""

    def __init__(self, rng: random.Random, share: float = 0.5) -> None:
        self._rng = rng
        self._share = share

    def is_kept(self, name: str) -> bool:
        return self._rng.random() < self._share

    def size_bytes(self, name: str, old: int, new: int) -> int:
        if self._share in (0.0, 1.0):
            return new if self._share else old
        return self._rng.choice((old, new, self._rng.randint(min(old, new), max(old, new))))


class Chosen:
    """Of files with these endings all is kept, of others nothing."""

    def __init__(self, *kept: str) -> None:
        self._kept = kept

    def is_kept(self, name: str) -> bool:
        return name.endswith(self._kept)

    def size_bytes(self, name: str, old: int, new: int) -> int:
        return new if self.is_kept(name) else old


ALL_IS_LOST = Fate(random.Random(0), 0.0)
ALL_IS_KEPT = Fate(random.Random(0), 1.0)

Names = dict[str, "Content | _Safe"]
"""What a directory holds."""


@dataclass(eq=False)
class _Change:
    """What was done to a name. `other`: the directory and the change that a renaming makes with this one, or not."""

    name: str
    apply: Callable[[Names], None]
    other: "tuple[_Safe, _Change] | None" = None


@dataclass(eq=False)
class _Safe:
    """What the device holds of one directory, and what was done to its names since."""

    names: Names = field(default_factory=dict[str, "Content | _Safe"])
    changes: list[_Change] = field(default_factory=list[_Change])

    def settle(self, change: _Change) -> None:
        """It is safe before those that came before it, of which no other one of the name counts any more."""
        at = self.changes.index(change)
        self.changes[: at + 1] = [each for each in self.changes[:at] if each.name != change.name]
        change.apply(self.names)


class LosingDisk(MemoryDisk):
    """A memory disk that knows what a loss of power would leave."""

    def __init__(self) -> None:
        super().__init__()
        self._synced: dict[int, tuple[Content, bytes]] = {}
        self._safe: dict[str, _Safe] = {"": _Safe()}
        """By the path at which a directory is now."""

    def after_power_failure(self, outcome: Outcome) -> Self:
        """The disk as the next start finds it. All that is left is safe then."""
        after = type(self)()
        self._revive(self._safe[""], "", after, outcome, {})
        return after

    def _revive(
        self, safe: _Safe, path: str, after: "LosingDisk", outcome: Outcome, decided: dict[_Change, bool]
    ) -> None:
        names = dict(safe.names)
        for change in safe.changes:
            if change not in decided:
                decided[change] = outcome.is_kept(change.name)
                if change.other is not None:
                    decided[change.other[1]] = decided[change]
            if decided[change]:
                change.apply(names)
        for name, content in sorted(names.items()):
            below = posixpath.join(path, name)
            if isinstance(content, _Safe):
                after.make_dir(below)
                self._revive(content, below, after, outcome, decided)
            else:
                after.write_whole(below, self._left_of(name, content, outcome))
        after.sync_dir(path)

    def _left_of(self, name: str, content: Content, outcome: Outcome) -> bytes:
        new = content.on_disk(0, content.size_bytes)
        old = self._synced.get(id(content), (content, b""))[1]
        if old == new:
            return new
        size_bytes = outcome.size_bytes(name, len(old), len(new))
        left = bytearray()
        for start in range(0, size_bytes, PAGE_BYTES):
            page = (new if outcome.is_kept(name) else old)[start : min(start + PAGE_BYTES, size_bytes)]
            left += page.ljust(min(PAGE_BYTES, size_bytes - start), b"\0")
        return bytes(left)

    # -- what is synced -------------------------------------------------------------------------------------------

    def sync(self, content: Content) -> None:
        super().sync(content)
        self._synced[id(content)] = (content, content.on_disk(0, content.size_bytes))

    def sync_dir(self, path: str) -> None:
        super().sync_dir(path)
        safe = self._safe[_normal(path)]
        changes, safe.changes = safe.changes, []
        for change in changes:
            change.apply(safe.names)
            if change.other is not None:
                parent, its_other = change.other
                its_other.other = None
                if its_other in parent.changes:
                    parent.settle(its_other)

    # -- what changes names ---------------------------------------------------------------------------------------

    def _change(self, path: str, change: Callable[[Names, str], None]) -> None:
        parent, name = posixpath.split(_normal(path))
        self._safe[parent].changes.append(_Change(name, lambda names: change(names, name)))

    def open(self, path: str, size_bytes: int | None = None) -> File:
        is_new = not self.exists(path)
        file = super().open(path, size_bytes)
        if is_new:
            self._note_creation(path)
        return file

    def _note_creation(self, path: str) -> None:
        content = self._content(path)
        self._change(path, lambda names, name: names.update({name: content}))

    def write_whole(self, path: str, data: Buffer) -> None:
        super().write_whole(path, data)
        self._note_creation(path)
        self.sync_dir(posixpath.dirname(path))

    def make_dir(self, path: str) -> None:
        path = _normal(path)
        super().make_dir(path)
        if path not in self._safe:
            self.make_dir(posixpath.dirname(path))
            made = self._safe[path] = _Safe()
            self._change(path, lambda names, name: names.update({name: made}))

    def rename(self, source: str, target: str) -> None:
        source, target = _normal(source), _normal(target)
        if self.is_dir(source) or posixpath.dirname(source) != posixpath.dirname(target):
            self._rename_over_directories(source, target)
            return
        super().rename(source, target)
        old = posixpath.basename(source)

        def change(names: Names, name: str) -> None:
            if old in names:
                names[name] = names.pop(old)

        self._change(target, change)

    def _rename_over_directories(self, source: str, target: str) -> None:
        """Also of a directory, with all that is known of what is below it."""
        moved: Content | _Safe = self._safe[source] if self.is_dir(source) else self._content(source)
        super().rename(source, target)
        for path in [path for path in self._safe if path == source or path.startswith(f"{source}/")]:
            self._safe[target + path.removeprefix(source)] = self._safe.pop(path)
        (old_parent, old), (new_parent, new) = posixpath.split(source), posixpath.split(target)
        leaves = _Change(old, lambda names: _forget(names, old))
        comes = _Change(new, lambda names: names.update({new: moved}))
        leaves.other, comes.other = (self._safe[new_parent], comes), (self._safe[old_parent], leaves)
        self._safe[old_parent].changes.append(leaves)
        self._safe[new_parent].changes.append(comes)

    def remove(self, path: str) -> None:
        super().remove(path)
        self._change(path, _forget)

    def remove_tree(self, path: str) -> None:
        raise NotImplementedError("directories stay where they are in these tests")


def _forget(names: Names, name: str) -> None:
    names.pop(name, None)


def _normal(path: str) -> str:
    path = posixpath.normpath(path)
    return "" if path == "." else path
