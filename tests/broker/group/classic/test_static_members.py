"""Static members that come back (KIP-345, KIP-814), rule by rule."""

from typing import Any

import pytest

from odradek.broker.group.classic.requests import Joined
from odradek.broker.group.classic.states import ClassicState
from odradek.protocol.errors import ErrorCode
from tests.broker.group.classic.groups import DELAY_MS, RANGE, REBALANCE_MS, SESSION_MS, Asked, Stage, offers


def static_stage() -> tuple[Stage, str, str]:
    """A stable group of two static members `a`, which leads, and `b`."""
    stage = Stage()
    leader_id, follower_id = stage.complete([stage.join(instance_id="a"), stage.join(instance_id="b")])
    return stage, leader_id, follower_id


def test_a_follower_comes_back_to_its_assignment_without_a_rebalance() -> None:
    stage, leader_id, follower_id = static_stage()
    answer = stage.join(instance_id="b").answer
    assert answer.member_id not in (leader_id, follower_id)
    assert (answer.generation, answer.leader_id, answer.members) == (1, leader_id, ())
    assert stage.group.state is ClassicState.STABLE
    assert stage.sync(answer.member_id, instance_id="b").answer.assignment == f"of {follower_id}".encode()
    assert stage.heartbeat(leader_id) is ErrorCode.NONE


def test_a_leader_that_comes_back_is_told_not_to_assign() -> None:
    stage, _, follower_id = static_stage()
    answer = stage.join(instance_id="a", supports_skip_assignment=True).answer
    assert answer.skip_assignment
    assert answer.leader_id == answer.member_id
    assert [each.member_id for each in answer.members] == [answer.member_id, follower_id]


def test_an_old_leader_that_comes_back_is_told_that_another_one_leads() -> None:
    stage, leader_id, _ = static_stage()
    answer = stage.join(instance_id="a").answer
    assert not answer.skip_assignment
    assert (answer.leader_id, answer.members) == (leader_id, ())
    assert stage.group.describe().leader_id == answer.member_id


