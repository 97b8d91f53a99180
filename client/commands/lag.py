"""How far groups are behind, by partition. Pure.

The lag is how many offsets lie between the committed one and the end: the high watermark, or with `read_committed` the
last stable offset. An offset before the log start counts as the log start, for what was before it cannot be read any
more; one behind the end, left by a log that was cut, counts as the end. Kafka's own tool subtracts without looking
(ConsumerGroupCommand.java), so its lag can be negative there.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from odradek.client.admin.group_offsets import CommittedOffset
    from odradek.client.admin.groups import GroupDescription, MemberDescription
    from odradek.client.topic_partition import TopicPartition

__all__ = ["Progress", "lag_between", "partitions_of", "position_of", "progress_of"]


class Progress(NamedTuple):
    """How far a group is in a partition. None: it has no offset there, nobody reads it, or an end is not known."""

    partition: "TopicPartition"
    committed: "CommittedOffset | None"
    start: int | None
    end: int | None
    lag: int | None
    member: "MemberDescription | None"


def lag_between(committed: int, start: int, end: int) -> int:
    """Never negative."""
    return max(0, end - max(committed, start))


def position_of(progress: Progress) -> int:
    """The offset from which on the group has something to read. Only for one with a lag."""
    assert progress.committed is not None
    return max(progress.committed.offset, progress.start or 0)


def progress_of(
    group: "GroupDescription",
    committed: "Mapping[TopicPartition, CommittedOffset]",
    starts: "Mapping[TopicPartition, int]",
    ends: "Mapping[TopicPartition, int]",
) -> list[Progress]:
    """The partitions that the group has an offset of or whose records a member reads, in their order."""
    readers = {partition: member for member in group.members for partition in member.partitions or ()}
    found: list[Progress] = []
    for partition in sorted({*committed, *readers}):
        offset, start, end = committed.get(partition), starts.get(partition), ends.get(partition)
        lag = None if offset is None or end is None else lag_between(offset.offset, start or 0, end)
        found.append(Progress(partition, offset, start, end, lag, readers.get(partition)))
    return found


def partitions_of(
    groups: "Iterable[GroupDescription]", committed: "Mapping[str, Mapping[TopicPartition, CommittedOffset]]"
) -> "list[TopicPartition]":
    """All partitions whose ends have to be known."""
    found = {partition for offsets in committed.values() for partition in offsets}
    found |= {partition for group in groups for member in group.members for partition in member.partitions or ()}
    return sorted(found)
