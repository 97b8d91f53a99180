"""How far groups are behind: a series for each committed offset, at most `metrics.group.lag.max.series` of them.

A broker tells of the groups that it coordinates, where it has a replica of the partition: the leader's high watermark,
or what a follower has heard of it, which is behind by a fetch. A scrape is answered in one turn of the event loop, so
only so many offsets are looked at; what the others come to is counted without looking at them.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from odradek.broker.coordinator.shards import Shards
from odradek.broker.group.machine import GroupMachine
from odradek.broker.group.offsets import Committed, Position
from odradek.broker.observability import metric_rows as rows
from odradek.broker.observability.sample import Sample
from odradek.broker.partitions.table import Partitions
from odradek.broker.replica.partition import Partition
from odradek.protocol.primitives import ZERO_UUID

LOOKED_AT_MAX: Final = 10_000
"""Offsets looked at in a scrape: most of them may be of partitions without a replica here."""


def group_lag_samples(shards: Shards[GroupMachine], partitions: Partitions, series_max: int) -> Iterable[Sample]:
    """In the order of the partitions of `__consumer_offsets`, then of groups and positions as they first committed: the
    same ones at each scrape. Nothing where `series_max` is 0."""
    if not series_max:
        return
    looked_at = told = 0
    for group_id, (topic, index), committed in _committed(shards):
        if told == series_max or looked_at == LOOKED_AT_MAX:
            break
        looked_at += 1
        partition = partitions.open_at(topic, index)
        if partition is not None and committed.topic_id in (ZERO_UUID, partition.topic_id):
            told += 1
            yield rows.GROUP_LAG, (group_id, topic, str(index)), lag(partition, committed.offset)
    offsets = sum(len(shard.machine.offsets.offsets) for shard in shards.all)
    yield rows.GROUP_LAG_LEFT_OUT, (), offsets - looked_at


def lag(partition: Partition, offset: int) -> int:
    """The records from `offset`, or from the log's start if they were deleted up to there, to the high watermark."""
    return max(0, partition.high_watermark.value - max(offset, partition.log.log_start_offset))


def _committed(shards: Shards[GroupMachine]) -> Iterator[tuple[str, Position, Committed]]:
    for shard in shards.all:
        offsets = shard.machine.offsets.offsets
        for group_id in offsets.group_ids:
            for position, committed in offsets.of(group_id).items():
                yield group_id, position, committed
