"""Where each leader epoch begins in the log (KIP-101, LeaderEpochFileCache.java).

An entry (epoch, start offset) says: the records from there on were appended under that leader epoch, until the next
entry. Epochs and start offsets both increase. Followers and consumers ask `end_offset_for` to learn where their log
and the leader's part.

The entries are kept in `leader-epoch-checkpoint`. Each batch says its epoch, so a new entry need not be there before
the log itself is made durable, or loses its first batches: `flush` writes it then, and recovery adds what is missing.
(To write it with the first append of an epoch made that record wait for the device.)

Nobody believes the file: the batches at both sides of each start are asked before an answer depends on it, and not when
the log is opened (batch_epochs.py).
"""

import logging
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from odradek.broker.disk.atomic_file import AtomicFile
from odradek.broker.disk.disk import Disk
from odradek.broker.log.batches import Damage
from odradek.broker.log.checkpoint import CorruptCheckpoint, encode_checkpoint, read_epochs
from odradek.broker.log.storage_errors import storage_error

logger = logging.getLogger(__name__)

LEADER_EPOCHS = "leader-epoch-checkpoint"
NO_EPOCH = -1
NO_OFFSET = -1


class EpochEntry(NamedTuple):
    epoch: int
    start_offset: int


class Batches(Protocol):
    """The batches of the log, which say their epochs."""

    def bear_out(self, entries: Sequence[EpochEntry]) -> bool: ...

    def found(self) -> list[tuple[int, int]]: ...


