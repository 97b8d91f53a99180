"""The records inside a batch (magic 2, KIP-98).

    length           varint    bytes after this field
    attributes       int8      unused, 0
    timestamp_delta  varlong   to the batch's base_timestamp
    offset_delta     varint    to the batch's base_offset
    key_length       varint    -1: no key
    key              bytes
    value_length     varint    -1: no value (a tombstone, where the topic is compacted)
    value            bytes
    header_count     varint
      key_length     varint    a header has a key, in UTF-8
      key            bytes
      value_length   varint    -1: no value
      value          bytes

Varints are zigzag-coded (`odradek.protocol.primitives`). All of a batch's records are compressed together, so they are
read by decompressing first, within a bound, and checked against the header, which a poisonous batch contradicts:
whatever the bytes, reading ends in records or in a KafkaError.

This module reads and checks them, `record_encoding` writes them. Reading runs once per record of a busy topic: the loop
handles short varints itself, and calls a function for others. (Measured, µs per record of 100 bytes: read 1.2, check
0.7.)

Source: DefaultRecord.java, LogValidator.java.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from odradek.protocol.batches.batch import HEADER_SIZE, RECORD_SIZE_MIN, BatchHeader, read_header
from odradek.protocol.batches.compression import Codec, decompress, has_linked_blocks
from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from odradek.protocol.primitives import Buffer, read_varint, read_varlong, rest_of_unsigned_varint

__all__ = [
    "DECOMPRESSED_BYTES_MAX",
    "HEADERS_MAX",
    "CheckedRecords",
    "Headers",
    "Record",
    "check_records",
    "iterate_records",
    "iterate_unpacked",
    "read_headers",
    "unpack_records",
]

Headers = tuple[tuple[str, bytes | None], ...]

DECOMPRESSED_BYTES_MAX: Final = 100 * 1024 * 1024
"""Records that would not fit into a request uncompressed (socket.request.max.bytes) are not accepted compressed."""

HEADERS_MAX: Final = 1 << 16
"""Of one record. Kafka has no limit, but two bytes of a header become more than seventy here: a megabyte of compressed
records could fill gigabytes of memory."""

_NULL: Final = 1  # the length -1
_INT64_MIN: Final = -(1 << 63)
_INT64_MAX: Final = (1 << 63) - 1


class Record(NamedTuple):
    """One record. `offset` is absolute, `timestamp_ms` counts from 1970 and is -1 when there is none."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


# ---------------------------------------------------------------------------------------------------------- reading


def iterate_records(batch: Buffer, *, size_bytes_max: int = DECOMPRESSED_BYTES_MAX) -> Iterator[Record]:
    """Yields the records of one whole batch, whose checksum has been checked already; gaps in the offsets are allowed.

    With LogAppendTime every record gets the batch's `max_timestamp`. Header keys that are not UTF-8 are read as Java
    does, with replacement characters. Raises KafkaError: UNSUPPORTED_COMPRESSION_TYPE, CORRUPT_MESSAGE and
    MESSAGE_TOO_LARGE (`decompress`), INVALID_RECORD (what the records or the header claim cannot be).
    """
    try:
        header = read_header(batch)
    except MalformedMessage as error:
        raise _corrupt(str(error)) from error
    if not header.record_count:
        return  # compaction empties batches and keeps their headers, for the producer's sequence in them
    yield from iterate_unpacked(header, unpack_records(batch, header, size_bytes_max=size_bytes_max))


def iterate_unpacked(header: BatchHeader, data: bytes) -> Iterator[Record]:
    """The same for what `unpack_records` answered. Raises KafkaError INVALID_RECORD."""
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    append_time = header.max_timestamp if header.is_log_append_time else None
    position = 0
    last_offset = base_offset - 1
    for index in range(header.record_count):
        try:
            position, delta, timestamp_delta, key, value_start, value_end, headers = _walk_record(data, position)
        except (IndexError, ValueError, MalformedMessage) as error:
            raise _invalid(f"record {index} of {header.record_count} is malformed: {error}") from error
        offset = base_offset + delta
        if not last_offset < offset <= header.last_offset:
            raise _invalid(f"offset {offset} of record {index} follows {last_offset}, the last is {header.last_offset}")
        last_offset = offset
        timestamp_ms = base_timestamp + timestamp_delta if append_time is None else append_time
        if not _INT64_MIN <= timestamp_ms <= _INT64_MAX:
            raise _invalid(f"record {index} has the timestamp {timestamp_ms}, which takes more than 64 bits")
        yield Record(
            offset,
            timestamp_ms,
            key,
            data[value_start:value_end] if value_end >= 0 else None,
            headers,
        )
    if position != len(data):
        raise _invalid(f"{len(data) - position} bytes follow the {header.record_count} records")


def unpack_records(batch: Buffer, header: BatchHeader, *, size_bytes_max: int = DECOMPRESSED_BYTES_MAX) -> bytes:
    """The records' bytes, decompressed; at least as many as the count in the header needs.

    Raises KafkaError: as `iterate_records` does.
    """
    if header.size_bytes != len(batch):
        raise _corrupt(f"a batch of {header.size_bytes} bytes, of which {len(batch)} are there")
    data = decompress(header.codec, memoryview(batch)[HEADER_SIZE:], size_bytes_max)
    if not 0 <= header.record_count * RECORD_SIZE_MIN <= len(data):
        raise _invalid(f"{header.record_count} records cannot fit in {len(data)} bytes")
    return data


