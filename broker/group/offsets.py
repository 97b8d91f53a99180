"""The committed offsets of a shard's groups, those of open transactions apart. Pure.

What is committed outside of a transaction counts at once. What a transaction commits is *pending* until its marker: a
commit marker makes it count, unless something newer counts by then: committed outside of a transaction, or later in
another one; an abort marker drops it. A tombstone removes both (Kafka's OffsetMetadataManager).

Each change gives what takes it back, once what was changed since in the same groups is: an append may be refused
(`Outbox.append`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from odradek.protocol.primitives import ZERO_UUID

NO_EXPIRY: Final = -1
NO_LEADER_EPOCH: Final = -1

Undo = Callable[[], None]
Position = tuple[str, int]
"""Topic and partition."""


class Committed(NamedTuple):
    """One committed offset (Kafka's OffsetAndMetadata)."""

    offset: int
    leader_epoch: int = NO_LEADER_EPOCH
    metadata: str = ""
    commit_timestamp_ms: int = 0
    expire_timestamp_ms: int = NO_EXPIRY
    """Only where the request named a retention time (OffsetCommit 2 to 4)."""
    topic_id: bytes = ZERO_UUID
    """ZERO_UUID where it was not known."""


@dataclass(slots=True)
class _Pending:
    """An offset that an open transaction has committed."""

    committed: Committed
    order: int
    """Larger than that of every offset which was pending before."""
    is_outdated: bool = False
    """Something newer counts."""


class _Counted(NamedTuple):
    """An offset that counts since the marker of its transaction."""

    group_id: str
    position: Position
    found: _Pending
    former: Committed | None
    """What counted before."""
    outdated: Sequence[_Pending]
    """What else is pending there, and older."""


class Ended(NamedTuple):
    """What a marker has changed."""

    committed: int
    """So many offsets count now."""
    undo: Undo


NOTHING: Final[Mapping[Position, Committed]] = {}


@lru_cache(maxsize=4096)
def shared(topic: str, partition: int) -> Position:
    """One object, 110 bytes, for all groups that have committed there."""
    return topic, partition


class Offsets:
    """By group."""

    __slots__ = ("_by_group", "_open", "_pending", "_pending_count")

    def __init__(self) -> None:
        self._by_group: dict[str, dict[Position, Committed]] = {}
        self._pending: dict[int, dict[str, dict[Position, _Pending]]] = {}
        """By producer id and group: of transactions that are open."""
        self._open: dict[str, set[int]] = {}
        """By group: the producers with a transaction that is open there, though all that it committed be removed."""
        self._pending_count = 0
        """How many were, so far."""

    # -- questions --------------------------------------------------------------------------------------------------

    def of(self, group_id: str) -> Mapping[Position, Committed]:
        """What the group has committed."""
        return self._by_group.get(group_id, NOTHING)

    def is_unstable(self, group_id: str, position: Position) -> bool:
        """Whether an open transaction has committed an offset there (KIP-447)."""
        return any(position in self._pending[producer_id][group_id] for producer_id in self._open.get(group_id, ()))

    @property
    def group_ids(self) -> Iterable[str]:
        """Those that have committed anything that counts."""
        return self._by_group

    @property
    def pending_group_ids(self) -> Iterable[str]:
        """Those of which transactions have committed offsets and are open, though these be removed since."""
        return self._open

    def holds(self, group_id: str) -> bool:
        """Whether the group has an offset, or will have one if a transaction commits."""
        return group_id in self._by_group or self.has_pending(group_id)

    def has_pending(self, group_id: str) -> bool:
        """Whether any offset is pending there."""
        return any(self._pending[producer_id][group_id] for producer_id in self._open.get(group_id, ()))

    def pending_of(self, group_id: str) -> Iterator[tuple[int, Position, Committed]]:
        """What is pending there, with the producers whose transactions have committed it."""
        for producer_id in self._open.get(group_id, ()):
            for position, pending in self._pending[producer_id][group_id].items():
                yield producer_id, position, pending.committed

    def pending_positions(self, group_id: str) -> set[Position]:
        """Where open transactions of the group have committed offsets."""
        return {position for _, position, _ in self.pending_of(group_id)}

    def groups_of(self, producer_id: int) -> Sequence[str]:
        """Those that the open transaction of this producer has committed offsets of, though they be removed since."""
        return [*self._pending.get(producer_id, ())]

    def __len__(self) -> int:
        """How many offsets are committed, over all groups."""
        return sum(map(len, self._by_group.values()))

    # -- changes ----------------------------------------------------------------------------------------------------

    def commit(self, group_id: str, position: Position, committed: Committed) -> Undo:
        """Outside of a transaction."""
        former = self.of(group_id).get(position)
        outdated = self._count(group_id, position if former is not None else shared(*position), committed, None)

        def undo() -> None:
            self._put_back(group_id, position, former)
            for pending in outdated:
                pending.is_outdated = False

        return undo

    def restore(self, group_id: str, position: Position, committed: Committed) -> None:
        """The same, from the log. `position`: one object wherever it comes again, as of `shared`."""
        self._count(group_id, position, committed, None)

    def _count(self, group_id: str, position: Position, committed: Committed, order: int | None) -> Sequence[_Pending]:
        """It counts from here on. `order`: what it had while it was pending. Returns what is outdated by that."""
        offsets = self._by_group.get(group_id)
        if offsets is None:
            offsets = self._by_group[group_id] = {}
        offsets[position] = committed
        return self._outdate(group_id, position, order) if group_id in self._open else ()

    def commit_pending(self, producer_id: int, group_id: str, position: Position, committed: Committed) -> Undo:
        """In a transaction of this producer."""
        pending = self._opened(producer_id, group_id)
        former = pending.get(position)
        self._pending_count += 1
        pending[position] = _Pending(committed, self._pending_count)

        def undo() -> None:
            if former is None:
                self._drop_pending(producer_id, group_id, position)
            else:
                self._opened(producer_id, group_id)[position] = former

        return undo

    def remove(self, group_id: str, position: Position) -> Undo:
        """A tombstone: also of what transactions have pending there. They stay transactions of the group: the tombstone
        may be refused yet, and their markers with it."""
        former = self._put_back(group_id, position, None)
        pending = {
            producer_id: found
            for producer_id in self._open.get(group_id, ())
            if (found := self._pending[producer_id][group_id].pop(position, None)) is not None
        }

        def undo() -> None:
            self._put_back(group_id, position, former)
            for producer_id, found in pending.items():
                self._opened(producer_id, group_id)[position] = found

        return undo

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> Ended:
        """The marker of this producer: what its transaction has pending counts now, or is dropped."""
        ended = self._pending.pop(producer_id, None)
        if ended is None:
            return Ended(0, _nothing)
        counted: list[_Counted] = []
        for group_id, pending in ended.items():
            self._close(group_id, producer_id)
            if is_commit:
                counted += [
                    self._count_pending(group_id, position, found)
                    for position, found in pending.items()
                    if not found.is_outdated
                ]

        def undo() -> None:
            for group_id, position, found, former, outdated in reversed(counted):
                present = self._put_back(group_id, position, former)
                assert present is found.committed, "what came after the marker is taken back before it"
                for each in outdated:
                    each.is_outdated = False
            for group_id, pending in ended.items():
                self._opened(producer_id, group_id).update(pending)

        return Ended(len(counted), undo)

    def _count_pending(self, group_id: str, position: Position, found: _Pending) -> _Counted:
        position = shared(*position)
        former = self.of(group_id).get(position)
        return _Counted(
            group_id, position, found, former, self._count(group_id, position, found.committed, found.order)
        )

    def _outdate(self, group_id: str, position: Position, order: int | None) -> tuple[_Pending, ...]:
        """What is pending there and comes before `order`; None: all."""
        outdated = tuple(
            found
            for producer_id in self._open[group_id]
            if (found := self._pending[producer_id][group_id].get(position)) is not None
            and not found.is_outdated
            and (order is None or found.order < order)
        )
        for found in outdated:
            found.is_outdated = True
        return outdated

    def _put_back(self, group_id: str, position: Position, former: Committed | None) -> Committed | None:
        """Returns what was there."""
        offsets = self._by_group.setdefault(group_id, {})
        present = offsets.pop(position, None)
        if former is not None:
            offsets[position] = former
        if not offsets:
            del self._by_group[group_id]
        return present

    def _opened(self, producer_id: int, group_id: str) -> dict[Position, _Pending]:
        """To be changed."""
        self._open.setdefault(group_id, set()).add(producer_id)
        return self._pending.setdefault(producer_id, {}).setdefault(group_id, {})

    def _drop_pending(self, producer_id: int, group_id: str, position: Position) -> None:
        groups = self._pending[producer_id]
        groups[group_id].pop(position, None)
        if not groups[group_id]:
            del groups[group_id]
            self._close(group_id, producer_id)
        if not groups:
            del self._pending[producer_id]

    def _close(self, group_id: str, producer_id: int) -> None:
        """The producer has nothing pending there any more."""
        producers = self._open[group_id]
        producers.discard(producer_id)
        if not producers:
            del self._open[group_id]


def _nothing() -> None:
    """Takes back what was no change."""
