"""The snapshots of a partition's producers on disk (snapshots.py has the format).

One is written at the beginning of each segment and at the end of the log when that is closed; those that no log needs
any more go: behind its end, and before its first segment, except the newest, for it may know of producers whose
batches have been deleted.

A snapshot is derived data. It is not synced when it is written, for that would hold the log up; whoever moves the
recovery point syncs it (flush.py). One that is damaged or missing costs a longer walk over the batches before it.
"""

import logging

from odradek.broker.disk.disk import Disk, File
from odradek.broker.log.producers import Producers
from odradek.broker.log.snapshots import SNAPSHOT_SUFFIX, CorruptSnapshot, decode_snapshot, encode_snapshot

logger = logging.getLogger(__name__)


class SnapshotFiles:
    """The snapshots of one log, by their offsets."""

    __slots__ = ("_directory", "_disk", "_offsets")

    def __init__(self, disk: Disk, directory: str, offsets: list[int]) -> None:
        """`offsets` are those of the files that are there."""
        self._disk = disk
        self._directory = directory
        self._offsets = sorted(offsets)

    @property
    def offsets(self) -> list[int]:
        return list(self._offsets)

    @property
    def newest(self) -> int:
        """The offset of the newest one, or -1."""
        return self._offsets[-1] if self._offsets else -1

    def is_any_up_to(self, offset: int) -> bool:
        return bool(self._offsets) and self._offsets[0] <= offset

    def path(self, offset: int) -> str:
        return f"{self._directory}/{offset:020d}{SNAPSHOT_SUFFIX}"

    def take(self, producers: Producers, offset: int) -> None:
        """Writes down what is known before `offset`. If that fails there is none, and a line in the log says so."""
        path = self.path(offset)
        try:
            file = self._disk.open(path)
            try:
                file.truncate(0)
                file.append([encode_snapshot(producers)])
            finally:
                file.close()
        except OSError as error:
            logger.warning("%s could not be written; a start reads the log from further back: %s", path, error)
            return
        if offset not in self._offsets:
            self._offsets.append(offset)
            self._offsets.sort()

    def load(self, offset: int) -> tuple[Producers, int] | None:
        """The newest that can be read of those at or before `offset`, and its own offset; None without any.

        Raises OSError.
        """
        for found in reversed([at for at in self._offsets if at <= offset]):
            try:
                return decode_snapshot(self._disk.read_whole(self.path(found))), found
            except CorruptSnapshot as error:
                logger.warning("%s is removed, for it is damaged: %s", self.path(found), error)
                self._remove(found)
        return None

    def forget_after(self, offset: int) -> None:
        """Removes those behind the end of the log. Raises OSError."""
        for found in [at for at in self._offsets if at > offset]:
            self._remove(found)

    def forget_all(self) -> None:
        """Raises OSError."""
        self.forget_after(-1)

    def forget_strays(self, base_offsets: list[int]) -> None:
        """Removes those that no segment begins at, except the newest of all. Raises OSError."""
        kept = {*base_offsets, self.newest}
        for found in [at for at in self._offsets if at not in kept]:
            self._remove(found)

    def files_from(self, offset: int) -> list[File]:
        """The files of those at or behind `offset`, for syncing; the caller closes them. Raises OSError."""
        return [self._disk.open(self.path(at)) for at in self._offsets if at >= offset]

    def _remove(self, offset: int) -> None:
        self._disk.remove(self.path(offset))
        self._offsets.remove(offset)
