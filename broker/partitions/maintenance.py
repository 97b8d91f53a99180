"""What is done to the logs by the clock (LogManager.startup): retention, checkpoints, forgetting, removing files.

Retention and recovery points begin `log.initial.task.delay.ms` after the start, the others after their interval.

| job | every | what |
|---|---|---|
| retention | `log.retention.check.interval.ms` | segments go by time, size and log start (`log/retention.py`) |
| recovery points | `log.flush.offset.checkpoint.interval.ms` | how far each log is on the device, for the next start |
| high watermarks | `replica.high.watermark.checkpoint.interval.ms` | likewise |
| producers | `producer.id.expiration.check.interval.ms` | idle ones are forgotten |
| in-sync sets | half of `replica.lag.time.max.ms` | followers that lag behind leave them |
| compaction | `log.cleaner.backoff.ms` | `cleaner.py` |

Each job goes through the partitions one at a time and gives the loop a turn after each; what waits for a device does so
in a helper thread. Log starts are written when they are moved, so `log.flush.start.offset.checkpoint.interval.ms` has
nothing to do.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.disk.cold_reads import read_without_blocking
from odradek.broker.disk.disk import Disk
from odradek.broker.log.retention import Retention, deletable
from odradek.broker.partitions.cleaner import Cleaner
from odradek.broker.partitions.table import Partitions
from odradek.broker.replica.partition import Partition
from odradek.protocol.errors import KafkaError
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks, breathe

logger = logging.getLogger(__name__)

Job = Callable[[], Awaitable[None]]


class Maintenance:
    """The jobs of one broker. They run until `tasks`, which are theirs alone, are closed."""

    def __init__(
        self, disk: Disk, environment: Environment, tasks: Tasks, config: BrokerConfig, partitions: Partitions
    ) -> None:
        self._disk = disk
        self._environment = environment
        self._tasks = tasks
        self._config = config
        self._partitions = partitions
        self._cleaner = Cleaner(disk, environment, config, partitions)
        self._warned: dict[Partition, str] = {}
        self._turn = asyncio.Lock()
        """Of retention: one at a time."""

    def start(self) -> None:
        config = self._config
        after_start: tuple[tuple[str, Callable[[], int], Job], ...] = (
            ("retention", lambda: config.log_retention_check_interval_ms, self.delete_old_segments),
            ("recovery points", lambda: config.log_flush_offset_checkpoint_interval_ms, self.write_recovery_points),
        )
        after_interval: tuple[tuple[str, Callable[[], int], Job], ...] = (
            (
                "high watermarks",
                lambda: config.replica_high_watermark_checkpoint_interval_ms,
                self._partitions.written.write_high_watermarks,
            ),
            ("idle producers", lambda: config.producer_id_expiration_check_interval_ms, self.forget_idle_producers),
            ("in-sync sets", lambda: config.replica_lag_time_max_ms // 2, self.check_in_sync),
            ("compaction", lambda: config.log_cleaner_backoff_ms, self._cleaner.clean_what_is_due),
        )
        for name, interval_ms, job in after_start:
            self._tasks.start(self._repeat(name, config.log_initial_task_delay_ms, interval_ms, job), name)
        for name, interval_ms, job in after_interval:
            self._tasks.start(self._repeat(name, interval_ms(), interval_ms, job), name)

    async def _repeat(self, name: str, first_ms: int, interval_ms: Callable[[], int], job: Job) -> None:
        wait_ms = first_ms
        while True:
            await self._environment.sleep(max(1, wait_ms))
            try:
                await job()
            except (KafkaError, OSError) as error:
                logger.error("%s: this time it could not be done: %s", name, error)
            wait_ms = interval_ms()

    async def check_in_sync(self) -> None:
        """Looks for followers that have lagged behind for too long."""
        self._partitions.check_in_sync()

    # -- retention ------------------------------------------------------------------------------------------------

    async def delete_old_segments(self) -> None:
        """Applies retention to every partition that this broker leads."""
        async with self._turn:
            await self._delete_all_old_segments()

    async def clock_moved(self) -> None:
        """The time of day is another one, and what goes by it is done at once: retention, compaction, forgetting."""
        await self.delete_old_segments()
        await self.forget_idle_producers()
        await self._cleaner.clean_what_is_due()

    async def _delete_all_old_segments(self) -> None:
        for partition in list(self._partitions):
            if partition.is_leader:
                try:
                    await self._delete_old_segments(partition)
                except (KafkaError, OSError) as error:
                    if partition in self._partitions:  # else it was deleted meanwhile
                        logger.error("%r: retention could not be applied: %s", partition, error)
                        if isinstance(error, OSError):
                            self._partitions.suspect(partition, error)
            self.remove_retired(partition)
            await breathe()
        self._warned = {partition: line for partition, line in self._warned.items() if partition in self._partitions}

    async def _delete_old_segments(self, partition: Partition) -> None:
        log = partition.log
        for number in range(len(log.segments)):
            # Each knows its timestamps from then on, so that what follows does not wait.
            await read_without_blocking(self._disk, self._environment, partial(log.segments.know, number))
        decided = self._decided(partition)
        if decided.warning is not None and self._warned.get(partition) != decided.warning:
            logger.warning("%s: %s", log.directory, decided.warning)
            self._warned[partition] = decided.warning
        if not decided.segment_count:
            return
        if decided.must_roll:
            log.roll(self._environment.now_ms())
        if await self._advance_log_start(partition, log.segments.base_offsets[1 : decided.segment_count + 1]):
            for reason in decided.reasons:
                logger.info("%s: deleted %s", log.directory, reason)

    async def _advance_log_start(self, partition: Partition, offsets: Sequence[int]) -> bool:
        """Moves the log start from each offset to the next, the name of each deleted segment durable before the next
        one goes: so a loss of power leaves no hole, and a disk that is full needs no room for a checkpoint.

        False if a segment could not be deleted, or if this broker's term as the leader ended meanwhile: the log may
        be another one then. What is left goes with the next round.
        """
        log, leader_epoch = partition.log, partition.leader_epoch
        try:
            for offset in offsets:
                if not partition.is_leader or partition.leader_epoch != leader_epoch:
                    return False
                log.advance_log_start(offset)
                if log.segments.base_offsets[0] < offset:
                    return False
                await self._environment.run_blocking(self._disk.sync_dir, log.directory)
        finally:
            partition.reader.notify()
        return True

    def _decided(self, partition: Partition) -> Retention:
        log, config = partition.log, partition.config
        return deletable(
            log.segments.facts(),
            log_start_offset=log.log_start_offset,
            high_watermark=partition.high_watermark.value,
            log_end_offset=log.log_end_offset,
            deletes="delete" in config.cleanup_policy,
            retention_bytes=config.retention_bytes,
            retention_ms=config.retention_ms,
            now_ms=self._environment.now_ms(),
        )

    def remove_retired(self, partition: Partition) -> None:
        """Has the files removed that are no part of the log any more, after `file.delete.delay.ms`."""
        if paths := partition.log.segments.take_retired():
            delay_ms = partition.config.file_delete_delay_ms
            self._tasks.start(self._remove(paths, delay_ms), f"remove segments of {partition.log.directory}")

    async def _remove(self, paths: list[str], delay_ms: int) -> None:
        if delay_ms:
            await self._environment.sleep(delay_ms)
        for path in paths:
            try:
                await self._environment.run_blocking(self._disk.remove, path)
            except FileNotFoundError:
                continue  # the topic was deleted meanwhile
            except OSError as error:
                logger.warning("%s cannot be removed; the next start tries again: %s", path, error)

    # -- checkpoints ----------------------------------------------------------------------------------------------

    async def write_recovery_points(self) -> None:
        """Makes durable what is derived from durable batches, and writes down how far each log is."""
        for partition in list(self._partitions):
            if partition in self._partitions and partition.log.durable_offset > partition.log.recovery_point:
                try:
                    await partition.durability.sync_all()
                except KafkaError as error:
                    logger.error("%r: its recovery point stays where it is: %s", partition, error)
            await breathe()
        await self._partitions.written.write_recovery_points()

    async def forget_idle_producers(self) -> None:
        for partition in list(self._partitions):
            partition.log.producers.expire(self._environment.now_ms(), partition.config.producer_id_expiration_ms)
            await breathe()
