"""A compaction worker: does what a broker asks for in compaction_messages.py, on files, one round in its life.

It holds the offset map and what it costs in memory. It knows of the log what the round says, and of the broker nothing:
whether what it wrote is used is decided there (`Segments.begin_swap`). What it writes has the round's nonce in its name
and is removed again when the round fails, or when nobody waits for it any more.

As a process it runs compaction_process.py; else it runs in helper threads of the broker, or in a simulated process.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from odradek.broker.disk.disk import Disk
from odradek.broker.log.compaction import Cleaning
from odradek.broker.log.compaction_messages import (
    BuildMap,
    Counts,
    MapBuilt,
    Ready,
    Round,
    WriteGroup,
    failed,
    group_written,
    packed,
    round_of,
    unpacked,
)
from odradek.broker.log.offset_map import OffsetMap, OffsetMapBuilder
from odradek.broker.log.rewriting import build_map, discard, write_group
from odradek.broker.log.uncleanable import UncleanableLog
from odradek.broker.version import VERSION as PROGRAM_VERSION
from odradek.protocol.errors import KafkaError
from odradek.runtime.worker import GiveWay, Stopped, Talk

PROCESS: Final = "odradek.broker.log.compaction_process"
"""The module that a worker's process runs."""


def compact(disk: Disk, give_way: GiveWay) -> Talk:
    """The worker. Raises Stopped, and what is a mistake in the program.

    Who notices that nobody waits any more throws Stopped in: then what was written last is removed.
    """
    order = yield packed(Ready(program_version=PROGRAM_VERSION))
    work = _Work(disk, round_of(unpacked(BuildMap, order)), give_way)
    try:
        question = yield _answered(work.build_map)
        while True:
            group = unpacked(WriteGroup, question).base_offsets
            question = yield _answered(partial(work.write_group, group))
    except Stopped:
        work.discard_last()
        raise


def _answered(work: Callable[[], bytes]) -> bytes:
    try:
        return work()
    except (UncleanableLog, OSError, KafkaError, ValueError) as error:
        return packed(failed(error))


class _Work:
    """A round on files."""

    def __init__(self, disk: Disk, round_: Round, give_way: GiveWay) -> None:
        self._disk = disk
        self._round = round_
        self._give_way = give_way
        self._sources = {source.base_offset: source for source in round_.sources}
        self._cleaning: Cleaning | None = None
        self._last: int | None = None
        """The base offset of the group that was written last, until the broker asks for the next one: by then it has
        given those files other names."""

    def build_map(self) -> bytes:
        round_ = self._round
        offset_map = OffsetMap(round_.first_dirty_offset, round_.dedupe_buffer_bytes, round_.load_factor)
        builder = OffsetMapBuilder(offset_map)
        dirty = [source for source in round_.sources if source.next_offset > round_.first_dirty_offset]
        build_map(self._disk, dirty, builder, round_.io_bytes, self._give_way)
        self._cleaning = Cleaning(
            offset_map,
            round_.producers,
            log_start_offset=round_.log_start_offset,
            first_uncleanable_offset=round_.first_uncleanable_offset,
            delete_retention_ms=round_.delete_retention_ms,
            now_ms=round_.now_ms,
            newest=builder.complete(),
        )
        return packed(MapBuilt(end_offset=self._cleaning.end_offset, bytes_read=builder.bytes_read))

    def write_group(self, base_offsets: Sequence[int]) -> bytes:
        cleaning, round_ = self._cleaning, self._round
        assert cleaning is not None, "the map comes first"
        self._last = base_offsets[0]
        written = write_group(
            self._disk,
            round_.directory,
            [self._sources[base_offset] for base_offset in base_offsets],
            cleaning,
            round_.index_interval_bytes,
            round_.io_bytes,
            self._give_way,
            round_.nonce,
        )
        counts = Counts(
            cleaning.records_read,
            cleaning.records_kept,
            cleaning.bytes_read,
            cleaning.bytes_kept,
            cleaning.keyless_records,
        )
        return packed(group_written(written.size_bytes, written.suffixes, counts))

    def discard_last(self) -> None:
        """Removes what was written last, if it is there still: the broker has not taken it."""
        if self._last is not None:
            discard(self._disk, self._round.directory, self._last, self._round.nonce)
