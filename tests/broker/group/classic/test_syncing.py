"""The rules of SyncGroup, one by one."""

from typing import Any

import pytest

from odradek.broker.group.classic.requests import Joined
from odradek.broker.group.classic.states import ClassicState
from odradek.broker.group.rebalance import RebalanceCause
from odradek.protocol.errors import ErrorCode
from tests.broker.group.classic.groups import DELAY_MS, REBALANCE_MS, SESSION_MS, Asked, Stage, offers


def completing(count: int = 2) -> tuple[Stage, list[Asked[Joined]]]:
    """A group that waits for syncs; the first join is the leader's."""
    stage = Stage()
    joins = [stage.join() for _ in range(count)]
    stage.wait(2 * DELAY_MS)
    return stage, joins


def ids_of(joins: list[Asked[Joined]]) -> list[str]:
    return [each.answer.member_id for each in joins]


def test_syncs_are_held_until_the_leader_assigns() -> None:
    stage, joins = completing(3)
    leader_id, early_id, late_id = ids_of(joins)
    early = stage.sync(early_id)
    assert not early.is_answered
    leader = stage.sync(leader_id, assignments={leader_id: b"A", early_id: b"B", late_id: b"C"})
    late = stage.sync(late_id)
    assert [each.answer.assignment for each in (leader, early, late)] == [b"A", b"B", b"C"]
    assert (late.answer.protocol_type, late.answer.protocol_name) == ("consumer", "range")
    assert stage.group.state is ClassicState.STABLE


def test_whom_the_leader_forgot_is_assigned_nothing_and_strangers_are_passed_over() -> None:
    stage, joins = completing()
    leader_id, follower_id = ids_of(joins)
    held = stage.sync(follower_id)
    stage.sync(leader_id, assignments={leader_id: b"A", "stranger": b"X"})
    assert held.answer.assignment == b""
    assert len(stage.group.describe().members) == 2


def test_assignments_are_stored_before_anybody_is_told() -> None:
    stage, joins = completing()
    leader_id, follower_id = ids_of(joins)
    held = stage.sync(follower_id)
    stage.hold()
    leader = stage.sync(leader_id, assignments={leader_id: b"A", follower_id: b"B"})
    late = stage.sync(follower_id)
    assert not (held.is_answered or leader.is_answered or late.is_answered)
    stage.commit()
    stored = stage.stored()
    assert stored is not None
    assert (stored.protocol_type, stored.generation, stored.protocol, stored.leader) == (
        "consumer",
        1,
        "range",
        leader_id,
    )
    assert {each.member_id: each.assignment for each in stored.members} == {leader_id: b"A", follower_id: b"B"}
    assert held.answer.assignment == late.answer.assignment == b"B"


def test_a_refused_record_ends_the_generation_for_everybody() -> None:
    stage, joins = completing()
    leader_id, follower_id = ids_of(joins)
    held = stage.sync(follower_id)
    stage.hold()
    leader = stage.sync(leader_id, assignments={leader_id: b"A", follower_id: b"B"})
    stage.refuse()
    assert held.error is leader.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert stage.group.state is ClassicState.PREPARING_REBALANCE
    assert [each.assignment for each in stage.group.describe().members] == [b"", b""]
    assert stage.group.rebalances[-1].cause is RebalanceCause.NOT_STORED
    rejoined = [stage.join(leader_id), stage.join(follower_id)]
    assert [each.answer.generation for each in rejoined] == [2, 2]


def test_a_refused_record_of_a_generation_that_has_ended_takes_its_assignments_back() -> None:
    stage, joins = completing()
    leader_id, follower_id = ids_of(joins)
    stage.hold()
    stage.sync(leader_id, assignments={leader_id: b"A", follower_id: b"B"})
    new = stage.join()
    stage.refuse()
    assert stage.group.state is ClassicState.PREPARING_REBALANCE
    assert all(each.assignment == b"" for each in stage.group.describe().members)
    stage.join(leader_id)
    stage.join(follower_id)
    assert new.answer.generation == 2
    assert len(stage.group.rebalances) == 2


def test_a_later_generation_that_is_stored_stays_when_an_older_record_is_refused() -> None:
    stage, joins = completing()
    leader_id, follower_id = ids_of(joins)
    stage.hold()
    stage.sync(leader_id, assignments={leader_id: b"A", follower_id: b"B"})
    stage.join(leader_id)
    stage.join(follower_id)
    stage.sync(leader_id, assignments={leader_id: b"C", follower_id: b"D"})
    stage.refuse_older()
    assert (stage.group.state, stage.group.generation) == (ClassicState.STABLE, 2)
    assert [each.assignment for each in stage.group.describe().members] == [b"C", b"D"]
    stored = stage.stored()
    assert stored is not None
    assert stored.generation == 2


