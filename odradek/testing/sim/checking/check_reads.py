"""Readers get what was written, all of it, and in order.

*Aborted read*: what its producer was told to be certainly not in the log, or what was refused before the append.
*Phantom*: what nobody had sent by then, or not to there. *Non-monotonic poll*: a reader goes back, unless it was placed
anew. *Skipped poll*: a reader passes over an offset at which something is known to stand. Offsets at which nothing is
known are no gap: control records and what compaction took have offsets, too. *Position lost*: the broker says that a
position is out of range, although nothing was deleted.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from odradek.testing.sim.checking.expectations import Expectations, TopicPartition
from odradek.testing.sim.checking.finding import Anomaly, Finding
from odradek.testing.sim.checking.history import Placed, Polled
from odradek.testing.sim.checking.ledger import Ledger, PartitionLedger, Sighting
from odradek.testing.sim.checking.superseded import Superseded
from odradek.testing.sim.checking.topics import name_of

# -- what is read -----------------------------------------------------------------------------------------------------


def unwritten_reads(ledger: Ledger, expectations: Expectations) -> Iterator[Finding]:
    """Aborted reads and phantoms. Nothing excuses them."""
    del expectations
    for key, partition in ledger.partitions.items():
        for seen in partition.sightings():
            send = ledger.sends.get(seen.value)
            if send is None:
                text, events = f"nobody sent value {seen.value}", ledger.events(seen.first_index)
                yield Finding(Anomaly.PHANTOM, *key, seen.offset, text, events)
                continue
            events = ledger.events(send.index, seen.first_index)
            sent = send.sent
            if seen.first_index < send.index:
                text = f"value {seen.value} was there before it was sent"
                yield Finding(Anomaly.PHANTOM, *key, seen.offset, text, events)
            if sent.topic != name_of(key[0]) or (sent.partition is not None and sent.partition != key[1]):
                there = f"{sent.topic}-{'any' if sent.partition is None else sent.partition}"
                yield Finding(Anomaly.PHANTOM, *key, seen.offset, f"value {seen.value} was sent to {there}", events)
            if send.failed is not None and send.failed.is_definite:
                yield Finding(
                    Anomaly.ABORTED_READ,
                    *key,
                    seen.offset,
                    f"value {seen.value} was read, though its producer was told that it is not in the log",
                    ledger.events(send.index, send.failed_index, seen.first_index),
                )
    for index, answer in ledger.orphans:
        topic, partition_index = getattr(answer, "topic", ""), getattr(answer, "partition", -1)
        text = f"an answer to value {answer.value}, which was not sent before, or had its answer"
        yield Finding(Anomaly.PHANTOM, topic, partition_index, None, text, ledger.events(index))


# -- how it is read ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Place:
    """Where a reader stands, and since which event."""

    offset: int
    index: int
    asked_ms: float


def disordered_polls(ledger: Ledger, expectations: Expectations) -> Iterator[Finding]:
    """Each reader's way through a partition."""
    superseded = Superseded(ledger, expectations.rules)
    for (_, topic, partition), steps in ledger.readers.items():
        way = _Way(ledger, expectations, superseded, (topic, partition))
        for index, step in steps:
            if isinstance(step, Polled):
                yield from way.poll(index, step)
            else:
                yield from way.put(index, step)


class _Way:
    def __init__(self, ledger: Ledger, expectations: Expectations, superseded: Superseded, key: TopicPartition) -> None:
        self._ledger = ledger
        self._expectations = expectations
        self._superseded = superseded
        self._key = key
        self._partition: PartitionLedger = ledger.partition(*key)
        self._place: Place | None = None
        """None before its first step."""

    def put(self, index: int, placed: Placed) -> Iterator[Finding]:
        before, self._place = self._place, Place(placed.offset, index, placed.at_ms)
        if placed.why != "out of range" or before is None:
            return
        if self._expectations.is_deleted(self._key, before.offset, placed.at_ms):
            return
        text = f"position {before.offset} was out of range, and nothing was deleted there; it became {placed.offset}"
        excuse = self._expectations.of_two_values(self._key, before.asked_ms, placed.at_ms)
        events = self._ledger.events(before.index, index)
        yield Finding(Anomaly.POSITION_LOST, *self._key, before.offset, text, events, excuse)

    def poll(self, index: int, polled: Polled) -> Iterator[Finding]:
        before = self._place if self._place is not None else Place(polled.position, index, polled.asked_ms)
        if polled.position < before.offset:
            text = f"a reader that stood at {before.offset} asked from {polled.position}"
            yield self._found(Anomaly.NON_MONOTONIC_POLL, polled.position, text, before, index)
        elif polled.position > before.offset:
            yield from self._skipped(Anomaly.SKIPPED_POLL, before.offset, polled.position, before, index, polled)
        position = polled.position
        is_first = True
        for offset, value in polled.records:
            if offset != position:
                if offset < position:
                    kind = Anomaly.NON_MONOTONIC_POLL if is_first else Anomaly.INTERNAL_NON_MONOTONIC_POLL
                    text = f"value {value} at {offset} came to a reader that stood at {position}"
                    yield self._found(kind, offset, text, before, index)
                else:
                    kind = Anomaly.SKIPPED_POLL if is_first else Anomaly.INTERNAL_SKIPPED_POLL
                    yield from self._skipped(kind, position, offset, before, index, polled)
            position = offset + 1
            is_first = False
        self._place = Place(position, index, polled.asked_ms)

    def _skipped(
        self, kind: Anomaly, start: int, end: int, before: Place, index: int, polled: Polled
    ) -> Iterator[Finding]:
        """One finding a gap, about the first record in it that is known."""
        known = [
            seen
            for offset in self._known_offsets(start, end)
            if (seen := self._partition.strong_at(offset)) is not None
            and not self._superseded.by(polled.at_ms, self._key, offset, seen.value)
        ]
        if not known:
            return
        first = known[0]
        if self._expectations.is_deleted(self._key, first.offset, polled.at_ms):
            return
        text = f"a reader went from {start} to {end} over value {first.value}"
        if len(known) > 1:
            text += f" and {len(known) - 1} more records"
        events = self._ledger.events(first.first_index, before.index, index)
        yield Finding(kind, *self._key, first.offset, text, events, self._excuse(first, polled))

    def _excuse(self, seen: Sighting, polled: Polled) -> str | None:
        return self._expectations.of_two_values(
            self._key, seen.last_asked_ms, polled.at_ms
        ) or self._expectations.of_two_values(self._key, polled.asked_ms, seen.first_ms)

    def _known_offsets(self, start: int, end: int) -> Iterator[int]:
        """A wide gap costs what is known of the partition, not what is wide."""
        if end - start <= len(self._partition.at):
            yield from (offset for offset in range(start, end) if offset in self._partition.at)
        else:
            yield from sorted(offset for offset in self._partition.at if start <= offset < end)

    def _found(self, kind: Anomaly, offset: int, text: str, before: Place, index: int) -> Finding:
        return Finding(kind, *self._key, offset, text, self._ledger.events(before.index, index))
