"""Static members of a consumer group: they leave for a while, come back, and are replaced."""

from odradek.broker.group.consumer.group_state import GroupPhase
from odradek.broker.group.consumer.requests import ConsumerHeartbeat
from odradek.protocol.errors import ErrorCode
from tests.broker.group.consumer.rig import (
    SESSION_MS,
    Rig,
    joining,
    parts,
    phase_of,
    refused_with,
)


def test_a_static_member_comes_back_to_what_it_had_without_a_rebalance() -> None:
    rig = Rig()
    topic_id = rig.topics.put("orders", 4)
    rig.join("a", "orders", instance_id="i")
    rig.join("b", "orders")
    rig.beat("a", 2, parts(topic_id, 0, 1))
    rig.beat("a", 2, parts(topic_id, 0, 1))
    assert rig.beat("b", 3).assigned == {topic_id: (2, 3)}
    answer = rig.beat("a", -2, instance_id="i")
    assert (answer.member_epoch, answer.assigned) == (-2, None)
    assert rig.state.current("a").assigned == {topic_id: {0: 0, 1: 0}}
    assert phase_of(rig) is GroupPhase.RECONCILING
    answer = rig.join("c", "orders", instance_id="i")
    assert (answer.member_epoch, answer.assigned) == (3, {topic_id: (0, 1)})
    assert (rig.state.group_epoch, list(rig.state.members)) == (3, ["b", "c"])
    assert rig.beat("b", 3).assigned is None


def test_a_static_member_that_has_not_left_keeps_its_instance_id() -> None:
    rig = Rig()
    rig.join("a", "orders", instance_id="i")
    refused_with(ErrorCode.UNRELEASED_INSTANCE_ID, rig, joining("b", "orders", instance_id="i"))


def test_a_static_member_that_was_replaced_is_fenced() -> None:
    rig = Rig()
    rig.join("a", "orders", instance_id="i")
    rig.beat("a", -2, instance_id="i")
    rig.join("b", "orders", instance_id="i")
    refused_with(ErrorCode.FENCED_INSTANCE_ID, rig, ConsumerHeartbeat("a", 2, instance_id="i"))
    refused_with(ErrorCode.FENCED_INSTANCE_ID, rig, ConsumerHeartbeat("a", -2, instance_id="i"))
    refused_with(ErrorCode.UNKNOWN_MEMBER_ID, rig, ConsumerHeartbeat("a", 2))


def test_a_static_member_joins_again_under_its_own_member_id() -> None:
    rig = Rig()
    topic_id = rig.topics.put("orders", 1)
    rig.join("a", "orders", instance_id="i")
    assert rig.join("a", "orders", instance_id="i").assigned == {topic_id: (0,)}
    rig.beat("a", -2, instance_id="i")
    answer = rig.join("a", "orders", instance_id="i")
    assert (answer.member_epoch, answer.assigned) == (2, {topic_id: (0,)})


def test_no_deadline_of_a_member_that_was_replaced_is_left() -> None:
    rig = Rig()
    rig.join("a", "orders", instance_id="i")
    rig.beat("a", -2, instance_id="i")
    rig.send(joining("b", "orders", instance_id="i"))
    assert len(rig.timers) == 1
    rig.refuse()
    assert list(rig.state.members) == ["a"]
    rig.later(SESSION_MS)
    rig.commit()
    assert rig.group.is_empty, "its session runs again"
    assert len(rig.timers) == 0


def test_a_static_member_that_is_away_too_long_is_expelled() -> None:
    rig = Rig()
    rig.join("a", "orders", instance_id="i")
    rig.beat("a", -2, instance_id="i")
    rig.later(SESSION_MS)
    assert rig.group.is_empty
    refused_with(ErrorCode.UNKNOWN_MEMBER_ID, rig, ConsumerHeartbeat("a", 2, instance_id="i"))


def test_a_static_member_leaves_for_good_with_epoch_minus_1() -> None:
    rig = Rig()
    rig.join("a", "orders", instance_id="i")
    rig.beat("a", -1, instance_id="i")
    assert rig.state.static_ids == {}
