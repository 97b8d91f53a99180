"""Full segments that take next to no room: batches of 16 KiB whose records are zeros, which the file does not store.

A segment that a broker has written, and will not write to again, is replaced by one with the same offsets that is as
large as wanted: each record has a batch of its own, valid to its checksum, and the offset index has an entry for each
batch but the first. Somebody who walks the log walks as many headers as in a real one.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from struct import Struct

from odradek.protocol.batches.batch import HEADER_SIZE, read_header
from odradek.protocol.batches.record_encoding import build_batch
from odradek.protocol.batches.records import Record

BATCH_BYTES = 16 * 1024
_BASE_OFFSET = Struct(">q")
_INDEX_ENTRY = Struct(">ii")  # relative offset, position


@dataclass(frozen=True, slots=True)
class SparseSegment:
    """`batch_count` batches of one record each, from `base_offset` on."""

    base_offset: int
    batch_count: int
    timestamp_ms: int
    leader_epoch: int

    @property
    def size_bytes(self) -> int:
        return self.batch_count * BATCH_BYTES

    def batch(self) -> bytes:
        """The first of them; the others differ in their base offsets alone, which no checksum covers."""
        room = BATCH_BYTES
        while True:
            record = Record(self.base_offset, self.timestamp_ms, None, bytes(room))
            batch = build_batch([record], base_offset=self.base_offset, leader_epoch=self.leader_epoch)
            if len(batch) == BATCH_BYTES:
                return batch
            room -= len(batch) - BATCH_BYTES

    def write(self, log: Path) -> None:
        """Replaces a `.log` and its `.index`. Raises OSError."""
        batch = self.batch()
        head = bytearray(batch.rstrip(b"\0"))
        assert len(head) > HEADER_SIZE
        with log.open("r+b") as file:
            file.truncate(0)
            for number in range(self.batch_count):
                _BASE_OFFSET.pack_into(head, 0, self.base_offset + number)
                os.pwrite(file.fileno(), head, number * BATCH_BYTES)
            file.truncate(self.size_bytes)
        entries = (_INDEX_ENTRY.pack(number, number * BATCH_BYTES) for number in range(1, self.batch_count))
        log.with_suffix(".index").write_bytes(b"".join(entries))


def fill_out(log: Path, next_log: Path) -> int:
    """Makes a segment that only holds one batch of many records a full one with the same offsets; its new size.

    Raises ValueError where it holds anything else, OSError.
    """
    data = log.read_bytes()
    header = read_header(data)
    base_offset, next_offset = int(log.stem), int(next_log.stem)
    if (header.size_bytes, header.base_offset, header.last_offset + 1) != (len(data), base_offset, next_offset):
        raise ValueError(f"{log} is not one batch that reaches to offset {next_offset}")
    sparse = SparseSegment(base_offset, next_offset - base_offset, header.max_timestamp, header.partition_leader_epoch)
    sparse.write(log)
    return sparse.size_bytes
