"""The records of a batch in columns: offsets, timestamps, keys, values and headers, each a list. Pure.

A reader of many records looks at columns, or makes objects of them in one go, so nothing is called once per record.
Three ways lead there, and all check what `iterate_unpacked` checks:

- `_walk` reads record after record.
- `_uniform` reads many at once where they have one shape: the same sizes of key and value, no headers, offsets without
  gaps, timestamps of as many bytes. Then every field stands at a fixed distance from the same field of the record
  before. A slice with that distance holds one byte of every record, and is compared with what has to stand there; keys
  and values are cut out by one `struct` call. Producers' batches are like that for long stretches.
- `similar_records` reads those that differ in the sizes of their values.

`_walk` tries the second way when two records in a row have one size and the third way when they have not, and stops
trying after `TRIES_MAX` failures, which the third way has to have in a row.

(Source of the format: DefaultRecord.java; see `odradek.protocol.batches.records`.)
"""

from functools import lru_cache
from itertools import chain
from struct import Struct
from typing import Final

from odradek.protocol.batches.batch import BatchHeader
from odradek.protocol.batches.records import Headers, read_headers
from odradek.protocol.batches.similar_records import SIMILAR_MAX, Form, similar_records
from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from odradek.protocol.primitives import read_varlong, rest_of_unsigned_varint

__all__ = ["Columns", "decode_columns"]

_NULL: Final = 1  # the length -1
_TWO_MORE: Final = -1
_ANOTHER: Final = 0
"""No record is so short. As the length of the one before, they say how many are read before any are read together."""
_INT64_MIN: Final = -(1 << 63)
_INT64_MAX: Final = (1 << 63) - 1

UNIFORM_MIN: Final = 8
"""So many records have to be left for one look at their shape, and have the shape for it to count as a success."""
TRIES_MAX: Final = 4
_NEAR: Final = 1 << 21
"""Timestamps of three bytes are nearer than that to the batch's."""
_ANY: Final = 1 << 70
MORE: Final = 128
"""A byte of a varint from there on says that another follows."""
TWO_BYTES_MAX: Final = 1 << 13
"""A zigzag varint of two bytes is below that."""
_LOW: Final = bytes((2 * delta & 127) | (128 if delta > 63 else 0) for delta in range(TWO_BYTES_MAX))
_HIGH: Final = bytes(2 * delta >> 7 for delta in range(TWO_BYTES_MAX))
"""The first and second bytes of offset deltas."""
_NEGATIVE: Final = 255
_HALVES: Final = bytes(_NEGATIVE if byte & 1 else (byte & 127) >> 1 for byte in range(256))
"""What the first byte of a zigzag varint adds to the number; _NEGATIVE: it is that of a negative number."""
BLOCK: Final = 32
"""So many records are cut by one format. (A tuple for each record takes four times as long.)"""


class Columns:
    """Records of one partition, in order of their offsets. `headers` is None where no record has any."""

    __slots__ = ("headers", "keys", "offsets", "timestamps_ms", "values")

    def __init__(self) -> None:
        self.offsets: list[int] = []
        self.timestamps_ms: list[int] = []
        self.keys: list[bytes | None] = []
        self.values: list[bytes | None] = []
        self.headers: list[Headers] | None = None

    def __len__(self) -> int:
        return len(self.offsets)

    def drop(self, start: int, stop: int) -> None:
        """Leaves the records out from one index up to before another."""
        for column in (self.offsets, self.timestamps_ms, self.keys, self.values, self.headers):
            if column is not None:
                del column[start:stop]


_Shape = tuple[int, int, int, int, int, int, int, int, int]
"""Where the fields of a record stand, from its beginning, and their sizes; -1: null.

    stride, timestamp_at, offset_at, key_size_at, key_at, key_size, value_size_at, value_at, value_size
"""


