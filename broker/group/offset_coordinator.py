"""Commits, fetches, deletions and the expiry of the offsets of one shard (Kafka's OffsetMetadataManager). Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from typing import Final, Protocol

from odradek.broker.coordinator.machine import Now, Outbox, StoredRecord
from odradek.broker.group.group import Group
from odradek.broker.group.group_counts import NOT_COUNTED, GroupCounts
from odradek.broker.group.offset_records import commit_record, committed_by, is_longer, tombstone
from odradek.broker.group.offset_requests import CommitOffsets, DeleteOffsets, FetchedOffset, FetchOffsets
from odradek.broker.group.offsets import NO_EXPIRY, Committed, Offsets, Position, Undo
from odradek.protocol.errors import ErrorCode
from odradek.protocol.primitives import ZERO_UUID

DEFAULT_RETENTION: Final = -1
RECORDS_TOGETHER_MAX: Final = 1000
"""Tombstones that are given together; more are given in several steps."""
MS_PER_MINUTE: Final = 60_000

Allowed = Callable[[bytes, int], ErrorCode]
"""Whether a member may commit for a partition, by topic id and index (KIP-1251): NONE, or why not."""


class OffsetOptions(Protocol):
    """Of the broker; read when they are needed."""

    @property
    def offset_metadata_max_bytes(self) -> int: ...
    @property
    def offsets_retention_minutes(self) -> int: ...


class OffsetCoordinator:
    """Those of all groups of a shard."""

    __slots__ = ("_counts", "_options", "_outbox", "_restored", "offsets")

    def __init__(
        self,
        outbox: Outbox,
        options: OffsetOptions,
        restored: Callable[[str], None],
        counts: GroupCounts = NOT_COUNTED,
    ) -> None:
        """`restored` is called for a group when the log has refused to remove offsets of it, and they are there again:
        the group may have gone without them."""
        self._outbox = outbox
        self._counts = counts
        self._options = options
        self._restored = restored
        self.offsets = Offsets()

    # -- requests ---------------------------------------------------------------------------------------------------

    def commit(
        self, request: CommitOffsets, allowed: Allowed | None, now: Now, undone: Callable[[], None]
    ) -> list[ErrorCode]:
        """The answer for each offset, in order; the group has accepted the request as a whole. `undone` is called when
        the log has refused the offsets, and they are as before."""
        expire_ms = NO_EXPIRY if request.retention_ms == DEFAULT_RETENTION else now.unix_ms + request.retention_ms
        metadata_max = self._options.offset_metadata_max_bytes
        errors: list[ErrorCode] = []
        records: list[StoredRecord] = []
        undos: list[Undo] = []
        for wanted in request.offsets:
            error = ErrorCode.NONE if allowed is None else allowed(wanted.topic_id, wanted.position[1])
            if is_longer(wanted.metadata, metadata_max):
                error = ErrorCode.OFFSET_METADATA_TOO_LARGE
            if error is ErrorCode.NONE:
                committed = committed_by(wanted, now.unix_ms, expire_ms)
                records.append(commit_record(request.group_id, wanted.position, committed))
                undos.append(self.offsets.commit(request.group_id, wanted.position, committed))
            errors.append(error)
        if records:
            self._append(request.group_id, records, [undone, *undos])
        self._counts.commits += len(records)
        return errors

    def fetch(self, request: FetchOffsets, topic_id: Callable[[str], bytes | None]) -> Iterator[FetchedOffset]:
        """In the order of the request; for all, in that of their first commits. What is committed is that of this
        moment, however long the iterator takes: there may be 100,000. An offset that was committed for another topic
        of that name, deleted since, is none."""
        offsets, positions = self.offsets.of(request.group_id), request.positions
        found: list[tuple[Position, Committed | None]]
        found = [*offsets.items()] if positions is None else [*zip(positions, map(offsets.get, positions), strict=True)]
        unstable = self.offsets.pending_positions(request.group_id) if request.require_stable else set[Position]()
        return _fetched(found, unstable, topic_id, are_all=positions is None)

    def delete(self, request: DeleteOffsets, group: Group) -> list[ErrorCode]:
        """The answer for each partition, in order."""
        errors: list[ErrorCode] = []
        present: dict[Position, None] = {}
        pending = self.offsets.pending_positions(request.group_id)
        offsets = self.offsets.of(request.group_id)
        for position in request.positions:
            if group.is_subscribed(position[0]):
                errors.append(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
                continue
            errors.append(ErrorCode.NONE)
            if position in offsets or position in pending:
                present[position] = None
        self._remove(request.group_id, list(present))
        self._counts.deletions += len(present)
        return errors

    # -- without a request --------------------------------------------------------------------------------------------

    def remove_all(self, group_id: str) -> tuple[list[StoredRecord], list[Undo]]:
        """All offsets of a group that is deleted: what has to be written, and what takes it back."""
        positions = sorted({*self.offsets.of(group_id), *self.offsets.pending_positions(group_id)})
        return (
            [tombstone(group_id, position) for position in positions],
            [self.offsets.remove(group_id, position) for position in positions],
        )

    def remove_topics(self, group_id: str, topics: Mapping[str, bytes]) -> None:
        """The topics are deleted: so are their offsets, but for those of another topic of the same name. `topics`:
        their ids by name."""
        found = [
            *self.offsets.of(group_id).items(),
            *((position, pending) for _, position, pending in self.offsets.pending_of(group_id)),
        ]
        gone: dict[Position, None] = {}
        kept: set[Position] = set()
        for position, offset in found:
            if position[0] in topics:
                if offset.topic_id in (ZERO_UUID, topics[position[0]]):
                    gone[position] = None
                else:
                    kept.add(position)  # a tombstone would take this one, too
        self._remove(group_id, [position for position in gone if position not in kept])

    def expire(self, group: Group, now: Now) -> bool:
        """Removes the offsets whose time is up; whether none is left, and none is pending."""
        group_id, offsets = group.group_id, self.offsets
        expired: list[Position] = []
        kept = 0
        for position, committed in offsets.of(group_id).items():
            if self._is_expired(group, position, committed, now) and not offsets.is_unstable(group_id, position):
                expired.append(position)
            else:
                kept += 1
        self._remove(group_id, expired)
        self._counts.expirations += len(expired)
        return not kept and not offsets.has_pending(group_id)

    def _is_expired(self, group: Group, position: Position, committed: Committed, now: Now) -> bool:
        since_ms = group.retained_since_ms(committed)
        if since_ms is None or group.is_subscribed(position[0]):
            return False
        if committed.expire_timestamp_ms != NO_EXPIRY:
            return now.unix_ms >= committed.expire_timestamp_ms
        return now.unix_ms - since_ms >= self._options.offsets_retention_minutes * MS_PER_MINUTE

    def _remove(self, group_id: str, positions: Sequence[Position]) -> None:
        """In steps: a batch has its limit."""
        for start in range(0, len(positions), RECORDS_TOGETHER_MAX):
            some = positions[start : start + RECORDS_TOGETHER_MAX]
            undos: list[Undo] = [partial(self._restored, group_id)]
            undos += [self.offsets.remove(group_id, position) for position in some]
            self._append(group_id, [tombstone(group_id, position) for position in some], undos)

    def _append(self, group_id: str, records: Sequence[StoredRecord], undos: Sequence[Undo]) -> None:
        if records:
            self._outbox.append(group_id, records, partial(undo_all, undos))


def _fetched(
    found: Iterable[tuple[Position, Committed | None]],
    unstable: Set[Position],
    topic_id: Callable[[str], bytes | None],
    *,
    are_all: bool,
) -> Iterator[FetchedOffset]:
    """`are_all`: those without an offset are left out."""
    for position, committed in found:
        if committed is not None and committed.topic_id != ZERO_UUID:
            present_id = topic_id(position[0])
            if present_id is not None and present_id != committed.topic_id:
                committed = None
        if position in unstable:
            yield FetchedOffset(position, None, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        elif committed is not None or not are_all:
            yield FetchedOffset(position, committed, ErrorCode.NONE)


def undo_all(undos: Sequence[Undo]) -> None:
    """The last one first."""
    for undo in reversed(undos):
        undo()
