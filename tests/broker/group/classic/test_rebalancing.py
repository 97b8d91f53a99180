"""Barriers and delays: how long joins wait, and for whom."""

from typing import Any

import pytest

from odradek.broker.group.classic.requests import Leaving
from odradek.broker.group.classic.states import ClassicState
from odradek.broker.group.rebalance import REASON_SIZE_MAX, RebalanceCause
from odradek.protocol.errors import ErrorCode
from tests.broker.group.classic.groups import DELAY_MS, REBALANCE_MS, SESSION_MS, Stage, offers


# -- the first joins of an empty group ---------------------------------------------------------------------------------
def test_the_first_join_waits_for_others() -> None:
    stage = Stage()
    joined = stage.join()
    stage.wait(DELAY_MS - 1)
    assert not joined.is_answered
    stage.wait(1)
    assert joined.answer.generation == 1


def test_without_a_delay_the_first_join_waits_for_the_next_tick_only() -> None:
    stage = Stage(group_initial_rebalance_delay_ms=0)
    joined = stage.join()
    stage.wait(0)
    assert joined.answer.generation == 1


def test_the_delay_is_extended_while_members_come() -> None:
    stage = Stage()
    first = stage.join()
    for _ in range(3):
        stage.wait(DELAY_MS - 500)
        stage.join()
    # 7,500 ms have passed; the delay was extended at 3,000 and at 6,000 ms.
    stage.wait(9_000 - 7_500 - 1)
    assert not first.is_answered
    stage.wait(1 + DELAY_MS)
    assert len(first.answer.members) == 4


def test_the_delay_ends_with_the_rebalance_time_out_at_the_latest() -> None:
    stage = Stage()
    first = stage.join(rebalance_timeout_ms=7_000)
    for _ in range(6):
        stage.wait(1_000)
        stage.join()
    stage.wait(999)
    assert not first.is_answered
    stage.wait(1)
    assert len(first.answer.members) == 7


def test_an_initial_rebalance_is_not_completed_by_joins() -> None:
    stage = Stage()
    first = stage.join(requires_known_member_id=True)
    second = stage.join()
    stage.join(first.answer.member_id)
    assert not second.is_answered
    assert stage.group.state is ClassicState.PREPARING_REBALANCE


# -- later ones --------------------------------------------------------------------------------------------------------
def test_a_rebalance_ends_when_all_have_joined() -> None:
    stage = Stage()
    leader_id, follower_id = stage.stabilize(2)
    new = stage.join()
    stage.join(follower_id)
    assert not new.is_answered
    leader = stage.join(leader_id)
    assert new.answer.generation == leader.answer.generation == 2
    assert len(leader.answer.members) == 3