def test_a_member_whose_held_sync_ends_with_a_rebalance_has_a_session_again() -> None:
    stage, joins = completing()
    leader_id, follower_id = ids_of(joins)
    held = stage.sync(follower_id)
    for _ in range(3):
        stage.wait(SESSION_MS - 1)
        stage.heartbeat(leader_id)
    rejoined = stage.join(leader_id, protocols=offers("range", metadata=b"\0"))
    assert held.error is ErrorCode.REBALANCE_IN_PROGRESS
    stage.wait(SESSION_MS - 1)
    assert not rejoined.is_answered
    stage.wait(1)
    assert len(rejoined.answer.members) == 1


def test_a_stable_group_answers_every_sync_with_what_was_assigned() -> None:
    stage = Stage()
    leader_id, follower_id = stage.stabilize(2)
    asked = stage.sync(leader_id, assignments={leader_id: b"all"})
    assert asked.answer.assignment == f"of {leader_id}".encode()
    assert stage.sync(follower_id).answer.assignment == f"of {follower_id}".encode()
    assert stage.outbox.record_count == 2


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_name": "sticky"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": "consumer", "protocol_name": "range"}, ErrorCode.NONE),
        ({"generation": 0}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation": 2}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation": -1}, ErrorCode.ILLEGAL_GENERATION),
        ({"member_id": "stranger"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"instance_id": "till-7"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_sync_names_its_member_generation_and_protocol(fields: dict[str, Any], code: ErrorCode) -> None:
    stage = Stage()
    (member_id,) = stage.stabilize()
    identity: dict[str, Any] = {"member_id": member_id}
    assert stage.sync(**identity | fields).error is code


def test_a_sync_during_a_rebalance_is_told_to_join() -> None:
    stage = Stage()
    leader_id, follower_id = stage.stabilize(2)
    stage.join(leader_id)
    assert stage.sync(follower_id).error is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_member_that_syncs_twice_is_answered_once_for_both() -> None:
    stage, joins = completing()
    leader_id, follower_id = ids_of(joins)
    earlier, later = stage.sync(follower_id), stage.sync(follower_id)
    assert earlier.error is ErrorCode.REBALANCE_IN_PROGRESS
    stage.sync(leader_id, assignments={follower_id: b"B"})
    assert later.answer.assignment == b"B"


def test_members_that_never_sync_are_removed() -> None:
    stage, joins = completing(3)
    leader_id, follower_id, silent_id = ids_of(joins)
    stage.sync(leader_id, assignments={leader_id: b"A"})
    stage.sync(follower_id)
    for member_id in (leader_id, follower_id, silent_id):
        assert stage.heartbeat(member_id) is ErrorCode.NONE
    for _ in range(REBALANCE_MS // 5_000):
        stage.wait(5_000)
        for member_id in (leader_id, follower_id, silent_id):
            stage.heartbeat(member_id)
    assert {each.member_id for each in stage.group.describe().members} == {leader_id, follower_id}
    assert stage.group.state is ClassicState.PREPARING_REBALANCE
    assert stage.group.rebalances[-1].cause is RebalanceCause.SYNC_EXPIRED
    assert silent_id in stage.group.rebalances[-1].reason


def test_followers_of_a_leader_that_never_syncs_are_told_to_join() -> None:
    stage, joins = completing()
    leader_id, follower_id = ids_of(joins)
    held = stage.sync(follower_id)
    for _ in range(REBALANCE_MS // 5_000):
        stage.wait(5_000)
        stage.heartbeat(leader_id)
    assert held.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert [each.member_id for each in stage.group.describe().members] == [follower_id]


def test_a_member_whose_sync_is_held_needs_no_heartbeats() -> None:
    stage, joins = completing()
    leader_id, follower_id = ids_of(joins)
    held = stage.sync(follower_id)
    stage.wait(SESSION_MS - 1)
    stage.heartbeat(leader_id)
    stage.wait(5_000)
    stage.sync(leader_id, assignments={follower_id: b"B"})
    assert held.answer.assignment == b"B"
    stage.wait(SESSION_MS - 1)
    assert stage.heartbeat(follower_id) is ErrorCode.NONE, "its session began with the answer"
