"""What stands in the checkpoints about partitions, and when it is written: how far each log is on the device, and its
high watermark. (Log starts are written when they are moved, log_starts.py; what compaction notes, by cleaner.py, and
here where a log was cut.)

Each data directory has the checkpoints of what lies in it, and is written to only if there is news. What is to be
written is decided in the loop's thread; the waiting happens in a helper's.
"""

import logging
from collections.abc import Callable, Collection, Iterable

from odradek.broker.directories.checkpoints import Checkpoints, Key
from odradek.broker.directories.data_directories import DataDirectories
from odradek.broker.directories.data_directory import DataDirectory
from odradek.broker.replica.partition import Partition
from odradek.runtime.environment import Environment

logger = logging.getLogger(__name__)

Writing = Callable[[Checkpoints], Callable[[], bool]]
Placed = Callable[[], Iterable[tuple[Key, Partition, DataDirectory]]]


class CheckpointWriter:
    """Of all partitions of one broker."""

    def __init__(self, directories: DataDirectories, environment: Environment, placed: Placed) -> None:
        """`placed`: the partitions that are open, and where they lie."""
        self._directories = directories
        self._environment = environment
        self._placed = placed

    async def write_recovery_points(self) -> None:
        """Writes down how far each log is on the device, where that is further than what was written before.

        Raises OSError, when all directories have been tried.
        """
        await self._write(self._note_recovery_points(), Checkpoints.writing_recovery_points)

    def write_cuts(self) -> None:
        """Before anything else happens, for logs that were cut: what comes behind their ends is neither on the device
        yet, nor compacted. Blocks. What fails is logged."""
        for directories, writing in (
            (self._note_recovery_points(), Checkpoints.writing_recovery_points),
            (self._lower_cleaned(), Checkpoints.writing_cleaned),
        ):
            for directory in directories:
                try:
                    writing(directory.checkpoints)()
                except OSError as error:
                    logger.error("a checkpoint could not be written after logs were cut: %s", error)
                    directory.suspect(error)

    async def write_high_watermarks(self) -> None:
        """Raises as `write_recovery_points`."""
        await self._write(self._note_high_watermarks(), Checkpoints.writing_high_watermarks)

    async def _write(self, directories: Collection[DataDirectory], writing: Writing) -> None:
        failed: OSError | None = None
        for directory in directories:
            try:
                await self._environment.run_blocking(writing(directory.checkpoints))
            except OSError as error:
                directory.suspect(error)
                failed = error
        if failed is not None:
            raise failed

    def tidy(self) -> None:
        """Takes what was forgotten out of them. If that fails, it is done before the name is used again."""
        for directory in self._directories.online:
            try:
                directory.checkpoints.tidy()
            except OSError as error:
                logger.warning("a checkpoint still holds what it should not, and is tidied later: %s", error)
                directory.suspect(error)

    def close(self, clean: Collection[DataDirectory]) -> None:
        """Writes all of it when the logs are closed, and in the `clean` directories that they are. Blocks. What fails
        is logged."""
        high_watermarks, recovery_points = self._note_high_watermarks(), self._note_recovery_points()
        for directory in self._directories.online:
            checkpoints = directory.checkpoints
            try:
                if directory in high_watermarks:
                    checkpoints.writing_high_watermarks()()
                if directory in recovery_points:
                    checkpoints.writing_recovery_points()()
                if directory in clean:
                    checkpoints.mark_clean()
            except OSError as error:
                logger.error(
                    "the checkpoints of %s could not be written, the next start reads more of its logs: %s",
                    *(directory.path, error),
                )

    def _note_recovery_points(self) -> Collection[DataDirectory]:
        return self._note(_recovery_points, lambda partition: partition.log.recovery_point)

    def _lower_cleaned(self) -> Collection[DataDirectory]:
        """Where a log ends before its cleaner checkpoint (LogCleanerManager.maybeTruncateCheckpoint)."""
        changed: dict[DataDirectory, None] = {}
        for key, partition, place in self._placed():
            if place.checkpoints.cleaned.get(key, 0) > partition.log.log_end_offset:
                place.checkpoints.cleaned[key] = partition.log.log_end_offset
                changed[place] = None
        return changed

    def _note_high_watermarks(self) -> Collection[DataDirectory]:
        return self._note(_high_watermarks, lambda partition: partition.high_watermark.value)

    def _note(
        self, noted_in: Callable[[Checkpoints], dict[Key, int]], offset_of: Callable[[Partition], int]
    ) -> Collection[DataDirectory]:
        """Takes over where each partition is; the directories in which that is news."""
        changed: dict[DataDirectory, None] = {}
        for key, partition, place in self._placed():
            noted = noted_in(place.checkpoints)
            if (offset := offset_of(partition)) != noted.get(key, 0):
                noted[key] = offset
                changed[place] = None
        return changed


def _recovery_points(checkpoints: Checkpoints) -> dict[Key, int]:
    return checkpoints.recovery_points


def _high_watermarks(checkpoints: Checkpoints) -> dict[Key, int]:
    return checkpoints.high_watermarks