def test_a_dynamic_member_that_does_not_join_in_time_is_left_behind() -> None:
    stage = Stage()
    leader_id, follower_id = stage.stabilize(2)
    rejoined = stage.join(follower_id, protocols=offers("range", metadata=b"\0"))
    for _ in range(REBALANCE_MS // 5_000 - 1):
        stage.wait(5_000)
        assert stage.heartbeat(leader_id) is ErrorCode.REBALANCE_IN_PROGRESS
    assert not rejoined.is_answered
    stage.wait(5_000)
    assert rejoined.answer.leader_id == follower_id
    assert stage.heartbeat(leader_id) is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_longest_rebalance_time_out_of_all_members_counts() -> None:
    stage = Stage()
    fields: dict[str, Any] = {"session_timeout_ms": 600_000}
    ids = stage.complete([stage.join(**fields), stage.join(rebalance_timeout_ms=2 * REBALANCE_MS, **fields)])
    rejoined = stage.join(ids[0], **fields)
    stage.wait(2 * REBALANCE_MS - 1)
    assert not rejoined.is_answered
    stage.wait(1)
    assert rejoined.answer.generation == 2


def test_a_member_that_waits_for_others_needs_no_heartbeats() -> None:
    stage = Stage()
    leader_id, follower_id = stage.stabilize(2)
    rejoined = stage.join(leader_id)
    for _ in range(4):
        stage.wait(SESSION_MS - 1)
        stage.heartbeat(follower_id)
    stage.join(follower_id)
    assert rejoined.answer.generation == 2
    stage.wait(SESSION_MS - 1)
    assert stage.heartbeat(leader_id) is ErrorCode.NONE, "its session began with the answer"


def test_a_silent_member_is_removed_and_no_longer_waited_for() -> None:
    stage = Stage()
    leader_id, follower_id = stage.stabilize(2)
    stage.wait(1)
    stage.heartbeat(leader_id)
    heard_ms = stage.now.unix_ms - 1
    stage.wait(SESSION_MS - 1)
    assert stage.heartbeat(leader_id) is ErrorCode.REBALANCE_IN_PROGRESS
    rebalance = stage.group.rebalances[-1]
    assert (rebalance.cause, rebalance.member_id) == (RebalanceCause.SESSION_EXPIRED, follower_id)
    assert (rebalance.last_heard_ms, rebalance.generation) == (heard_ms, 1)
    assert stage.join(leader_id).answer.generation == 2


def test_a_member_that_is_silent_during_a_rebalance_is_no_longer_waited_for() -> None:
    stage = Stage()
    leader_id, _ = stage.stabilize(2)
    rejoined = stage.join(leader_id)
    stage.wait(SESSION_MS)
    assert rejoined.answer.generation == 2
    assert len(rejoined.answer.members) == 1


def test_whom_an_id_was_given_is_waited_for_no_longer_than_a_session() -> None:
    stage = Stage()
    (leader_id,) = stage.stabilize()
    stage.join(requires_known_member_id=True)
    rejoined = stage.join(leader_id)
    stage.wait(SESSION_MS - 1)
    assert not rejoined.is_answered
    stage.wait(1)
    assert rejoined.answer.generation == 2


@pytest.mark.parametrize("count", [1, 3])
def test_a_group_of_silent_members_becomes_empty(count: int) -> None:
    stage = Stage()
    stage.stabilize(count)
    stage.wait(2 * SESSION_MS + REBALANCE_MS)
    assert stage.group.is_empty
    assert stage.group.state_timestamp_ms is not None
    assert len(stage.timers) == 0


def test_each_member_that_makes_a_rebalance_is_told_with_its_reason() -> None:
    """Sessions, syncs, records that were refused and too many members stand in the tests of these."""
    stage = Stage(group_initial_rebalance_delay_ms=0)

    def told() -> tuple[RebalanceCause, str, str | None, str, int | None]:
        found = stage.group.rebalances[-1]
        ago_ms = None if found.last_heard_ms is None else found.started_ms - found.last_heard_ms
        return found.cause, found.member_id, found.instance_id, found.reason, ago_ms

    first = stage.join(reason="a start")
    stage.wait(0)
    (a,) = stage.assign([first])
    assert told() == (RebalanceCause.MEMBER_JOINED, a, None, f"member {a} joined: a start", None)
    second = stage.join(instance_id="i")
    stage.assign([stage.join(a), second])
    b = second.answer.member_id
    assert told() == (RebalanceCause.MEMBER_JOINED, b, "i", f"member {b} joined", None)
    stage.wait(10)
    again = stage.join(a)
    assert told() == (RebalanceCause.LEADER_REJOINED, a, None, f"leader {a} joined again", 10)
    stage.assign([again, stage.join(b, "i")])
    stage.wait(20)
    other = stage.join(b, "i", protocols=offers("range", "sticky"))
    assert told() == (RebalanceCause.SUBSCRIPTION_CHANGED, b, "i", f"member {b} changed its subscription", 20)
    stage.assign([stage.join(a), other])
    stage.wait(30)
    stage.leave(Leaving(a, reason="closing"))
    assert told() == (RebalanceCause.MEMBER_LEFT, a, None, f"member {a} left: closing", 30)
    stage.assign([stage.join(b, "i", protocols=offers("range", "sticky"))])
    count = len(stage.group.rebalances)
    c = stage.join(instance_id="i", protocols=offers("range", "sticky")).answer.member_id
    assert len(stage.group.rebalances) == count, "nobody is to do anything"
    stage.wait(40)
    d = stage.join(instance_id="i", protocols=offers("sticky")).answer.member_id
    assert told() == (RebalanceCause.STATIC_MEMBER_REPLACED, d, "i", f"static member i came back as {d}", 40)
    assert len({b, c, d}) == 3


def test_a_long_reason_of_a_client_is_cut() -> None:
    stage = Stage()
    stage.join(reason="r" * 30_000)
    assert len(stage.group.rebalances[0].reason) == REASON_SIZE_MAX


def test_the_last_ten_rebalances_are_told() -> None:
    stage = Stage()
    (member_id,) = stage.stabilize()
    for number in range(12):
        stage.assign([stage.join(member_id, reason=f"number {number}")])
    rebalances = stage.group.rebalances
    assert [each.generation for each in rebalances] == list(range(3, 13))
    assert rebalances[-1].cause is RebalanceCause.LEADER_REJOINED
    assert rebalances[-1].reason.endswith(": number 11")
    assert stage.group.describe().rebalances == rebalances