class EpochCache:
    """The epochs of one log, oldest first."""

    def __init__(self, disk: Disk, directory: str) -> None:
        """Reads the checkpoint. One that cannot be read counts as none: recovery adds what the batches say."""
        self._file = AtomicFile(disk, f"{directory}/{LEADER_EPOCHS}")
        self._entries: tuple[EpochEntry, ...] = ()
        self._written: tuple[EpochEntry, ...] = ()  # what the file holds
        self._witnesses: Callable[[], Batches] | None = None  # whom nobody has asked yet
        try:
            path = self._file.path
            rows = read_epochs(disk, path)
        except CorruptCheckpoint as error:
            logger.warning("the leader epochs are taken from the batches: %s", error)
            return
        for epoch, start_offset in rows:
            self._entries = _with(self._entries, EpochEntry(epoch, start_offset))
        self._written = self._entries

    @property
    def entries(self) -> tuple[EpochEntry, ...]:
        """Raises KafkaError KAFKA_STORAGE_ERROR, as all do that ask the batches first."""
        self._ask_batches()
        return self._entries

    def doubt(self, witnesses: Callable[[], Batches]) -> None:
        """Has the batches asked before the next answer that depends on where an epoch begins."""
        self._witnesses = witnesses

    def _ask_batches(self) -> None:
        """Takes the entries from the batches if these do not bear them out."""
        if self._witnesses is None:
            return
        try:
            batches = self._witnesses()
            found = None if batches.bear_out(self._entries) else batches.found()
        except Damage as damage:
            logger.error("%s cannot be compared with the batches: %s", self._file.path, damage)
            found = None
        except OSError as error:
            raise storage_error(error) from error
        self._witnesses = None
        if found is not None and found != list(self._entries):
            logger.warning("%s is wrong: the leader epochs are taken from the batches", self._file.path)
            self.take(found)

    @property
    def latest(self) -> int:
        """The newest epoch, or -1."""
        return self._entries[-1].epoch if self._entries else NO_EPOCH

    def assign(self, epoch: int, start_offset: int) -> None:
        """Begins `epoch` at `start_offset`; `flush` writes it down. Nothing happens when it has begun already.

        Entries of the same or a later epoch or offset go: nothing was appended under them, or it was truncated.
        """
        assert epoch >= 0, "an epoch of -1 means unknown"
        assert start_offset >= 0, "offsets are never negative"
        if self._entries and epoch == self.latest and start_offset >= self._entries[-1].start_offset:
            return
        self._entries = _with(self._entries, EpochEntry(epoch, start_offset))

    def take(self, entries: list[tuple[int, int]]) -> None:
        """Takes these, oldest first, for all that was known; `flush` writes them down."""
        self._entries = tuple(EpochEntry(epoch, start_offset) for epoch, start_offset in entries)

    def drop_from(self, offset: int) -> None:
        """Forgets epochs that begin at `offset` or later, in memory: the batches from there on say them better."""
        kept = tuple(entry for entry in self._entries if entry.start_offset < offset)
        if kept != self._entries:
            self._entries = kept

    def forget_above(self, epoch: int) -> None:
        """Forgets later epochs than that of the leader, who has the latest: only damage can say so."""
        kept = tuple(entry for entry in self._entries if entry.epoch <= epoch)
        if kept != self._entries:
            logger.error(
                "%s: epochs above the leader's %d are forgotten: %s", self._file.path, epoch, self._entries[len(kept) :]
            )
            self._entries = kept

    @property
    def is_stale(self) -> bool:
        """Whether the checkpoint lacks what `flush` would write."""
        return self._written is not self._entries

    def flush(self) -> None:
        """Makes what has changed durable, waiting for the device. Raises OSError."""
        if self.is_stale:
            self.writing()()

    def writing(self) -> Callable[[], None]:
        """Makes the entries of now durable when it is called, in whatever thread; raises OSError then."""
        entries = self._entries
        write = self._file.prepare(encode_checkpoint(entries))

        def flush() -> None:
            if write():
                self._written = entries

        return flush

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The largest epoch that is at most `epoch`, and where it ends; (-1, -1) when `epoch` is unknown here.

        For an epoch older than all that we know, its own number and the start of the first known one (KIP-101).
        """
        if epoch == NO_EPOCH:
            return NO_EPOCH, NO_OFFSET
        if epoch == self.latest:
            return epoch, log_end_offset
        self._ask_batches()
        number = bisect_right(self._entries, epoch, key=lambda entry: entry.epoch)
        if number == len(self._entries):
            return NO_EPOCH, NO_OFFSET
        return self._entries[number - 1].epoch if number else epoch, self._entries[number].start_offset

    def epoch_for(self, offset: int) -> int:
        """The epoch under which `offset` was, or will be, appended; -1 when it lies before all that we know."""
        self._ask_batches()
        number = bisect_right(self._entries, offset, key=lambda entry: entry.start_offset)
        return self._entries[number - 1].epoch if number else NO_EPOCH

    def truncate_from_end(self, end_offset: int) -> None:
        """Forgets epochs that begin at `end_offset` or later; durable on return. Raises OSError.

        Durable, because a forgotten epoch that came back after a restart would claim records of another one.
        """
        kept = tuple(entry for entry in self._entries if entry.start_offset < end_offset)
        if kept != self._entries:
            self._replace(kept)

    def truncate_from_start(self, start_offset: int) -> None:
        """Forgets epochs that end at or before `start_offset`; the one that holds it begins there from now on.

        In memory only, for `Log.open` does it again with the same log start; what `flush` writes has it, too.
        """
        number = bisect_right(self._entries, start_offset, key=lambda entry: entry.start_offset)
        if number:
            first = EpochEntry(self._entries[number - 1].epoch, start_offset)
            if first != self._entries[0]:
                self._entries = (first, *self._entries[number:])

    def clear(self) -> None:
        """Forgets everything; durable on return. Raises OSError."""
        if self._entries:
            self._replace(())

    def _replace(self, entries: tuple[EpochEntry, ...]) -> None:
        self._file.write(encode_checkpoint(entries))
        self._entries = self._written = entries


def _with(entries: tuple[EpochEntry, ...], new: EpochEntry) -> tuple[EpochEntry, ...]:
    """Adds an entry and removes those that contradict it."""
    kept = list(entries)
    while kept and (kept[-1].epoch >= new.epoch or kept[-1].start_offset >= new.start_offset):
        kept.pop()
    return (*kept, new)
