"""What was acknowledged is there, and in the order in which it was written.

*Lost write*: acknowledged at an offset that a reader passed over, and read by nobody. *Unseen*: acknowledged, and read
by nobody although readers went on to the end; or read by somebody once, and not by who read everything when all was
repaired. With acks=1 what nobody has read may be gone when the leader changes, with acks=0 always.

*Write order*: an idempotent producer's records stand in a partition as they were sent. *Non-monotonic send*: what was
sent after a higher offset was known, by an answer to anybody, stands behind that.
"""

from bisect import bisect_left
from collections.abc import Iterator

from odradek.testing.sim.checking.expectations import Expectations, TopicPartition
from odradek.testing.sim.checking.finding import Anomaly, Finding
from odradek.testing.sim.checking.history import Polled
from odradek.testing.sim.checking.ledger import Ledger, PartitionLedger, Send, Sighting
from odradek.testing.sim.checking.superseded import Superseded

# -- there ------------------------------------------------------------------------------------------------------------


def lost_writes(ledger: Ledger, expectations: Expectations) -> Iterator[Finding]:
    """Both kinds."""
    reads_everything = expectations.rules.reads_everything
    is_unseen_wrong = ledger.has_ended if reads_everything is None else reads_everything
    read_values = {
        seen.value for partition in ledger.partitions.values() for seen in partition.sightings() if seen.is_read
    }
    passes, superseded = Passes(ledger), Superseded(ledger, expectations.rules)
    for value, send in ledger.sends.items():
        acknowledged = send.acknowledged
        if acknowledged is None or send.sent.acks == 0:
            continue
        key, offset = (acknowledged.topic, acknowledged.partition), acknowledged.offset
        if offset < 0:
            if expectations.deleted_ms(key[0]) is not None:
                continue
            if value in read_values or not is_unseen_wrong or expectations.rules.of(key[0]).is_compacted:
                continue
        else:
            if _is_read(ledger.partition(*key), offset, value) or expectations.is_deleted(key, offset):
                continue
            if superseded.in_the_end(key, offset, value):
                continue
        passed = passes.over(key, offset) if offset >= 0 else None
        if passed is not None:
            yield _missing(Anomaly.LOST_WRITE, ledger, expectations, send, passed)
        elif is_unseen_wrong:
            yield _missing(Anomaly.UNSEEN, ledger, expectations, send, None)


def vanished_records(ledger: Ledger, expectations: Expectations) -> Iterator[Finding]:
    """What was read once, and is not there any more. Whatever its acks, it was below a high watermark."""
    if not ledger.has_ended:
        return
    superseded = Superseded(ledger, expectations.rules)
    for key, (index, placed) in ledger.last_readings.items():
        partition = ledger.partition(*key)
        for seen in partition.sightings():
            send = ledger.sends.get(seen.value)
            is_gone = seen.is_read and seen.offset >= placed.offset and partition.last_read_index(seen) < index
            if not is_gone or send is None or expectations.is_deleted(key, seen.offset):
                continue
            if not superseded.in_the_end(key, seen.offset, seen.value):
                yield Finding(
                    Anomaly.UNSEEN,
                    *key,
                    seen.offset,
                    f"value {seen.value} was read, and was not there when all was read in the end",
                    ledger.events(send.index, seen.last_read_index, index),
                    expectations.of_loss(key, send.sent.at_ms) or expectations.of_not_being_read(key),
                )


def _missing(
    anomaly: Anomaly, ledger: Ledger, expectations: Expectations, send: Send, passed: tuple[int, Polled] | None
) -> Finding:
    acknowledged = send.acknowledged
    assert acknowledged is not None
    key = acknowledged.topic, acknowledged.partition
    if send.is_strong:
        excuse = expectations.of_loss(key, send.sent.at_ms)
    else:
        excuse = expectations.of_loss_with_acks_1(key, send.sent.at_ms)
    if excuse is None and passed is None:
        excuse = expectations.of_not_being_read(key)
    offset = acknowledged.offset if acknowledged.offset >= 0 else None
    text = f"value {acknowledged.value}, acknowledged with acks={send.sent.acks}, was read by nobody"
    if passed is not None:
        text += "; a reader passed over it"
    if excuse is None and (since_ms := expectations.outside_since_ms(key)) is not None:
        text += f"; the loss model was left at {since_ms:.3f} ms, but no unclean election was logged after it was sent"
    events = [*send.events, *([passed] if passed is not None else [])]
    return Finding(anomaly, *key, offset, text, tuple(events), excuse)


