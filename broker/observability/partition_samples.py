"""What a broker tells of its partitions and logs."""

from collections.abc import Iterable

from odradek.broker.observability import metric_rows as rows
from odradek.broker.observability.sample import Sample
from odradek.broker.partitions.late_transactions import held_up
from odradek.broker.partitions.table import Partitions


def partition_samples(partitions: Partitions, now_ms: int, late_ms: int) -> Iterable[Sample]:
    """One pass over all of them for the counts, another for the logs. `late_ms`: a transaction that has been open for
    longer is late."""
    open_here = list(partitions)
    yield rows.PARTITION_COUNT, (), len(open_here)
    yield rows.LEADER_COUNT, (), sum(partition.is_leader for partition in open_here)
    yield rows.UNDER_REPLICATED, (), sum(partition.is_under_replicated for partition in open_here)
    yield rows.UNDER_MIN_ISR, (), sum(partition.is_under_min_isr for partition in open_here)
    yield rows.OFFLINE_REPLICAS, (), len(partitions.offline)
    yield rows.OFFLINE_DIRECTORIES, (), len(partitions.directories.offline)
    late = 0
    for partition in open_here:
        if partition.is_leader:
            labels, oldest = (partition.topic, str(partition.index)), held_up(partition)
            age_ms = 0 if oldest is None else oldest.age_ms(now_ms)
            late += age_ms > late_ms
            lag = partition.high_watermark.value - partition.reader.last_stable_offset
            yield rows.STABLE_OFFSET_LAG, labels, lag
            yield rows.STABLE_OFFSET_AGE, labels, age_ms
    yield rows.LATE_TRANSACTIONS, (), late
    for partition in open_here:
        labels, log = (partition.topic, str(partition.index)), partition.log
        yield rows.LOG_SIZE, labels, log.size_bytes
        yield rows.LOG_START_OFFSET, labels, log.log_start_offset
        yield rows.LOG_END_OFFSET, labels, log.log_end_offset
