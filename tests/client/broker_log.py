"""The log of a partition in memory, under a broker's rules, and what tests want to know of it afterwards.

It takes batches as a leader does: checked whole (`odradek.protocol.batches.batch`, `odradek.protocol.batches.records`),
bounded by the topic's `max.message.bytes`, and by the rules for idempotent producers that our real broker has
(`odradek.broker.log.producers`). Losing data, deleting from the front and forgetting producers are scripted by tests.

What a leader does not refuse but must never happen goes to `violations`: the same sequences with other records, which
the rules take for a duplicate, so that records would be acknowledged and lost; a header whose latest timestamp is not
that of the records, by which lookups pass over them.
"""

from collections.abc import Callable
from typing import NamedTuple

from odradek.broker.log.producers import ProducedBatch, Producers
from odradek.broker.log.verifications import Verification
from odradek.protocol.batches.batch import BatchHeader, check_batch, patched_prefix, read_header
from odradek.protocol.batches.records import Record, check_records, iterate_records
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.primitives import Buffer

MAX_MESSAGE_BYTES = 1_048_588
"""Kafka's default of `max.message.bytes`."""


class LoggedBatch(NamedTuple):
    """A batch as it stands in the log. The producer's fields are -1 without idempotence."""

    producer_id: int
    producer_epoch: int
    base_sequence: int
    base_offset: int
    records: tuple[Record, ...]
    header: BatchHeader
    leader_epoch: int

    @property
    def next_offset(self) -> int:
        return self.base_offset + len(self.records)

    @property
    def values(self) -> list[bytes | None]:
        return [record.value for record in self.records]


class Appended(NamedTuple):
    """What a leader answers. Of a duplicate, the first append's offset."""

    base_offset: int
    is_duplicate: bool


class PartitionLog:
    """See the module."""

    def __init__(self, name: str, violations: list[str]) -> None:
        self.name = name
        self.violations = violations
        self.batches: list[LoggedBatch] = []
        self.start_offset = 0
        self.end_offset = 0
        self.knows_kip_360 = True
        """Whether a producer without state may begin with any sequence; before Kafka 2.5 it was UNKNOWN_PRODUCER_ID."""
        self._producers = Producers()

    def append(self, data: Buffer, leader_epoch: int, size_bytes_max: int = MAX_MESSAGE_BYTES) -> Appended:
        """Appends the one batch that a client sent. Raises KafkaError as a leader does."""
        view = memoryview(data)
        if len(view) > size_bytes_max:
            raise KafkaError(
                ErrorCode.MESSAGE_TOO_LARGE, f"the batch takes {len(view)} bytes, {size_bytes_max} are allowed"
            )
        header = check_batch(view)
        latest_ms = check_records(view, header).max_timestamp_ms
        if latest_ms != header.max_timestamp:
            self.violations.append(f"{self.name}: a max_timestamp of {header.max_timestamp}, the latest is {latest_ms}")
        if header.producer_id >= 0:
            known = self._producers.get(header.producer_id)
            if known is None and header.base_sequence != 0 and not self.knows_kip_360:
                raise KafkaError(ErrorCode.UNKNOWN_PRODUCER_ID, f"{self.name} knows no producer {header.producer_id}")
            if (first := self._producers.check(header, self._verified(header))) is not None:
                self._check_same(first, header)
                return Appended(first.base_offset, is_duplicate=True)
        base_offset = self.end_offset
        stored = b"".join((patched_prefix(header, base_offset, leader_epoch), view[16:]))
        records = tuple(iterate_records(stored))
        batch = LoggedBatch(
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            base_offset,
            records,
            read_header(stored),
            leader_epoch,
        )
        self._put(batch)
        return Appended(base_offset, is_duplicate=False)

    # -- what a test makes happen to it ----------------------------------------------------------------------------

    def truncate(self, end_offset: int) -> None:
        """Loses the batches from this offset on, and what was known of their producers: an unclean election."""
        self.batches = [batch for batch in self.batches if batch.next_offset <= end_offset]
        self.end_offset = self.batches[-1].next_offset if self.batches else min(end_offset, self.end_offset)
        self.start_offset = min(self.start_offset, self.end_offset)
        self._learn_producers(lambda batch: True)

    def delete_before(self, start_offset: int) -> None:
        """Moves the start, as DeleteRecords and retention do. The batches stay in `batches`, for the test to read.

        Kafka before 2.5 forgets the producers whose batches are all gone.
        """
        self.start_offset = start_offset
        if not self.knows_kip_360:
            self._learn_producers(lambda batch: batch.next_offset > start_offset)

    def forget_producers(self) -> None:
        """As after `producer.id.expiration.ms`."""
        self._producers = Producers()

    # -- below -----------------------------------------------------------------------------------------------------

    def _verified(self, header: BatchHeader) -> Verification | None:
        """Whether a transaction is under way is for a coordinator to say (model_coordinator.py), before the append."""
        if not header.is_transactional:
            return None
        verifications = self._producers.verifications
        return verifications.begin(header.producer_id, header.producer_epoch, header.base_sequence, 0)

    def _put(self, batch: LoggedBatch) -> None:
        self.batches.append(batch)
        self.end_offset = batch.next_offset
        self._producers.update(batch.header, batch.base_offset)

    def _learn_producers(self, is_there: Callable[[LoggedBatch], bool]) -> None:
        self._producers = Producers()
        for batch in filter(is_there, self.batches):
            self._producers.update(batch.header, batch.base_offset)

    def _check_same(self, first: ProducedBatch, again: BatchHeader) -> None:
        stored = next(batch for batch in reversed(self.batches) if batch.base_offset == first.base_offset)
        if stored.header.crc != again.crc:
            self.violations.append(
                f"{self.name}: producer {again.producer_id} epoch {again.producer_epoch} sent sequence "
                f"{again.base_sequence} twice, with different bytes"
            )
