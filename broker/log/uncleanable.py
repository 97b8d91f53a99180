"""Batches that compaction cannot read, which make it leave the log as it is.

A batch whose records are nonsense may stand in a log: `record.validation=header` lets it in, and a disk may flip a bit
of any. Compaction copies what stays, and what it cannot read it cannot judge. So the round ends there, before anything
was replaced: nothing is lost, the log is only not compacted any more (LogCleanerManager's uncleanable partitions).
"""

from collections.abc import Generator
from contextlib import contextmanager

from odradek.protocol.batches.batch import HEADER_SIZE, MAGIC, BatchHeader, crc_matches
from odradek.protocol.errors import KafkaError, MalformedMessage
from odradek.protocol.primitives import Buffer


class UncleanableLog(Exception):
    """A log that cannot be compacted; the text says at which offset, why, and what to do."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(
            f"the batch at offset {offset} cannot be compacted: {reason}. The log stays as it is and grows. To have it "
            f"compacted again, delete its records before the next batch, or this replica if another one is in sync"
        )
        self.offset = offset
        self.reason = reason


def check_batch(header: BatchHeader, data: Buffer, next_offset: int) -> None:
    """Checks a batch as far as no record has to be read for it. Raises UncleanableLog.

    `next_offset`: no batch before this one went further.
    """
    problem = None
    if header.magic != MAGIC:
        problem = f"it has the message format {header.magic}, where only {MAGIC} is known here"
    elif not HEADER_SIZE <= header.size_bytes == len(data):
        problem = f"it is {header.size_bytes} bytes long by its header and {len(data)} are there"
    elif header.last_offset_delta < 0 or header.base_offset < next_offset:
        problem = f"it has offsets {header.base_offset} to {header.last_offset} where {next_offset} was expected"
    elif not crc_matches(data):
        problem = f"its content does not have the checksum {header.crc:#010x}"
    if problem:
        raise UncleanableLog(header.base_offset, problem)


@contextmanager
def reading(header: BatchHeader) -> Generator[None]:
    """Turns what reading the records of this batch raises into UncleanableLog."""
    try:
        yield
    except (KafkaError, MalformedMessage) as error:
        raise UncleanableLog(header.base_offset, str(error)) from error
