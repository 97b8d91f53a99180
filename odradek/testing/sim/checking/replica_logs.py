"""Replicas of one partition laid side by side, as plain data: what may never differ, and what may never be missing.

    replicas_differ(leader, followers)              at any moment: below the leader's high watermark each member of its
                                                    maximal in-sync set holds the same batches, byte for byte
    readable = Readable("t", 0)
    readable.saw(leader)                            at any moment: this can be read, so it must stay
    readable.elected(new_leader, is_clean=True)     at each election: all that could ever be read is in this log

Compared is what lies above the largest log start. Below `compacted_end_offset` (of either) compaction may have
rewritten batches and taken records. There records are compared, and one that is missing has to have been superseded: by
a newer one of its key, or it is a tombstone, or of a transaction that was aborted.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from odradek.broker.log.markers import read_marker
from odradek.protocol.batches.batch import BatchHeader, read_header
from odradek.protocol.batches.records import Record, iterate_records
from odradek.testing.sim.checking.finding import Anomaly, Finding
from odradek.testing.sim.checking.history import ReplicaSeen

SHOWN_BYTES: Final = 16


@dataclass(frozen=True)
class ReplicaLog:
    """A replica and all that it holds."""

    seen: ReplicaSeen
    batches: tuple[bytes, ...]
    """Whole record batches, as they lie on the disk, by offset."""
    compacted_end_offset: int = 0
    """Everything before it may have been compacted."""

    @property
    def high_watermark(self) -> int:
        return self.seen.high_watermark

    @cached_property
    def records(self) -> dict[int, Record]:
        """By offset. Control batches hold none."""
        data = [batch for batch in self.batches if not read_header(batch).is_control]
        return {record.offset: record for batch in data for record in iterate_records(batch)}

    @cached_property
    def headers(self) -> dict[int, BatchHeader]:
        """Of the batch of each record, by the record's offset."""
        found: dict[int, BatchHeader] = {}
        for batch in self.batches:
            header = read_header(batch)
            found.update(dict.fromkeys(range(header.base_offset, header.last_offset + 1), header))
        return found

    @cached_property
    def newest(self) -> dict[bytes, int]:
        """The offset of the newest record of each key; those of aborted transactions do not count."""
        found: dict[bytes, int] = {}
        for batch in self.batches:
            header = read_header(batch)
            if not header.is_control and not self.has_aborted(header):
                found.update((each.key, each.offset) for each in iterate_records(batch) if each.key is not None)
        return found

    @cached_property
    def _markers(self) -> dict[int, list[tuple[int, bool]]]:
        """By producer id: offset of each marker, and whether it aborts."""
        found: dict[int, list[tuple[int, bool]]] = {}
        for batch in self.batches:
            header = read_header(batch)
            if header.is_control and (marker := read_marker(batch, header)) is not None:
                found.setdefault(header.producer_id, []).append((header.base_offset, marker.is_abort))
        return found

    def has_aborted(self, header: BatchHeader) -> bool:
        """Whether it holds the marker that aborts the transaction of this batch, which it need not hold any more."""
        behind = [each for each in self._markers.get(header.producer_id, ()) if each[0] > header.base_offset]
        return header.is_transactional and bool(behind) and behind[0][1]

    def may_lack(self, record: Record, header: BatchHeader) -> bool:
        """Whether compaction could take the record, of a batch with this header, out of this log."""
        if self.has_aborted(header):
            return True
        if record.key is None:
            return False
        return record.value is None or self.newest.get(record.key, -1) > record.offset


class _Spans:
    """Batches by their base offset, with the offset behind each."""

    def __init__(self, log: ReplicaLog, start: int, end: int) -> None:
        self.at: dict[int, tuple[int, bytes]] = {}
        for data in log.batches:
            header = read_header(data)
            if header.last_offset >= start and header.base_offset < end:
                self.at[header.base_offset] = header.last_offset + 1, data


# -- at one moment ----------------------------------------------------------------------------------------------------


def replicas_differ(leader: ReplicaLog, followers: Iterable[ReplicaLog]) -> Iterator[Finding]:
    """One finding for a follower that differs, at the first offset where it does. `followers`: those that the leader
    counts in its maximal in-sync set."""
    for follower in followers:
        start = max(leader.seen.log_start_offset, follower.seen.log_start_offset)
        compacted = max(start, leader.compacted_end_offset, follower.compacted_end_offset)
        end = leader.high_watermark
        difference = _records_differ(leader, follower, start, min(compacted, end))
        if difference is None:
            difference = _batches_differ(leader, follower, compacted, end)
        if difference is not None:
            yield _difference(leader, follower, *difference)


def _difference(leader: ReplicaLog, follower: ReplicaLog, offset: int, text: str) -> Finding:
    seen = sorted((leader.seen, follower.seen), key=lambda each: each.at_ms)
    text += f"; {leader.seen.machine} leads with high watermark {leader.high_watermark}"
    text += f", {follower.seen.machine} follows"
    events = tuple((-1, each) for each in seen)
    return Finding(Anomaly.REPLICAS_DIFFER, leader.seen.topic, leader.seen.partition, offset, text, events)


