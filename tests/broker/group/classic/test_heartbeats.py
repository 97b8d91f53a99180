"""Heartbeats, and commits that count as such."""

from odradek.broker.group.classic.states import ClassicState
from odradek.protocol.errors import ErrorCode
from tests.broker.group.classic.groups import DELAY_MS, SESSION_MS, Stage


def test_heartbeats_keep_a_member() -> None:
    stage = Stage()
    (member_id,) = stage.stabilize()
    for _ in range(5):
        stage.wait(SESSION_MS // 2)
        assert stage.heartbeat(member_id) is ErrorCode.NONE
    stage.wait(SESSION_MS)
    assert stage.heartbeat(member_id) is ErrorCode.UNKNOWN_MEMBER_ID
    assert stage.group.is_empty


def test_a_heartbeat_is_judged_by_member_instance_and_generation() -> None:
    stage = Stage()
    (member_id,) = stage.complete([stage.join(instance_id="a")])
    assert stage.heartbeat(member_id, 0) is ErrorCode.ILLEGAL_GENERATION
    assert stage.heartbeat("stranger") is ErrorCode.UNKNOWN_MEMBER_ID
    assert stage.heartbeat("stranger", instance_id="a") is ErrorCode.FENCED_INSTANCE_ID
    assert stage.heartbeat(member_id, instance_id="b") is ErrorCode.UNKNOWN_MEMBER_ID
    assert stage.heartbeat(member_id, instance_id="a") is ErrorCode.NONE


def test_a_heartbeat_during_a_rebalance_is_told_to_join_and_counts() -> None:
    stage = Stage()
    leader_id, follower_id = stage.stabilize(2)
    stage.join(leader_id)
    for _ in range(5):
        stage.wait(SESSION_MS - 1)
        assert stage.heartbeat(follower_id) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_heartbeat_before_the_sync_is_welcome() -> None:
    stage = Stage()
    joined = stage.join()
    stage.wait(DELAY_MS)
    assert stage.group.state is ClassicState.COMPLETING_REBALANCE
    assert stage.heartbeat(joined.answer.member_id) is ErrorCode.NONE


def test_who_was_only_given_an_id_is_unknown() -> None:
    stage = Stage()
    member_id = stage.join(requires_known_member_id=True).answer.member_id
    assert stage.heartbeat(member_id) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_commit_keeps_a_member_while_the_group_is_stable_or_prepares() -> None:
    stage = Stage()
    leader_id, follower_id = stage.stabilize(2)
    stage.wait(1_000)
    stage.heartbeat(leader_id)
    stage.group.refresh_session(follower_id, stage.now)
    stage.wait(SESSION_MS - 1)
    assert len(stage.group.describe().members) == 2
    stage.join(leader_id)
    stage.group.refresh_session(follower_id, stage.now)
    stage.wait(SESSION_MS - 1)
    assert stage.heartbeat(follower_id) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_commit_does_not_keep_a_member_that_waits_for_its_assignment() -> None:
    stage = Stage()
    joined = stage.join()
    stage.wait(DELAY_MS + SESSION_MS - 1)
    stage.group.refresh_session(joined.answer.member_id, stage.now)
    stage.wait(1)
    assert stage.group.is_empty
    stage.group.refresh_session("stranger", stage.now)
