"""What `odradek groups describe` looks at: how far groups are in each partition, and how long their offsets are kept.

When offsets expire no broker tells, since it depends on when the last member left, so it is asked how long they are
kept then (KIP-211), where the coordinator tells its option.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from odradek.client.admin.admin import Admin
from odradek.client.admin.configs import ConfigResource
from odradek.client.admin.groups import GroupDescription
from odradek.client.commands.lag import Progress, partitions_of, position_of, progress_of
from odradek.client.commands.several import Failures
from odradek.client.commands.tails import marker_tails
from odradek.client.errors.base import ClientError
from odradek.client.errors.client_errors import InvalidPartition, UnknownTopic
from odradek.client.fetching.list_offsets import EARLIEST, LATEST
from odradek.client.topic_partition import TopicPartition

__all__ = ["Described", "described", "looked_for"]

RETENTION: Final = "offsets.retention.minutes"


@dataclass(frozen=True, slots=True)
class Described:
    """A group, how far it is, and for how long its offsets are kept (None: not known)."""

    group: GroupDescription
    progress: tuple[Progress, ...]
    retention_minutes: int | None


async def described(
    admin: Admin, groups: Mapping[str, GroupDescription], failures: Failures, *, read_committed: bool
) -> list[Described]:
    """`failures`: what could not be looked at. The rest is shown without."""
    committed = await failures.or_results(admin.list_group_offsets(list(groups)))
    partitions = partitions_of(groups.values(), committed)
    starts = await _ends(admin, partitions, EARLIEST, failures)
    ends = await _ends(admin, partitions, LATEST, failures, read_committed=read_committed)
    progress = {
        group_id: progress_of(group, committed.get(group_id, {}), starts, ends) for group_id, group in groups.items()
    }
    progress = await _without_markers(admin, progress, read_committed=read_committed)
    kept = {node: await _retention(admin, node) for node in {group.coordinator_id for group in groups.values()}}
    return [
        Described(group, tuple(progress[group_id]), kept[group.coordinator_id]) for group_id, group in groups.items()
    ]


async def _ends(
    admin: Admin, partitions: Sequence[TopicPartition], which: int, failures: Failures, *, read_committed: bool = False
) -> dict[TopicPartition, int]:
    """Of those that there are: offsets outlive a deleted topic for a while."""
    if not partitions:
        return {}
    listing = admin.list_offsets(dict.fromkeys(partitions, which), read_committed=read_committed)
    return {each: listed.offset for each, listed in (await failures.or_results(listing)).items()}


async def _without_markers(
    admin: Admin, progress: Mapping[str, Sequence[Progress]], *, read_committed: bool
) -> dict[str, list[Progress]]:
    """With the lag 0 where what is left are markers alone. All groups share the look at a partition."""
    behind = [each for some in progress.values() for each in some if each.lag]
    tails = await marker_tails(
        admin, [(each.partition, position_of(each), each.end or 0) for each in behind], read_committed=read_committed
    )
    return {
        group_id: [
            each._replace(lag=0)
            if each.lag and each.partition in tails and position_of(each) >= tails[each.partition]
            else each
            for each in some
        ]
        for group_id, some in progress.items()
    }


async def _retention(admin: Admin, node: int) -> int | None:
    resource = ConfigResource.broker(node)
    try:
        entry = (await admin.describe_configs([resource], [RETENTION]))[resource].get(RETENTION)
    except ClientError:
        return None  # it is no fault of the group's that the principal may not see it
    return int(entry.value) if entry is not None and entry.value is not None and entry.value.isdecimal() else None


def looked_for() -> Failures:
    """Failures of `described`: a topic or partition that is gone is none, only its offsets are left."""
    return Failures(but=(UnknownTopic, InvalidPartition))
