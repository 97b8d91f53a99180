"""What may become of a file: any bytes, rows with any numbers, and a good file with a few things changed."""

import struct
from collections.abc import Callable

from hypothesis import strategies as st

Change = Callable[[bytearray], bytearray]

INTEGERS = {"h": 16, "i": 32, "q": 64}


def damages(good: bytes, row_format: str) -> st.SearchStrategy[bytes]:
    """Contents of a file that was `good`, whose rows are `struct` rows of this format ("c": none)."""
    row_bytes = struct.calcsize(row_format)
    changed = st.lists(_changes(row_bytes), min_size=1, max_size=3).map(lambda changes: _changed(good, changes))
    noise = st.binary(max_size=6 * max(row_bytes, 8))
    columns = [_numbers(INTEGERS[letter]) for letter in row_format if letter in INTEGERS]
    if not columns:
        return st.one_of(changed, noise)
    rows = st.lists(st.tuples(*columns).map(lambda row: struct.pack(row_format, *row)), max_size=8).map(b"".join)
    mixed = st.tuples(changed, rows).map(lambda parts: parts[0] + parts[1])
    return st.one_of(changed, noise, rows, mixed)


def _numbers(bits: int) -> st.SearchStrategy[int]:
    """Small ones, which may mean something here, and any."""
    return st.one_of(st.integers(-2, 500), st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1))


def _changes(row_bytes: int) -> st.SearchStrategy[Change]:
    place = st.floats(0, 1, exclude_max=True)
    return st.one_of(
        st.tuples(place, st.integers(0, 7)).map(lambda drawn: _flip(*drawn)),
        st.tuples(place).map(lambda drawn: _cut(*drawn)),
        st.tuples(place, place).map(lambda drawn: _repeat(*drawn, row_bytes)),
        st.tuples(place, place).map(lambda drawn: _exchange(*drawn, row_bytes)),
        st.tuples(place).map(lambda drawn: _take_out(*drawn, row_bytes)),
    )


def _changed(good: bytes, changes: list[Change]) -> bytes:
    content = bytearray(good)
    for change in changes:
        content = change(content) if content else content
    return bytes(content)


def _flip(place: float, bit: int) -> Change:
    def change(content: bytearray) -> bytearray:
        content[int(place * len(content))] ^= 1 << bit
        return content

    return change


def _cut(place: float) -> Change:
    return lambda content: content[: int(place * len(content))]


def _rows(content: bytearray, row_bytes: int) -> list[bytearray]:
    return [content[at : at + row_bytes] for at in range(0, len(content), row_bytes)]


def _repeat(source: float, target: float, row_bytes: int) -> Change:
    def change(content: bytearray) -> bytearray:
        rows = _rows(content, row_bytes)
        rows.insert(int(target * len(rows)), rows[int(source * len(rows))])
        return bytearray().join(rows)

    return change


def _exchange(one: float, other: float, row_bytes: int) -> Change:
    def change(content: bytearray) -> bytearray:
        rows = _rows(content, row_bytes)
        first, second = int(one * len(rows)), int(other * len(rows))
        rows[first], rows[second] = rows[second], rows[first]
        return bytearray().join(rows)

    return change


def _take_out(place: float, row_bytes: int) -> Change:
    def change(content: bytearray) -> bytearray:
        rows = _rows(content, row_bytes)
        del rows[int(place * len(rows))]
        return bytearray().join(rows)

    return change
