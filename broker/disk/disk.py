"""What a disk promises: `Disk` and `File`, the only way to files.

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

Real files are those of file_disk.py.
"""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from odradek.broker.disk.file_slice import FileSlice
from odradek.protocol.primitives import Buffer


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

    @property
    def is_visible_outside(self) -> bool:
        """Whether another process finds these files by the same paths."""
        ...

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
        """Makes the directory, for its owner alone, and its parents; no error when it is there."""
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
