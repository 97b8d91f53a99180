"""A small file that is only ever replaced as a whole, and by whatever thread: a checkpoint.

What to write is decided in the loop's thread, and the waiting for the device happens in a helper's. So two writes may
be under way, and end in any order: the lock, the only one there is, keeps them apart, and an older content never
replaces a newer one.
"""

from collections.abc import Callable
from threading import Lock

from odradek.broker.disk.disk import Disk


class AtomicFile:
    """One such file. Only this object writes it."""

    __slots__ = ("_disk", "_lock", "_prepared", "_written", "path")

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._lock = Lock()
        self._prepared = 0
        self._written = 0
        self.path = path

    def prepare(self, data: bytes) -> Callable[[], bool]:
        """To be called in the loop's thread. What it returns writes `data`, durably, in any thread.

        That answers whether it wrote: not so if something that was prepared later is in the file already. It raises
        OSError, and may be called again then.
        """
        self._prepared += 1
        number = self._prepared

        def write() -> bool:
            with self._lock:
                if number < self._written:
                    return False
                self._disk.write_whole(self.path, data)
                self._written = number
                return True

        return write

    def write(self, data: bytes) -> None:
        """Writes at once. Raises OSError."""
        self.prepare(data)()
