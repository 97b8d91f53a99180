"""What a broker and its compaction worker say to one another (compaction_worker.py), as bytes.

    kind (int16) | version (int16) | the fields, as declared here

    the worker                      the broker
    Ready                 ──>
                          <──       BuildMap        all that a round is about
    MapBuilt              ──>
                          <──       WriteGroup      which segments become one
    GroupWritten          ──>                       and so on for each group

Failed may come in the place of MapBuilt and GroupWritten. Both ends are the same program, unless the installation was
changed while the broker runs: Ready says which one the worker is.

The declarations are those of all messages (`odradek.protocol.codec.schema`). The functions beside them make of them
what `compaction.py` and `rewriting.py` work on, and the other way round.
"""

import os
from collections.abc import Sequence
from enum import IntEnum
from struct import Struct as Layout
from typing import Final, NamedTuple, NewType, TypeVar

from odradek.broker.log.compaction import LastRecord
from odradek.broker.log.producers import AbortedTxn
from odradek.broker.log.segment import LOG_SUFFIX, SUFFIXES, segment_path
from odradek.broker.log.segments import Source
from odradek.broker.log.uncleanable import UncleanableLog
from odradek.protocol.codec.codec import decode, encode
from odradek.protocol.codec.schema import Message, Struct, f64, i8, i16, i32, i64, message, struct
from odradek.protocol.errors import MalformedMessage

VERSION: Final = 0
NONE: Final = -1
_PREFIX: Final = Layout(">hh")

M = TypeVar("M", bound=Message)

Nonce = NewType("Nonce", str)
"""Names a round, in the names of the files that it writes: 16 hexadecimal digits."""


class Round(NamedTuple):
    """All that a round of compaction is told of a log and of its options."""

    directory: str
    nonce: Nonce
    sources: list[Source]
    """The segments before the first uncleanable offset, oldest first."""
    producers: dict[int, LastRecord]
    log_start_offset: int
    first_dirty_offset: int
    first_uncleanable_offset: int
    delete_retention_ms: int
    now_ms: int
    """The wall clock, which delete horizons are compared with."""
    index_interval_bytes: int
    dedupe_buffer_bytes: int
    load_factor: float
    io_bytes: int


class Counts(NamedTuple):
    """What a round has come to so far: of its groups, all together."""

    records_read: int
    records_kept: int
    bytes_read: int
    bytes_kept: int
    keyless_records: int


# --------------------------------------------------------------------------------------------------------- declarations
@struct
class AbortedRow(Struct):
    """A row of a transaction index."""

    producer_id: i64
    first_offset: i64
    last_offset: i64
    last_stable_offset: i64


@struct
class SourceSegment(Struct):
    """A segment to be read; its path follows from the directory and its base offset."""

    base_offset: i64
    next_offset: i64
    size_bytes: i64
    aborted: list[AbortedRow]


@struct
class ProducerLast(Struct):
    """The last record of a producer; last_data_offset -1: under its epoch there is nothing but a marker."""

    producer_id: i64
    last_data_offset: i64
    epoch: i16


@message(key=0, versions=(0, 0), flexible=0)
class Ready(Message):
    """The worker's greeting: the version of the program that it is."""

    program_version: str


@message(key=1, versions=(0, 0), flexible=0)
class BuildMap(Message):
    """A round begins. The directory is a path's bytes."""

    directory: bytes
    nonce: str
    sources: list[SourceSegment]
    producers: list[ProducerLast]
    log_start_offset: i64
    first_dirty_offset: i64
    first_uncleanable_offset: i64
    delete_retention_ms: i64
    now_ms: i64
    index_interval_bytes: i64
    dedupe_buffer_bytes: i64
    load_factor: f64
    io_bytes: i64


@message(key=2, versions=(0, 0), flexible=0)
class MapBuilt(Message):
    """The keys of the dirty part are known, up to end_offset."""

    end_offset: i64
    bytes_read: i64


@message(key=3, versions=(0, 0), flexible=0)
class WriteGroup(Message):
    """The segments with these base offsets, which follow one another, become one."""

    base_offsets: list[i64]


@message(key=4, versions=(0, 0), flexible=0)
class GroupWritten(Message):
    """What took their place is on the device. suffixes: which of a segment's files there are, by their places in
    `SUFFIXES`. The other numbers are those of the round so far."""

    size_bytes: i64
    suffixes: list[i8]
    records_read: i64
    records_kept: i64
    bytes_read: i64
    bytes_kept: i64
    keyless_records: i64


@message(key=5, versions=(0, 0), flexible=0)
class Failed(Message):
    """The round ended. offset: of the batch that cannot be compacted. number, path: of an error of the disk, the former
    -1 where it has none, the latter a path's bytes, or none."""

    failure: i8
    offset: i64
    number: i32
    path: bytes | None
    text: str


class Failure(IntEnum):
    """Why a round ended."""

    UNCLEANABLE = 0
    DISK = 1
    IMPOSSIBLE = 2
    """An option, or a number in the log, that nothing can be done with."""


MESSAGES: Final[tuple[type[Message], ...]] = (Ready, BuildMap, MapBuilt, WriteGroup, GroupWritten, Failed)


# ------------------------------------------------------------------------------------------------------------ as bytes
def packed(message: Message) -> bytes:
    return _PREFIX.pack(message.api_key, VERSION) + encode(message, VERSION)


def kind_of(data: bytes) -> type[Message]:
    """Which message these bytes are. Raises MalformedMessage."""
    if len(data) < _PREFIX.size:
        raise MalformedMessage(f"{len(data)} bytes are no message of compaction")
    kind: int
    version: int
    kind, version = _PREFIX.unpack_from(data)
    if not 0 <= kind < len(MESSAGES) or version != VERSION:
        raise MalformedMessage(f"kind {kind}, version {version} of a message of compaction is not known")
    return MESSAGES[kind]


