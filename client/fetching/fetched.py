"""What a broker sent of one partition, read batch by batch. Pure.

A fetch answers whole batches (KIP-74), so the first may begin before the offset that was asked for: its records up to
there are left out. So are control batches, which hold transaction markers, and with read_committed the batches of
transactions that were aborted. Records are decompressed when they are taken, a batch at a time, so what waits takes
no more memory than what was received; or shortly before, in a helper thread, where much has to be decompressed
(`packed`, `unpack`, `unpacked`). `after`, the offset to ask for next, is known at once: a batch names its last offset,
even where compaction has removed that record.

What is damaged ends the chunk, behind what is sound before it: `take` raises, and names the offset.

(Source: CompletedFetch.java, whose rules for aborted transactions these are: KIP-98.)
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from odradek.client.errors.base import ClientError
from odradek.client.errors.client_errors import BrokerError
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.batches.batch import BatchHeader, crc_matches, iterate_batches
from odradek.protocol.batches.columns import Columns, decode_columns
from odradek.protocol.batches.records import Record, iterate_records, iterate_unpacked, unpack_records
from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from odradek.protocol.messages.fetch import AbortedTransaction
from odradek.protocol.primitives import Buffer

__all__ = ["Chunk", "CorruptRecords", "FetchedBatch", "Packed", "unpack"]

OFFSET_MAX: Final = (1 << 63) - 1
CODEC_BITS: Final = 0x07
"""Of a batch's attributes; 0: it is not compressed."""
PACKED_BYTES_MIN: Final = 32 * 1024
"""Less is decompressed where it is taken: a helper thread costs more than the 0.1 ms that it saves the loop."""
PACKED_BYTES_MAX: Final = 512 * 1024
"""When so many compressed bytes are gathered, no further batch is decompressed ahead."""
ABORT_KEY: Final = b"\x00\x00"
"""The type in a control record's key, which is int16 version, int16 type (ControlRecordType.java)."""


class FetchedBatch(NamedTuple):
    """Records of one partition, in order of their offsets, which may have gaps."""

    topic: str
    partition: int
    records: list[Record]


