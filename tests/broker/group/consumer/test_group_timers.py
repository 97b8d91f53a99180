"""Time in a consumer group: sessions, rebalance time-outs, the assignment interval."""

from odradek.broker.group.consumer.group_state import GroupPhase
from tests.broker.group.consumer.rig import (
    REBALANCE_MS,
    SESSION_MS,
    Options,
    Rig,
    parts,
    phase_of,
    two_members,
)


# ------------------------------------------------------------------------------------------------------------ time-outs
def test_a_member_that_is_not_heard_of_is_expelled() -> None:
    rig, topic_id = two_members()
    rig.later(SESSION_MS - 1)
    rig.beat("b", 3)
    rig.later(1)
    rig.commit()
    assert list(rig.state.members) == ["b"]
    assert rig.beat("b", 3).assigned == {topic_id: (0, 1, 2, 3)}


def test_a_member_that_gives_nothing_up_in_time_is_expelled() -> None:
    rig, topic_id = two_members()
    for _ in range(REBALANCE_MS // 10_000):
        assert rig.beat("a", 2, parts(topic_id, 0, 1, 2, 3)).member_epoch == 2
        rig.beat("b", 3)
        rig.later(10_000)
    rig.commit()
    assert list(rig.state.members) == ["b"]
    assert rig.beat("b", 3).assigned == {topic_id: (0, 1, 2, 3)}


def test_the_rebalance_time_out_ends_with_the_revocation() -> None:
    rig, topic_id = two_members()
    rig.later(REBALANCE_MS // 2)
    rig.beat("a", 2, parts(topic_id, 0, 1))
    for _ in range(4):
        rig.beat("a", 3)
        rig.beat("b", 3)
        rig.later(REBALANCE_MS // 4)
    assert set(rig.state.members) == {"a", "b"}


def test_a_load_starts_session_and_rebalance_time_outs_from_the_beginning() -> None:
    rig, topic_id = two_members()
    rig.later(SESSION_MS - 1)
    rig.reload()
    rig.later(SESSION_MS - 1)
    assert set(rig.state.members) == {"a", "b"}
    rig.beat("a", 2, parts(topic_id, 0, 1, 2, 3))
    rig.beat("b", 3)
    rig.later(REBALANCE_MS - SESSION_MS + 1)
    rig.commit()
    assert set(rig.state.members) == {"b"}


# -------------------------------------------------------------------------------------------------- assignment interval
def test_joins_within_the_assignment_interval_are_assigned_together() -> None:
    rig = Rig(Options(group_consumer_assignment_interval_ms=1_000))
    topic_id = rig.topics.put("orders", 4)
    rig.join("a", "orders")
    answer = rig.join("b", "orders")
    assert (answer.member_epoch, answer.assigned) == (2, {}), "by the assignment that there is"
    rig.join("c", "orders")
    assert phase_of(rig) is GroupPhase.ASSIGNING
    assert (rig.state.group_epoch, rig.state.assignment_epoch) == (4, 2)
    rig.later(999)
    assert rig.beat("a", 2).member_epoch == 2
    assert rig.state.assignment_epoch == 2
    rig.later(1)
    assert rig.state.assignment_epoch == 4, "by the timer, without a heartbeat"
    assert rig.beat("a", 2).assigned == {topic_id: (0, 1)}
    assert rig.state.target_epoch is not None
    assert rig.state.target_epoch.unix_ms == rig.now.unix_ms


def test_the_assignment_interval_holds_after_a_load() -> None:
    rig = Rig(Options(group_consumer_assignment_interval_ms=1_000))
    rig.topics.put("orders", 4)
    rig.join("a", "orders")
    rig.later(400)
    rig.reload()
    rig.join("b", "orders")
    assert rig.state.assignment_epoch == 2
    rig.later(599)
    assert rig.state.assignment_epoch == 2
    rig.later(1)
    assert rig.state.assignment_epoch == 3


def test_a_leave_is_followed_by_an_assignment_without_a_heartbeat() -> None:
    rig, _ = two_members()
    rig.beat("a", -1)
    assert rig.state.assignment_epoch == 3
    rig.later(0)
    assert rig.state.assignment_epoch == 4
