"""What the requests of one turn of the event loop want written, and who is answered when it is. Pure.

turn.append(entity, records, undo)
turn.reply(entity, waiting, answer)     depends on the records given before for this entity, if there are any
turn.when_committed(entity, then)       as well
for part in turn.parts(limit): …        a part is a batch: appended, or refused, as a whole
    turn.refuse(part, error)            what builds on it comes as parts that are not to be appended (`left_by`)
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from odradek.broker.coordinator.machine import StoredRecord, TransactionBatch, Waiting
from odradek.protocol.errors import KafkaError

RECORD_OVERHEAD_BYTES: Final = 40
"""At least what a record takes beside its key and value: lengths, delta of offset and timestamp."""
BATCH_OVERHEAD_BYTES: Final = 61


class Reply(NamedTuple):
    """An answer, or an error, for who waits."""

    waiting: Waiting[Any]
    answer: Any
    is_of_transaction: bool = False
    """Of the request that gave the records of a transaction: the first answer after them."""


class Part(NamedTuple):
    """What stands in one batch, and depends on it."""

    entities: tuple[str, ...]
    records: tuple[StoredRecord, ...]
    undos: tuple[Callable[[], None], ...]
    """In the order of the records; to be called in the reverse."""
    replies: list[Reply]
    thens: list[Callable[[], None]]
    """What is called when it is committed, in this order."""
    transaction: TransactionBatch | None = None
    left_by: KafkaError | None = None
    """Why what it builds on was refused: then it is not appended either."""


class _Entry(NamedTuple):
    entity_ids: list[str]
    records: Sequence[StoredRecord]
    undo: Callable[[], None]
    transaction: TransactionBatch | None
    replies: list[Reply]
    """Those that depend on this entry and on no later one."""
    thens: list[Callable[[], None]]


class Turn:
    """Collects, until `parts` empties it."""

    __slots__ = ("_entries", "_last", "_refused")

    def __init__(self) -> None:
        self._entries: deque[_Entry] = deque()
        self._last: dict[str, _Entry] = {}
        """The last entry of each entity."""
        self._refused: dict[str, KafkaError] = {}
        """Entities of which records were refused, and why."""

    def __bool__(self) -> bool:
        return bool(self._entries)

    def append(
        self,
        entity_id: str,
        records: Sequence[StoredRecord],
        undo: Callable[[], None],
        transaction: TransactionBatch | None = None,
    ) -> None:
        entry = _Entry([entity_id], records, undo, transaction, [], [])
        self._entries.append(entry)
        self._last[entity_id] = entry

    def also_of(self, entity_id: str) -> None:
        entry = self._entries[-1]
        entry.entity_ids.append(entity_id)
        self._last[entity_id] = entry

    def reply(self, entity_id: str, waiting: Waiting[Any], answer: Any) -> bool:
        """Whether the answer depends on this turn, and is taken."""
        entry = self._last.get(entity_id)
        if entry is None:
            return False
        entry.replies.append(Reply(waiting, answer, entry.transaction is not None and not entry.replies))
        return True

    def when_committed(self, entity_id: str, then: Callable[[], None]) -> bool:
        """Whether it depends on this turn, and is taken."""
        entry = self._last.get(entity_id)
        if entry is None:
            return False
        entry.thens.append(then)
        return True

    def parts(self, size_bytes_max: int) -> Iterator[Part]:
        """In order; each as large as may be, but never less than what was given together, however large that is."""
        while self._entries:
            entry = self._entries.popleft()
            entries, left_by = [entry], self._left_by(entry)
            if left_by is not None:
                self._refused.update(dict.fromkeys(entry.entity_ids, left_by))
                yield _part(entries, left_by)
                continue
            size_bytes = BATCH_OVERHEAD_BYTES + _size_bytes(entry)
            while (
                self._entries
                and _may_share(entry, self._entries[0])
                and self._left_by(self._entries[0]) is None
                and (size_bytes := size_bytes + _size_bytes(self._entries[0])) <= size_bytes_max
            ):
                entries.append(self._entries.popleft())
            yield _part(entries, None)

    def refuse(self, part: Part, error: KafkaError) -> None:
        """The log has not taken it: nor may it take what was given later of its entities, of entities that these have
        in common with others, and so on."""
        self._refused.update(dict.fromkeys(part.entities, error))

    def _left_by(self, entry: _Entry) -> KafkaError | None:
        if not self._refused:
            return None
        return next((self._refused[each] for each in entry.entity_ids if each in self._refused), None)


def _may_share(first: _Entry, other: _Entry) -> bool:
    """Whether the two may stand in one batch."""
    if first.transaction is None or other.transaction is None:
        return first.transaction is other.transaction
    return first.transaction == other.transaction and not first.transaction.is_marker


def _size_bytes(entry: _Entry) -> int:
    return sum(RECORD_OVERHEAD_BYTES + len(record.key) + len(record.value or b"") for record in entry.records)


def _part(entries: Sequence[_Entry], left_by: KafkaError | None) -> Part:
    return Part(
        tuple(dict.fromkeys(entity_id for entry in entries for entity_id in entry.entity_ids)),
        tuple(record for entry in entries for record in entry.records),
        tuple(entry.undo for entry in entries),
        [reply for entry in entries for reply in entry.replies],
        [then for entry in entries for then in entry.thens],
        entries[0].transaction,
        left_by,
    )
