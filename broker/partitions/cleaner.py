"""Compacts the logs of topics with `cleanup.policy=compact`, the dirtiest first (LogCleaner.scala).

Which log is due is decided by `log/cleanable.py`, what stays of it by `log/compaction.py`. Files are read and written
by a worker, most often a process (`compaction_round.py`); in between, in the loop, the segments are swapped one group
at a time. Where the round ended is written down, so that the next one begins there. If anything fails, the log stays as
it is: what was swapped already is a log that was compacted a little further, nothing more.

The worker's answer may come late: the topic may have been deleted and made anew, and the log may have been cut. So what
it wrote takes a place only if the segments that it was made of are the same ones as when the round began.
"""

import asyncio
import logging
from collections.abc import Collection, Sequence
from functools import partial

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.directories.checkpoints import Key
from odradek.broker.disk.cold_reads import read_without_blocking
from odradek.broker.disk.disk import Disk
from odradek.broker.log.cleanable import Cleanable, cleanable, dirtiest, grouped
from odradek.broker.log.compaction import last_records
from odradek.broker.log.compaction_messages import MapBuilt, Nonce, Round
from odradek.broker.log.segment_facts import SegmentFacts
from odradek.broker.log.segments import Standing
from odradek.broker.log.uncleanable import UncleanableLog
from odradek.broker.partitions.compaction_round import CompactionRound, CompactionRounds, SegmentGone
from odradek.broker.partitions.table import Partitions
from odradek.broker.replica.partition import Partition
from odradek.protocol.errors import KafkaError
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import breathe
from odradek.runtime.worker import WorkerEnded

logger = logging.getLogger(__name__)


class Throttle:
    """Keeps `log.cleaner.io.max.bytes.per.second` from each call to the next: a pause is not made up for."""

    def __init__(self, environment: Environment, bytes_per_second: float) -> None:
        self._environment = environment
        self._bytes_per_second = max(1.0, bytes_per_second)
        self._moved_bytes = 0
        self._from_ms = environment.monotonic_ms()

    async def moved(self, total_bytes: int) -> None:
        """So much has been read and written by now: returns when that was not too fast."""
        due_ms = self._from_ms + (total_bytes - self._moved_bytes) * 1000 / self._bytes_per_second
        now_ms = self._environment.monotonic_ms()
        self._moved_bytes, self._from_ms = total_bytes, max(due_ms, now_ms)
        if due_ms > now_ms:
            await self._environment.sleep(due_ms - now_ms)


