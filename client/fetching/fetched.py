"""What a broker sent of one partition, read batch by batch. Pure.

A fetch answers whole batches (KIP-74), so the first may begin before the offset that was asked for: its records up to
there are left out. So are control batches, which hold transaction markers, and with read_committed the batches of
transactions that were aborted. Records are decompressed when they are taken, a batch at a time, so what waits takes
no more memory than what was received. `after`, the offset to ask for next, is known at once: a batch names its last
offset, even where compaction has removed that record.

What is damaged ends the chunk, behind what is sound before it: `take` raises, and names the offset.

(Source: CompletedFetch.java, whose rules for aborted transactions these are: KIP-98.)
"""

from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from odradek.client.errors.base import ClientError
from odradek.client.errors.client_errors import BrokerError
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.batches.batch import BatchHeader, crc_matches, iterate_batches
from odradek.protocol.batches.records import Record, iterate_records
from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from odradek.protocol.messages.fetch import AbortedTransaction
from odradek.protocol.primitives import Buffer

__all__ = ["Chunk", "CorruptRecords", "FetchedBatch"]

OFFSET_MAX: Final = (1 << 63) - 1
ABORT_KEY: Final = b"\x00\x00"
"""The type in a control record's key, which is int16 version, int16 type (ControlRecordType.java)."""


class FetchedBatch(NamedTuple):
    """Records of one partition, in order of their offsets, which may have gaps."""

    topic: str
    partition: int
    records: list[Record]


class CorruptRecords(BrokerError):
    """What a broker sent of a partition cannot be read, from `offset` on. Asking again would bring the same."""

    def __init__(self, partition: TopicPartition, offset: int, code: ErrorCode, why: str) -> None:
        super().__init__(code, what=f"reading {partition} from offset {offset} ({why})")
        self.partition = partition
        self.offset = offset
        self.retriable = False
        self.hint = "Look at the broker's log and disk; records behind it can be read from a later offset."


class Chunk:
    """The batches of one partition in one answer, from `offset` on.

    `position` is the next offset to be handed out, `size_bytes` what waits. `error`: what `take` will raise at the
    end; then nothing is to be fetched after this chunk.
    """

    __slots__ = (
        "_aborted",
        "_batches",
        "_check_crcs",
        "_view",
        "after",
        "error",
        "partition",
        "position",
        "size_bytes",
    )

    def __init__(
        self,
        partition: TopicPartition,
        offset: int,
        records: Buffer = b"",
        *,
        check_crcs: bool = True,
        aborted: Sequence[AbortedTransaction] | None = None,
        error: ClientError | None = None,
    ) -> None:
        """`aborted`: with read_committed, what the broker says; None: every transaction is read."""
        self.partition = partition
        self.position = self.after = offset
        self.size_bytes = len(records)
        self.error = error
        self._view = memoryview(records)
        self._check_crcs = check_crcs
        self._aborted = None if aborted is None else _Aborted(aborted)
        self._batches: deque[tuple[int, BatchHeader]] = deque()
        try:
            for start, header in iterate_batches(records):
                if self.after <= header.last_offset < OFFSET_MAX:
                    self._batches.append((start, header))
                    self.after = header.last_offset + 1
        except MalformedMessage as why:
            self.error = CorruptRecords(partition, self.after, ErrorCode.CORRUPT_MESSAGE, str(why))
        if records and self.after == offset and self.error is None:
            # A batch that is cut, or others than those asked for: since KIP-74 no broker sends that.
            why_not = f"{len(records)} bytes came without a whole batch from there on"
            self.error = CorruptRecords(partition, offset, ErrorCode.CORRUPT_MESSAGE, why_not)

    def take(self, end_offset: int | None = None) -> FetchedBatch | None:
        """The next batch that has records to read, below `end_offset`; None when there is none any more.

        Raises what ends the chunk.
        """
        limit = OFFSET_MAX if end_offset is None else end_offset
        while self._batches:
            start, header = self._batches.popleft()
            records = self._readable(self._view[start : start + header.size_bytes], header)
            first, self.position = self.position, header.last_offset + 1
            if records and (records[0].offset < first or records[-1].offset >= limit):
                records = [record for record in records if first <= record.offset < limit]
            if records:
                return FetchedBatch(self.partition.topic, self.partition.partition, records)
        if self.error is not None:
            raise self.error.fresh()  # other partitions may have ended by the same
        return None

    def _readable(self, view: memoryview, header: BatchHeader) -> list[Record]:
        """The records of a batch; none of a control batch, or of one whose transaction was aborted."""
        if self._check_crcs and not crc_matches(view):
            raise CorruptRecords(
                self.partition, self.position, ErrorCode.CORRUPT_MESSAGE, "the batch fails its checksum"
            )
        try:
            if self._aborted is not None and header.producer_id >= 0 and self._aborted.leaves_out(view, header):
                return []
            return [] if header.is_control else list(iterate_records(view))
        except KafkaError as why:
            raise CorruptRecords(self.partition, self.position, why.code, why.message) from why


class _Aborted:
    """Which transactions were aborted, as far as the batches have been read (KIP-98).

    The broker names them by producer and first offset; each lasts until its abort marker.
    """

    __slots__ = ("_coming", "_producers")

    def __init__(self, transactions: Sequence[AbortedTransaction]) -> None:
        self._coming = deque(sorted(transactions, key=lambda transaction: transaction.first_offset))
        self._producers: set[int] = set()

    def leaves_out(self, view: memoryview, header: BatchHeader) -> bool:
        while self._coming and self._coming[0].first_offset <= header.last_offset:
            self._producers.add(self._coming.popleft().producer_id)
        if header.is_control:
            if _is_abort_marker(view):
                self._producers.discard(header.producer_id)
            return True
        return header.is_transactional and header.producer_id in self._producers


def _is_abort_marker(view: memoryview) -> bool:
    marker = next(iterate_records(view), None)
    return marker is not None and marker.key is not None and marker.key[2:4] == ABORT_KEY
