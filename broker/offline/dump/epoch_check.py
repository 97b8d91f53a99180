"""Whether `leader-epoch-checkpoint` and the batches agree on who was leader where (epochs.py, KIP-101).

Epochs never go back from batch to batch, and each batch lies between its epoch's start and the next one's. What the
checkpoint lacks at its end the next start adds, after a kill (a note); after a clean stop nothing may be missing. An
entry may begin where the log ends: a leader that was given nothing yet. The first entry may begin behind the first
batches: DeleteRecords moved the log start.
"""

from bisect import bisect_right

from odradek.broker.disk.disk import Disk
from odradek.broker.log import checkpoint
from odradek.broker.log.checkpoint import CorruptCheckpoint
from odradek.broker.log.epochs import NO_EPOCH, EpochEntry
from odradek.broker.offline.dump.findings import Inconsistency, Note
from odradek.broker.offline.dump.stored import Stored
from odradek.protocol.batches.batch import BatchHeader


def read_epochs(disk: Disk, path: str) -> list[EpochEntry]:
    """The entries, in order; none where there is no file. Raises Inconsistency, OSError."""
    try:
        rows = checkpoint.read_epochs(disk, path)
    except CorruptCheckpoint as error:
        raise Inconsistency(path, str(error)) from error
    entries = [EpochEntry(epoch, start_offset) for epoch, start_offset in rows]
    before = EpochEntry(NO_EPOCH, -1)
    for line, entry in enumerate(entries, 3):
        if entry.epoch <= before.epoch or entry.start_offset <= before.start_offset:
            text = f"{entry} follows {before}: both numbers must increase"
            raise Inconsistency(path, text, line=line)
        before = entry
    return entries


class EpochCheck:
    """Is shown all batches of a partition, in order."""

    def __init__(self, path: str, entries: list[EpochEntry], *, is_clean: bool) -> None:
        self._path = path
        self._entries = entries
        self._is_clean = is_clean
        self._latest = NO_EPOCH
        self.notes: list[Note] = []

    def take(self, path: str, stored: Stored) -> None:
        """Takes a batch of the segment at `path`. Raises Inconsistency."""
        reason = self._fault(stored.header)
        if reason is not None:
            raise Inconsistency(path, reason, position=stored.position, offset=stored.header.base_offset)
        self._latest = stored.header.partition_leader_epoch

    def _fault(self, header: BatchHeader) -> str | None:
        epoch, offset = header.partition_leader_epoch, header.base_offset
        if epoch < self._latest:
            return f"leader epoch {epoch}, where a batch before has {self._latest}"
        if not self._entries:
            return None if epoch == NO_EPOCH else self._missing(epoch, offset)
        first, last = self._entries[0], self._entries[-1]
        if header.last_offset < first.start_offset:
            is_later = epoch > first.epoch
            return f"leader epoch {epoch}, where {self._path} begins later, with {first.epoch}" if is_later else None
        if epoch > last.epoch and offset >= last.start_offset:
            return self._missing(epoch, offset)
        expected = {self._epoch_at(max(offset, first.start_offset)), self._epoch_at(header.last_offset)}
        if expected != {epoch}:
            return f"leader epoch {epoch}, where {self._path} says {' and then '.join(map(str, sorted(expected)))}"
        return None

    def _epoch_at(self, offset: int) -> int:
        """What the checkpoint says of an offset that is not before its first entry."""
        return self._entries[bisect_right(self._entries, offset, key=lambda entry: entry.start_offset) - 1].epoch

    def _missing(self, epoch: int, offset: int) -> str | None:
        """The checkpoint lacks the epoch: None where that may be, with a note for the first batch."""
        if self._is_clean:
            return f"leader epoch {epoch}, which {self._path} lacks, though the broker stopped cleanly"
        if epoch != self._latest:
            text = f"epoch {epoch}, which begins at offset {offset}, is not in it yet: the next start adds it"
            self.notes.append(Note(self._path, text))
        return None

    def finish(self, end_offset: int) -> None:
        """Behind the last batch. Raises Inconsistency."""
        for line, entry in enumerate(self._entries, 3):
            if entry.start_offset > end_offset:
                text = f"epoch {entry.epoch} begins at offset {entry.start_offset}, and the log ends at {end_offset}"
                raise Inconsistency(self._path, text, line=line)