class Cleaner:
    """Compacts one log at a time."""

    def __init__(self, disk: Disk, environment: Environment, config: BrokerConfig, partitions: Partitions) -> None:
        self._disk = disk
        self._environment = environment
        self._config = config
        self._partitions = partitions
        self._uncleanable: dict[Partition, str] = {}
        """Why a log is left alone until its directory is opened anew."""
        self._rounds = CompactionRounds(disk, environment)
        self._turn = asyncio.Lock()

    async def clean_what_is_due(self) -> None:
        """Compacts log after log until none is due. Called twice at the same time: one after the other."""
        async with self._turn:
            await self._clean_what_is_due()

    async def _clean_what_is_due(self) -> None:
        interrupted: set[Partition] = set()
        while self._config.log_cleaner_enable and (found := await self._dirtiest(interrupted)) is not None:
            partition, plan = found
            try:
                if not await self._clean(partition, plan):
                    interrupted.add(partition)
            except WorkerEnded as error:
                interrupted.add(partition)
                logger.warning(
                    "%s: its compaction ended early, and is tried again in %d ms: the worker failed: %s",
                    *(partition.log.directory, self._config.log_cleaner_backoff_ms, error),
                )
            except UncleanableLog as error:
                self._leave_alone(partition, "%s: %s", error)
            except (KafkaError, OSError, ValueError) as error:
                self._leave_alone(partition, "%s: not compacted any more before the next start: %s", error)

    def _leave_alone(self, partition: Partition, line: str, error: Exception) -> None:
        self._uncleanable[partition] = str(error)
        if partition in self._partitions:  # else it was deleted, and what failed is of no interest
            logger.error(line, partition.log.directory, error)
            if isinstance(error, OSError):
                self._partitions.suspect(partition, error)

    async def _dirtiest(self, interrupted: Collection[Partition]) -> tuple[Partition, Cleanable] | None:
        """`interrupted`: those whose round did not come to its end; what comes next may try again."""
        self._uncleanable = {
            partition: why for partition, why in self._uncleanable.items() if partition in self._partitions
        }
        left_alone = {*interrupted, *self._uncleanable}
        candidates: dict[Partition, Cleanable] = {}
        for partition in list(self._partitions):
            if "compact" in partition.config.cleanup_policy and partition not in left_alone:
                try:
                    candidates[partition] = await self._planned(partition)
                except (KafkaError, OSError) as error:
                    if partition in self._partitions:
                        logger.error("%s: what of it is dirty cannot be told: %s", partition.log.directory, error)
                await breathe()
        chosen = dirtiest(
            (partition, plan, partition.config.min_cleanable_dirty_ratio) for partition, plan in candidates.items()
        )
        return None if chosen is None else (chosen, candidates[chosen])

    async def _planned(self, partition: Partition) -> Cleanable:
        log, config = partition.log, partition.config
        for number in range(len(log.segments)):
            await read_without_blocking(self._disk, self._environment, partial(log.segments.know, number))
        plan = cleanable(
            log.segments.facts(),
            self._partitions.checkpoints(partition).cleaned.get(_key(partition)),
            log_start_offset=log.log_start_offset,
            log_end_offset=log.log_end_offset,
            last_stable_offset=partition.reader.last_stable_offset,
            deletes="delete" in config.cleanup_policy,
            min_compaction_lag_ms=config.min_compaction_lag_ms,
            max_compaction_lag_ms=config.max_compaction_lag_ms,
            now_ms=self._environment.now_ms(),
        )
        if plan.warning is not None:
            logger.warning("%s: %s", log.directory, plan.warning)
        if plan.resets_checkpoint:
            await self._note(partition, plan.first_dirty_offset)
        return plan

    async def _clean(self, partition: Partition, plan: Cleanable) -> bool:
        """One round. False when it ended early, for segments went meanwhile, or the device did not take them.

        Raises UncleanableLog, WorkerEnded, KafkaError, OSError.
        """
        started_ms = self._environment.monotonic_ms()
        log, environment = partition.log, self._environment
        async with self._rounds.begin(log.directory) as round_:
            if not await self._settled(partition, plan.first_uncleanable_offset):
                return False
            facts = log.segments.facts()
            unread = log.segments.standing(plan.first_uncleanable_offset)
            try:
                built = await self._rewrite(partition, plan, round_, facts, unread)
            except SegmentGone:
                return False
            except UncleanableLog:
                if log.segments.are_unchanged(unread.values()):
                    raise
                return False  # what could not be read was what another log had left in the middle of it
        if built is None:
            return False
        counts = round_.counts
        logger.info(
            "%s: compacted up to offset %d: %d of %d records stay, %d of %d bytes; %.1f s",
            *(log.directory, built.end_offset, counts.records_kept, counts.records_read),
            *(counts.bytes_kept, counts.bytes_read, (environment.monotonic_ms() - started_ms) / 1000),
        )
        if counts.keyless_records:
            logger.warning("%s: dropped %d records without key", log.directory, counts.keyless_records)
        return True

    async def _rewrite(
        self,
        partition: Partition,
        plan: Cleanable,
        round_: CompactionRound,
        facts: Sequence[SegmentFacts],
        unread: dict[int, Standing],
    ) -> MapBuilt | None:
        """Has the worker read the log and write what stays of it, puts that into its place, group by group, and writes
        down how far the round came. None when it ends early.

        `facts` and `unread` are those of the log now. Segments that were replaced are taken out of the latter.

        Raises UncleanableLog, SegmentGone, WorkerEnded, KafkaError, OSError.
        """
        config = partition.config
        throttle = Throttle(self._environment, self._config.log_cleaner_io_max_bytes_per_second)
        built = await round_.build_map(self._round_over(partition, plan, round_.nonce))
        groups = grouped(
            facts,
            end_offset=built.end_offset,
            first_uncleanable_offset=plan.first_uncleanable_offset,
            segment_bytes=config.segment_bytes,
            segment_index_bytes=config.segment_index_bytes,
        )
        for group in groups:
            await throttle.moved(built.bytes_read + round_.counts.bytes_read + round_.counts.bytes_kept)
            bases = [each.base_offset for each in group if each.base_offset in unread]
            if not bases or not await self._replace(partition, [unread[base] for base in bases], round_):
                return None
            for base in bases:
                del unread[base]
        # At once: a log that is cut from now on lowers its checkpoint.
        await self._note(partition, built.end_offset)
        await throttle.moved(built.bytes_read + round_.counts.bytes_read + round_.counts.bytes_kept)
        return built

    def _round_over(self, partition: Partition, plan: Cleanable, nonce: Nonce) -> Round:
        """What the worker is told."""
        log, config = partition.log, partition.config
        return Round(
            log.directory,
            nonce,
            log.segments.sources(plan.first_uncleanable_offset),
            last_records(log.producers.states()),
            log_start_offset=log.log_start_offset,
            first_dirty_offset=plan.first_dirty_offset,
            first_uncleanable_offset=plan.first_uncleanable_offset,
            delete_retention_ms=config.delete_retention_ms,
            now_ms=self._environment.now_ms(),
            index_interval_bytes=config.index_interval_bytes,
            dedupe_buffer_bytes=self._config.log_cleaner_dedupe_buffer_size,
            load_factor=self._config.log_cleaner_io_buffer_load_factor,
            io_bytes=self._config.log_cleaner_io_buffer_size,
        )

    async def _settled(self, partition: Partition, end_offset: int) -> bool:
        """Whether everything before `end_offset` is on the device, with what is derived from it, and no start will ask
        the batches for that.

        A record that a newer one replaces may be all that is left of its key after a power failure, and the first batch
        of a leader epoch all that says where it began.
        """
        await partition.durability.sync_closed_segments()
        await self._partitions.written.write_recovery_points()
        return partition in self._partitions and partition.log.recovery_point >= end_offset

    async def _replace(self, partition: Partition, made_of: list[Standing], round_: CompactionRound) -> bool:
        """Compacts one group of segments. False when they went meanwhile, and the round ends."""
        log, environment = partition.log, self._environment
        written = await round_.write_group(made_of)
        if partition not in self._partitions or not log.segments.begin_swap(written):
            return False
        try:
            await environment.run_blocking(self._disk.sync_dir, log.directory)
        except OSError:
            if partition in self._partitions:
                log.segments.withdraw_swap(written)
            raise
        if partition not in self._partitions:
            return False
        is_wanted = log.segments.stands(written)
        log.complete_swap(written)
        return is_wanted

    async def _note(self, partition: Partition, offset: int) -> None:
        if partition not in self._partitions:
            return  # another one may have its name by now
        checkpoints = self._partitions.checkpoints(partition)
        checkpoints.cleaned[_key(partition)] = offset
        await self._environment.run_blocking(checkpoints.writing_cleaned())


def _key(partition: Partition) -> Key:
    return partition.topic, partition.index
