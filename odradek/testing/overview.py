"""What is in a cluster, told to people: the last records of its topics, and its groups. For a failing test's report.

The cluster may be broken, which is then what there is to be seen: it is looked at within `LOOK_S`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final

from odradek.client.errors.base import ClientError
from odradek.client.fetching.list_offsets import EARLIEST, LATEST
from odradek.client.topic_partition import TopicPartition
from odradek.testing.record_shapes import shown_record

if TYPE_CHECKING:
    from odradek.client.admin.groups import MemberDescription
    from odradek.testing.contents import Contents

LOOK_S: Final = 2.0
TOPICS_MAX: Final = 10
GROUPS_MAX: Final = 10
RECORDS_MAX: Final = 5
"""Of each partition."""
PARTITIONS_MAX: Final = 12
"""Of each topic and group."""

Section = tuple[str, str]
"""A title and a text."""


async def overview(contents: "Contents") -> list[Section]:
    """Raises nothing of the brokers: it is told beside a failure, which it must not replace."""
    return [
        ("topics", await _in_time(_topics, contents)),
        ("groups", await _in_time(_groups, contents)),
    ]


async def _in_time(look: "Callable[[Contents, list[str]], Awaitable[None]]", contents: "Contents") -> str:
    """What was seen within the time, and why it is not more."""
    lines: list[str] = []
    try:
        async with asyncio.timeout(LOOK_S / 2):
            await look(contents, lines)
    except TimeoutError:
        lines.append(f"  … the brokers have not told more within {LOOK_S / 2:g} s")
    except ClientError as error:
        lines.append(f"  … {type(error).__name__}: {error}")
    return "\n".join(lines) or "  none"


async def _topics(contents: "Contents", lines: list[str]) -> None:
    topics = sorted(await contents.topics())
    for topic in topics[:TOPICS_MAX]:
        partitions = await contents.partitions(topic)
        admin = await contents.admin()
        begins = await admin.list_offsets(dict.fromkeys(partitions, EARLIEST))
        ends = await admin.list_offsets(dict.fromkeys(partitions, LATEST))
        count = sum(ends[each].offset - begins[each].offset for each in partitions)
        lines.append(f"  {topic}: {len(partitions)} partition(s), {count} offset(s)")
        records = await contents.last_records(partitions[:PARTITIONS_MAX], RECORDS_MAX)
        lines += [f"  {shown_record(record)}" for record in records]
    if (left_out := len(topics) - TOPICS_MAX) > 0:
        lines.append(f"  … and {left_out} more")


async def _groups(contents: "Contents", lines: list[str]) -> None:
    admin = await contents.admin()
    groups = sorted(each.group_id for each in await admin.list_groups())
    for group_id in groups[:GROUPS_MAX]:
        described = await admin.describe_group(group_id)
        committed = await contents.committed(group_id)
        lag = await contents.lag(group_id)
        behind = sum(lag.values())
        lines.append(f"  {group_id}: {described.state}, {len(described.members)} member(s), lag {behind}")
        owners = _owners(described.members)
        for partition in sorted(lag)[:PARTITIONS_MAX]:
            there = committed.get(partition, "nothing")
            lines.append(
                f"    {partition}: committed {there}, lag {lag[partition]}, {owners.get(partition, 'no member')}"
            )
        lines += [f"    {_member(each)}" for each in described.members if not each.partitions]
    if (left_out := len(groups) - GROUPS_MAX) > 0:
        lines.append(f"  … and {left_out} more")


def _owners(members: "Sequence[MemberDescription]") -> dict[TopicPartition, str]:
    return {partition: _member(member) for member in members for partition in member.partitions or ()}


def _member(member: "MemberDescription") -> str:
    return f"member {member.member_id} (client {member.client_id!r})"
