"""The batches in a `.log` file, one after another, by their headers.

Nothing but headers is looked at (and the checksum, when recovery asks), so a batch whose records are nonsense is walked
over like any other. The file is read in bounded pieces; where batches are large, only their headers are.
"""

from collections.abc import Iterator
from struct import Struct

from odradek.broker.disk.disk import File
from odradek.broker.log.segment_facts import RELATIVE_OFFSET_MAX
from odradek.protocol.batches.batch import HEADER_SIZE, MAGIC, BatchHeader, crc_matches, read_header
from odradek.protocol.primitives import Buffer

# base offset, batch length, (leader epoch to attributes), last offset delta: enough to go from batch to batch.
BOUNDS = Struct(">qi11xi")
# What batch_length does not count: itself and the base offset.
LENGTH_OVERHEAD = 12

_PIECE_BYTES = 64 * 1024
_CRC_PIECE_BYTES = 1024 * 1024


class Damage(OSError):
    """What stands at `position` of the file is no whole batch; `reason` says in which way, the text all of it."""

    def __init__(self, path: str, position: int, reason: str) -> None:
        super().__init__(f"{path} is damaged at position {position}: {reason}")
        self.position = position
        self.reason = reason


def walk(file: File, position: int, end: int, *, with_crc: bool = False) -> Iterator[tuple[int, BatchHeader]]:
    """Yields position and header of every batch from `position`, where one starts, up to `end`.

    Raises Damage at the first one that is torn, or wrong by its checksum if `with_crc`; and OSError.
    """
    piece_bytes = _CRC_PIECE_BYTES if with_crc else _PIECE_BYTES
    data: Buffer = b""
    data_position = position
    ahead = piece_bytes
    while position < end:
        start = position - data_position
        if start + HEADER_SIZE > len(data):
            data, data_position, start = file.pread(min(ahead, end - position), position), position, 0
            if len(data) < HEADER_SIZE:
                raise Damage(file.path, position, f"{end - position} bytes are no whole batch header")
        header = read_header(data, start)
        size_bytes = header.size_bytes
        if header.magic != MAGIC or size_bytes < HEADER_SIZE or header.last_offset_delta < 0:
            raise Damage(file.path, position, "no batch starts here")
        if size_bytes > end - position:
            raise Damage(file.path, position, f"the batch has {size_bytes} bytes, of which {end - position} are there")
        if with_crc:
            if start + size_bytes > len(data):
                wanted = min(max(piece_bytes, size_bytes), end - position)
                data, data_position, start = file.pread(wanted, position), position, 0
            if len(data) < size_bytes or not crc_matches(memoryview(data)[start : start + size_bytes]):
                raise Damage(file.path, position, "the batch does not have the checksum that it carries")
        yield position, header
        position += size_bytes
        ahead = piece_bytes if with_crc or size_bytes < piece_bytes // 2 else HEADER_SIZE


def walk_segment(
    file: File, position: int, base_offset: int, *, with_crc: bool = False
) -> Iterator[tuple[int, BatchHeader]]:
    """Yields position and header of every batch of a segment from `position` on, each of which may stand there: offsets
    only grow, and are no further from the segment's base offset than an index can say.

    Raises Damage at the first one of which that is not true, or that `walk` does not take; and OSError.
    """
    next_offset = base_offset
    for at, header in walk(file, position, file.size_bytes, with_crc=with_crc):
        if header.base_offset < next_offset or header.last_offset - base_offset > RELATIVE_OFFSET_MAX:
            raise Damage(file.path, at, f"a batch with offset {header.base_offset} cannot stand here")
        next_offset = header.last_offset + 1
        yield at, header
