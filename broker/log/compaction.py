"""Compaction: decides batch by batch what of a log stays, of each key the newest record. Offsets never change.

    record                          stays if
    of an aborted transaction       never
    behind the offset map's end     always: the next round's business
    without key                     never: it is invalid in a compacted topic
    with a value                    the map knows no newer one of its key
    a tombstone, without value      so, and the delete horizon of its batch has not come
    a transaction's marker          a batch of its transaction is left, or the delete horizon has not come, or its
                                    producer wrote nothing under its epoch but markers

The delete horizon is set by the first round that removes all that a tombstone or marker is about: now +
`delete.retention.ms`. It is kept in the batch (KIP-534). Who has read an older value of the key before has that long to
come by the tombstone.

A batch of which all stays comes out as the same bytes; otherwise the records that stay are packed anew with the batch's
codec. A batch of which nothing stays goes, unless its producer wrote nothing later: without the last sequence it could
not go on, so the header stays. So does that of the round's last batch, for the last offset.

Two differences to Kafka, where that would lose something:

- A batch with a tombstone behind the map's end does not get its horizon yet. Older values of that key are there until
  the next round, which might then remove both at once: who had read the value would never learn that it is gone.
- A marker that alone carries its producer's epoch stays whole. Kafka keeps its header, which says nothing to those who
  rebuild their producer state from the log: they would let in a producer that was fenced.

Pure. Source: Cleaner.cleanInto, shouldDiscardBatch and shouldRetainRecord in LogCleaner.scala, MemoryRecords.filterTo,
UnifiedLog.lastRecordsOfActiveProducers.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from odradek.broker.log.cleaned_transactions import CleanedTransactions
from odradek.broker.log.offset_map import Newest, OffsetMap, count_newest
from odradek.broker.log.producers import AbortedTxn, ProducerState
from odradek.broker.log.uncleanable import check_batch, reading
from odradek.protocol.batches.batch import BatchHeader
from odradek.protocol.batches.records import unpack_records
from odradek.protocol.batches.rewriting import Place, delete_horizon_ms, emptied, locate_records, repacked
from odradek.protocol.primitives import Buffer

_INT64_MAX = (1 << 63) - 1


class LastRecord(NamedTuple):
    """The last thing that a producer wrote: where it stays, the producer can go on."""

    last_data_offset: int | None
    """None: under its epoch there is nothing but a marker."""
    epoch: int


def last_records(producers: Iterable[tuple[int, ProducerState]]) -> dict[int, LastRecord]:
    """By producer id, of the producers that a log knows when a round begins."""
    return {
        producer_id: LastRecord(state.batches[-1].last_offset if state.batches else None, state.epoch)
        for producer_id, state in producers
    }


class Cleaning:
    """One round over a log: takes all batches of its segments, from the first to the one in which the map ends.

    When UncleanableLog is raised, nothing that came out may replace anything.
    """

    def __init__(
        self,
        offset_map: OffsetMap,
        producers: Mapping[int, LastRecord],
        *,
        log_start_offset: int,
        first_uncleanable_offset: int,
        delete_retention_ms: int,
        now_ms: int,
        newest: Newest | None = None,
    ) -> None:
        """`newest`: what the map says of most records, to be had faster. What it says of none is looked up."""
        self.records_read = 0
        self.records_kept = 0
        self.bytes_read = 0
        self.bytes_kept = 0
        self.keyless_records = 0
        """Those that were dropped as invalid."""
        self._map = offset_map
        self._newest = newest if newest is not None else Newest(offset_map.latest_offset + 1)
        self._producers = producers
        self._transactions = CleanedTransactions(log_start_offset)
        self._first_uncleanable_offset = first_uncleanable_offset
        self._now_ms = now_ms
        self._new_horizon_ms = min(now_ms + delete_retention_ms, _INT64_MAX)
        self._next_offset = 0

    @property
    def end_offset(self) -> int:
        """Where the next round's dirty part begins: the new checkpoint, once this round is in place."""
        return self._map.latest_offset + 1

    def add_aborted(self, txns: Iterable[AbortedTxn]) -> None:
        """Takes the rows of the transaction index for a segment, before its batches."""
        self._transactions.add_aborted(txns)

    def take_aborted(self) -> list[AbortedTxn]:
        """The rows for the index of the segment that was written since this was asked last."""
        return self._transactions.take_retained()

    def feed(self, header: BatchHeader, data: Buffer) -> Buffer | None:
        """Takes the next batch and returns what is to be written instead: itself, a smaller one, or None.

        Raises UncleanableLog.
        """
        check_batch(header, data, self._next_offset)
        self._next_offset = header.last_offset + 1
        self.records_read += header.record_count
        self.bytes_read += len(data)
        kept = self._clean_marker(header, data) if header.is_control else self._clean_data(header, data)
        if kept is None and (self._is_last_of_producer(header) or self._is_last_of_round(header)):
            kept = emptied(header)
        if kept is not None:
            self.bytes_kept += len(kept)
        return kept

    def _is_last_of_round(self, header: BatchHeader) -> bool:
        return header.last_offset + 1 == self._first_uncleanable_offset

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        """Whether the producer needs the batch to go on: for the last sequence or, where there is none, the epoch."""
        last = self._producers.get(header.producer_id)
        if last is None:
            return False
        if last.last_data_offset is None:
            return header.is_control and header.producer_epoch == last.epoch
        return header.last_offset == last.last_data_offset

    def _clean_marker(self, header: BatchHeader, data: Buffer) -> Buffer | None:
        is_unneeded = self._transactions.is_marker_unneeded(header, data)
        if not header.record_count:
            return None
        horizon_ms = delete_horizon_ms(header)
        is_over = horizon_ms is not None and horizon_ms <= self._now_ms
        if is_unneeded and is_over and not self._is_last_of_producer(header):
            return None
        self.records_kept += header.record_count
        if not is_unneeded or horizon_ms is not None:
            return data
        with reading(header):
            payload = unpack_records(data, header)
            return repacked(header, payload, list(locate_records(payload, header)), self._new_horizon_ms)

    def _clean_data(self, header: BatchHeader, data: Buffer) -> Buffer | None:
        if self._transactions.is_aborted(header) or not header.record_count:
            return None
        if header.base_offset > self._map.latest_offset:
            self.records_kept += header.record_count
            return data
        if (flags := self._newest.of(header)) is not None:
            return self._clean_plain(header, data, flags)
        with reading(header):
            payload = unpack_records(data, header)
            places, sets_horizon = self._remaining(header, payload)
            self.records_kept += len(places)
            if not places:
                return None
            if len(places) == header.record_count and not sets_horizon:
                return data
            return repacked(header, payload, places, self._new_horizon_ms if sets_horizon else None)

    def _clean_plain(self, header: BatchHeader, data: Buffer, flags: bytearray) -> Buffer | None:
        """A batch of records with keys and values, each of which the map knows."""
        count = count_newest(flags)
        self.records_kept += count
        if not count:
            return None
        if count == header.record_count:
            return data
        with reading(header):
            payload = unpack_records(data, header)
            places = zip(locate_records(payload, header), flags, strict=True)
            return repacked(header, payload, [place for place, flag in places if flag & 1])

    def _remaining(self, header: BatchHeader, payload: bytes) -> tuple[list[Place], bool]:
        """The records that stay, and whether the batch gets its delete horizon now."""
        latest_offset, newest_offset = self._map.latest_offset, self._map.get
        horizon_ms = delete_horizon_ms(header)
        keeps_tombstones = horizon_ms is None or self._now_ms < horizon_ms
        places: list[Place] = []
        has_tombstone = has_uncovered_tombstone = False
        for place in locate_records(payload, header):
            offset, _, key, has_value, _, _ = place
            if offset > latest_offset:
                places.append(place)
                has_uncovered_tombstone |= not has_value
            elif key is None:
                self.keyless_records += 1
            elif offset >= newest_offset(key) and (has_value or keeps_tombstones):
                places.append(place)
                has_tombstone |= not has_value
        return places, has_tombstone and not has_uncovered_tombstone and horizon_ms is None