def decode_columns(header: BatchHeader, data: bytes, columns: Columns) -> None:
    """Puts the records of one batch, of which `unpack_records` answered these bytes, behind those in `columns`.

    Raises KafkaError INVALID_RECORD: what records or header claim cannot be. Nothing is added then.
    """
    before = len(columns.offsets)
    try:
        position = _walk(header, data, columns)
        if position != len(data):
            raise ValueError(f"{len(data) - position} bytes follow the last")
        if abs(header.base_timestamp) > _INT64_MAX - _NEAR and not header.is_log_append_time:
            _check_timestamps(columns.timestamps_ms[before:])
    except (IndexError, ValueError, MalformedMessage) as error:
        read = len(columns) - before
        columns.drop(before, len(columns) + 1)
        why = f"record {read} of {header.record_count} is malformed: {error}"
        raise KafkaError(ErrorCode.INVALID_RECORD, why) from error
    if header.is_log_append_time:
        columns.timestamps_ms[before:] = [header.max_timestamp] * (len(columns) - before)


def _check_timestamps(timestamps_ms: list[int]) -> None:
    if timestamps_ms and not _INT64_MIN <= min(timestamps_ms) <= max(timestamps_ms) <= _INT64_MAX:
        raise ValueError("a timestamp that takes more than 64 bits")


def _walk(header: BatchHeader, data: bytes, columns: Columns) -> int:  # noqa: C901 (one hot walk)
    """Reads all records, and returns the position behind the last."""
    base_offset, base_timestamp, count = header.base_offset, header.base_timestamp, header.record_count
    add_offset, add_timestamp_ms = columns.offsets.append, columns.timestamps_ms.append
    add_key, add_value = columns.keys.append, columns.values.append
    all_headers, before = columns.headers, len(columns.offsets)
    # Where it counts, each record's own time has to take 64 bits at most; see also `_check_timestamps`.
    first_ms, last_ms = (-_ANY, _ANY) if header.is_log_append_time else (_INT64_MIN, _INT64_MAX)
    position = index = 0
    last_offset = base_offset - 1
    last_length = length = _TWO_MORE
    tries = similar_tries = TRIES_MAX
    while index < count:
        start = position
        length = data[position]
        position += 1
        if length > 127:
            byte = data[position]
            if byte > 127:
                length, position = rest_of_unsigned_varint(data, position, length)
            else:
                length += (byte << 7) - 128
                position += 1
        end = position + (length >> 1)
        timestamp_at = position = position + 1  # behind the attributes

        number = data[position]
        if number > 127:
            timestamp_delta, position = read_varlong(data, position)
            if not first_ms <= base_timestamp + timestamp_delta <= last_ms:
                raise ValueError("a timestamp that takes more than 64 bits")
        else:
            timestamp_delta = (number >> 1) ^ -(number & 1)
            position += 1

        offset_at = position
        number = data[position]
        position += 1
        if number > 127:
            byte = data[position]
            if byte > 127:
                number, position = rest_of_unsigned_varint(data, position, number)
            else:
                number += (byte << 7) - 128
                position += 1
        offset = base_offset + ((number >> 1) ^ -(number & 1))

        key_size_at = position
        number = data[position]
        key_at = position = position + 1
        if number == _NULL:
            key = None
        else:
            if number > 127:
                number, key_at = rest_of_unsigned_varint(data, position, number)
            if number & 1:
                raise ValueError("a key with a negative length")
            position = key_at + (number >> 1)
            key = data[key_at:position]

        value_size_at = position
        number = data[position]
        value_at = position = position + 1
        if number == _NULL:
            value = None
        else:
            if number > 127:
                byte = data[position]
                if byte > 127:
                    number, value_at = rest_of_unsigned_varint(data, position, number)
                else:
                    number += (byte << 7) - 128
                    value_at = position + 1
            if number & 1:
                raise ValueError("a value with a negative length")
            position = value_at + (number >> 1)
            value = data[value_at:position]

        if data[position]:
            headers, position = read_headers(data, position)
            if all_headers is None:
                all_headers = columns.headers = list[Headers]([()] * (before + index))
            all_headers.append(headers)
        else:
            headers = ()
            position += 1
            if all_headers is not None:
                all_headers.append(())
        # Positions only grow, and the last byte was there: this finds every length that is too long, and their own.
        if position != end or length & 1:
            raise ValueError(f"it ends {position - end} bytes behind its length")
        if offset <= last_offset:
            raise ValueError(f"offset {offset} follows {last_offset}")
        last_offset = offset
        add_offset(offset)
        add_timestamp_ms(base_timestamp + timestamp_delta)
        add_key(key)
        add_value(value)
        index += 1

        if length == last_length:
            if not tries or headers or count - index < UNIFORM_MIN:
                continue
            shape = (
                end - start, timestamp_at - start, offset_at - start, key_size_at - start, key_at - start,
                -1 if key is None else len(key), value_size_at - start, value_at - start,
                -1 if value is None else len(value),
            )  # fmt: skip
            found = _uniform(header, data, start, shape, count - index, offset - base_offset, columns)
            if found < UNIFORM_MIN:
                tries -= 1
            position += found * shape[0]
            last_length = _TWO_MORE
        elif similar_tries and last_length >= 0 and not headers and count - index >= UNIFORM_MIN:
            key_size = -1 if key is None else len(key)
            form = Form(timestamp_at - 1 - start, 1 + offset_at - timestamp_at, key_size_at - offset_at, key_size)
            similar = similar_records(data, position, form, offset + 1 - base_offset, count - index)
            position = similar.position
            found = len(similar.values)
            similar_tries = similar_tries - 1 if found < UNIFORM_MIN else TRIES_MAX
            columns.offsets += range(offset + 1, offset + 1 + found)
            columns.timestamps_ms += [base_timestamp + delta for delta in similar.timestamp_deltas]
            columns.keys += similar.keys
            columns.values += similar.values
            last_length = _TWO_MORE if found == SIMILAR_MAX else _ANOTHER
        else:
            last_length = length
            continue
        index += found
        last_offset += found
        if all_headers is not None:
            all_headers += [()] * found
    if last_offset > header.last_offset:
        raise ValueError(f"offset {last_offset}, where the last is {header.last_offset}")
    return position


