"""What stands in the files of a log, thing by thing, as it is: nothing is verified but each batch's checksum.

Where a file cannot be read on, a line `damage` says why, and the next file follows.
"""

import posixpath
from collections.abc import Iterator, Sequence

from odradek.broker.directories import meta_properties
from odradek.broker.disk.disk import Disk
from odradek.broker.log.aborted import ROW as TXN_ROW
from odradek.broker.log.batches import Damage
from odradek.broker.log.checkpoint import (
    CorruptCheckpoint,
    read_epochs,
    read_offset_entries,
    read_partition_metadata,
)
from odradek.broker.log.index import OffsetIndex, TimeIndex
from odradek.broker.log.markers import Marker, read_marker
from odradek.broker.log.snapshots import CorruptSnapshot, read_entries
from odradek.broker.offline.dump.batch_check import RECORDS_BYTES_MAX
from odradek.broker.offline.dump.lines import Line, Value
from odradek.broker.offline.dump.names import Kind, Name
from odradek.broker.offline.dump.rows import rows_of
from odradek.broker.offline.dump.stored import Stored, ZeroTail, size_of, stored_batches
from odradek.protocol.batches.batch import BatchHeader, crc_matches
from odradek.protocol.batches.records import iterate_records
from odradek.protocol.batches.rewriting import delete_horizon_ms
from odradek.protocol.errors import KafkaError, MalformedMessage
from odradek.protocol.primitives import uuid_text

DAMAGE = "damage"
RECORDS = ("record", "marker")


def lines_of(disk: Disk, path: str, name: Name, *, with_records: bool) -> Iterator[Line]:
    """The content of a file, of which its name says what it is. Raises OSError."""
    match name.kind:
        case Kind.LOG:
            yield from _log(disk, path, with_records)
        case Kind.OFFSET_INDEX:
            yield from _offset_index(disk.read_whole(path), name.offset)
        case Kind.TIME_INDEX:
            yield from _time_index(disk.read_whole(path), name.offset)
        case Kind.TXN_INDEX:
            yield from _txn_index(disk.read_whole(path))
        case Kind.SNAPSHOT:
            yield from _snapshot(disk.read_whole(path))
        case Kind.LEADER_EPOCHS | Kind.OFFSETS:
            yield from _checkpoint(disk, path, name.kind)
        case Kind.PARTITION_METADATA | Kind.META_PROPERTIES:
            yield from _identity(disk, path, name.kind)
        case Kind.CLEAN_SHUTDOWN:
            yield Line("clean_shutdown", {"content": disk.read_whole(path)})
        case Kind.METADATA:
            yield Line("metadata", {"size_bytes": size_of(disk, path), "note": "the cluster's metadata is not printed"})


def _damage(reason: object, position: int | None = None) -> Line:
    where: dict[str, Value] = {} if position is None else {"position": position}
    return Line(DAMAGE, {**where, "reason": str(reason)})


# -- the log ----------------------------------------------------------------------------------------------------------


def _log(disk: Disk, path: str, with_records: bool) -> Iterator[Line]:
    size_bytes = size_of(disk, path)
    try:
        for stored in stored_batches(disk, path, size_bytes):
            yield _batch(stored)
            if with_records:
                yield from _records(stored)
    except ZeroTail as zeros:
        yield Line("zeros", {"position": zeros.position, "size_bytes": size_bytes - zeros.position})
    except Damage as damage:
        yield _damage(damage.reason, damage.position)


def _batch(stored: Stored) -> Line:
    position, header, data = stored
    fields: dict[str, Value] = {
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "position": position,
        "size_bytes": header.size_bytes,
        "record_count": header.record_count,
        "codec": _codec(header),
        "timestamp_type": "LogAppendTime" if header.is_log_append_time else "CreateTime",
        "base_timestamp": header.base_timestamp,
        "max_timestamp": header.max_timestamp,
        "leader_epoch": header.partition_leader_epoch,
    }
    if header.producer_id >= 0:
        fields["producer_id"] = header.producer_id
        fields["producer_epoch"] = header.producer_epoch
        fields["base_sequence"] = header.base_sequence
        fields["last_sequence"] = header.last_sequence
    fields["is_transactional"] = header.is_transactional
    fields["is_control"] = header.is_control
    if (horizon_ms := delete_horizon_ms(header)) is not None:
        fields["delete_horizon_ms"] = horizon_ms
    fields["is_crc_valid"] = crc_matches(data)
    return Line("batch", fields)


