"""The history by record: who sent which value and what was said of it, and which offsets were seen to hold what.

One pass over the history, which everything else then asks. A *sighting* is a value at an offset, as an acknowledgement
or a poll showed it. It is *strong* if a poll or an acknowledgement with acks=all did: it may never change. With acks=1
it is *weak*: the next leader may not have it, and put something else there.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from odradek.testing.sim.checking.expectations import TopicPartition
from odradek.testing.sim.checking.finding import Event
from odradek.testing.sim.checking.group_history import (
    Assigned,
    CommitAnswered,
    CommitAsked,
    GroupRecord,
    MemberGone,
    OffsetsRead,
    Revoked,
)
from odradek.testing.sim.checking.history import Acknowledged, Failed, Phase, Placed, Polled, Record, Sent
from odradek.testing.sim.checking.transaction_history import Ended, Ending, InTransaction, TransactionRecord

ACKS_ALL: Final = -1


class Send:
    """One record, from its producer's side."""

    __slots__ = ("acknowledged", "acknowledged_index", "failed", "failed_index", "index", "sent")

    def __init__(self, sent: Sent, index: int) -> None:
        self.sent = sent
        self.index = index
        self.acknowledged: Acknowledged | None = None
        self.acknowledged_index = -1
        self.failed: Failed | None = None
        self.failed_index = -1

    @property
    def is_strong(self) -> bool:
        return self.sent.acks == ACKS_ALL

    @property
    def events(self) -> list[tuple[int, Event]]:
        found: list[tuple[int, Event]] = [(self.index, self.sent)]
        if self.acknowledged is not None:
            found.append((self.acknowledged_index, self.acknowledged))
        if self.failed is not None:
            found.append((self.failed_index, self.failed))
        return found


class Sighting:
    """A value at an offset, as long as nothing else was seen there. Indexes are positions in the history."""

    __slots__ = (
        "first_asked_ms",
        "first_index",
        "first_ms",
        "is_read",
        "is_strong",
        "last_asked_ms",
        "last_index",
        "last_read_index",
        "offset",
        "value",
    )

    def __init__(self, offset: int, value: int, index: int, asked_ms: float, at_ms: float, is_strong: bool) -> None:
        self.offset = offset
        self.value = value
        self.first_index = self.last_index = index
        self.first_ms = at_ms
        """When it was known first."""
        self.first_asked_ms = self.last_asked_ms = asked_ms
        """When the questions were asked that it answered first and last: it was so at some moment from then on."""
        self.is_strong = is_strong
        self.is_read = False
        self.last_read_index = -1
        """Of the last poll that brought it."""


class PartitionLedger:
    """What is known of the offsets of one partition."""

    def __init__(self) -> None:
        self.at: dict[int, Sighting] = {}
        """Offset -> what was seen there first."""
        self.others: dict[int, list[Sighting]] = {}
        """Offset -> what was seen there after that: each differs from the one before."""
        self.polls: list[tuple[int, Polled]] = []

    def see(self, offset: int, value: int, index: int, asked_ms: float, at_ms: float, is_strong: bool) -> Sighting:
        seen = self.at.get(offset)
        if seen is None:
            seen = self.at[offset] = Sighting(offset, value, index, asked_ms, at_ms, is_strong)
            return seen
        if offset in self.others:
            seen = self.others[offset][-1]
        if seen.value != value:
            seen = Sighting(offset, value, index, asked_ms, at_ms, is_strong)
            self.others.setdefault(offset, []).append(seen)
            return seen
        seen.last_index = index
        if asked_ms > seen.last_asked_ms:
            seen.last_asked_ms = asked_ms
        if is_strong and not seen.is_strong:
            seen.is_strong = True
        return seen

    def read(self, polled: Polled, index: int) -> None:
        """`see`, for each record of a poll."""
        at, others, asked_ms = self.at, self.others, polled.asked_ms
        for offset, value in polled.records:
            seen = at.get(offset)
            if seen is None or seen.value != value or offset in others:
                seen = self.see(offset, value, index, asked_ms, polled.at_ms, True)
            else:
                seen.last_index = index
                seen.is_strong = True
                if asked_ms > seen.last_asked_ms:
                    seen.last_asked_ms = asked_ms
            seen.is_read = True
            seen.last_read_index = index
        self.polls.append((index, polled))

    def sightings(self) -> Iterator[Sighting]:
        for offset, seen in self.at.items():
            yield seen
            if offset in self.others:
                yield from self.others[offset]

    def last_read_index(self, seen: Sighting) -> int:
        """Of the last poll that brought this value at this offset; a late answer with acks=1 may have told of another
        one in between."""
        same = [each for each in self.others.get(seen.offset, ()) if each.value == seen.value]
        return max(each.last_read_index for each in (seen, *same))

    def strong_at(self, offset: int) -> Sighting | None:
        """What cannot have been passed over; the first, where there are several."""
        if (seen := self.at.get(offset)) is not None and seen.is_strong:
            return seen
        return next((each for each in self.others.get(offset, ()) if each.is_strong), None)


