"""What the requests of one turn of the event loop want written, and who is answered when it is. Pure.

turn.append(entity, records, undo)
turn.reply(entity, waiting, answer)     depends on the records given before for this entity, if there are any
for part in turn.parts(limit): …        a part is a batch: appended, or refused, as a whole
    turn.left_of(part.entities)         what builds on a part that was refused, and is not appended either
"""

from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Final, NamedTuple

from odradek.broker.coordinator.machine import StoredRecord, Waiting

RECORD_OVERHEAD_BYTES: Final = 40
"""At least what a record takes beside its key and value: lengths, delta of offset and timestamp."""
BATCH_OVERHEAD_BYTES: Final = 61


class Reply(NamedTuple):
    """An answer, or an error, for who waits."""

    waiting: Waiting[Any]
    answer: Any


class Part(NamedTuple):
    """What stands in one batch, and depends on it."""

    entities: tuple[str, ...]
    records: tuple[StoredRecord, ...]
    undos: tuple[Callable[[], None], ...]
    """In the order of the records; to be called in the reverse."""
    replies: list[Reply]


class _Entry(NamedTuple):
    entity_id: str
    records: Sequence[StoredRecord]
    undo: Callable[[], None]
    replies: list[Reply]
    """Those that depend on this entry and on no later one."""


class Turn:
    """Collects, until `parts` empties it."""

    __slots__ = ("_entries", "_last")

    def __init__(self) -> None:
        self._entries: deque[_Entry] = deque()
        self._last: dict[str, _Entry] = {}
        """The last entry of each entity."""

    def __bool__(self) -> bool:
        return bool(self._entries)

    def append(self, entity_id: str, records: Sequence[StoredRecord], undo: Callable[[], None]) -> None:
        entry = _Entry(entity_id, records, undo, [])
        self._entries.append(entry)
        self._last[entity_id] = entry

    def reply(self, entity_id: str, waiting: Waiting[Any], answer: Any) -> bool:
        """Whether the answer depends on this turn, and is taken."""
        entry = self._last.get(entity_id)
        if entry is None:
            return False
        entry.replies.append(Reply(waiting, answer))
        return True

    def parts(self, size_bytes_max: int) -> Iterator[Part]:
        """In order; each as large as may be, but never less than what was given together, however large that is."""
        while self._entries:
            entries = [self._entries.popleft()]
            size_bytes = BATCH_OVERHEAD_BYTES + _size_bytes(entries[0])
            while self._entries and (size_bytes := size_bytes + _size_bytes(self._entries[0])) <= size_bytes_max:
                entries.append(self._entries.popleft())
            yield _part(entries)

    def left_of(self, entities: Collection[str]) -> Part | None:
        """Takes out what no part has had yet of these entities; None: there is nothing."""
        found = [entry for entry in self._entries if entry.entity_id in entities]
        self._entries = deque(entry for entry in self._entries if entry.entity_id not in entities)
        return _part(found) if found else None


def _size_bytes(entry: _Entry) -> int:
    return sum(RECORD_OVERHEAD_BYTES + len(record.key) + len(record.value or b"") for record in entry.records)


def _part(entries: Sequence[_Entry]) -> Part:
    return Part(
        tuple(dict.fromkeys(entry.entity_id for entry in entries)),
        tuple(record for entry in entries for record in entry.records),
        tuple(entry.undo for entry in entries),
        [reply for entry in entries for reply in entry.replies],
    )