def _walk_record(  # noqa: C901 (one hot walk, no calls)
    data: bytes, position: int
) -> tuple[int, int, int, bytes | None, int, int, Headers]:
    """Returns the position after the record at `position`, offset delta, timestamp delta, key, the positions where its
    value begins and ends (the latter -1: no value), and headers.

    Raises IndexError, ValueError or MalformedMessage when the record is cut or contradicts itself. Varints of one or
    two bytes, which most are, are read in place: 128 is the high bit of the first byte, taken off the second.
    """
    number = data[position]
    position += 1
    if number > 127:
        byte = data[position]
        if byte > 127:
            number, position = rest_of_unsigned_varint(data, position, number)
        else:
            number += (byte << 7) - 128
            position += 1
    end = position + (number >> 1)
    if number & 1 or end > len(data):
        raise ValueError("a negative length, or one beyond the batch")
    position += 1  # attributes

    number = data[position]
    if number > 127:
        timestamp_delta, position = read_varlong(data, position)
    else:
        timestamp_delta = (number >> 1) ^ -(number & 1)
        position += 1

    number = data[position]
    position += 1
    if number > 127:
        byte = data[position]
        if byte > 127:
            number, position = rest_of_unsigned_varint(data, position, number)
        else:
            number += (byte << 7) - 128
            position += 1
    offset_delta = (number >> 1) ^ -(number & 1)

    if data[position] == _NULL:
        key = None
        position += 1
    else:
        key, position = _read_bytes(data, position)

    number = data[position]
    position += 1
    if number == _NULL:
        value_start = value_end = -1
    else:
        if number > 127:
            byte = data[position]
            if byte > 127:
                number, position = rest_of_unsigned_varint(data, position, number)
            else:
                number += (byte << 7) - 128
                position += 1
        if number & 1:
            raise ValueError("a value with a negative length")
        value_start = position
        position = value_end = position + (number >> 1)

    if data[position]:
        headers, position = read_headers(data, position)
    else:
        headers = ()
        position += 1
    # Positions only grow, so this finds every length inside the record that is too long, and the record's own.
    if position != end:
        raise ValueError(f"it ends {position - end} bytes behind its length")
    return position, offset_delta, timestamp_delta, key, value_start, value_end, headers


def _read_bytes(data: bytes, position: int) -> tuple[bytes | None, int]:
    size, position = read_varint(data, position)
    if size == -1:
        return None, position
    if size < 0:
        raise ValueError(f"a length of {size}")
    return data[position : position + size], position + size


def read_headers(data: bytes, position: int) -> tuple[Headers, int]:
    """The headers that begin there with their number, and the position behind them.

    Raises IndexError, ValueError or MalformedMessage where they are none.
    """
    count, position = read_varint(data, position)
    if not 0 <= count <= HEADERS_MAX:
        raise ValueError(f"{count} headers, 0 to {HEADERS_MAX} are possible")
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        key, position = _read_bytes(data, position)
        if key is None:
            raise ValueError("a header without a key")
        value, position = _read_bytes(data, position)
        headers.append((key.decode(errors="replace"), value))
    return tuple(headers), position


# --------------------------------------------------------------------------------------------------------- checking


class CheckedRecords(NamedTuple):
    """What was found in the records of a batch. Timestamps count from 1970, -1 is that of a record without one."""

    payload: bytes
    """The records' bytes, decompressed."""
    min_timestamp_ms: int
    max_timestamp_ms: int
    """-1 at least: what Kafka makes the batch's `max_timestamp`."""
    keyless_count: int


def check_records(view: Buffer, header: BatchHeader, *, size_bytes_max: int = DECOMPRESSED_BYTES_MAX) -> CheckedRecords:
    """Walks every record of a batch that `check_batch` accepted: they are what the header claims.

    That is Kafka's own validation on append (LogValidator): whole records and as many as announced, nothing after the
    last, offset deltas 0, 1, 2, …, which Kafka looks at in compressed batches only. `max_timestamp` is not compared,
    for Kafka corrects it. Raises KafkaError: INVALID_RECORD, and what `unpack_records` raises.
    """
    data = unpack_records(view, header, size_bytes_max=size_bytes_max)
    if header.codec is Codec.LZ4 and has_linked_blocks(memoryview(view)[HEADER_SIZE:]):
        raise _corrupt("lz4 blocks that are linked, which Java cannot read")
    timestamp_delta_min, timestamp_delta_max = _INT64_MAX, _INT64_MIN
    keyless_count = 0
    position = 0
    for index in range(header.record_count):
        try:
            position, offset_delta, timestamp_delta, key, _, _, _ = _walk_record(data, position)
        except (IndexError, ValueError, MalformedMessage) as error:
            raise _invalid(f"record {index} of {header.record_count} is malformed: {error}") from error
        if offset_delta != index:
            raise _invalid(f"record {index} has offset delta {offset_delta}")
        if timestamp_delta < timestamp_delta_min:
            timestamp_delta_min = timestamp_delta
        if timestamp_delta > timestamp_delta_max:
            timestamp_delta_max = timestamp_delta
        if key is None:
            keyless_count += 1
    if position != len(data):
        raise _invalid(f"{len(data) - position} bytes follow the {header.record_count} records")
    earliest, latest = header.base_timestamp + timestamp_delta_min, header.base_timestamp + timestamp_delta_max
    if earliest < _INT64_MIN or latest > _INT64_MAX:
        raise _invalid(f"the timestamps {earliest} to {latest} take more than 64 bits")
    return CheckedRecords(data, earliest, max(latest, -1), keyless_count)


def _invalid(why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, why)


def _corrupt(why: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, why)
