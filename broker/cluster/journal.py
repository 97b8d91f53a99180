"""The file of the embedded metadata store, as bytes. Pure.

    header    8s magic "ODRMETA\\n" | u32 format version | u32 CRC-32C of the twelve bytes before
    record    4s mark | u32 length of the payload | u32 CRC-32C of length and payload | payload
    snapshot  u8 1 | u64 revision | u32 count | count x (u16 + key, u64 revision, u8 is leased, u32 + value)
    commit    u8 2 | u64 revision | u8 is leased | u32 count | count x (u16 + key, u8 action, if put: u32 + value)
    action    0 deleted | 1 put | 2 put, under no lease although the commit is leased (since format version 2)

All numbers are big-endian, keys UTF-8. The first record is the snapshot, each later one a commit whose revision is one
higher than the one before. Header and snapshot are written together and renamed into place, so they are whole or the
file is damaged. A commit is appended and synced before the next one is begun, so a crash can tear only the last: bytes
after the last whole record are its remains and are cut off, unless a whole record follows them somewhere, which shows
that they were damaged later. (A flipped bit in the very last commit looks like a torn one; nothing tells them apart.)
"""

import struct
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from odradek.broker.cluster.store import Change, Entry, Event, StoreDamaged
from odradek.protocol.batches.crc32c import crc32c

T = TypeVar("T")

FORMAT_VERSION = 2
MAGIC = b"ODRMETA\n"
MARK = b"\xf1rec"
_HEADER = struct.Struct(">8sII")
_RECORD = struct.Struct(">4sII")
_SNAPSHOT = struct.Struct(">BQI")
_SNAPSHOT_KIND = 1
_COMMIT = struct.Struct(">BQBI")
_COMMIT_KIND = 2
_KEY = struct.Struct(">H")
_ENTRY = struct.Struct(">QBI")
_VALUE = struct.Struct(">I")
_DELETED, _PUT, _PUT_LASTING = range(3)


@dataclass(slots=True)
class Journal:
    """What a file says: the entries, which of them were leased, and where its last whole record ends."""

    entries: dict[str, Entry]
    leased: dict[str, None]
    revision: int
    end_position: int


def encode_file(entries: Mapping[str, Entry], leased: Iterable[str], revision: int) -> bytes:
    """A whole file: header and snapshot."""
    leased_keys = frozenset(leased)
    parts = [_SNAPSHOT.pack(_SNAPSHOT_KIND, revision, len(entries))]
    for key, entry in entries.items():
        parts.append(_encode_key(key))
        parts.append(_ENTRY.pack(entry.revision, key in leased_keys, len(entry.value)))
        parts.append(entry.value)
    fields = _HEADER.pack(MAGIC, FORMAT_VERSION, 0)[:12]
    return fields + crc32c(fields).to_bytes(4, "big") + _encode_record(b"".join(parts))


def encode_commit(change: Change, leased: Collection[str]) -> bytes:
    """One commit as a record. `leased`: which of the keys that it puts stand under a lease."""
    parts = [_COMMIT.pack(_COMMIT_KIND, change.revision, bool(leased), len(change.events))]
    for event in change.events:
        parts.append(_encode_key(event.key))
        if event.value is None:
            parts.append(bytes([_DELETED]))
        else:
            action = _PUT_LASTING if leased and event.key not in leased else _PUT
            parts.append(bytes([action]) + _VALUE.pack(len(event.value)))
            parts.append(event.value)
    return _encode_record(b"".join(parts))


def decode_file(data: bytes) -> Journal:
    """Reads a file back. Raises StoreDamaged: not ours, written by a newer version, or damaged before its end."""
    _check_header(data)
    payload, position = _decode_record(data, _HEADER.size)
    if payload is None:
        raise StoreDamaged("the snapshot at its beginning is damaged")
    journal = _decoded(_decode_snapshot, payload, _HEADER.size)
    while position < len(data):
        payload, end = _decode_record(data, position)
        if payload is None:
            _check_torn(data, position)
            break
        change, leased = _decoded(_decode_commit, payload, position)
        if change.revision != journal.revision + 1:
            raise StoreDamaged(
                f"the commit at byte {position} has revision {change.revision} after revision {journal.revision}"
            )
        _apply(journal, change, leased)
        position = end
    journal.end_position = position
    return journal


