"""Ways to damage the sample directory (laid_down.py), and what verifying says of it then."""

from collections.abc import Callable, Sequence
from struct import pack_into

import pytest

from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.offline.dump.findings import Inconsistency, Note
from odradek.broker.offline.dump.partition_check import Report
from odradek.broker.offline.dump.verifying import verify
from odradek.protocol.batches.crc32c import crc32c
from tests.broker.offline.dump.laid_down import CLEAN_SHUTDOWN, DATA_DIR, ORDERS, sample_disk, write_checkpoint

FIRST, SECOND, LAST = (f"{ORDERS}/{base_offset:020d}" for base_offset in (0, 8, 15))
"""The segments of the sample, without a suffix."""
OTHERS = "data/others-1"
EPOCHS = f"{ORDERS}/leader-epoch-checkpoint"

Damage = Callable[[MemoryDisk], None]
Case = tuple[Damage, str]
"""A damage, and a part of the sentence that tells of it."""


def check_cases(damage: Damage, told: str, *, is_clean: bool = True) -> None:
    disk = sample_disk(is_clean=is_clean)
    assert notes(disk) == []
    damage(disk)
    assert told in inconsistency(disk)


def inconsistency(disk: MemoryDisk, path: str = DATA_DIR) -> str:
    with pytest.raises(Inconsistency) as found:
        list(verify(disk, path))
    return str(found.value)


def notes(disk: MemoryDisk, path: str = DATA_DIR) -> list[str]:
    """All notes, as `path: text`, but that on the clean stop."""
    found: list[Note] = []
    for each in verify(disk, path):
        if isinstance(each, Report):
            found += each.notes
        elif isinstance(each, Note):
            found.append(each)
    return [f"{note.path}: {note.text}" for note in found if note.path != CLEAN_SHUTDOWN]


def put(path: str, position: int, form: str, *values: int) -> Damage:
    def damage(disk: MemoryDisk) -> None:
        data = bytearray(disk.read_whole(path))
        pack_into(form, data, position, *values)
        disk.write_whole(path, data)

    return damage


def cut(path: str, size_bytes: int) -> Damage:
    return lambda disk: disk.write_whole(path, disk.read_whole(path)[:size_bytes])


def add(path: str, data: bytes) -> Damage:
    return lambda disk: disk.write_whole(path, disk.read_whole(path) + data)


def replace(path: str, data: bytes) -> Damage:
    return lambda disk: disk.write_whole(path, data)


def remove(*paths: str) -> Damage:
    def damage(disk: MemoryDisk) -> None:
        for path in paths:
            disk.remove(path)

    return damage


def checkpoint(path: str, *entries: Sequence[object]) -> Damage:
    return lambda disk: write_checkpoint(disk, path, entries)


def both(first: Damage, second: Damage) -> Damage:
    def damage(disk: MemoryDisk) -> None:
        first(disk)
        second(disk)

    return damage


def batch(path: str, position: int, size_bytes: int, change: Callable[[bytes], bytes]) -> Damage:
    """Changes a batch to another of the same size."""

    def damage(disk: MemoryDisk) -> None:
        data = disk.read_whole(path)
        changed = change(data[position : position + size_bytes])
        assert len(changed) == size_bytes
        disk.write_whole(path, data[:position] + changed + data[position + size_bytes :])

    return damage


def field(position: int, form: str, value: int) -> Callable[[bytes], bytes]:
    """A change of a batch: another value at a position, and the checksum that it has then."""

    def change(data: bytes) -> bytes:
        changed = bytearray(data)
        pack_into(form, changed, position, value)
        return bytes(changed[:17]) + crc32c(changed[21:]).to_bytes(4, "big") + bytes(changed[21:])

    return change


def entry(path: str, number: int, position: int, form: str, value: int) -> Damage:
    """Changes a field of an entry of a snapshot, and makes its checksum fit."""

    def damage(disk: MemoryDisk) -> None:
        data = bytearray(disk.read_whole(path))
        pack_into(form, data, 10 + 46 * number + position, value)
        disk.write_whole(path, data[:2] + crc32c(data[6:]).to_bytes(4, "big") + data[6:])

    return damage
