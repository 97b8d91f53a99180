"""The rows of an index file, with what may follow them.

Kafka maps an index into memory as large as it may become, so that the one of an active segment ends in zeros while its
broker runs, and after a crash. An index of ours lacks its newest rows then. A row of zeros says nothing: in an offset
index no row has position 0, and in a time index it is told from a true one by the log (index_checks.py).
"""

from struct import Struct
from typing import NamedTuple


class Rows(NamedTuple):
    """What an index file holds."""

    rows: list[tuple[int, ...]]
    zero_rows: int
    """How many rows of zeros follow them."""
    rest_bytes: int
    """How many bytes at the end are no whole row."""


def rows_of(data: bytes, row: Struct) -> Rows:
    """All rows up to the last that is not zero."""
    whole = len(data) // row.size
    filled = -(-len(data.rstrip(b"\0")) // row.size)
    count = min(filled, whole)
    rows = [*row.iter_unpack(memoryview(data)[: count * row.size])]
    return Rows(rows, whole - count, len(data) - whole * row.size)
