"""A flush: what has to reach the device so that everything before an offset is safe there (UnifiedLog.flush).

`Log.begin_flush` collects it in the loop's thread, `run` does the waiting in whatever thread, `Log.end_flush` says what
it means. The descriptors are taken at the beginning, so that it does not matter what is renamed, deleted or closed
meanwhile. The two ends differ in what they are for:

- *durable*: the batches themselves are on the device, and the names of their files. An acknowledgement may say so.
- *settled*, besides: what is derived from them is, too: indexes, snapshots, leader epochs. The recovery point may move
  there, and no start looks at anything before it.
"""

from collections.abc import Callable, Sequence

from odradek.broker.disk.disk import Disk, Syncer
from odradek.broker.log.segment import Segment


class DataNotSynced(OSError):
    """The device did not take batches that were written. Which ones cannot be known: the page cache calls them clean
    now, and a second sync would succeed without having written them."""


class Flush:
    """One flush of one log. Use `Log.begin_flush`."""

    __slots__ = (
        "_data",
        "_derived",
        "_directories",
        "_disk",
        "_writes",
        "changes",
        "cuts",
        "end_offset",
        "settles",
        "truncations",
    )

    def __init__(
        self,
        disk: Disk,
        end_offset: int,
        data: Sequence[Syncer],
        derived: Sequence[Syncer],
        writes: Sequence[Callable[[], None]],
        directories: Sequence[str],
        changes: int,
        cuts: Sequence[tuple[Segment, int]],
        truncations: int,
        *,
        settles: bool,
    ) -> None:
        self._disk = disk
        self._data = data
        self._derived = derived
        self._writes = writes
        self._directories = directories
        self.end_offset = end_offset
        self.changes = changes
        self.cuts = cuts
        self.truncations = truncations
        self.settles = settles

    def run(self) -> None:
        """Waits for the device. Once only, in any thread. Raises DataNotSynced, OSError."""
        try:
            for sync in self._data:
                try:
                    sync()
                except OSError as error:
                    raise DataNotSynced(*error.args) from error
            for sync in self._derived:
                sync()
            for write in self._writes:
                write()
            for directory in self._directories:
                self._disk.sync_dir(directory)
        finally:
            for sync in (*self._data, *self._derived):
                sync.close()