def _decoded(decode: Callable[[bytes], T], payload: bytes, position: int) -> T:
    """What the payload of the record at `position` holds. Its checksum is right; raises StoreDamaged all the same where
    its lengths or its keys are none."""
    try:
        return decode(payload)
    except (struct.error, IndexError, ValueError) as error:
        raise StoreDamaged(f"the record at byte {position} does not hold what its format says: {error}") from error


def _apply(journal: Journal, change: Change, leased: Collection[str]) -> None:
    journal.revision = change.revision
    for event in change.events:
        journal.leased.pop(event.key, None)
        if event.value is None:
            journal.entries.pop(event.key, None)
            continue
        journal.entries[event.key] = Entry(event.value, change.revision)
        if event.key in leased:
            journal.leased[event.key] = None


def _check_header(data: bytes) -> None:
    if len(data) < _HEADER.size or not data.startswith(MAGIC):
        raise StoreDamaged("it does not begin like a metadata file of Odradek")
    _, version, crc = _HEADER.unpack_from(data)
    if crc32c(data[:12]) != crc:
        raise StoreDamaged("its header is damaged")
    if version > FORMAT_VERSION:
        raise StoreDamaged(
            f"it has format version {version}, written by a newer Odradek; this one reads up to {FORMAT_VERSION}"
        )


def _check_torn(data: bytes, position: int) -> None:
    """Raises StoreDamaged when a whole record follows the broken one."""
    later = data.find(MARK, position + 1)
    while later >= 0:
        if _decode_record(data, later)[0] is not None:
            raise StoreDamaged(f"the commit at byte {position} is damaged, and commits follow it (at byte {later})")
        later = data.find(MARK, later + 1)


def _encode_record(payload: bytes) -> bytes:
    length = len(payload).to_bytes(4, "big")
    return b"".join((MARK, length, crc32c(payload, crc32c(length)).to_bytes(4, "big"), payload))


def _decode_record(data: bytes, position: int) -> tuple[bytes | None, int]:
    """The payload of the record at `position` and where the next begins; None when it is not whole."""
    begin = position + _RECORD.size
    if begin > len(data):
        return None, position
    mark, length, crc = _RECORD.unpack_from(data, position)
    end = begin + length
    if mark != MARK or end > len(data):
        return None, position
    payload = data[begin:end]
    if crc32c(payload, crc32c(data[position + 4 : position + 8])) != crc:
        return None, position
    return payload, end


def _decode_snapshot(payload: bytes) -> Journal:
    kind, revision, count = _SNAPSHOT.unpack_from(payload)
    if kind != _SNAPSHOT_KIND:
        raise StoreDamaged("its first record is not a snapshot")
    entries: dict[str, Entry] = {}
    leased: dict[str, None] = {}
    position = _SNAPSHOT.size
    for _ in range(count):
        key, position = _decode_key(payload, position)
        entry_revision, is_leased, length = _ENTRY.unpack_from(payload, position)
        position += _ENTRY.size
        entries[key] = Entry(payload[position : position + length], entry_revision)
        position += length
        if is_leased:
            leased[key] = None
    if position != len(payload):
        raise ValueError(f"it has {len(payload)} bytes, and says of {position} what they are")
    return Journal(entries, leased, revision, 0)


def _decode_commit(payload: bytes) -> tuple[Change, set[str]]:
    """The commit, and which of its keys are leased."""
    kind, revision, is_leased, count = _COMMIT.unpack_from(payload)
    if kind != _COMMIT_KIND:
        raise StoreDamaged(f"a record of unknown kind {kind}")
    events: list[Event] = []
    leased: set[str] = set()
    position = _COMMIT.size
    for _ in range(count):
        key, position = _decode_key(payload, position)
        action = payload[position]
        position += 1
        if action == _DELETED:
            events.append(Event(key, None))
            continue
        (length,) = _VALUE.unpack_from(payload, position)
        position += _VALUE.size
        events.append(Event(key, payload[position : position + length]))
        position += length
        if is_leased and action == _PUT:
            leased.add(key)
    if position != len(payload):
        raise ValueError(f"it has {len(payload)} bytes, and says of {position} what they are")
    return Change(revision, tuple(events)), leased


def _encode_key(key: str) -> bytes:
    data = key.encode()
    return _KEY.pack(len(data)) + data


def _decode_key(payload: bytes, position: int) -> tuple[str, int]:
    begin = position + _KEY.size
    end = begin + _KEY.unpack_from(payload, position)[0]
    return payload[begin:end].decode(), end
