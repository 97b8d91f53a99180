"""The batches of one segment, each whole and in its place, and how the segment ends.

A broker may be appending to the last segment meanwhile. What is wrong at its end and is different a moment later was
being written: the log ends before it, and that is a note. What stays wrong is a write that was cut off, which the next
start of a broker cuts away; until then the log does not end with a batch, and that is an inconsistency.
"""

from collections.abc import Iterator

from odradek.broker.disk.disk import Disk
from odradek.broker.log.batches import Damage
from odradek.broker.log.segment_facts import RELATIVE_OFFSET_MAX
from odradek.broker.offline.dump.batch_check import check_batch
from odradek.broker.offline.dump.findings import Inconsistency, Note
from odradek.broker.offline.dump.stored import Stored, ZeroTail, is_zero, size_of, stored_batches
from odradek.protocol.batches.batch import HEADER_SIZE

LOOKS = 1000
"""How often that is looked at before it counts as unchanging: the larger a batch is, the longer its write takes, and a
look as well; and where a machine is busy, a writer may be kept waiting in between."""
_AT_THE_END = "; if a broker is running it may be writing this: try again; else its next start cuts this off"


class SegmentWalk:
    """Goes over a `.log` file."""

    def __init__(self, disk: Disk, path: str, base_offset: int, *, may_grow: bool) -> None:
        """`may_grow`: it is the last segment, and a broker may be running."""
        self._disk = disk
        self._may_grow = may_grow
        self.path = path
        self.base_offset = base_offset
        self.size_bytes = 0
        """Up to the end of the last batch."""
        self.next_offset = base_offset
        self.notes: list[Note] = []

    def batches(self, offset_min: int, offset_end: int | None) -> Iterator[Stored]:
        """Yields all, each checked by itself and in its place: from `offset_min`, where the segment before ends, up to
        `offset_end`, where the next one begins. Raises Inconsistency, OSError.
        """
        size_bytes = size_of(self._disk, self.path)
        self.next_offset = max(self.base_offset, offset_min)
        try:
            for stored in stored_batches(self._disk, self.path, size_bytes):
                self._check(stored, size_bytes)
                self._check_place(stored, offset_end)
                self.size_bytes = stored.position + stored.header.size_bytes
                self.next_offset = stored.header.last_offset + 1
                yield stored
        except ZeroTail as zeros:
            self.notes.append(Note(self.path, f"position {zeros.position}: {zeros.reason}"))
        except Damage as damage:
            if self._may_grow and self._is_other_now(damage):
                self._note_writing(damage.position)
                return
            hint = _AT_THE_END if self._may_grow else ""
            raise Inconsistency(self.path, damage.reason + hint, position=damage.position) from damage
        except _Changing as changing:
            self._note_writing(changing.position)

    def _check(self, stored: Stored, size_bytes: int) -> None:
        try:
            check_batch(self.path, stored)
        except Inconsistency as found:
            if self._may_grow and self._is_changing(stored):
                raise _Changing(stored.position) from None
            end = stored.position + len(stored.data)
            if self._may_grow and is_zero(self._disk, self.path, end, size_bytes):
                text = found.text + _AT_THE_END
                raise Inconsistency(self.path, text, position=found.position, offset=found.offset) from None
            raise

    def _is_other_now(self, damage: Damage) -> bool:
        """Whether what is at that position becomes something else: more of a batch, or all of it."""
        seen = self._header_bytes(damage.position)
        try:
            next(stored_batches(self._disk, self.path, seen[0], damage.position), None)
        except Damage as now:
            is_same = now.reason == damage.reason
            return not is_same or any(self._header_bytes(damage.position) != seen for _ in range(LOOKS))
        return True

    def _header_bytes(self, position: int) -> tuple[int, bytes]:
        """How large the file is, and what stands where a header should."""
        return size_of(self._disk, self.path), self._disk.read_range(self.path, position, HEADER_SIZE)

    def _is_changing(self, stored: Stored) -> bool:
        data = bytes(stored.data)
        return any(self._disk.read_range(self.path, stored.position, len(data)) != data for _ in range(LOOKS))

    def _check_place(self, stored: Stored, offset_end: int | None) -> None:
        header = stored.header
        if header.base_offset < self.base_offset:
            reason = f"offset {header.base_offset} cannot stand in a segment that begins at {self.base_offset}"
        elif header.base_offset < self.next_offset:
            reason = f"a batch with base offset {header.base_offset} follows one that ends with {self.next_offset - 1}"
        elif header.last_offset - self.base_offset > RELATIVE_OFFSET_MAX:
            reason = f"offset {header.last_offset} is too far from the segment's base for its indexes' 32 bits"
        elif offset_end is not None and header.last_offset >= offset_end:
            reason = f"the batch ends with {header.last_offset}, and the next segment begins at {offset_end}"
        else:
            return
        raise Inconsistency(self.path, reason, position=stored.position, offset=header.base_offset)

    def _note_writing(self, position: int) -> None:
        self.notes.append(Note(self.path, f"position {position}: a broker is writing here, so nothing behind is read"))


class _Changing(Exception):
    """The bytes at `position` are not those of a moment ago."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position
