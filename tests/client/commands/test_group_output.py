"""What is printed of groups: rows for tables, JSON, and when offsets expire."""

import json
from dataclasses import replace

import pytest

from odradek.client.admin.group_offsets import CommittedOffset
from odradek.client.admin.groups import GroupDescription, GroupRebalance, MemberDescription
from odradek.client.commands.group_description import Described
from odradek.client.commands.group_output import (
    expiry,
    group_json,
    member_json,
    member_row,
    rebalance_lines,
    rows,
    summary,
)
from odradek.client.commands.lag import Progress
from odradek.client.topic_partition import TopicPartition

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
MEMBER = MemberDescription("m-1", "one", "app", "10.1.2.3", b"s", b"abc", ("orders",), (P0, P1))
STABLE = GroupDescription("a", "classic", "Stable", "consumer", "range", 2, (MEMBER,))
EMPTY = GroupDescription("b", "classic", "Empty", "", "", 2)


def described(group: GroupDescription, *progress: Progress, retention_minutes: int | None = 7 * 24 * 60) -> Described:
    return Described(group, progress, retention_minutes)


def test_a_group_has_a_row_for_each_partition_and_for_each_member_without_one() -> None:
    idle = MemberDescription("m-2", None, "app", "h2", partitions=())
    opaque = MemberDescription("m-3", None, "app", "h3", assignment=b"x", partitions=None)
    busy = GroupDescription("c", "classic", "Stable", "consumer", "range", 2, (MEMBER, idle, opaque))
    found = [
        described(STABLE, Progress(P0, CommittedOffset(5), 1, 9, 4, MEMBER), Progress(P1, None, 0, 9, None, MEMBER)),
        described(EMPTY),
        described(busy, Progress(P0, None, 0, 0, None, MEMBER)),
    ]
    assert rows(found) == [
        ["a", "Stable", "orders", 0, 5, 1, 9, 4, "m-1", "app", "10.1.2.3"],
        ["a", "Stable", "orders", 1, None, 0, 9, None, "m-1", "app", "10.1.2.3"],
        ["b", "Empty", None, None, None, None, None, None, None, None, None],
        ["c", "Stable", "orders", 0, None, 0, 0, None, "m-1", "app", "10.1.2.3"],
        ["c", "Stable", None, None, None, None, None, None, "m-2", "app", "h2"],
        ["c", "Stable", None, None, None, None, None, None, "m-3", "app", "h3"],
    ]


@pytest.mark.parametrize(
    ("group", "minutes", "said"),
    [
        (STABLE, 10_080, "offsets of what its members read are kept"),
        (EMPTY, 10_080, "its offsets expire 7 day(s) after they were committed"),
        (EMPTY, 90, "its offsets expire 90 minute(s) after they were committed"),
        (EMPTY, None, "when its offsets expire is not known"),
        (
            GroupDescription("c", "classic", "Empty", "consumer", "", 2),
            1_440,
            "its offsets expire 1 day(s) after the last member left",
        ),
    ],
)
def test_when_offsets_expire_is_said_where_it_is_known(group: GroupDescription, minutes: int | None, said: str) -> None:
    assert expiry(described(group, retention_minutes=minutes)) == said


def test_a_line_says_what_the_rows_do_not() -> None:
    said = "a: classic, range, 1 member(s), coordinator 2; offsets of what its members read are kept"
    assert summary(described(STABLE)) == said
    assert summary(described(EMPTY)).startswith("b: classic, 0 member(s), coordinator 2; ")


SILENT = GroupRebalance(
    1_790_000_010_500, 4, "session expired", "member m-1 was not heard of in time", "m-1", "one", 1_789_999_965_400
)
TOPICS = GroupRebalance(1_790_000_000_000, 3, "topics changed", "topics changed: orders")


def test_a_line_says_why_the_group_rebalanced_the_last_one_first() -> None:
    assert rebalance_lines(replace(STABLE, rebalances=(TOPICS, SILENT))) == [
        "  rebalanced 2026-09-21T14:13:30Z: member m-1 was not heard of in time; instance one; "
        "last heard of 45.1 s before (session expired)",
        "  rebalanced 2026-09-21T14:13:20Z: topics changed: orders (topics changed)",
    ]
    assert rebalance_lines(STABLE) == []


def test_an_instance_is_told_once() -> None:
    back = GroupRebalance(0, 3, "static member replaced", "static member one came back as m-2", "m-2", "one")
    assert "instance" not in rebalance_lines(replace(STABLE, rebalances=(back,)))[0]


def test_a_terminal_does_not_act_upon_what_a_client_or_broker_has_chosen() -> None:
    bad = GroupRebalance(2**63 - 1, 3, "member left", "member \x1b[2J left: a\nb\u202e é", last_heard_ms=0)
    [line] = rebalance_lines(replace(STABLE, rebalances=(bad,)))
    assert line.startswith("  rebalanced @9223372036854775807: member \\x1b[2J left: a\\nb\\u202e é; last heard")


def test_json_has_why_the_group_rebalanced() -> None:
    found = json.loads(json.dumps(group_json(described(replace(STABLE, rebalances=(TOPICS, SILENT))))))["rebalances"]
    assert found == [
        {
            "started_ms": 1_790_000_000_000, "ended_generation": 3, "cause": "topics changed",
            "reason": "topics changed: orders", "member": None, "instance": None, "last_heard_ms": None,
        },
        {
            "started_ms": 1_790_000_010_500, "ended_generation": 4, "cause": "session expired",
            "reason": "member m-1 was not heard of in time", "member": "m-1", "instance": "one",
            "last_heard_ms": 1_789_999_965_400,
        },
    ]  # fmt: skip
    assert group_json(described(STABLE))["rebalances"] == []


def test_json_has_it_all_with_names() -> None:
    progress = Progress(P0, CommittedOffset(5, "note", 3), 1, 9, 4, MEMBER)
    found = json.loads(json.dumps(group_json(described(STABLE, progress))))
    assert found["partitions"] == [
        {
            "topic": "orders", "partition": 0, "committed_offset": 5, "committed_metadata": "note",
            "committed_leader_epoch": 3, "start_offset": 1, "end_offset": 9, "lag": 4, "member": "m-1",
        }
    ]  # fmt: skip
    assert found["members"][0]["partitions"] == [
        {"topic": "orders", "partition": 0},
        {"topic": "orders", "partition": 1},
    ]
    assert (found["type"], found["coordinator"], found["group_epoch"]) == ("classic", 2, None)
    assert found["offsets_retention_minutes"] == 10_080


def test_members_have_their_partitions_and_others_bytes_their_size() -> None:
    assert member_row("a", MEMBER) == ["a", "m-1", "one", "app", "10.1.2.3", "orders:0,1"]
    idle = MemberDescription("m-2", None, "app", "host", partitions=())
    assert member_row("a", idle)[-1] is None
    opaque = MemberDescription("m-3", None, "worker", "host", assignment=bytes(7), partitions=None)
    assert member_row("a", opaque)[-1] == "(7 bytes)"
    assert member_json(opaque)["partitions"] is None
    assert member_json(opaque)["assignment_size_bytes"] == 7
