"""Moves the starts of logs: on the disk first, and then in memory.

What DeleteRecords removed never comes back, so each move is in `log-start-offset-checkpoint` before anybody sees it,
and before a follower tells its leader of it. All moves in one data directory that come while the file is being written
share the next writing of it.

A leader moves a log start for a DeleteRecords, and tells it when that fails. A follower moves it because its leader's
log starts there, and tries again until it succeeds. Where a log is cut below a start that was written down (an unclean
election), the file takes that back, and so does a move that is under way: what is appended there next is another
record.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from odradek.broker.directories.data_directory import DataDirectory
from odradek.broker.replica.partition import Partition
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks

logger = logging.getLogger(__name__)

RETRY_MS: Final = 1000
"""How long a follower waits after the file could not be written."""


class _Move:
    """A log start that is to be written, and those who wait for it."""

    __slots__ = ("is_taken_back", "moved", "offset")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.offset = 0
        self.moved: asyncio.Future[None] = loop.create_future()
        self.moved.add_done_callback(_heard)  # who waited may have gone
        self.is_taken_back = False


Moves = dict[Partition, _Move]


class LogStarts:
    """The moves of one broker."""

    def __init__(
        self,
        environment: Environment,
        tasks: Tasks,
        place: Callable[[Partition], DataDirectory],
        is_open: Callable[[Partition], bool],
        moved: Callable[[Partition], None],
    ) -> None:
        """`place`: the directory in which the partition lies. `is_open`: whether it is there still. `moved` is called
        after each move."""
        self._environment = environment
        self._tasks = tasks
        self._place = place
        self._is_open = is_open
        self._moved = moved
        self._due: dict[DataDirectory, Moves] = {}
        self._under_way: dict[DataDirectory, Moves] = {}
        self._followed: dict[Partition, int] = {}
        self._stale: dict[DataDirectory, None] = {}

    async def move(self, partition: Partition, offset: int) -> None:
        """Returns once the log starts at `offset` or later and the disk says so; it goes on when the caller is gone.

        Raises KafkaError: KAFKA_STORAGE_ERROR, and for a partition that is gone or has been cut meanwhile
        UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER.
        """
        log = partition.log
        if log.durable_log_start_offset < offset:
            await asyncio.shield(self._want(partition, offset).moved)
        elif log.log_start_offset < offset:
            log.advance_log_start(offset)

    def follow(self, partition: Partition, offset: int) -> None:
        """The leader's log starts at `offset`, and this one is to."""
        if partition in self._followed:
            self._followed[partition] = max(self._followed[partition], offset)
        else:
            self._followed[partition] = offset
            self._tasks.start(self._follow(partition), f"move the log start of {partition!r}")

    async def _follow(self, partition: Partition) -> None:
        log, has_failed = partition.log, False
        try:
            while self._is_open(partition) and (
                offset := min(self._followed[partition], log.log_end_offset)
            ) > _reached(partition):
                try:
                    await self.move(partition, offset)
                except KafkaError as error:
                    if error.code is not ErrorCode.KAFKA_STORAGE_ERROR:  # the partition is gone, or was cut
                        continue
                    if not has_failed:
                        start = log.log_start_offset
                        logger.warning("%r: the log start stays at %d for now: %s", partition, start, error)
                    has_failed = True
                    await self._environment.sleep(RETRY_MS)
        finally:
            del self._followed[partition]

    def cut(self, partition: Partition) -> None:
        """The log was cut: no move that was wanted before counts any more. `write_cuts` must follow."""
        if partition in self._followed:
            self._followed[partition] = 0
        for moves in (*self._due.values(), *self._under_way.values()):
            if (move := moves.get(partition)) is not None:
                move.is_taken_back = True
        log, key, place = partition.log, (partition.topic, partition.index), self._place(partition)
        if place.checkpoints.log_starts.get(key, 0) > log.log_start_offset:
            place.checkpoints.log_starts[key] = log.log_start_offset
            log.durable_log_start_offset = min(log.durable_log_start_offset, log.log_start_offset)
            self._stale[place] = None

    def write_cuts(self) -> None:
        """Takes back what the files say of logs that were cut: else the next start would delete what is appended there.
        Blocks. What fails is logged."""
        stale, self._stale = self._stale, {}
        for place in stale:
            try:
                place.checkpoints.writing_log_starts()()
            except OSError as error:
                logger.error("the log starts could not be written after logs were cut: %s", error)
                place.suspect(error)

    # -- writing --------------------------------------------------------------------------------------------------

    def _want(self, partition: Partition, offset: int) -> _Move:
        place = self._place(partition)
        if place not in self._due:
            self._due[place] = {}
            if place not in self._under_way:
                self._tasks.start(self._write(place), f"write the log starts in {place.path}")
        moves = self._due[place]
        if partition not in moves:
            moves[partition] = _Move(self._environment.loop)
        move = moves[partition]
        move.offset = max(move.offset, offset)
        return move

    async def _write(self, place: DataDirectory) -> None:
        """As long as there is something to write."""
        try:
            while place in self._due:
                self._under_way[place] = moves = self._due.pop(place)
                await self._write_down(place, self._still_wanted(moves))
        finally:
            self._under_way.pop(place, None)

    def _still_wanted(self, moves: Moves) -> Moves:
        wanted: Moves = {}
        for partition, move in moves.items():
            try:
                self._require_wanted(partition, move)
            except KafkaError as error:
                move.moved.set_exception(error)
            else:
                wanted[partition] = move
        return wanted

    async def _write_down(self, place: DataDirectory, moves: Moves) -> None:
        if not moves:
            return
        checkpoints = place.checkpoints
        for partition, move in moves.items():
            key = partition.topic, partition.index
            checkpoints.log_starts[key] = max(move.offset, checkpoints.log_starts.get(key, 0))
        try:
            await self._environment.run_blocking(checkpoints.writing_log_starts())
        except OSError as error:
            for partition, move in moves.items():
                self._failed(place, partition, move, error)
            place.suspect(error)
        else:
            for partition, move in moves.items():
                self._written(partition, move)

    def _require_wanted(self, partition: Partition, move: _Move) -> None:
        name = f"{partition.topic}-{partition.index}"
        if not self._is_open(partition):
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{name} was deleted meanwhile")
        if move.is_taken_back:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"the log of {name} was cut, for it follows another now")

    def _written(self, partition: Partition, move: _Move) -> None:
        log = partition.log
        try:
            self._require_wanted(partition, move)
            log.durable_log_start_offset = max(log.durable_log_start_offset, move.offset)
            log.advance_log_start(move.offset)
        except Exception as error:  # noqa: BLE001 - those of other partitions go on
            move.moved.set_exception(error)
            return
        move.moved.set_result(None)
        partition.reader.notify()
        self._moved(partition)

    def _failed(self, place: DataDirectory, partition: Partition, move: _Move, error: OSError) -> None:
        key = partition.topic, partition.index
        try:
            self._require_wanted(partition, move)
        except KafkaError as gone:
            move.moved.set_exception(gone)
            return
        if before := partition.log.durable_log_start_offset:
            place.checkpoints.log_starts[key] = before
        else:
            place.checkpoints.log_starts.pop(key, None)
        failed = KafkaError(
            ErrorCode.KAFKA_STORAGE_ERROR, f"the log start of {key[0]}-{key[1]} could not be written: {error}"
        )
        failed.__cause__ = error
        move.moved.set_exception(failed)


def _reached(partition: Partition) -> int:
    return min(partition.log.log_start_offset, partition.log.durable_log_start_offset)


def _heard(moved: asyncio.Future[None]) -> None:
    if not moved.cancelled():
        moved.exception()
