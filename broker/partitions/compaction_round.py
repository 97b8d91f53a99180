"""One round of compaction, asked of a worker (log/compaction_worker.py).

    async with CompactionRounds(...).begin(directory) as round_: ...

The worker is started for the round and gone at its end, with all files of the round that have not taken a segment's
place. It is a process where one can be started and finds the files; else it works in helper threads of the broker,
which a WARNING says once.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress

from odradek.broker.disk.disk import Disk
from odradek.broker.log.compaction_messages import (
    Counts,
    Failed,
    GroupWritten,
    M,
    MapBuilt,
    Nonce,
    Ready,
    Round,
    WriteGroup,
    build_map_message,
    counts_of,
    error_of,
    kind_of,
    packed,
    suffixes_of,
    unpacked,
)
from odradek.broker.log.compaction_worker import PROCESS, compact
from odradek.broker.log.leftovers import remove_cleaned
from odradek.broker.log.segments import Standing, Written
from odradek.broker.version import VERSION
from odradek.protocol.codec.schema import Message
from odradek.protocol.errors import MalformedMessage
from odradek.runtime.environment import Environment
from odradek.runtime.worker import Worker, WorkerEnded, WorkerUnavailable

logger = logging.getLogger(__name__)

NONCE_BYTES = 8


class SegmentGone(FileNotFoundError):
    """A segment was deleted while the worker was to read it."""


class CompactionRound:
    """A worker that has one round to do."""

    def __init__(self, worker: Worker, nonce: Nonce) -> None:
        self.nonce = nonce
        self.counts = Counts(0, 0, 0, 0, 0)
        """Of all groups that were written so far."""
        self._worker = worker

    async def build_map(self, round_: Round) -> MapBuilt:
        """Raises what the worker failed with (UncleanableLog, SegmentGone, OSError, ValueError), WorkerEnded."""
        built = await self._ask(build_map_message(round_), MapBuilt)
        if not round_.first_dirty_offset <= built.end_offset <= round_.first_uncleanable_offset:
            raise WorkerEnded(f"it has built a map up to offset {built.end_offset}, which it was not asked for")
        return built

    async def write_group(self, made_of: Sequence[Standing]) -> Written:
        """Has these segments written as one. Raises as `build_map` does."""
        base_offsets = [each.segment.base_offset for each in made_of]
        written = await self._ask(WriteGroup(base_offsets=base_offsets), GroupWritten)
        try:
            suffixes = suffixes_of(written)
        except MalformedMessage as error:
            raise WorkerEnded(f"its answer cannot be understood: {error}") from error
        self.counts = counts_of(written)
        return Written(base_offsets[0], base_offsets, written.size_bytes, suffixes, self.nonce, made_of)

    async def _ask(self, question: Message, expected: type[M]) -> M:
        answer = await self._worker.ask(packed(question))
        try:
            if kind_of(answer) is not Failed:
                return unpacked(expected, answer)
            error = error_of(unpacked(Failed, answer))
        except MalformedMessage as nonsense:
            raise WorkerEnded(f"its answer cannot be understood: {nonsense}") from nonsense
        if isinstance(error, FileNotFoundError):
            raise SegmentGone(error.errno, error.strerror, error.filename)
        raise error


class CompactionRounds:
    """Starts a worker for each round."""

    def __init__(self, disk: Disk, environment: Environment) -> None:
        self._disk = disk
        self._environment = environment
        self._why_in_threads: str | None = None

    @asynccontextmanager
    async def begin(self, directory: str) -> AsyncGenerator[CompactionRound]:
        """A round over the log in this directory, for as long as the block runs."""
        nonce = Nonce(self._environment.random_bytes(NONCE_BYTES).hex())
        worker = await self._started()
        try:
            yield CompactionRound(worker, nonce)
        except (Exception, asyncio.CancelledError):
            await self._end(worker, directory, nonce)
            raise
        await self._end(worker, directory, nonce)

    async def _end(self, worker: Worker, directory: str, nonce: Nonce) -> None:
        await worker.close()
        with suppress(OSError):  # the topic was deleted meanwhile; or the next start removes them
            await self._environment.run_blocking(remove_cleaned, self._disk, directory, nonce)

    async def _started(self) -> Worker:
        if self._disk.is_visible_outside:
            try:
                return await self._started_process()
            except WorkerUnavailable as error:
                if str(error) != self._why_in_threads:
                    self._why_in_threads = str(error)
                    logger.warning(
                        "compaction runs within the broker's process, where it slows requests down: %s", error
                    )
        return await self._environment.start_worker(PROCESS, compact, self._disk, in_process=False)

    async def _started_process(self) -> Worker:
        """Raises WorkerUnavailable."""
        worker = await self._environment.start_worker(PROCESS, compact, self._disk, in_process=True)
        try:
            version = unpacked(Ready, worker.greeting).program_version
        except MalformedMessage as error:
            await worker.close()
            raise WorkerUnavailable(f"the process that was started says what nobody understands: {error}") from error
        if version != VERSION:
            await worker.close()
            raise WorkerUnavailable(
                f"this broker is version {VERSION}, and what is installed has become {version} since it was started; "
                "start it again"
            )
        return worker
