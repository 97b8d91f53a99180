"""Whether a transaction index holds the abort markers of its segment, each with the transaction that it ended.

A row is compared with what the replay knew when the marker came by. Where the log does not go back to the beginning of
a transaction, its first offset need only lie before; where compaction has been, it may be any before the first batch
that is left, and an aborted transaction without a row has lost its records.

Source: UnifiedLog.append, ProducerStateManager.lastStableOffset, CleanedTransactionMetadata in LogCleaner.scala.
"""

from odradek.broker.log.aborted import ROW, VERSION
from odradek.broker.log.markers import Marker
from odradek.broker.log.producers import AbortedTxn, CompletedTxn
from odradek.broker.offline.dump.findings import Inconsistency
from odradek.broker.offline.dump.replay import Replay
from odradek.broker.offline.dump.rows import rows_of
from odradek.broker.offline.dump.stored import Stored


def read_rows(path: str, data: bytes) -> list[AbortedTxn]:
    """The rows, if they can stand in an index without a look at the log. Raises Inconsistency."""
    txns: list[AbortedTxn] = []
    found = rows_of(data, ROW)
    if found.rest_bytes or found.zero_rows:
        position = len(found.rows) * ROW.size
        raise Inconsistency(path, f"{len(data) - position} bytes are no row of {ROW.size}", position=position)
    last_offset = -1
    for number, row in enumerate(found.rows):
        txn = AbortedTxn._make(row[1:])
        reason = None
        if row[0] != VERSION:
            reason = f"row {number} has version {row[0]}; only {VERSION} is known"
        elif not 0 <= txn.first_offset <= txn.last_offset or not 0 <= txn.last_stable_offset <= txn.last_offset + 1:
            reason = f"row {number} cannot be true: {txn}"
        elif txn.last_offset <= last_offset:
            reason = f"row {number} ends with offset {txn.last_offset}, behind one that ends with {last_offset}"
        if reason is not None:
            raise Inconsistency(path, reason, position=number * ROW.size)
        last_offset = txn.last_offset
        txns.append(txn)
    return txns


class TxnIndexCheck:
    """The index of one segment; is shown all its batches, in order."""

    def __init__(self, path: str, data: bytes) -> None:
        """`data`: nothing where there is no file. Raises Inconsistency."""
        self._path = path
        self._txns = read_rows(path, data)
        self._number = 0  # of the next row to be borne out

    def __len__(self) -> int:
        return len(self._txns)

    def take(self, stored: Stored, marker: Marker | None, completed: CompletedTxn | None, replay: Replay) -> None:
        """Takes a batch that the replay has passed just now, and what it said of it. Raises Inconsistency."""
        offset = stored.header.base_offset
        if self._number < len(self._txns) and self._txns[self._number].last_offset < offset:
            raise self._no_marker()
        if marker is None or not marker.is_abort:
            return
        if self._number == len(self._txns) or self._txns[self._number].last_offset != offset:
            if completed is not None and not replay.is_compacted:
                text = f"a row is missing: producer {completed.producer_id} aborted the records from offset"
                raise self._inconsistency(f"{text} {completed.first_offset} on at offset {offset}")
            return
        reason = _fault(self._txns[self._number], stored, completed, replay)
        if reason is not None:
            raise self._inconsistency(f"row {self._number} is {self._txns[self._number]}: {reason}")
        self._number += 1

    def finish(self) -> None:
        """Behind the last batch of the segment. Raises Inconsistency."""
        if self._number < len(self._txns):
            raise self._no_marker()

    def _no_marker(self) -> Inconsistency:
        txn = self._txns[self._number]
        return self._inconsistency(f"row {self._number} is {txn}: no abort marker stands at offset {txn.last_offset}")

    def _inconsistency(self, text: str) -> Inconsistency:
        return Inconsistency(self._path, text, position=self._number * ROW.size)


def _fault(txn: AbortedTxn, stored: Stored, completed: CompletedTxn | None, replay: Replay) -> str | None:
    """What cannot be true of a row, given its marker."""
    if txn.producer_id != stored.header.producer_id:
        return f"the marker there is that of producer {stored.header.producer_id}"
    reaches_back = not replay.is_complete and txn.first_offset < replay.since
    if completed is None:
        return None if reaches_back or replay.is_compacted else "no transaction was open"
    if replay.is_compacted:
        is_before = txn.first_offset <= completed.first_offset
        return None if is_before else f"the transaction has records from {completed.first_offset} on"
    if txn.first_offset != completed.first_offset and not reaches_back:
        return f"the transaction began at {completed.first_offset}"
    undecided = replay.producers.first_undecided_offset
    last_stable_offset = completed.last_offset + 1 if undecided is None else undecided
    is_older = not replay.is_complete and txn.last_stable_offset < replay.since
    if txn.last_stable_offset != last_stable_offset and not is_older:
        return f"the last stable offset was {last_stable_offset}"
    return None