def _uniform(
    header: BatchHeader, data: bytes, model: int, shape: _Shape, count_max: int, delta: int, columns: Columns
) -> int:
    """Reads the records behind the one at `model`, whose offset delta is `delta`, as far as they have its shape.

    Returns how many these are, `count_max` at most.
    """
    stride, timestamp_at, offset_at, key_size_at, _, key_size, _, _, value_size = shape
    first = model + stride
    offset_bytes = key_size_at - offset_at
    delta += 1
    limit = 64 if offset_bytes == 1 else TWO_BYTES_MAX
    count = min(count_max, (len(data) - first) // stride, limit - delta)
    if count < UNIFORM_MIN or offset_bytes > 2 or offset_at - timestamp_at > 3 or delta < 1:
        return 0
    stop = first + count * stride
    column = data[first + offset_at : stop : stride]
    if column != (expected := _LOW[delta : delta + count]):
        count = _matching(column, expected)
        stop = first + count * stride
    if offset_bytes == 2:
        column = data[first + offset_at + 1 : stop : stride]
        if column != (expected := _HIGH[delta : delta + count]):
            count = _matching(column, expected)
            stop = first + count * stride
    for place in _fixed_places(shape):
        column = data[first + place : stop : stride]
        byte = data[model + place]
        if column.count(byte) != count:
            count = _matching(column, bytes((byte,)) * count)
            stop = first + count * stride
    count = _add_timestamps(header.base_timestamp, data, first, shape, count, columns)
    if not count:
        return 0
    if key_size >= 0 or value_size >= 0:
        parts = _cut(memoryview(data)[first : first + count * stride], shape, count)
    else:
        parts = []
    if key_size >= 0 and value_size >= 0:
        columns.keys += parts[::2]
        columns.values += parts[1::2]
    else:
        columns.keys += parts if key_size >= 0 else [None] * count
        columns.values += parts if value_size >= 0 else [None] * count
    offset = header.base_offset + delta
    columns.offsets += range(offset, offset + count)
    return count


@lru_cache(maxsize=1024)
def _fixed_places(shape: _Shape) -> tuple[int, ...]:
    """The bytes that are the same in all records of a shape: lengths, sizes, and the count of headers."""
    stride, timestamp_at, _, key_size_at, key_at, _, value_size_at, value_at, _ = shape
    return (*range(timestamp_at - 1), *range(key_size_at, key_at), *range(value_size_at, value_at), stride - 1)


def _matching(column: bytes, expected: bytes) -> int:
    """How many bytes at the beginning of the two are equal."""
    low, high = 0, min(len(column), len(expected))
    while low < high:  # they are equal before `low`, and are not, or it is not known, from `high` on
        middle = (low + high + 1) // 2
        if column[low:middle] == expected[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _add_timestamps(base: int, data: bytes, first: int, shape: _Shape, count: int, columns: Columns) -> int:
    """Of so many records, or fewer where a timestamp takes more or fewer bytes: returns how many."""
    stride, timestamp_at, offset_at, *_ = shape
    stop = first + count * stride
    if offset_at - timestamp_at == 1:
        column = data[first + timestamp_at : stop : stride]
        if count and column.count(column[0]) == count and (number := column[0]) < MORE:
            columns.timestamps_ms += [base + ((number >> 1) ^ -(number & 1))] * count
            return count
    *lower, last = (data[first + place : stop : stride] for place in range(timestamp_at, offset_at))
    for column in lower:
        if column and min(column) < MORE:
            count = min(count, next(index for index, byte in enumerate(column) if byte < MORE))
    if not last.isascii():
        count = min(count, next(index for index, byte in enumerate(last) if byte >= MORE))
    if not count:
        return 0
    raw = [column[:count] for column in (*lower, last)]
    if all(column.count(column[0]) == count for column in raw):
        number = sum((column[0] & 127) << (7 * place) for place, column in enumerate(raw))
        columns.timestamps_ms += [base + ((number >> 1) ^ -(number & 1))] * count
        return count
    halves = raw[0].translate(_HALVES)
    if _NEGATIVE in halves:
        numbers = [
            sum((byte & 127) << (7 * place) for place, byte in enumerate(sevens)) for sevens in zip(*raw, strict=True)
        ]
        columns.timestamps_ms += [base + ((number >> 1) ^ -(number & 1)) for number in numbers]
    elif len(raw) == 1:
        columns.timestamps_ms += [base + half for half in halves]
    elif len(raw) == 2:
        columns.timestamps_ms += [base + half + (high << 6) for half, high in zip(halves, raw[1], strict=True)]
    else:
        columns.timestamps_ms += [
            base + half + ((middle & 127) << 6) + (high << 13)
            for half, middle, high in zip(halves, raw[1], raw[2], strict=True)
        ]
    return count


def _cut(records: memoryview, shape: _Shape, count: int) -> list[bytes]:
    """Keys and values of so many records, whichever of them there is, one after the other."""
    blocks, rest = divmod(count, BLOCK)
    parts: list[bytes] = []
    split = len(records) - rest * shape[0]
    if blocks:
        parts += chain.from_iterable(_cutter(shape, BLOCK).iter_unpack(records[:split]))
    if rest:
        parts += _cutter(shape, rest).unpack(records[split:])
    return parts


@lru_cache(maxsize=1024)
def _cutter(shape: _Shape, count: int) -> Struct:
    """Cuts keys and values out of so many records."""
    stride, _, _, _, key_at, key_size, _, value_at, value_size = shape
    key_end = key_at + max(key_size, 0)
    key = f"{key_at}x{key_size}s" if key_size >= 0 else f"{key_at}x"
    value = f"{value_at - key_end}x" + (f"{value_size}s" if value_size >= 0 else "")
    return Struct(f"{key}{value}{stride - value_at - max(value_size, 0)}x" * count)
