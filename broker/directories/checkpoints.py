"""What the data directory says of all its logs together (CheckpointFile.java, CleanShutdownFileHandler.java).

    log-start-offset-checkpoint          where DeleteRecords moved the starts of logs, and where leaders' logs started
    recovery-point-offset-checkpoint     up to where each log, and what is derived from it, is on the device
    replication-offset-checkpoint        the high watermarks
    cleaner-offset-checkpoint            up to where each log was compacted
    .kafka_cleanshutdown                 its presence says that the last process closed every log

Names and formats are Kafka's. Numbers are kept here for each partition, and written from here: what to write is decided
in the loop's thread, the waiting may happen in a helper's.
"""

import json
import logging
import posixpath
from collections.abc import Callable, Mapping

from odradek.broker.disk.atomic_file import AtomicFile
from odradek.broker.disk.disk import Disk
from odradek.broker.log.checkpoint import (
    CLEANED_OFFSETS,
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
    CorruptCheckpoint,
    encode_offsets,
    read_offsets,
)

logger = logging.getLogger(__name__)

CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
_VERSION = 0
_UNKNOWN_BROKER_EPOCH = -1

Key = tuple[str, int]
"""Topic name and partition index."""


class OffsetsFile:
    """One checkpoint file: an offset for each partition."""

    def __init__(self, disk: Disk, data_dir: str, name: str) -> None:
        self._disk = disk
        self._file = AtomicFile(disk, posixpath.join(data_dir, name))

    def read(self) -> dict[Key, int]:
        """Raises CorruptCheckpoint, OSError."""
        return read_offsets(self._disk, self._file.path)

    def writing(self, offsets: Mapping[Key, int]) -> Callable[[], bool]:
        """Replaces the file durably when it is called, in whatever thread; raises OSError then.

        The offsets are those of now; where later ones have been written meanwhile, nothing happens.
        """
        return self._file.prepare(encode_offsets(offsets))


class Checkpoints:
    """The files and the marker of one data directory."""

    def __init__(self, disk: Disk, data_dir: str) -> None:
        self._disk = disk
        self._data_dir = data_dir
        self._log_starts = OffsetsFile(disk, data_dir, LOG_START_OFFSETS)
        self._recovery_points = OffsetsFile(disk, data_dir, RECOVERY_POINTS)
        self._high_watermarks = OffsetsFile(disk, data_dir, HIGH_WATERMARKS)
        self._cleaned = OffsetsFile(disk, data_dir, CLEANED_OFFSETS)
        self.log_starts: dict[Key, int] = {}
        self.recovery_points: dict[Key, int] = {}
        self.high_watermarks: dict[Key, int] = {}
        self.cleaned: dict[Key, int] = {}
        self.was_clean = False
        """Whether the last process closed every log."""
        self._stale: set[OffsetsFile] = set()

    def load(self) -> None:
        """Reads all, and takes the marker away: from here on a crash is one. Raises CorruptCheckpoint (the log
        starts: without them deleted records would come back), OSError."""
        self.log_starts = self._log_starts.read()
        self.recovery_points = self._read_or_do_without(self._recovery_points, "every log is read as a whole")
        self.high_watermarks = self._read_or_do_without(self._high_watermarks, "they begin at the log starts")
        self.cleaned = self._read_or_do_without(self._cleaned, "every log counts as not compacted")
        path = posixpath.join(self._data_dir, CLEAN_SHUTDOWN)
        self.was_clean = self._disk.exists(path)
        if self.was_clean:
            self._disk.remove(path)
            self._disk.sync_dir(self._data_dir)

    def _read_or_do_without(self, file: OffsetsFile, consequence: str) -> dict[Key, int]:
        try:
            return file.read()
        except CorruptCheckpoint as error:
            logger.warning("%s; %s", error, consequence)
            return {}

    def known_offset(self, key: Key) -> int:
        """Up to which offset, at least, the partition's log had come; 0 where nothing says so."""
        return max(self.certain_offset(key), self.high_watermarks.get(key, 0))

    def certain_offset(self, key: Key) -> int:
        """All before this offset is on the device, or was deleted."""
        return max(self.log_starts.get(key, 0), self.recovery_points.get(key, 0))

    def known(self) -> set[Key]:
        """The partitions of which anything is said."""
        return {key for _, offsets in self._all() for key in offsets}

    def forget(self, key: Key) -> None:
        """The partition is gone. `tidy` takes it out of the files, before its name may be used again."""
        for file, offsets in self._all():
            if offsets.pop(key, None) is not None:
                self._stale.add(file)

    def tidy(self) -> None:
        """Takes what was forgotten out of the files: what they say of a partition must not be believed of the next one
        with its name. Raises OSError."""
        for file, offsets in self._all():
            if file in self._stale:
                file.writing(offsets)()
                self._stale.remove(file)

    def _all(self) -> tuple[tuple[OffsetsFile, dict[Key, int]], ...]:
        return (
            (self._log_starts, self.log_starts),
            (self._recovery_points, self.recovery_points),
            (self._high_watermarks, self.high_watermarks),
            (self._cleaned, self.cleaned),
        )

    def writing_log_starts(self) -> Callable[[], bool]:
        return self._log_starts.writing(self.log_starts)

    def writing_recovery_points(self) -> Callable[[], bool]:
        return self._recovery_points.writing(self.recovery_points)

    def writing_high_watermarks(self) -> Callable[[], bool]:
        return self._high_watermarks.writing(self.high_watermarks)

    def writing_cleaned(self) -> Callable[[], bool]:
        return self._cleaned.writing(self.cleaned)

    def mark_clean(self) -> None:
        """Every log is closed, and its recovery point written: the next start need not look at them. Raises OSError."""
        content = {"version": _VERSION, "brokerEpoch": _UNKNOWN_BROKER_EPOCH}
        self._disk.write_whole(posixpath.join(self._data_dir, CLEAN_SHUTDOWN), json.dumps(content).encode())