def _batches_differ(leader: ReplicaLog, follower: ReplicaLog, start: int, end: int) -> tuple[int, str] | None:
    ours, theirs = _Spans(leader, start, end).at, _Spans(follower, start, end).at
    for base_offset in sorted({*ours, *theirs}):
        one, other = ours.get(base_offset), theirs.get(base_offset)
        ends = [batch[0] for batch in (one, other) if batch is not None]
        if base_offset < start or max(ends) > end:
            continue  # not above the start as a whole, or not below the high watermark
        if one is None or other is None:
            return base_offset, f"only {'the follower' if one is None else 'the leader'} has a batch there"
        if one[1] != other[1]:
            return base_offset, f"the batches differ: {_bytes(one[1], other[1])}"
    return None


def _bytes(one: bytes, other: bytes) -> str:
    index = next(
        (index for index, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )
    shown = slice(index, index + SHOWN_BYTES)
    return f"{len(one)} and {len(other)} bytes, from byte {index} on {one[shown].hex()} and {other[shown].hex()}"


def _records_differ(leader: ReplicaLog, follower: ReplicaLog, start: int, end: int) -> tuple[int, str] | None:
    if start >= end:
        return None
    ours, theirs = leader.records, follower.records
    our_headers, their_headers = leader.headers, follower.headers
    for offset in sorted(each for each in {*ours, *theirs} if start <= each < end):
        one, other = ours.get(offset), theirs.get(offset)
        if one is not None and other is not None:
            if one != other:
                return offset, f"the records differ: {one} and {other}"
        elif one is not None and not follower.may_lack(one, our_headers[offset]):
            return offset, f"only the leader has {one}, and the follower nothing newer of its key"
        elif other is not None and not leader.may_lack(other, their_headers[offset]):
            return offset, f"only the follower has {other}, and the leader nothing newer of its key"
    return None


# -- over time --------------------------------------------------------------------------------------------------------


class Readable:
    """What of one partition could ever be read."""

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self._batches: dict[int, tuple[int, bytes, ReplicaSeen]] = {}
        """Base offset -> last offset, bytes, and who showed it."""

    def saw(self, leader: ReplicaLog) -> Iterator[Finding]:
        """Whatever lies below its high watermark has to stay. A finding where that is not what was there before."""
        end = leader.high_watermark
        for data in leader.batches:
            header = read_header(data)
            if header.last_offset >= end:
                continue
            known = self._batches.get(header.base_offset)
            if known is None:
                self._batches[header.base_offset] = header.last_offset, data, leader.seen
            elif known[1] != data and header.base_offset >= leader.compacted_end_offset:
                yield self._lost(
                    header.base_offset, f"other bytes now: {_bytes(known[1], data)}", known[2], leader.seen
                )

    def elected(self, leader: ReplicaLog, *, is_clean: bool) -> Iterator[Finding]:
        """One finding, for the first that is missing or differs. After an unclean election only what the new leader
        has is expected from then on, be it the same records in batches of another epoch."""
        start = leader.seen.log_start_offset
        theirs = _Spans(leader, start, leader.seen.log_end_offset).at
        gone: list[int] = []
        for base_offset, (last_offset, data, seen) in sorted(self._batches.items()):
            if last_offset < start:
                continue
            there = theirs.get(base_offset)
            if there is not None and there[1] == data:
                continue
            what = self._what_is_lost(leader, data, is_there=there is not None)
            if is_clean:
                if what is None:
                    continue
                if not gone:
                    yield self._lost(base_offset, what, seen, leader.seen)
            gone.append(base_offset)
        for base_offset in gone:
            del self._batches[base_offset]

    def _what_is_lost(self, leader: ReplicaLog, data: bytes, *, is_there: bool) -> str | None:
        """Record for record: batches may have been rewritten. `is_there`: one at that offset."""
        header, there = read_header(data), leader.records
        if header.is_control:
            is_taken = header.base_offset < leader.compacted_end_offset
            return None if is_there or is_taken else "its control batch is missing"
        for record in iterate_records(data):
            if not leader.seen.log_start_offset <= record.offset:
                continue
            if record.offset not in there:
                if record.offset < leader.compacted_end_offset and leader.may_lack(record, header):
                    continue
                return f"the record at {record.offset} is missing, where the log ends at {leader.seen.log_end_offset}"
            if there[record.offset] != record:
                return f"the record at {record.offset} is another: {there[record.offset]} instead of {record}"
        return None

    def _lost(self, offset: int, what: str, before: ReplicaSeen, after: ReplicaSeen) -> Finding:
        events = ((-1, before), (-1, after))
        text = f"{after.machine}, leader in epoch {after.leader_epoch}: {what}"
        return Finding(Anomaly.READABLE_LOST, self.topic, self.partition, offset, text, events)
