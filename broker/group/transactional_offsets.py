"""Offsets that transactions commit, and how these end, in one shard (KIP-98; Kafka's OffsetMetadataManager). Pure.

What a transaction commits stands in a batch of that transaction, and is pending until its marker, which stands in a
batch of its own. Every shard that the transaction includes gets a marker, though nothing was committed there: by it the
log refuses batches that come late.

The log may refuse a batch: one that another producer has fenced, or where there are not enough replicas. A refused
marker leaves everything pending, and whoever sent it sends it again.
"""

from collections.abc import Callable
from functools import partial

from odradek.broker.coordinator.machine import Now, Outbox, StoredRecord, TransactionBatch, Waiting
from odradek.broker.group.group_counts import GroupCounts
from odradek.broker.group.offset_coordinator import OffsetOptions, undo_all
from odradek.broker.group.offset_records import commit_record, committed_by, is_longer
from odradek.broker.group.offset_requests import CommitInTransaction, EndTransaction, OffsetToCommit
from odradek.broker.group.offsets import NO_EXPIRY, Offsets
from odradek.broker.log.markers import Marker, encode_marker
from odradek.broker.log.verifications import Proof
from odradek.protocol.errors import ErrorCode

Check = Callable[[bytes, int], None]
"""Whether a member may commit for a partition, by topic id and index (KIP-1251): else it raises KafkaError."""


class TransactionalOffsets:
    """Those of all groups of a shard."""

    __slots__ = ("_counts", "_offsets", "_options", "_outbox")

    def __init__(self, outbox: Outbox, options: OffsetOptions, offsets: Offsets, counts: GroupCounts) -> None:
        self._outbox = outbox
        self._options = options
        self._offsets = offsets
        self._counts = counts

    def commit(
        self, request: CommitInTransaction, check: Check | None, now: Now, undone: Callable[[], None]
    ) -> list[ErrorCode]:
        """The answer for each offset, in order; the group has accepted the request as a whole. `undone` is called when
        the log has refused the offsets, and they are as before.

        Raises KafkaError as `check` does for any of the partitions; then none is committed.
        """
        assert request.proof.is_coordinators, "these records have no sequence"
        errors = [self._error(wanted, check) for wanted in request.offsets]
        records: list[StoredRecord] = []
        undos = [undone]
        for wanted, error in zip(request.offsets, errors, strict=True):
            if error is ErrorCode.NONE:
                committed = committed_by(wanted, now.unix_ms, NO_EXPIRY)
                records.append(commit_record(request.group_id, wanted.position, committed))
                undos.append(
                    self._offsets.commit_pending(request.producer_id, request.group_id, wanted.position, committed)
                )
        if records:
            batch = TransactionBatch(request.producer_id, request.producer_epoch, proof=request.proof)
            self._outbox.append(request.group_id, records, partial(undo_all, undos), batch)
        return errors

    def _error(self, wanted: OffsetToCommit, check: Check | None) -> ErrorCode:
        """Raises KafkaError."""
        if is_longer(wanted.metadata, self._options.offset_metadata_max_bytes):
            return ErrorCode.OFFSET_METADATA_TOO_LARGE
        if check is not None:
            check(wanted.topic_id, wanted.position[1])
        return ErrorCode.NONE

    def end(self, request: EndTransaction, waiting: Waiting[None], undone: Callable[[str], None]) -> None:
        """What the transaction has pending counts, or is dropped; answers when the marker is committed. `undone` is
        called for each of its groups when the log has refused the marker, and it is open again."""
        group_ids = self._offsets.groups_of(request.producer_id)
        ended = self._offsets.end_transaction(request.producer_id, is_commit=request.is_commit)

        def undo() -> None:
            ended.undo()
            for group_id in group_ids:
                undone(group_id)

        marker = StoredRecord(*encode_marker(Marker(not request.is_commit, request.coordinator_epoch)))
        proof = Proof(is_coordinators=True, transaction_version=request.transaction_version)
        batch = TransactionBatch(request.producer_id, request.producer_epoch, is_marker=True, proof=proof)
        first, *others = *group_ids, _markers_of(request.producer_id)
        self._outbox.append(first, [marker], undo, batch)
        for group_id in others:
            self._outbox.also_of(group_id)
        if ended.committed:
            self._outbox.when_committed(first, partial(self._count, ended.committed))
        self._outbox.reply(first, waiting, None)

    def _count(self, commits: int) -> None:
        self._counts.commits += commits


def _markers_of(producer_id: int) -> str:
    """An entity beside the groups. Where a producer's marker is refused, one that came after it is refused with it: it
    found nothing to end, and the log would have it end what is pending again."""
    return f"\0markers of {producer_id}"