def _codec(header: BatchHeader) -> str:
    try:
        return header.codec.name.lower()
    except KafkaError:
        return f"unknown-{header.attributes & 7}"


def _records(stored: Stored) -> Iterator[Line]:
    try:
        marker = read_marker(stored.data, stored.header) if stored.header.is_control else None
        for record in iterate_records(stored.data, size_bytes_max=RECORDS_BYTES_MAX):
            fields: dict[str, Value] = {"offset": record.offset, "timestamp_ms": record.timestamp_ms}
            if marker is not None:
                yield _marker(fields, stored.header, marker)
                continue
            fields |= {"key": record.key, "value": record.value, "headers": record.headers}
            yield Line("record", fields)
    except (KafkaError, MalformedMessage) as error:
        yield _damage(error, stored.position)


def _marker(fields: dict[str, Value], header: BatchHeader, marker: Marker) -> Line:
    fields |= {
        "type": "ABORT" if marker.is_abort else "COMMIT",
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "coordinator_epoch": marker.coordinator_epoch,
    }
    return Line("marker", fields)


# -- what is derived from it ------------------------------------------------------------------------------------------


def _offset_index(data: bytes, base_offset: int) -> Iterator[Line]:
    found = rows_of(data, OffsetIndex.ROW)
    for relative_offset, position in found.rows:
        yield Line("index_entry", {"offset": base_offset + relative_offset, "position": position})
    yield from _tail(len(data), found.zero_rows, found.rest_bytes)


def _time_index(data: bytes, base_offset: int) -> Iterator[Line]:
    found = rows_of(data, TimeIndex.ROW)
    for timestamp_ms, relative_offset in found.rows:
        yield Line("time_entry", {"timestamp_ms": timestamp_ms, "offset": base_offset + relative_offset})
    yield from _tail(len(data), found.zero_rows, found.rest_bytes)


def _txn_index(data: bytes) -> Iterator[Line]:
    found = rows_of(data, TXN_ROW)
    names = ("version", "producer_id", "first_offset", "last_offset", "last_stable_offset")
    for row in found.rows:
        yield Line("aborted_transaction", _named(names, row))
    yield from _tail(len(data), found.zero_rows, found.rest_bytes)


def _tail(size_bytes: int, zero_rows: int, rest_bytes: int) -> Iterator[Line]:
    if zero_rows:
        yield Line("zeros", {"rows": zero_rows})
    if rest_bytes:
        yield _damage(f"{rest_bytes} bytes are no whole row", size_bytes - rest_bytes)


def _snapshot(data: bytes) -> Iterator[Line]:
    try:
        entries, earlier = read_entries(data)
    except CorruptSnapshot as error:
        yield _damage(error)
        return
    for entry in entries:
        yield Line("producer", _named(entry._fields, entry))
    for producer_id, batch in earlier:
        yield Line("earlier_batch", {"producer_id": producer_id, **_named(batch._fields, batch)})


def _named(names: Sequence[str], numbers: Sequence[int]) -> dict[str, Value]:
    return dict(zip(names, numbers, strict=True))


# -- small files ------------------------------------------------------------------------------------------------------


def _checkpoint(disk: Disk, path: str, kind: Kind) -> Iterator[Line]:
    is_of_epochs = kind is Kind.LEADER_EPOCHS
    try:
        if is_of_epochs:
            for epoch, start_offset in read_epochs(disk, path):
                yield Line("leader_epoch", {"epoch": epoch, "start_offset": start_offset})
        else:
            for topic, partition, offset in read_offset_entries(disk, path):
                yield Line("offset", {"topic": topic, "partition": partition, "offset": offset})
    except CorruptCheckpoint as error:
        yield _damage(error)


def _identity(disk: Disk, path: str, kind: Kind) -> Iterator[Line]:
    directory = posixpath.dirname(path) or "."
    try:
        if kind is Kind.PARTITION_METADATA:
            topic_id = read_partition_metadata(disk, directory)
            yield Line("partition_metadata", {"topic_id": None if topic_id is None else uuid_text(topic_id)})
        elif (found := meta_properties.load(disk, directory)) is not None:
            names = ("cluster_id", "node_id", "directory_id")
            yield Line("meta_properties", {name: getattr(found, name) for name in names})
    except (CorruptCheckpoint, meta_properties.ForeignDirectory) as error:
        yield _damage(error)
