"""The batches of a `.log` file with all their bytes, read without opening it for writing.

(`odradek.broker.log.batches.walk` goes over the same bytes for a broker, to whom the file belongs.)
"""

import errno
import posixpath
from collections.abc import Iterator
from typing import NamedTuple

from odradek.broker.disk.disk import Disk
from odradek.broker.log.batches import Damage
from odradek.protocol.batches.batch import HEADER_SIZE, MAGIC, BatchHeader, read_header

PIECE_BYTES = 1 << 20


class Stored(NamedTuple):
    """A batch as it stands in a file."""

    position: int
    header: BatchHeader
    data: memoryview


class ZeroTail(Damage):
    """Nothing but zeros from `position` to the end: room that was preallocated, or pages that were never written."""


def size_of(disk: Disk, path: str) -> int:
    """How large the file is on the device. Raises FileNotFoundError, OSError."""
    directory, name = posixpath.split(path)
    size_bytes = disk.sizes(directory or ".").get(name)
    if size_bytes is None:
        raise FileNotFoundError(errno.ENOENT, "it has gone", path)
    return size_bytes


def stored_batches(disk: Disk, path: str, size_bytes: int, position: int = 0) -> Iterator[Stored]:
    """Yields every batch from `position`, where one starts, up to `size_bytes`; checksums are not looked at.

    Raises Damage (ZeroTail) at the first that is none, or not whole; OSError.
    """
    data, data_position = memoryview(b""), position
    while position < size_bytes:
        start = position - data_position
        if start + HEADER_SIZE > len(data):
            wanted = min(PIECE_BYTES, size_bytes - position)
            data, data_position, start = memoryview(disk.read_range(path, position, wanted)), position, 0
        header = _header_at(disk, path, position, size_bytes, data[start:])
        if start + header.size_bytes > len(data):
            wanted = min(max(PIECE_BYTES, header.size_bytes), size_bytes - position)
            data, data_position, start = memoryview(disk.read_range(path, position, wanted)), position, 0
            if len(data) < header.size_bytes:
                raise Damage(path, position, "the file ends before the batch does, which it did not a moment ago")
        yield Stored(position, header, data[start : start + header.size_bytes])
        position += header.size_bytes


def _header_at(disk: Disk, path: str, position: int, size_bytes: int, data: memoryview) -> BatchHeader:
    """The header at the beginning of `data`, of a batch that is whole. Raises Damage, OSError."""
    left_bytes = size_bytes - position
    if not any(data[:HEADER_SIZE]) and is_zero(disk, path, position, size_bytes):
        raise ZeroTail(path, position, f"{left_bytes} bytes of zeros: preallocated, or never written")
    if len(data) < HEADER_SIZE:
        raise Damage(
            path, position, f"the file ends {left_bytes} bytes later, within a batch's header of {HEADER_SIZE}"
        )
    header = read_header(data)
    if header.magic != MAGIC:
        raise Damage(path, position, f"no batch starts here: magic {header.magic} instead of {MAGIC}")
    if header.size_bytes < HEADER_SIZE:
        raise Damage(path, position, f"no batch starts here: a batch_length of {header.batch_length} is too small")
    if header.size_bytes > left_bytes:
        raise Damage(path, position, f"the batch has {header.size_bytes} bytes, of which {left_bytes} are there")
    return header


def is_zero(disk: Disk, path: str, position: int, size_bytes: int) -> bool:
    """Whether nothing but zeros stands from `position` up to `size_bytes`. Raises OSError."""
    return not any(
        disk.read_range(path, at, min(PIECE_BYTES, size_bytes - at)).strip(b"\0")
        for at in range(position, size_bytes, PIECE_BYTES)
    )
