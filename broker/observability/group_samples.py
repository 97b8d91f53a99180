"""What a broker tells of the groups that it coordinates."""

from collections import Counter
from collections.abc import Iterable

from odradek.broker.coordinator.shards import Shards
from odradek.broker.group.group_counts import GroupCounts
from odradek.broker.group.machine import GroupMachine
from odradek.broker.observability import metric_rows as rows
from odradek.broker.observability.request_times import MS_PER_S
from odradek.broker.observability.sample import Sample


def group_samples(shards: Shards[GroupMachine], counts: GroupCounts) -> Iterable[Sample]:
    """One pass over all groups."""
    states: Counter[str] = Counter()
    groups: Counter[tuple[str, str]] = Counter()
    offsets, load_s = 0, 0.0
    for shard in shards.all:
        states[shard.state.value] += 1
        load_s = max(load_s, shard.load_s)
        for group in shard.machine.groups.values():
            groups[group.kind.value, group.state_name] += 1
        offsets += len(shard.machine.offsets.offsets)
    for state, count in sorted(states.items()):
        yield rows.COORDINATOR_PARTITIONS, (state,), count
    for labels, count in sorted(groups.items()):
        yield rows.GROUPS, labels, count
    yield rows.COMMITTED_OFFSETS, (), offsets
    yield rows.COORDINATOR_LOAD_TIME, (), load_s * MS_PER_S
    yield rows.OFFSET_COMMITS, (), counts.commits
    yield rows.OFFSET_EXPIRATIONS, (), counts.expirations
    yield rows.OFFSET_DELETIONS, (), counts.deletions
    for reason, count in sorted(counts.rebalances.items()):
        yield rows.REBALANCES, (reason,), count
