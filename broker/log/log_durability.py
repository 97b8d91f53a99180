"""How much of a log is on the device, and what a sync that failed means for it (UnifiedLog.flush).

    recovery_point (no start looks before it) <= durable_offset (all before is on the device) <= log end offset

After a failed sync the page cache cannot be trusted, so that the log takes no more appends until the next start, which
copies what is in doubt: a file in the log's directory tells it to.
"""

import logging

from odradek.broker.disk.disk import Disk
from odradek.broker.log.epochs import EpochCache
from odradek.broker.log.flush import DataNotSynced, Flush
from odradek.broker.log.leftovers import UNSYNCED
from odradek.broker.log.log_state import LogCondition
from odradek.broker.log.producers import Producers
from odradek.broker.log.segments import Segments

logger = logging.getLogger(__name__)

_NEVER = -1


class LogDurability:
    """What of one log is durable. It gives up `condition` where nobody can say that."""

    __slots__ = (
        "_condition",
        "_directory",
        "_disk",
        "_epochs",
        "_has_mark",
        "_segments",
        "_synced_changes",
        "_truncations",
        "durable_offset",
        "is_distrusted",
        "is_dropped",
        "recovery_point",
    )

    def __init__(
        self, disk: Disk, directory: str, segments: Segments, epochs: EpochCache, condition: LogCondition
    ) -> None:
        self._disk = disk
        self._directory = directory
        self._segments = segments
        self._epochs = epochs
        self._condition = condition
        self._has_mark = False  # which the next start will find
        self._synced_changes = _NEVER  # of the segments' names: as far as the directory was synced
        self._truncations = 0
        self.durable_offset = self.recovery_point = segments[0].base_offset
        self.is_distrusted = False
        """Whether a sync failed."""
        self.is_dropped = False
        """Whether the log's directory goes, or gets another name: how a sync ends says nothing then."""

    def opened(self, offset: int, *, is_clean: bool) -> None:
        """The log was opened, and what is before `offset` needs no recovery. `is_clean`: the last process closed it."""
        self.durable_offset = self.recovery_point = max(offset, self.recovery_point)
        if is_clean:
            self._synced_changes = self._segments.changes

    def truncated(self, log_end_offset: int) -> None:
        """The log was cut, and ends there now: what is appended next is not durable."""
        self._truncations += 1
        self.durable_offset = min(self.durable_offset, log_end_offset)
        self.recovery_point = min(self.recovery_point, self._segments.active.base_offset)

    def begin(self, log_end_offset: int, producers: Producers, *, settle: bool, with_active: bool) -> Flush | None:
        """What `Log.begin_flush` says. Raises OSError."""
        segments = self._segments.all
        end_offset = log_end_offset if with_active else segments[-1].base_offset
        if self.is_distrusted:
            self.leave_mark()
            raise OSError(self._condition.why_given_up)
        epochs = self._epochs
        since = self.recovery_point if settle else self.durable_offset
        if settle and with_active:
            self._segments.take_snapshot(producers, end_offset)
        has_new_names = self._segments.changes != self._synced_changes
        involved = segments if with_active else segments[:-1]
        cuts = [(segment, segment.cuts) for segment in involved if segment.cuts != segment.cuts_synced]
        if end_offset <= since and not has_new_names and not cuts and not (settle and epochs.is_stale):
            return None
        touched = [segment for segment in involved if segment.next_offset > self.recovery_point]
        data = [
            segment.file.syncer()
            for segment in involved
            if segment.next_offset > self.durable_offset or segment.cuts != segment.cuts_synced
        ]
        derived = [file.syncer() for segment in touched for file in segment.index_files()] if settle else []
        if settle:
            for file in self._segments.snapshots.files_from(self.recovery_point):
                derived.append(file.syncer())
                file.close()
        return Flush(
            self._disk,
            end_offset,
            data,
            derived,
            [epochs.writing()] if settle and epochs.is_stale else [],
            [self._directory, f"{self._directory}/.."] if has_new_names else [],
            self._segments.changes,
            cuts,
            self._truncations,
            settles=settle,
        )

    def end(self, flush: Flush, error: OSError | None) -> None:
        """What `Log.end_flush` says."""
        if self.is_dropped:
            return
        if isinstance(error, DataNotSynced):
            self._distrust(error)
        if error is not None or self.is_distrusted:
            return
        for segment, count in flush.cuts:
            segment.cuts_synced = max(segment.cuts_synced, count)
        if flush.truncations != self._truncations:
            return  # other batches may stand before the offset that was flushed
        self.durable_offset = max(self.durable_offset, flush.end_offset)
        self._synced_changes = max(self._synced_changes, flush.changes)
        if flush.settles:
            self.recovery_point = max(self.recovery_point, flush.end_offset)

    def _distrust(self, error: OSError) -> None:
        self.is_distrusted = True
        self._condition.fail(f"the log could not be synced: {error}")
        logger.error("%s: no more appends until the next start: %s", self._directory, self._condition.why_given_up)
        self.leave_mark()

    def leave_mark(self) -> None:
        """Has the next start copy what is in doubt, if anything; tried again with each flush, when the log is closed
        and when the broker ends, until the device takes it."""
        if self._has_mark or self.is_dropped or not self.is_distrusted:
            return
        path = f"{self._directory}/{UNSYNCED}"
        try:
            # Not synced, for the device may take nothing at all now. Only a start under the same boot of the machine
            # needs it: with the page cache what is in doubt is gone, too.
            marker = self._disk.open(path)
            self._has_mark = True
            try:
                marker.append([self._condition.why_given_up.encode()])
            finally:
                marker.close()
        except OSError as error:
            if not self._has_mark:
                text = "%s could not be written; while it is not there, restart the machine before the broker: %s"
                logger.error(text, path, error)