def test_the_former_id_is_fenced_in_every_request() -> None:
    stage, _, former_id = static_stage()
    stage.join(instance_id="b")
    assert stage.heartbeat(former_id, instance_id="b") is ErrorCode.FENCED_INSTANCE_ID
    assert stage.sync(former_id, instance_id="b").error is ErrorCode.FENCED_INSTANCE_ID
    assert stage.join(former_id, "b").error is ErrorCode.FENCED_INSTANCE_ID
    assert stage.heartbeat(former_id) is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_former_ids_session_counts_no_longer() -> None:
    stage, leader_id, _ = static_stage()
    stage.wait(2_000)
    new_id = stage.join(instance_id="b").answer.member_id
    for _ in range(4):
        stage.wait(SESSION_MS // 2)
        assert stage.heartbeat(leader_id) is ErrorCode.NONE
        assert stage.heartbeat(new_id, instance_id="b") is ErrorCode.NONE


def test_the_new_id_is_stored_before_anybody_is_told() -> None:
    stage, leader_id, _ = static_stage()
    stage.hold()
    asked = stage.join(instance_id="b")
    assert not asked.is_answered
    stage.commit()
    stored = stage.stored()
    assert stored is not None
    assert [each.member_id for each in stored.members] == [leader_id, asked.answer.member_id]


def test_the_former_id_is_put_back_if_the_new_one_cannot_be_stored() -> None:
    stage, leader_id, former_id = static_stage()
    stage.hold()
    asked = stage.join(instance_id="b", session_timeout_ms=SESSION_MS + 1)
    stage.refuse()
    assert asked.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert stage.group.state is ClassicState.STABLE
    assert stage.heartbeat(former_id, instance_id="b") is ErrorCode.NONE
    assert stage.sync(former_id, instance_id="b").answer.assignment == f"of {former_id}".encode()
    assert stage.heartbeat(leader_id) is ErrorCode.NONE


def test_a_leaders_former_id_is_put_back_as_the_leaders() -> None:
    stage, leader_id, _ = static_stage()
    stage.hold()
    stage.join(instance_id="a")
    stage.refuse()
    assert stage.group.describe().leader_id == leader_id


def test_two_ids_that_cannot_be_stored_leave_the_first_one() -> None:
    stage, _, former_id = static_stage()
    stage.hold()
    stage.join(instance_id="b")
    stage.join(instance_id="b")
    stage.refuse()
    assert stage.heartbeat(former_id, instance_id="b") is ErrorCode.NONE


def test_an_id_that_is_stored_stays_when_an_older_record_is_refused() -> None:
    stage, leader_id, _ = static_stage()
    stage.hold()
    stage.join(instance_id="b")
    stage.join(instance_id="b")
    stage.refuse_older()
    stored = stage.stored()
    assert stored is not None
    ids = [each.member_id for each in stage.group.describe().members]
    assert ids == [each.member_id for each in stored.members]
    assert ids[0] == leader_id
    assert stage.heartbeat(ids[1], instance_id="b") is ErrorCode.NONE


def test_nothing_is_put_back_for_a_member_that_has_left_since() -> None:
    stage, leader_id, _ = static_stage()
    stage.hold()
    stage.join(instance_id="b")
    new_id = stage.group.describe().members[-1].member_id
    stage.leave(new_id)
    stage.refuse()
    assert [each.member_id for each in stage.group.describe().members] == [leader_id]


def test_a_member_that_comes_back_with_another_choice_makes_a_rebalance() -> None:
    stage = Stage()
    both = offers("range", "sticky")
    leader_id, _ = stage.complete(
        [stage.join(instance_id="a", protocols=both), stage.join(instance_id="b", protocols=both)]
    )
    asked = stage.join(instance_id="b", protocols=offers("sticky"))
    assert not asked.is_answered
    assert stage.group.state is ClassicState.PREPARING_REBALANCE
    assert stage.join(leader_id, "a", protocols=both).answer.protocol_name == "sticky"


def test_the_topics_of_a_member_that_came_back_count() -> None:
    stage = Stage()
    stage.complete([stage.join(instance_id="a")])
    assert stage.group.subscribed_topics == frozenset({"orders"})
    other = offers("range", metadata=RANGE[0].metadata.replace(b"orders", b"prices"))
    stage.join(instance_id="a", protocols=other)
    assert stage.group.subscribed_topics == frozenset({"prices"})


def test_a_member_that_comes_back_while_a_generation_completes_ends_it() -> None:
    stage = Stage()
    first, second = stage.join(instance_id="a"), stage.join(instance_id="b")
    stage.wait(2 * DELAY_MS)
    held = stage.sync(second.answer.member_id)
    back = stage.join(instance_id="b")
    assert held.error is ErrorCode.FENCED_INSTANCE_ID
    assert stage.group.state is ClassicState.PREPARING_REBALANCE
    assert stage.join(first.answer.member_id, "a").answer.generation == 2
    assert back.answer.generation == 2


def test_a_held_join_is_fenced_by_a_member_that_comes_back() -> None:
    stage = Stage()
    former: Asked[Joined] = stage.join(instance_id="a")
    back = stage.join(instance_id="a")
    assert former.error is ErrorCode.FENCED_INSTANCE_ID
    stage.wait(2 * DELAY_MS)
    assert back.answer.generation == 1


def test_a_static_member_that_does_not_join_in_time_stays() -> None:
    stage = Stage()
    fields: dict[str, Any] = {"session_timeout_ms": 10 * REBALANCE_MS}
    joins = [stage.join(instance_id=name, **fields) for name in ("a", "b")]
    leader_id, follower_id = stage.complete(joins)
    asked = stage.join(follower_id, "b", protocols=offers("range", metadata=b"\0"), **fields)
    stage.wait(REBALANCE_MS)
    assert asked.answer.leader_id == follower_id, "the leader has not joined: another one is chosen"
    assert {each.member_id for each in asked.answer.members} == {leader_id, follower_id}


@pytest.mark.parametrize("rebalance_timeout_ms", [0, 1_000])
def test_a_group_in_which_no_member_joins_waits_until_sessions_end(rebalance_timeout_ms: int) -> None:
    stage = Stage(group_initial_rebalance_delay_ms=0)
    fields: dict[str, Any] = {"session_timeout_ms": 6_000, "rebalance_timeout_ms": rebalance_timeout_ms}
    joins = [stage.join(instance_id=name, **fields) for name in ("a", "b")]
    stage.wait(0)
    leader_id, follower_id = stage.assign(joins)
    stage.leave(leader_id)
    stage.wait(rebalance_timeout_ms)
    assert stage.group.state is ClassicState.PREPARING_REBALANCE, f"{follower_id} has not joined"
    stage.wait(6_000)
    assert stage.group.is_empty
