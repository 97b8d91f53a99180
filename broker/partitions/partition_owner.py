"""The broker around its partitions: what it does when something happens to one (`PartitionListener`)."""

import asyncio
import logging
from collections.abc import Collection

from odradek.broker.partitions.checkpoint_writer import CheckpointWriter
from odradek.broker.partitions.log_starts import LogStarts
from odradek.broker.replica.leadership import Leadership
from odradek.broker.replica.partition import Partition
from odradek.broker.replication.isr_writer import IsrWriter

logger = logging.getLogger(__name__)


class PartitionOwner:
    """Of all partitions of one broker."""

    def __init__(
        self,
        log_starts: LogStarts,
        written: CheckpointWriter,
        isr_writer: IsrWriter,
        leadership: Leadership,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._leadership = leadership
        self._log_starts = log_starts
        self._written = written
        self._isr_writer = isr_writer
        self._loop = loop
        self._has_cuts = False

    def leadership_began(self, partition: Partition) -> None:
        self._leadership.began(partition)

    def leadership_ended(self, partition: Partition) -> None:
        self._leadership.ended(partition)

    def truncated(self, partition: Partition) -> None:
        """What is appended from now on is not what the recovery point was written down for: behind it everything must
        be looked at again after a loss of power. All that are cut in this turn of the loop share the writing, which
        comes before anything can be fetched."""
        logger.info("%r: cut to offset %d", partition, partition.log.log_end_offset)
        self._log_starts.cut(partition)
        if not self._has_cuts:
            self._has_cuts = True
            self._loop.call_soon(self._write_down_cuts)

    def _write_down_cuts(self) -> None:
        self._has_cuts = False
        self._log_starts.write_cuts()
        self._written.write_cuts()

    def log_start_followed(self, partition: Partition, log_start_offset: int) -> None:
        self._log_starts.follow(partition, log_start_offset)

    def isr_outdated(self, partition: Partition) -> None:
        self._isr_writer.wake(partition)

    def may_join(self, broker_id: int, broker_epoch: int) -> bool:
        return self._isr_writer.may_join(broker_id, broker_epoch)

    def live_replicas(self, partition: Partition) -> Collection[int]:
        return self._isr_writer.live_replicas(partition)
