"""Reads a partition's log from its start, for whoever keeps what it says in memory (Kafka's CoordinatorLoaderImpl).

A log may be long, cold, and compressed in large batches, and the event loop belongs to everybody: what is not in the
page cache is fetched by a helper thread, large batches are unpacked there, and after each slice the loop gets a turn.
"""

from bisect import bisect_left
from collections.abc import AsyncGenerator
from functools import partial
from typing import Final, NamedTuple

from odradek.broker.disk.cold_reads import read_without_blocking
from odradek.broker.disk.disk import Disk
from odradek.broker.replica.isolation import Isolation
from odradek.broker.replica.partition import Partition
from odradek.protocol.batches.batch import BatchHeader, crc_matches, iterate_batches, read_header
from odradek.protocol.batches.columns import Columns, decode_columns
from odradek.protocol.batches.compression import Codec
from odradek.protocol.batches.records import unpack_records
from odradek.protocol.codec.schema import Buffer
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.runtime.tasks import breathe

READ_BYTES: Final = 256 * 1024
PIECE_RECORDS: Final = 100
SLICE_MS: Final = 2.0
"""After so long, whoever else wants the loop has it. A piece of a slice takes a fraction of it."""
DECODED_HERE_BYTES: Final = 64 * 1024
UNPACKED_HERE_BYTES: Final = 16 * 1024
"""A batch that is larger is decoded by a helper thread; the second holds for those that are compressed."""


class Replayed(NamedTuple):
    """Some records of one batch, in order, in columns of equal length; a control batch has its marker (KIP-98)."""

    header: BatchHeader
    offsets: list[int]
    keys: list[bytes | None]
    values: list[bytes | None]
    is_last: bool
    """Whether the batch ends with these. One that compaction has emptied has no records."""


async def replay(partition: Partition, leader_epoch: int, disk: Disk) -> AsyncGenerator[Replayed, None]:
    """All of the log that this broker leads, up to its end, whatever the high watermark is: nobody else appends.

    Raises KafkaError: NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH once this broker does not lead in `leader_epoch` any
    more; KAFKA_STORAGE_ERROR; CORRUPT_MESSAGE, INVALID_RECORD for what is no batch.
    """
    environment = partition.host.environment
    offset = partition.log.log_start_offset
    begun_ms = environment.monotonic_ms()
    while True:
        partition.role.require_leader(leader_epoch)
        offset = max(offset, partition.log.log_start_offset)
        if offset >= partition.log.log_end_offset:
            return
        data = await read_without_blocking(disk, environment, partial(_read, partition, offset))
        for position, header in iterate_batches(data):
            if header.last_offset < offset:
                continue
            batch = memoryview(data)[position : position + header.size_bytes]
            columns = await _decode(partition, batch)
            count = len(columns)
            start = bisect_left(columns.offsets, offset)  # the log may start within a batch
            while True:
                end = start + PIECE_RECORDS
                offsets, keys, values = columns.offsets[start:end], columns.keys[start:end], columns.values[start:end]
                yield Replayed(header, offsets, keys, values, is_last=end >= count)
                if environment.monotonic_ms() - begun_ms >= SLICE_MS:
                    await breathe()
                    partition.role.require_leader(leader_epoch)
                    begun_ms = environment.monotonic_ms()
                if end >= count:
                    break
                start = end
            offset = header.last_offset + 1


def _read(partition: Partition, offset: int) -> Buffer:
    found = partition.reader.fetch(offset, READ_BYTES, at_least_one_batch=True, isolation=Isolation.LOG_END)
    if not len(found.records):
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{partition.name} has no batch at offset {offset}")
    return found.records


async def _decode(partition: Partition, batch: memoryview) -> Columns:
    header = read_header(batch)
    if not crc_matches(batch):
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{partition.name}: the batch at {header.base_offset} is damaged")
    if not header.record_count:
        return Columns()
    if len(batch) <= (DECODED_HERE_BYTES if header.codec is Codec.NONE else UNPACKED_HERE_BYTES):
        return _unpacked(batch, header)
    return await partition.host.environment.run_blocking(_unpacked, batch, header)


def _unpacked(batch: memoryview, header: BatchHeader) -> Columns:
    columns = Columns()
    decode_columns(header, unpack_records(batch, header), columns)
    return columns
