"""Records that are like the one before them but for values, times and offsets, read by one call each. Pure.

Producers write many records with keys of one size and values of any. What stands before such a value takes as many
bytes in all of them, so one `Struct` takes it apart, and it is compared with what has to stand there. The first record
that is different is left to `odradek.protocol.batches.columns`, which reads any.
"""

from collections.abc import Sequence
from functools import cache, lru_cache
from struct import Struct
from struct import error as StructError
from typing import Final, NamedTuple

__all__ = ["SIMILAR_MAX", "Form", "Similar", "similar_records"]

SIMILAR_MAX: Final = 64
"""So many are read at a time; then it is looked again whether they have one size, which is faster still."""
_ONE_BYTE_MAX: Final = 64
"""A zigzag varint of one byte is below that."""
_TWO_BYTES_MAX: Final = 1 << 13
"""And one of two bytes below this."""
_ONE_BYTE: Final = range(0, 2 * _ONE_BYTE_MAX, 2)
"""Zigzag varints of one byte, by what they say."""
_FIRST: Final = (0, 0, _ONE_BYTE_MAX)
"""The number from which on a varint has so many bytes."""
_HEAD_SIZE_MAX: Final = 4
"""Attributes and a timestamp of three bytes, which is near the batch's (`columns`)."""
_NULL: Final = 1
"""The size -1."""


class Form(NamedTuple):
    """How many bytes the fields of similar records take. `key_size` is that of the key itself, -1 without one."""

    length_size: int
    head_size: int
    """Of attributes and timestamp."""
    offset_size: int
    key_size: int


class Similar(NamedTuple):
    """What was read, in columns; and the position behind it."""

    keys: Sequence[bytes | None]
    values: list[bytes]
    timestamp_deltas: list[int]
    position: int


def similar_records(data: bytes, position: int, form: Form, delta: int, count_max: int) -> Similar:
    """Reads the records at `position` as far as they have the form, `count_max` and `SIMILAR_MAX` at most.

    `delta`: what the first one's offset has to be beyond that of the batch; that of each further one is one more.
    """
    length_size, head_size, offset_size, key_size = form
    keys: list[bytes] = []
    values: list[bytes] = []
    times: list[int] = []
    if (
        length_size > 2 or head_size > _HEAD_SIZE_MAX or offset_size > 2 or key_size >= _ONE_BYTE_MAX
        or delta < _FIRST[offset_size]
    ):  # fmt: skip
        return Similar(keys, values, times, position)
    count_max = min(count_max, SIMILAR_MAX)
    deltas = (_ONE_BYTE if offset_size == 1 else _two_bytes())[delta : delta + count_max]
    lengths: Sequence[int] = _ONE_BYTE if length_size == 1 else _two_bytes()
    layout = _layout(length_size, head_size, offset_size, max(key_size, 0))
    unpack, value_at = layout.unpack_from, layout.size - 1
    behind = length_size - 1
    key_number = 2 * key_size if key_size >= 0 else _NULL
    head, time = b"", 0
    try:
        for expected in deltas:
            length, found_head, found_delta, found_key_number, key, number = unpack(data, position)
            begin = end = position + value_at
            if number & 128:
                begin += 1
                end = begin + ((number & 127) >> 1) + (number >> 8 << 6)
            else:
                end += (number & 127) >> 1
            if (
                found_delta != expected
                or found_key_number != key_number
                or length != lengths[end - position - behind]
                or number & 1
                or data[end]
            ):
                break
            if found_head != head:
                found_time = _timestamp_delta(found_head)
                if found_time is None:
                    break
                times += [time] * (len(values) - len(times))
                head, time = found_head, found_time
            keys.append(key)
            values.append(data[begin:end])
            position = end + 1
    except (IndexError, StructError):
        pass  # the bytes end within the next record, or it is too long: the caller finds that
    times += [time] * (len(values) - len(times))
    return Similar(keys if key_size >= 0 else [None] * len(values), values, times, position)


@cache
def _two_bytes() -> Sequence[int]:
    """Zigzag varints of two bytes as little-endian numbers, by what they say, which counts from `_ONE_BYTE_MAX` on.
    Made at the first call: it takes milliseconds, and many programs never read a batch."""
    return tuple((2 * number & 127) | 128 | (2 * number >> 7) << 8 for number in range(_TWO_BYTES_MAX))


@lru_cache(maxsize=1024)
def _layout(length_size: int, head_size: int, offset_size: int, key_size: int) -> Struct:
    """What stands before a value: length, attributes and timestamp, offset delta, key size, key; the value's size.

    That is read as two bytes. Where it has one, the other is the value's first, or the count of headers.
    """
    sizes = " BH"
    return Struct(f"<{sizes[length_size]}{head_size}s{sizes[offset_size]}B{key_size}sH")


@lru_cache(maxsize=4096)
def _timestamp_delta(head: bytes) -> int | None:
    """What the varint behind the attributes says; None if it takes more bytes than these, or fewer."""
    *more, last = head[1:]
    if last > 127 or (more and min(more) < 128):
        return None
    number = sum((byte & 127) << (7 * place) for place, byte in enumerate((*more, last)))
    return (number >> 1) ^ -(number & 1)
