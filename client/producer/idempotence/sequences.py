"""The sequence of one partition: which batches of a producer are under way there, and how far the broker has come.

- No more than five batches reach from the oldest one under way to the newest, over all connections: so an answer that
  was lost can still be asked for. And while nothing was acknowledged, only one is under way: a broker without any state
  takes whatever comes first, so that a second batch through another leader could get before the first.
- Batches that are sent again go one at a time, lowest sequence first; nothing new overtakes them.
- Batches under way are renumbered when the sequence has a gap, which makes new batches of them for the broker. Hence
  this waits until none can be in the log: none is on the wire, and the lowest has been refused, so that those after it
  cannot follow. One of unknown fate is sent again under its old number first; what Kafka's TransactionManager renumbers
  at once, while it may be appended at that moment, would be there twice.

(Source: TxnPartitionEntry.java and shouldStopDrainBatchesForPartition in RecordAccumulator.java.)
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple, Protocol

__all__ = [
    "MOVES",
    "NOBODY",
    "NONE",
    "Identity",
    "PartitionSequence",
    "Place",
    "SequencedBatch",
    "State",
    "incremented",
]

NONE: Final = -1
SEQUENCE_COUNT: Final = 2**31
WINDOW: Final = 5
"""Batches of a producer in a partition that a broker remembers (ProducerStateEntry.NUM_BATCHES_TO_RETAIN)."""


def incremented(sequence: int, count: int) -> int:
    """The sequence `count` records later: 0 follows 2^31 − 1 (DefaultRecordBatch.incrementSequence)."""
    return (sequence + count) % SEQUENCE_COUNT


class SequencedBatch(Protocol):
    """What must be known of a batch."""

    @property
    def count(self) -> int: ...
    @property
    def producer_id(self) -> int: ...
    @property
    def producer_epoch(self) -> int: ...
    @property
    def base_sequence(self) -> int:
        """-1: it was never drained."""
        ...

    @property
    def in_flight(self) -> bool:
        """Drained, and its request has neither been answered nor lost with its connection."""
        ...

    def renumber(self, producer_id: int, producer_epoch: int, base_sequence: int) -> None:
        """Sets the three. Bytes made with others are not to be sent any more."""
        ...


class State(Enum):
    """How the sequence of a partition stands to what the broker has."""

    SETTLED = "settled"
    """Each batch follows the one before. → UNRESOLVED when one that was sent is given up without a clear answer;
    → BROKEN when the broker has a gap for sure."""
    UNRESOLVED = "unresolved"
    """The broker may or may not have a batch that was given up. Nothing new is drained; those under way show it.
    → SETTLED when nothing is under way and the last sequence acknowledged is the last one given, since then the broker
    has all before it too; → BROKEN when it is not, or when the lowest one under way is refused."""
    BROKEN = "broken"
    """Nothing new is drained. → SETTLED by a new epoch, once no batch under way can be in the log."""


MOVES: Final[Mapping[State, frozenset[State]]] = {
    State.SETTLED: frozenset((State.UNRESOLVED, State.BROKEN)),
    State.UNRESOLVED: frozenset((State.SETTLED, State.BROKEN)),
    State.BROKEN: frozenset((State.SETTLED,)),
}


class Identity(NamedTuple):
    """What a sequence belongs to: under another one it begins at 0 again."""

    producer_id: int
    epoch: int


NOBODY: Final = Identity(NONE, NONE)


class Place:
    """A batch in the window of its partition."""

    __slots__ = ("batch", "has_ended", "is_absent", "was_next")

    def __init__(self, batch: SequencedBatch, *, is_absent: bool = False) -> None:
        self.batch = batch
        self.is_absent = is_absent
        """The broker refused its sequence, or it was never sent: it is not in the log."""
        self.has_ended = False
        """Ended before an older one, it still counts: the broker remembers it in place of another."""
        self.was_next = False
        """When it was last drained, everything before it had been acknowledged."""


class PartitionSequence:
    """What one producer has numbered in one partition."""

    __slots__ = (
        "_given_up",
        "identity",
        "last_acked_offset",
        "last_acked_sequence",
        "next_sequence",
        "state",
        "window",
    )

    def __init__(self) -> None:
        self._given_up: list[SequencedBatch] = []  # with requests on the wire
        self.state = State.SETTLED
        self.last_acked_offset = NONE
        self.window: list[Place] = []
        """From the oldest batch under way on, in order of sequence. All bear `identity`."""
        self.begin(NOBODY)

    def begin(self, identity: Identity) -> None:
        """Starts the sequence at 0 under this id and epoch."""
        self.identity = identity
        self.next_sequence = 0
        self.last_acked_sequence = NONE

    def move(self, to: State) -> None:
        if to is not self.state:
            assert to in MOVES[self.state], f"{self.state} → {to}"
            self.state = to

    def number(self, batch: SequencedBatch) -> None:
        batch.renumber(*self.identity, self.next_sequence)
        self.next_sequence = incremented(self.next_sequence, batch.count)

    def enter(self, batch: SequencedBatch) -> None:
        """A batch is drained for the first time."""
        self.number(batch)
        place = Place(batch)
        place.was_next = self.is_next(batch)
        self.window.append(place)

    def split(self, batch: SequencedBatch, parts: Sequence[SequencedBatch]) -> None:
        """Puts parts in the place of a batch, with consecutive sequences."""
        place = self.place_of(batch)
        assert place is not None
        sequence = batch.base_sequence
        for part in parts:
            part.renumber(*self.identity, sequence)
            sequence = incremented(sequence, part.count)
        index = self.window.index(place)
        self.window[index : index + 1] = [Place(part, is_absent=True) for part in parts]

    def may_begin(self, identity: Identity) -> bool:
        """Whether a batch that was never sent may be drained."""
        if self.state is not State.SETTLED:
            return False
        if not self.window:
            return self.may_become(identity)
        return (
            self.identity == identity
            and self.last_acked_sequence != NONE
            and len(self.window) < WINDOW
            and all(place.has_ended or place.batch.in_flight for place in self.window)
        )

    def may_retry(self, batch: SequencedBatch) -> bool:
        """Whether a batch may be sent again. One that may be is no longer taken to be absent."""
        lowest = self.window[0]
        if lowest.batch is not batch or (self.state is State.BROKEN and lowest.is_absent):
            return False
        lowest.is_absent = False
        lowest.was_next = self.is_next(batch)
        return True

    def may_become(self, identity: Identity) -> bool:
        """Whether the partition may go over to this id and epoch, as far as batches are concerned that were given up.

        A broker refuses what arrives late under a lower epoch, but not under another id: that has to land before.
        """
        if self.identity.producer_id in (NONE, identity.producer_id):
            return True
        return not any(batch.in_flight for batch in self._given_up)

    def place_of(self, batch: SequencedBatch) -> Place | None:
        return next((place for place in self.window if place.batch is batch and not place.has_ended), None)

    def remove(self, batch: SequencedBatch) -> bool:
        """Takes a batch out of the window. False: it is not there."""
        place = self.place_of(batch)
        if place is None:
            return False
        place.has_ended = True
        if batch.in_flight:
            self._given_up = [*(each for each in self._given_up if each.in_flight), batch]
        while self.window and self.window[0].has_ended:
            del self.window[0]
        return True

    def acknowledge(self, batch: SequencedBatch, base_offset: int) -> None:
        """An answer may come late, after others under the same identity, or after that has been given up."""
        if (batch.producer_id, batch.producer_epoch) != self.identity:
            return
        last = incremented(batch.base_sequence, batch.count - 1)
        if self.last_acked_sequence == NONE or self._behind(last) < self._behind(self.last_acked_sequence):
            self.last_acked_sequence = last
        if base_offset != NONE:
            self.last_acked_offset = max(self.last_acked_offset, base_offset + batch.count - 1)

    def is_next(self, batch: SequencedBatch) -> bool:
        """Whether everything before this batch was acknowledged, and nothing after it."""
        return incremented(self.last_acked_sequence, 1) == batch.base_sequence

    @property
    def all_is_acknowledged(self) -> bool:
        return incremented(self.last_acked_sequence, 1) == self.next_sequence

    @property
    def may_be_renumbered(self) -> bool:
        """Whether no batch under way can be in the log, or get there by a request that is on the wire.

        The lowest was refused, and each later one follows on one that is not there. (A place that has ended holds no
        batch to be renumbered.)
        """
        if any(place.batch.in_flight for place in self.window if not place.has_ended):
            return False
        return not self.window or self.window[0].is_absent

    def renumber(self, identity: Identity) -> None:
        self.window = [place for place in self.window if not place.has_ended]
        self.begin(identity)
        for place in self.window:
            self.number(place.batch)
            place.is_absent = True
        self.move(State.SETTLED)

    def _behind(self, sequence: int) -> int:
        """How far a sequence lies behind the newest one, also where they wrap."""
        return (self.next_sequence - 1 - sequence) % SEQUENCE_COUNT
