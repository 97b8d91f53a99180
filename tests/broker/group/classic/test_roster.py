"""Who is in the group, by hand."""

import pytest

from odradek.broker.group.classic.member import Member
from odradek.broker.group.classic.requests import Joined
from odradek.broker.group.classic.roster import Roster
from odradek.broker.group.group_host import TimerKey, TimerKind
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.group.classic.groups import GROUP_ID, RANGE, Asked


def member_of(member_id: str, instance_id: str | None = None, rebalance_timeout_ms: int = 1_000) -> Member:
    return Member(
        member_id,
        TimerKey(GROUP_ID, TimerKind.SESSION, member_id),
        instance_id=instance_id,
        client_id="app",
        client_host="/10.0.0.1",
        rebalance_timeout_ms=rebalance_timeout_ms,
        session_timeout_ms=1_000,
        protocols=RANGE,
    )


def roster_of(*members: Member) -> Roster:
    roster = Roster()
    for member in members:
        roster.add(member)
    return roster


def hold(roster: Roster, member_id: str) -> None:
    asked: Asked[Joined] = Asked()
    roster.hold_join(roster.members[member_id], asked)


def test_the_first_member_leads_until_it_goes() -> None:
    roster = roster_of(member_of("a"), member_of("b"), member_of("c"))
    assert roster.leader_id == "a"
    roster.remove("a")
    assert roster.leader_id == "b"
    roster.remove("c")
    roster.remove("b")
    assert roster.leader_id is None


def test_a_leader_that_has_not_joined_hands_over_to_one_that_has() -> None:
    roster = roster_of(member_of("a"), member_of("b"), member_of("c"))
    assert not roster.elect_joined_leader(), "nobody has joined"
    hold(roster, "c")
    assert roster.elect_joined_leader()
    assert roster.leader_id == "c"
    hold(roster, "a")
    assert roster.elect_joined_leader()
    assert roster.leader_id == "c", "it has joined, and stays"
    assert not Roster().elect_joined_leader()


def test_all_have_joined_when_nobody_is_expected_either() -> None:
    roster = roster_of(member_of("a"))
    assert not roster.has_all_joined
    hold(roster, "a")
    assert roster.has_all_joined
    roster.pending_joins["b"] = None
    assert not roster.has_all_joined


def test_a_static_member_is_renamed_in_everything() -> None:
    roster = roster_of(member_of("a-1", "a"))
    roster.pending_syncs["a-1"] = None
    roster.rename(roster.members["a-1"], "a-2", TimerKey(GROUP_ID, TimerKind.SESSION, "a-2"))
    assert (roster.leader_id, list(roster.members), roster.static_ids) == ("a-2", ["a-2"], {"a": "a-2"})
    assert list(roster.pending_syncs) == ["a-2"]
    assert roster.members["a-2"].member_id == "a-2"


@pytest.mark.parametrize(
    ("member_id", "instance_id", "code"),
    [
        ("b", None, ErrorCode.UNKNOWN_MEMBER_ID),
        ("a-1", "b", ErrorCode.UNKNOWN_MEMBER_ID),
        ("a-0", "a", ErrorCode.FENCED_INSTANCE_ID),
        ("", "a", ErrorCode.FENCED_INSTANCE_ID),
    ],
)
def test_who_is_not_known_is_refused(member_id: str, instance_id: str | None, code: ErrorCode) -> None:
    roster = roster_of(member_of("a-1", "a"))
    with pytest.raises(KafkaError) as refused:
        roster.known(member_id, instance_id)
    assert refused.value.code is code
    assert roster.known("a-1", "a") is roster.known("a-1", None)


def test_the_slowest_member_is_waited_for_and_never_for_no_time_at_all() -> None:
    assert roster_of(member_of("a"), member_of("b", rebalance_timeout_ms=5_000)).rebalance_timeout_ms == 5_000
    assert roster_of(member_of("a", rebalance_timeout_ms=-1)).rebalance_timeout_ms == 1
    assert Roster().rebalance_timeout_ms == 1