def _is_read(partition: PartitionLedger, offset: int, value: int) -> bool:
    """There, by anybody."""
    return any(
        seen.is_read and seen.value == value for seen in (partition.at[offset], *partition.others.get(offset, ()))
    )


class Passes:
    """Which polls went over which offsets: from the position before to the last record."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._polls: dict[TopicPartition, tuple[list[int], list[tuple[int, int, Polled]]]] = {}

    def over(self, key: TopicPartition, offset: int) -> tuple[int, Polled] | None:
        """One that went over it, and its place in the history."""
        if key not in self._polls:
            self._polls[key] = self._sorted(key)
        positions, furthest = self._polls[key]
        index = bisect_left(positions, offset + 1) - 1
        if index < 0 or furthest[index][0] <= offset:
            return None
        return furthest[index][1:]

    def _sorted(self, key: TopicPartition) -> tuple[list[int], list[tuple[int, int, Polled]]]:
        """Positions in order; and up to each of them the poll that came furthest."""
        polls = sorted(
            (
                (polled.position, polled.records[-1][0] + 1, index, polled)
                for index, polled in self._ledger.partition(*key).polls
                if polled.records
            ),
            key=lambda each: each[:3],
        )
        furthest: list[tuple[int, int, Polled]] = []
        for _, end, index, polled in polls:
            furthest.append(max([(end, index, polled), *furthest[-1:]], key=lambda each: each[0]))
        return [position for position, *_ in polls], furthest


# -- in order ---------------------------------------------------------------------------------------------------------


def disordered_writes(ledger: Ledger, expectations: Expectations) -> Iterator[Finding]:
    """Both kinds."""
    for key, partition in ledger.partitions.items():
        known = _Known(partition)
        by_producer: dict[str, list[tuple[Send, Sighting]]] = {}
        for seen in partition.sightings():
            send = ledger.sends.get(seen.value)
            if send is None or not seen.is_strong:
                continue
            if send.sent.is_idempotent:
                by_producer.setdefault(send.sent.producer, []).append((send, seen))
            higher = known.highest_before(send.index)
            if higher is not None and higher.offset >= seen.offset:
                yield Finding(
                    Anomaly.NON_MONOTONIC_SEND,
                    *key,
                    seen.offset,
                    f"value {seen.value} was sent when offset {higher.offset} was known to be taken",
                    ledger.events(higher.first_index, send.index, seen.first_index),
                    expectations.of_two_values(key, higher.first_asked_ms, seen.first_ms),
                )
        for producer, written in by_producer.items():
            yield from _out_of_order(ledger, expectations, key, producer, written)


class _Known:
    """The highest offset that anybody had been told of, by place in the history."""

    def __init__(self, partition: PartitionLedger) -> None:
        self._indexes: list[int] = []
        self._highest: list[Sighting] = []
        for seen in sorted(
            (each for each in partition.sightings() if each.is_strong), key=lambda each: each.first_index
        ):
            if not self._highest or seen.offset > self._highest[-1].offset:
                self._indexes.append(seen.first_index)
                self._highest.append(seen)

    def highest_before(self, index: int) -> Sighting | None:
        place = bisect_left(self._indexes, index) - 1
        return self._highest[place] if place >= 0 else None


def _out_of_order(
    ledger: Ledger,
    expectations: Expectations,
    key: TopicPartition,
    producer: str,
    written: list[tuple[Send, Sighting]],
) -> Iterator[Finding]:
    """Of neighbours, each that stands before one that was sent earlier. A record that stands twice is no matter of
    order: its first place counts."""
    places: dict[int, tuple[Send, Sighting]] = {}
    for send, seen in written:
        former = places.get(seen.value)
        if former is None or seen.offset < former[1].offset:
            places[seen.value] = send, seen
    last: tuple[Send, Sighting] | None = None
    for send, seen in sorted(places.values(), key=lambda each: each[0].index):
        if last is not None and seen.offset < last[1].offset:
            yield Finding(
                Anomaly.WRITE_ORDER,
                *key,
                seen.offset,
                f"value {seen.value} of {producer} stands before value {last[1].value} at {last[1].offset}, "
                "which was sent earlier",
                ledger.events(last[0].index, send.index, last[1].first_index, seen.first_index),
                expectations.of_two_values(key, last[1].last_asked_ms, seen.first_ms)
                or expectations.of_two_values(key, seen.last_asked_ms, last[1].first_ms),
            )
        else:
            last = send, seen