class Ledger:
    """The whole history."""

    def __init__(self, records: Iterable[Record]) -> None:
        self.records = list(records)
        self.sends: dict[int, Send] = {}
        """By value."""
        self.orphans: list[tuple[int, Acknowledged | Failed]] = []
        """Answers to what nobody had sent, or a second answer."""
        self.partitions: dict[TopicPartition, PartitionLedger] = {}
        self.readers: dict[tuple[str, str, int], list[tuple[int, Placed | Polled]]] = {}
        """By client, topic and partition: its way through the log."""
        self.group_records: list[tuple[int, GroupRecord]] = []
        """What members of consumer groups were told and asked for."""
        self.transaction_records: list[tuple[int, TransactionRecord]] = []
        """What transactional producers did, and were told."""
        self.has_ended = False
        self.last_readings: dict[TopicPartition, tuple[int, Placed]] = {}
        """By partition: where somebody began to read it all, for the last time, when everything was repaired."""
        is_repaired = False
        for index, record in enumerate(self.records):
            match record:
                case Polled():
                    self.partition(record.topic, record.partition).read(record, index)
                    self.readers.setdefault((record.client, record.topic, record.partition), []).append((index, record))
                case Sent():
                    assert record.value not in self.sends, f"value {record.value} is sent twice: it names no record"
                    self.sends[record.value] = Send(record, index)
                case Acknowledged():
                    self._acknowledge(record, index)
                case Failed():
                    self._fail(record, index)
                case Placed():
                    self.readers.setdefault((record.client, record.topic, record.partition), []).append((index, record))
                    if is_repaired and record.why == "start":
                        self.last_readings[record.topic, record.partition] = index, record
                case Phase(name="liveness"):
                    is_repaired = True
                case Phase(name="end"):
                    self.has_ended = True
                case InTransaction() | Ending() | Ended():
                    self.transaction_records.append((index, record))
                case Assigned() | Revoked() | CommitAsked() | CommitAnswered() | MemberGone() | OffsetsRead():
                    self.group_records.append((index, record))
                case _:
                    pass  # what the world did is not about records

    def partition(self, topic: str, partition: int) -> PartitionLedger:
        found = self.partitions.get((topic, partition))
        if found is None:
            found = self.partitions[topic, partition] = PartitionLedger()
        return found

    def event(self, index: int) -> tuple[int, Event]:
        return index, self.records[index]

    def events(self, *indexes: int) -> tuple[tuple[int, Event], ...]:
        """Those, once each and in time order."""
        return tuple(self.event(index) for index in sorted(set(indexes)))

    def _acknowledge(self, record: Acknowledged, index: int) -> None:
        send = self.sends.get(record.value)
        if send is None or send.acknowledged is not None or send.failed is not None:
            self.orphans.append((index, record))
            return
        send.acknowledged, send.acknowledged_index = record, index
        if record.offset >= 0:
            partition = self.partition(record.topic, record.partition)
            partition.see(record.offset, record.value, index, send.sent.at_ms, record.at_ms, send.is_strong)

    def _fail(self, record: Failed, index: int) -> None:
        send = self.sends.get(record.value)
        if send is None or send.acknowledged is not None or send.failed is not None:
            self.orphans.append((index, record))
            return
        send.failed, send.failed_index = record, index
