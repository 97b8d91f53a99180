"""The aborted transactions of a segment, `<base offset>.txnindex` (TransactionIndex.java, AbortedTxn.java).

    i16 version, 0    i64 producer id    i64 first offset    i64 last offset    i64 last stable offset

A row is added when an abort marker is appended to the segment; `last offset` is the marker's own, so rows are in its
order. The file is made with the first row. A Fetch with read_committed answers the rows that overlap what it reads, and
the consumer drops those records. `last stable offset` is the one right after the marker: nothing before it can be
aborted by a later row.

Derived data like the other indexes: a row that cannot be written waits in memory, and recovery builds the file anew
from the markers. A reader builds it anew, too, where the log does not bear out a row (segments.py). What nobody sees is
that whole rows are missing. So the rows of an index that is built anew take the place of the wrong ones all at once: a
process that dies meanwhile leaves those, which are found wrong again.
"""

import logging
from collections.abc import Iterator
from struct import Struct

from odradek.broker.disk.disk import Disk, File
from odradek.broker.log.producers import AbortedTxn

logger = logging.getLogger(__name__)

VERSION = 0
ROW = Struct(">hqqqq")
_PAGE_ROWS = 512


def encode_row(txn: AbortedTxn) -> bytes:
    return ROW.pack(VERSION, *txn)


class CorruptTransactionIndex(Exception):
    """Rows that no log can have brought forth; the text says which."""


class TransactionIndex:
    """The rows of one segment."""

    __slots__ = ("_disk", "_file", "_is_wrong", "_pending", "base_offset", "is_checked", "path")

    def __init__(self, disk: Disk, path: str, base_offset: int, *, exists: bool) -> None:
        """`exists`: whether the file is there; it is opened when it is needed."""
        self._disk = disk
        self._file: File | None = disk.open(path) if exists else None
        self._pending = bytearray()
        self._is_wrong = False  # what the file holds; all that is right waits
        self.path = path
        self.base_offset = base_offset
        self.is_checked = not exists
        """Whether the rows of the file were compared with the log."""

    def __len__(self) -> int:
        return self._written + len(self._pending) // ROW.size

    @property
    def _written(self) -> int:
        """How many rows the file has."""
        return 0 if self._file is None or self._is_wrong else self._file.size_bytes // ROW.size

    def append(self, txn: AbortedTxn) -> None:
        """Adds the transaction whose marker was appended just now."""
        self._pending += encode_row(txn)
        self.write_out()

    def write_out(self) -> None:
        """Writes the rows that wait. If that fails they go on waiting, and a line in the log says so."""
        if not self.has_pending:
            return
        try:
            if self._is_wrong:
                self._write_anew()
            else:
                if self._file is None:
                    self._file = self._disk.open(self.path)
                self._file.append([self._pending])
        except OSError as error:
            logger.warning("%s: %d entries wait in memory: %s", self.path, len(self._pending) // ROW.size, error)
            return
        self._pending = bytearray()

    def _write_anew(self) -> None:
        self._disk.write_whole(self.path, self._pending)
        former, self._file = self._file, self._disk.open(self.path)
        self._is_wrong = False
        if former is not None:
            former.close()

    def rows(self) -> Iterator[AbortedTxn]:
        """All rows, in order. Raises CorruptTransactionIndex, OSError."""
        last_offset, stable_offset = self.base_offset - 1, 0
        for row in self._raw_rows():
            txn = AbortedTxn._make(row[1:])
            is_ordered = last_offset < txn.last_offset and 0 <= txn.first_offset < txn.last_offset
            is_stable = stable_offset <= min(txn.first_offset, txn.last_stable_offset)  # no later abort is before it
            if row[0] != VERSION or not (is_ordered and is_stable) or txn.last_stable_offset > txn.last_offset + 1:
                raise CorruptTransactionIndex(f"{self.path} holds {txn} (version {row[0]}) after offset {last_offset}")
            last_offset, stable_offset = txn.last_offset, txn.last_stable_offset
            yield txn

    def _raw_rows(self) -> Iterator[tuple[int, ...]]:
        if self._file is not None and not self._is_wrong:
            page_bytes = _PAGE_ROWS * ROW.size
            for position in range(0, self._file.size_bytes, page_bytes):
                page = self._file.pread(page_bytes, position)
                if len(page) % ROW.size:
                    raise CorruptTransactionIndex(f"{self.path} ends within a row")
                yield from ROW.iter_unpack(page)
        yield from ROW.iter_unpack(bytes(self._pending))

    def collect(self, fetch_offset: int, end_offset: int) -> tuple[list[AbortedTxn], bool]:
        """The transactions with records in [fetch_offset, end_offset), and whether later segments hold none.

        Raises CorruptTransactionIndex, OSError.
        """
        found: list[AbortedTxn] = []
        for txn in self.rows():
            if txn.last_offset >= fetch_offset and txn.first_offset < end_offset:
                found.append(txn)
            if txn.last_stable_offset >= end_offset:
                return found, True
        return found, False

    def replace(self, txns: list[AbortedTxn]) -> None:
        """Throws all rows away and takes these, durably. Where that fails they wait, and a line in the log says so."""
        self._is_wrong = self._file is not None
        self._pending = bytearray(b"".join(map(encode_row, txns)))
        self.write_out()

    def truncate(self, end_offset: int) -> None:
        """Forgets the markers at `end_offset` and behind. Raises CorruptTransactionIndex, OSError."""
        kept = sum(1 for txn in self.rows() if txn.last_offset < end_offset)
        if kept == len(self):
            return
        written = self._written
        if self._file is not None and kept < written:
            self._file.truncate(kept * ROW.size)
        del self._pending[max(0, kept - written) * ROW.size :]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing, not even half a row."""
        return not self._pending and (self._file is None or self._is_wrong or not self._file.size_bytes)

    @property
    def has_pending(self) -> bool:
        """Whether rows wait in memory, or wrong ones in the file for their removal."""
        return self._is_wrong or len(self._pending) > 0

    @property
    def file(self) -> File | None:
        """The file, once there is one."""
        return self._file

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
