"""The producers of a partition in a file, `<offset, 20 digits>.snapshot` (ProducerStateManager.java).

It holds what is known before the batch at that offset, so that a start reads the batches behind it and no others. One
is written whenever a segment begins and when the log is closed.

    i16 version, 1
    u32 CRC-32C of everything behind it
    i32 count, and for each producer
        i64 producer id, i16 epoch, i32 last sequence, i64 last offset, i32 last offset - base offset of its last batch,
        i64 timestamp, i32 coordinator epoch, i64 first offset of its open transaction; -1 where there is none

Kafka remembers one batch of each producer over a restart. We put the ones before it, of the five that count, behind
what Kafka reads, within the checksum: a retry of any of them is recognised after a clean stop, too.

    i32 count, and for each batch, oldest first
        i64 producer id, i32 first and last sequence, i64 first and last offset, i64 timestamp
"""

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from odradek.broker.log.producers import NO_OFFSET, NO_SEQUENCE, ProducedBatch, Producers, ProducerState
from odradek.protocol.batches.crc32c import crc32c

VERSION = 1
SNAPSHOT_SUFFIX = ".snapshot"

_HEAD = Struct(">hI")
_COUNT = Struct(">i")
_ENTRY = Struct(">qhiqiqiq")
_EARLIER = Struct(">qiiqqq")
_SEQUENCE_MODULUS = 1 << 31


class CorruptSnapshot(Exception):
    """Not the snapshot that was written; the text says in which way."""


class SnapshotEntry(NamedTuple):
    """One producer, as Kafka's own reader sees it."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int
    coordinator_epoch: int
    current_txn_first_offset: int


def encode_snapshot(producers: Producers) -> bytes:
    """The content of the file."""
    entries = bytearray(_COUNT.pack(len(producers)))
    earlier = bytearray()
    earlier_count = 0
    for producer_id, state in producers.states():
        batches = list(state.batches)
        for batch in batches[:-1]:
            earlier += _EARLIER.pack(producer_id, *batch)
            earlier_count += 1
        last = batches[-1] if batches else ProducedBatch(NO_SEQUENCE, NO_SEQUENCE, NO_OFFSET, NO_OFFSET, -1)
        entries += _ENTRY.pack(
            producer_id,
            state.epoch,
            last.last_sequence,
            last.last_offset,
            last.last_offset - last.base_offset,
            state.last_timestamp_ms,
            state.coordinator_epoch,
            state.current_txn_first_offset,
        )
    content = bytes(entries) + (_COUNT.pack(earlier_count) + earlier if earlier_count else b"")
    return _HEAD.pack(VERSION, crc32c(content)) + content


def read_entries(data: bytes) -> tuple[list[SnapshotEntry], list[tuple[int, ProducedBatch]]]:
    """The producers, and the earlier batches with their producer ids. Raises CorruptSnapshot."""
    if len(data) < _HEAD.size + _COUNT.size:
        raise CorruptSnapshot(f"{len(data)} bytes are too few for a snapshot")
    version, crc = _HEAD.unpack_from(data)
    if version != VERSION:
        raise CorruptSnapshot(f"version {version}; only {VERSION} is known")
    if crc32c(memoryview(data)[_HEAD.size :]) != crc:
        raise CorruptSnapshot("it does not have the checksum that it carries")
    rows, end = _rows(data, _HEAD.size, _ENTRY)
    entries = [SnapshotEntry._make(row) for row in rows]
    earlier: list[tuple[int, ProducedBatch]] = []
    if end < len(data):
        rows, end = _rows(data, end, _EARLIER)
        earlier = [(row[0], ProducedBatch._make(row[1:])) for row in rows]
    if end != len(data):
        raise CorruptSnapshot(f"{len(data) - end} bytes too many")
    return entries, earlier


def _check(entries: Sequence[SnapshotEntry]) -> None:
    """Raises CorruptSnapshot for what no producer can be, whatever the checksum says."""
    ids, first_offsets = [entry.producer_id for entry in entries], [entry.current_txn_first_offset for entry in entries]
    open_txns = [offset for offset in first_offsets if offset != NO_OFFSET]
    if len({*ids}) != len(ids) or len({*open_txns}) != len(open_txns):
        raise CorruptSnapshot("a producer, or the beginning of a transaction, stands in it twice")
    for entry in entries:
        sequence, offset, delta = entry.last_sequence, entry.last_offset, entry.offset_delta
        is_possible = entry.producer_id >= 0 and min(entry.epoch, sequence, offset) >= -1
        if not is_possible or not 0 <= delta <= max(offset, 0) or entry.current_txn_first_offset < NO_OFFSET:
            raise CorruptSnapshot(f"no producer can be {entry}")


def _rows(data: bytes, position: int, row: Struct) -> tuple[list[tuple[int, ...]], int]:
    """A counted array of rows, and where it ends."""
    if position + _COUNT.size > len(data):
        raise CorruptSnapshot(f"it ends within the count at position {position}")
    (count,) = _COUNT.unpack_from(data, position)
    start = position + _COUNT.size
    end = start + count * row.size
    if count < 0 or end > len(data):
        raise CorruptSnapshot(f"{count} entries do not fit into {len(data) - start} bytes")
    return list(row.iter_unpack(memoryview(data)[start:end])), end


def decode_snapshot(data: bytes) -> Producers:
    """The producers as they were. Raises CorruptSnapshot."""
    entries, earlier = read_entries(data)
    _check(entries)
    states: dict[int, ProducerState] = {}
    for entry in entries:
        state = states[entry.producer_id] = ProducerState(entry.epoch)
        state.last_timestamp_ms = entry.timestamp_ms
        state.coordinator_epoch = entry.coordinator_epoch
        state.current_txn_first_offset = entry.current_txn_first_offset
        state.txn_opened_ms = max(0, entry.timestamp_ms)
    for producer_id, batch in earlier:
        if (known := states.get(producer_id)) is not None:
            known.batches.append(batch)
    for entry in entries:
        if entry.last_offset >= 0:
            states[entry.producer_id].batches.append(_last_batch(entry))
    return Producers(states.items())


def _last_batch(entry: SnapshotEntry) -> ProducedBatch:
    base_sequence = (
        NO_SEQUENCE if entry.last_sequence < 0 else (entry.last_sequence - entry.offset_delta) % _SEQUENCE_MODULUS
    )
    base_offset = entry.last_offset - entry.offset_delta
    return ProducedBatch(base_sequence, entry.last_sequence, base_offset, entry.last_offset, entry.timestamp_ms)
