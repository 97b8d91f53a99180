"""The transactions that compaction passes: which data was aborted, and which markers are needed no more.

Compaction stays before the last stable offset, so every transaction that it meets has been decided. The aborted ones
stand in the transaction index. Their data goes at once. A marker is needed as long as there is a batch of its
transaction before it, be it one without records, kept for its producer's sequence: whoever reads that batch takes the
transaction for open until the marker comes. A row of the index lives as long.

An abort that the index does not know of, though records of it are there, would make these count as committed for ever:
the log is left alone then.

Pure. Source: CleanedTransactionMetadata in LogCleaner.scala.
"""

from collections.abc import Iterable
from heapq import heappop, heappush

from odradek.broker.log.markers import read_marker
from odradek.broker.log.producers import AbortedTxn
from odradek.broker.log.uncleanable import UncleanableLog, reading
from odradek.protocol.batches.batch import BatchHeader
from odradek.protocol.primitives import Buffer


class CleanedTransactions:
    """Is shown all batches of a log in order, from the start of a segment on."""

    def __init__(self, log_start_offset: int) -> None:
        """Rows of transactions that ended before the log start need not be given: nobody reads their data."""
        self._log_start_offset = log_start_offset
        self._to_come: list[tuple[int, AbortedTxn]] = []  # a heap by first offset
        self._aborted: dict[int, AbortedTxn] = {}  # the latest one of each producer id
        self._observed: set[AbortedTxn] = set()  # those of which there is a batch
        self._committed: dict[int, int] = {}  # producer id -> offset of the latest batch
        self._retained: list[AbortedTxn] = []

    def add_aborted(self, txns: Iterable[AbortedTxn]) -> None:
        """Takes the rows that overlap a segment, before its batches. They may have come with an earlier one already."""
        for txn in txns:
            heappush(self._to_come, (txn.first_offset, txn))

    def take_retained(self) -> list[AbortedTxn]:
        """The rows, since this was asked last, that the new segment's index needs; in the order of their markers."""
        retained, self._retained = self._retained, []
        return retained

    def is_aborted(self, header: BatchHeader) -> bool:
        """Passes a batch of data: whether its records are those of an aborted transaction."""
        self._begin(header)
        if not header.is_transactional:
            return False
        txn = self._aborted_by(header)
        if txn is not None:
            self._observed.add(txn)
            return True
        self._committed[header.producer_id] = header.last_offset
        return False

    def is_marker_unneeded(self, header: BatchHeader, data: Buffer) -> bool:
        """Passes a control batch: whether nothing is left of the transaction that it ends. Raises UncleanableLog."""
        self._begin(header)
        if not header.record_count:
            return True  # it went in an earlier round, when nothing was left
        with reading(header):
            marker = read_marker(data, header)
        if marker is None:
            return False  # of a type that is not about transactions: no business of ours
        producer_id = header.producer_id
        last_committed = self._committed.pop(producer_id, None)
        if not marker.is_abort:
            return last_committed is None
        txn = self._aborted_by(header)
        if txn is None:
            if last_committed is not None and last_committed >= self._log_start_offset:
                reason = f"it aborts records of producer {producer_id} of which the transaction index knows nothing"
                raise UncleanableLog(header.base_offset, reason)
            return True
        if txn not in self._observed:
            return True
        self._observed.remove(txn)
        self._retained.append(txn)
        return False

    def _begin(self, header: BatchHeader) -> None:
        """Begins the aborted transactions that have their first record in this batch or before."""
        while self._to_come and self._to_come[0][0] <= header.last_offset:
            _, txn = heappop(self._to_come)
            known = self._aborted.get(txn.producer_id)
            if known is None or known.last_offset < txn.last_offset:
                self._aborted[txn.producer_id] = txn

    def _aborted_by(self, header: BatchHeader) -> AbortedTxn | None:
        """The aborted transaction that the producer of this batch is in.

        By its last offset, for a row whose marker is missing must not take later records with it, as it does in Kafka.
        """
        txn = self._aborted.get(header.producer_id)
        return txn if txn is not None and txn.last_offset >= header.base_offset else None