class Packed(NamedTuple):
    """Compressed batches of a chunk, for `unpack`."""

    view: memoryview
    batches: list[tuple[int, BatchHeader]]


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
        "_payloads",
        "_view",
        "after",
        "error",
        "last_epoch",
        "leader_epoch",
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
        self._payloads: dict[int, bytes | KafkaError] = {}
        """What was decompressed ahead, or could not be, by where the batch begins."""
        self.leader_epoch = -1
        """Of the batch that was taken last."""
        self.last_epoch = -1
        """Of the last batch that there is."""
        try:
            for start, header in iterate_batches(records):
                if self.after <= header.last_offset < OFFSET_MAX:
                    self._batches.append((start, header))
                    self.after = header.last_offset + 1
                    self.last_epoch = header.partition_leader_epoch
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
            records = self._readable(start, header)
            self.leader_epoch = header.partition_leader_epoch
            first, self.position = self.position, header.last_offset + 1
            if records and (records[0].offset < first or records[-1].offset >= limit):
                records = [record for record in records if first <= record.offset < limit]
            if records:
                return FetchedBatch(self.partition.topic, self.partition.partition, records)
        if self.error is not None:
            raise self.error.fresh()  # other partitions may have ended by the same
        return None

    def take_columns(self, end_offset: int | None = None, count_min: int = 1) -> Columns | None:
        """The records of the next batches below `end_offset`, until there are so many; None when there are none.

        Raises what ends the chunk, once the records before it have been taken.
        """
        limit = OFFSET_MAX if end_offset is None else end_offset
        columns = Columns()
        offsets = columns.offsets
        while self._batches and len(offsets) < count_min:
            start, header = self._batches.popleft()
            before = len(offsets)
            try:
                self._add_columns(start, header, columns)
            except CorruptRecords as error:
                self.error = error
                self._batches.clear()
                break
            first, self.position = self.position, header.last_offset + 1
            if len(offsets) == before:
                continue
            self.leader_epoch = header.partition_leader_epoch
            if offsets[-1] >= limit:
                columns.drop(bisect_left(offsets, limit, before), len(offsets))
            if len(offsets) > before and offsets[before] < first:
                columns.drop(before, bisect_left(offsets, first, before))
        if columns:
            return columns
        if self.error is not None:
            raise self.error.fresh()
        return None

    # ---------------------------------------------------------------------------------------------- decompressed ahead
    def packed(self) -> Packed | None:
        """The batches to decompress in a helper thread before the next one is taken; None: it can be taken as it is."""
        gathered: list[tuple[int, BatchHeader]] = []
        size_bytes = 0
        for start, header in self._batches:
            if start in self._payloads or not header.attributes & CODEC_BITS:
                break
            if header.record_count:
                gathered.append((start, header))
                size_bytes += header.size_bytes
            if size_bytes >= PACKED_BYTES_MAX:
                break
        return Packed(self._view, gathered) if size_bytes >= PACKED_BYTES_MIN else None

    def unpacked(self, packed: Packed, payloads: Sequence[bytes | KafkaError]) -> None:
        """Takes over what `unpack` answered."""
        for (start, _), payload in zip(packed.batches, payloads, strict=True):
            self._payloads[start] = payload

    # ------------------------------------------------------------------------------------------------------- within
    def _readable(self, start: int, header: BatchHeader) -> list[Record]:
        """The records of a batch; none of a control batch, or of one whose transaction was aborted."""
        view = self._view[start : start + header.size_bytes]
        if not self._is_readable(view, header):
            return []
        try:
            payload = self._payloads.pop(start, None)
            if payload is None:
                return list(iterate_records(view))
            if isinstance(payload, KafkaError):
                raise payload
            return list(iterate_unpacked(header, payload))
        except KafkaError as why:
            raise CorruptRecords(self.partition, self.position, why.code, why.message) from why

    def _add_columns(self, start: int, header: BatchHeader, columns: Columns) -> None:
        """Puts the same records behind those in `columns`."""
        view = self._view[start : start + header.size_bytes]
        if not self._is_readable(view, header) or not header.record_count:
            return
        try:
            payload = self._payloads.pop(start, None)
            if payload is None:
                payload = unpack_records(view, header)
            if isinstance(payload, KafkaError):
                raise payload
            decode_columns(header, payload, columns)
        except KafkaError as why:
            raise CorruptRecords(self.partition, self.position, why.code, why.message) from why

    def _is_readable(self, view: memoryview, header: BatchHeader) -> bool:
        """Whether the batch is sound, and neither a control batch nor of a transaction that was aborted."""
        if self._check_crcs and not crc_matches(view):
            raise CorruptRecords(
                self.partition, self.position, ErrorCode.CORRUPT_MESSAGE, "the batch fails its checksum"
            )
        try:
            if self._aborted is not None and header.producer_id >= 0 and self._aborted.leaves_out(view, header):
                return False
        except KafkaError as why:
            raise CorruptRecords(self.partition, self.position, why.code, why.message) from why
        return not header.is_control


def unpack(packed: Packed) -> list[bytes | KafkaError]:
    """What each of the batches holds, or why it cannot be read. A helper thread may call it."""
    payloads: list[bytes | KafkaError] = []
    for start, header in packed.batches:
        try:
            payloads.append(unpack_records(packed.view[start : start + header.size_bytes], header))
        except KafkaError as error:
            payloads.append(error)
    return payloads


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
            if header.producer_id in self._producers and _is_abort_marker(view):
                self._producers.discard(header.producer_id)
            return True
        return header.is_transactional and header.producer_id in self._producers


def _is_abort_marker(view: memoryview) -> bool:
    marker = next(iterate_records(view), None)
    return marker is not None and marker.key is not None and marker.key[2:4] == ABORT_KEY
