"""What is printed of groups and their members, in rows for tables and for JSON. Pure.

Offsets of a group with members do not expire, but those of topics that none of them reads. Without members they expire
some time after the last one has left, and where there never was one, each after its commit (KIP-211).
"""

from collections.abc import Iterable, Sequence
from typing import Final

from odradek.client.admin.group_offsets import CommittedOffset
from odradek.client.admin.groups import GroupDescription, GroupRebalance, MemberDescription
from odradek.client.commands.group_description import Described
from odradek.client.commands.lag import Progress
from odradek.client.commands.moment import moment_text
from odradek.client.commands.output import Cell
from odradek.client.commands.partition_names import partition_names, partitions_json
from odradek.client.topic_partition import TopicPartition

__all__ = [
    "COLUMNS",
    "MEMBER_COLUMNS",
    "expiry",
    "group_json",
    "member_json",
    "member_row",
    "rebalance_lines",
    "rows",
    "summary",
]

COLUMNS: Final = (
    "GROUP", "STATE", "TOPIC", "PARTITION", "COMMITTED", "START", "END", "LAG", "MEMBER", "CLIENT", "HOST",
)  # fmt: skip
MEMBER_COLUMNS: Final = ("GROUP", "MEMBER", "INSTANCE", "CLIENT", "HOST", "PARTITIONS")
DAY_MINUTES: Final = 24 * 60
MS_PER_S: Final = 1000


def rows(found: Iterable[Described]) -> list[list[Cell]]:
    """A row for each partition, one for each member that has none, or whose assignment cannot be read, and one for a
    group without either."""
    table: list[list[Cell]] = []
    for each in found:
        group = each.group
        its = [_row(group, progress) for progress in each.progress]
        its += [[*_nothing(group), *_reader(member)] for member in group.members if not member.partitions]
        table += its or [[*_nothing(group), *_reader(None)]]
    return table


def _nothing(group: GroupDescription) -> list[Cell]:
    """The beginning of a row without a partition."""
    return [group.group_id, group.state, *[None] * (COLUMNS.index("MEMBER") - 2)]


def _reader(member: MemberDescription | None) -> list[Cell]:
    """The end of a row."""
    return [None] * 3 if member is None else [member.member_id, member.client_id, member.host]


def _row(group: GroupDescription, progress: Progress) -> list[Cell]:
    return [
        group.group_id,
        group.state,
        progress.partition.topic,
        progress.partition.partition,
        None if progress.committed is None else progress.committed.offset,
        progress.start,
        progress.end,
        progress.lag,
        *_reader(progress.member),
    ]


def summary(each: Described) -> str:
    """A line about a group, for people."""
    group = each.group
    protocol = f", {group.protocol}" if group.protocol else ""
    members = f"{len(group.members)} member(s)"
    where = f"coordinator {group.coordinator_id}"
    return f"{group.group_id}: {group.group_type}{protocol}, {members}, {where}; {expiry(each)}"


def rebalance_lines(group: GroupDescription) -> list[str]:
    """A line about each rebalance, for people; the last one comes first."""
    return [f"  rebalanced {moment_text(each.started_ms)}: {_why(each)}" for each in reversed(group.rebalances)]


def _why(rebalance: GroupRebalance) -> str:
    """The reason names the member."""
    told = [rebalance.reason]
    if rebalance.instance_id is not None and rebalance.instance_id not in rebalance.reason:
        told.append(f"instance {rebalance.instance_id}")
    if rebalance.last_heard_ms is not None:
        ago_s = (rebalance.started_ms - rebalance.last_heard_ms) / MS_PER_S
        told.append(f"last heard of {ago_s:.1f} s before")
    return _printable(f"{'; '.join(told)} ({rebalance.cause})")


def _printable(text: str) -> str:
    """Without what a terminal acts upon: clients choose their ids and reasons."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def expiry(each: Described) -> str:
    """When the offsets of a group expire."""
    if each.group.is_active:
        return "offsets of what its members read are kept"
    if each.retention_minutes is None:
        return "when its offsets expire is not known"
    days, rest = divmod(each.retention_minutes, DAY_MINUTES)
    kept = f"{each.retention_minutes} minute(s)" if rest else f"{days} day(s)"
    since = "the last member left" if each.group.protocol_type else "they were committed"
    return f"its offsets expire {kept} after {since}"


def group_json(each: Described) -> dict[str, object]:
    """What JSON has of a group."""
    group = each.group
    return {
        "group": group.group_id,
        "type": group.group_type,
        "state": group.state,
        "protocol_type": group.protocol_type,
        "protocol": group.protocol,
        "coordinator": group.coordinator_id,
        "group_epoch": group.group_epoch if group.group_epoch >= 0 else None,
        "assignment_epoch": group.assignment_epoch if group.assignment_epoch >= 0 else None,
        "offsets_retention_minutes": each.retention_minutes,
        "offsets_expire": expiry(each),
        "rebalances": [_rebalance_json(rebalance) for rebalance in group.rebalances],
        "members": [member_json(member) for member in group.members],
        "partitions": [_partition_json(progress) for progress in each.progress],
    }


def _rebalance_json(rebalance: GroupRebalance) -> dict[str, object]:
    return {
        "started_ms": rebalance.started_ms,
        "ended_generation": rebalance.generation,
        "cause": rebalance.cause,
        "reason": rebalance.reason,
        "member": rebalance.member_id or None,
        "instance": rebalance.instance_id,
        "last_heard_ms": rebalance.last_heard_ms,
    }


def _partition_json(progress: Progress) -> dict[str, object]:
    committed = progress.committed
    return {
        "topic": progress.partition.topic,
        "partition": progress.partition.partition,
        "committed_offset": None if committed is None else committed.offset,
        "committed_metadata": None if committed is None else committed.metadata,
        "committed_leader_epoch": _epoch(committed),
        "start_offset": progress.start,
        "end_offset": progress.end,
        "lag": progress.lag,
        "member": None if progress.member is None else progress.member.member_id,
    }


def _epoch(committed: CommittedOffset | None) -> int | None:
    return None if committed is None or committed.leader_epoch < 0 else committed.leader_epoch


# -------------------------------------------------------------------------------------------------------------- members
def member_row(group_id: str, member: MemberDescription) -> list[Cell]:
    """A row of `odradek groups members`. What is no assignment of Kafka's is told by its size."""
    if member.partitions is None:
        assigned: str | None = f"({len(member.assignment)} bytes)"
    else:
        assigned = partition_names(member.partitions) or None
    return [group_id, member.member_id, member.instance_id, member.client_id, member.host, assigned]


def member_json(member: MemberDescription) -> dict[str, object]:
    """What JSON has of a member. Partitions and topics are null where the bytes are not Kafka's."""
    return {
        "member": member.member_id,
        "instance": member.instance_id,
        "client": member.client_id,
        "host": member.host,
        "rack": member.rack,
        "member_epoch": member.member_epoch if member.member_epoch >= 0 else None,
        "subscribed_topics": member.subscribed_topics,
        "subscribed_regex": member.subscribed_regex,
        "partitions": _named(member.partitions),
        "target_partitions": _named(member.target_partitions),
        "assignment_size_bytes": len(member.assignment),
    }


def _named(partitions: Sequence[TopicPartition] | None) -> list[dict[str, object]] | None:
    return None if partitions is None else partitions_json(partitions)