def unpacked(cls: type[M], data: bytes) -> M:
    """The message that was expected. Raises MalformedMessage for any other."""
    found = kind_of(data)
    if found is not cls:
        raise MalformedMessage(f"{found.__name__} came where {cls.__name__} was expected")
    return decode(cls, VERSION, data, _PREFIX.size)


# -------------------------------------------------------------------------------------------------------- as they mean
def build_map_message(round_: Round) -> BuildMap:
    """Raises ValueError for what has no place in the message: a nonce, or a number, beyond its bounds."""
    return BuildMap(
        directory=os.fsencode(round_.directory),
        nonce=round_.nonce,
        sources=[
            SourceSegment(
                base_offset=source.base_offset,
                next_offset=source.next_offset,
                size_bytes=source.size_bytes,
                aborted=[
                    AbortedRow(
                        producer_id=row.producer_id,
                        first_offset=row.first_offset,
                        last_offset=row.last_offset,
                        last_stable_offset=row.last_stable_offset,
                    )
                    for row in source.aborted
                ],
            )
            for source in round_.sources
        ],
        producers=[
            ProducerLast(
                producer_id=producer_id,
                last_data_offset=NONE if last.last_data_offset is None else last.last_data_offset,
                epoch=last.epoch,
            )
            for producer_id, last in round_.producers.items()
        ],
        log_start_offset=round_.log_start_offset,
        first_dirty_offset=round_.first_dirty_offset,
        first_uncleanable_offset=round_.first_uncleanable_offset,
        delete_retention_ms=round_.delete_retention_ms,
        now_ms=round_.now_ms,
        index_interval_bytes=round_.index_interval_bytes,
        dedupe_buffer_bytes=round_.dedupe_buffer_bytes,
        load_factor=round_.load_factor,
        io_bytes=round_.io_bytes,
    )


def round_of(order: BuildMap) -> Round:
    directory = os.fsdecode(bytes(order.directory))
    return Round(
        directory=directory,
        nonce=Nonce(order.nonce),
        sources=[
            Source(
                source.base_offset,
                source.next_offset,
                segment_path(directory, source.base_offset, LOG_SUFFIX),
                source.size_bytes,
                [
                    AbortedTxn(row.producer_id, row.first_offset, row.last_offset, row.last_stable_offset)
                    for row in source.aborted
                ],
            )
            for source in order.sources
        ],
        producers=_last_records(order.producers),
        log_start_offset=order.log_start_offset,
        first_dirty_offset=order.first_dirty_offset,
        first_uncleanable_offset=order.first_uncleanable_offset,
        delete_retention_ms=order.delete_retention_ms,
        now_ms=order.now_ms,
        index_interval_bytes=order.index_interval_bytes,
        dedupe_buffer_bytes=order.dedupe_buffer_bytes,
        load_factor=order.load_factor,
        io_bytes=order.io_bytes,
    )


def _last_records(rows: Sequence[ProducerLast]) -> dict[int, LastRecord]:
    return {
        row.producer_id: LastRecord(None if row.last_data_offset == NONE else row.last_data_offset, row.epoch)
        for row in rows
    }


def group_written(size_bytes: int, suffixes: Sequence[str], counts: Counts) -> GroupWritten:
    return GroupWritten(
        size_bytes=size_bytes,
        suffixes=[SUFFIXES.index(suffix) for suffix in suffixes],
        records_read=counts.records_read,
        records_kept=counts.records_kept,
        bytes_read=counts.bytes_read,
        bytes_kept=counts.bytes_kept,
        keyless_records=counts.keyless_records,
    )


def suffixes_of(written: GroupWritten) -> list[str]:
    """Raises MalformedMessage for what is no list of a segment's files, each once, the log first."""
    places = written.suffixes
    if places[:1] != [0] or len(set(places)) != len(places) or max(places) >= len(SUFFIXES) or min(places) < 0:
        raise MalformedMessage(f"{places} are not the files of a segment")
    return [SUFFIXES[place] for place in places]


def counts_of(written: GroupWritten) -> Counts:
    return Counts(
        written.records_read,
        written.records_kept,
        written.bytes_read,
        written.bytes_kept,
        written.keyless_records,
    )


def failed(error: UncleanableLog | OSError | Exception) -> Failed:
    """How the worker tells that a round ended with this error."""
    match error:
        case UncleanableLog():
            return Failed(failure=Failure.UNCLEANABLE, offset=error.offset, number=NONE, path=None, text=error.reason)
        case OSError():
            return Failed(
                failure=Failure.DISK,
                offset=NONE,
                number=NONE if error.errno is None else error.errno,
                path=os.fsencode(error.filename) if isinstance(error.filename, str) else None,
                text=str(error) if error.errno is None else str(error.strerror),
            )
        case _:
            return Failed(failure=Failure.IMPOSSIBLE, offset=NONE, number=NONE, path=None, text=str(error))


def error_of(message: Failed) -> UncleanableLog | OSError | ValueError:
    """The error, as if it had been raised here. Raises MalformedMessage for a failure that is not known."""
    match message.failure:
        case Failure.UNCLEANABLE:
            return UncleanableLog(message.offset, message.text)
        case Failure.DISK:
            if message.number == NONE:
                return OSError(message.text)
            path = () if message.path is None else (os.fsdecode(bytes(message.path)),)
            return OSError(message.number, message.text, *path)
        case Failure.IMPOSSIBLE:
            return ValueError(message.text)
        case other:
            raise MalformedMessage(f"failure {other} is not known")
