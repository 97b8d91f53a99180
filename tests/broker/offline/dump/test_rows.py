"""Rows are told from the zeros and the bytes behind them."""

from struct import Struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.offline.dump.rows import Rows, rows_of

ROW = Struct(">ii")
numbers = st.integers(-(2**31), 2**31 - 1)


@given(st.lists(st.tuples(numbers, numbers)), st.integers(0, 5), st.integers(0, 7))
def test_what_was_written_is_read(rows: list[tuple[int, int]], zero_rows: int, rest_bytes: int) -> None:
    while rows and rows[-1] == (0, 0):
        rows.pop()
        zero_rows += 1
    data = b"".join(ROW.pack(*row) for row in rows) + bytes(8 * zero_rows) + b"\xff" * rest_bytes
    if rest_bytes and zero_rows:
        rows, zero_rows = [*rows, *[(0, 0)] * zero_rows], 0  # what follows shows that they are no tail
    assert rows_of(data, ROW) == Rows(list(rows), zero_rows, rest_bytes)


@pytest.mark.parametrize("low", [b"\0\0\0\1\0\0\1\0", b"\0\0\0\1\0\0\0\0", b"\1\0\0\0\0\0\0\0"])
def test_a_row_may_end_in_zeros(low: bytes) -> None:
    assert rows_of(low, ROW) == Rows([ROW.unpack(low)], 0, 0)
    assert rows_of(low + bytes(16), ROW) == Rows([ROW.unpack(low)], 2, 0)
