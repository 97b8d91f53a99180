"""The life of a member of a classic group, rule by rule: joining, heartbeats, rebalances, poll interval, leaving."""

from math import inf

import pytest

from odradek.client.consumer.assignment.assignor import TopicLayout
from odradek.client.consumer.assignment.built_in import assignors
from odradek.client.consumer.membership.classic import ClassicMembership
from odradek.client.consumer.membership.classic_states import State
from odradek.client.consumer.membership.membership import Membership
from odradek.client.consumer.membership.requests import (
    FindCoordinator,
    Heartbeat,
    HeartbeatTaken,
    Join,
    Joined,
    JoinedMember,
    Leave,
    Left,
    NoAnswer,
    Sync,
    Synced,
    TopicsDescribed,
)
from odradek.client.consumer.membership.settings import MembershipSettings
from odradek.client.network.backoff import Backoff
from odradek.protocol.consumer_protocol import decode_assignment, decode_subscription
from odradek.protocol.errors import ErrorCode
from tests.client.consumer.assignment.groups import parts
from tests.client.consumer.membership.classic_member import LAYOUT, Assigned, Driven, Lost, Noted, Revoke

COOPERATIVE = ("cooperative-sticky",)


def test_it_is_a_membership() -> None:
    member: Membership = ClassicMembership(MembershipSettings("g"), assignors(["range"]), Backoff(1, 2, lambda: 0.5))
    assert member.next_deadline_ms == inf and not member.owned and not member.has_ended


# ------------------------------------------------------------------------------------------------------------- joining
def test_the_coordinator_is_found_before_joining() -> None:
    driven = Driven()
    driven.subscribe()
    driven.find()
    join = driven.asks(Join)
    assert (join.member_id, join.protocol_type, join.session_timeout_ms) == ("", "consumer", 10_000)
    assert join.timeout_ms == join.rebalance_timeout_ms + 5_000 == 65_000
    assert decode_subscription(join.protocols[0][1]).topics == ("a", "b")


def test_an_answer_that_names_the_member_is_followed_at_once() -> None:
    driven = Driven()
    driven.subscribe()
    driven.find()
    driven.refuse(ErrorCode.MEMBER_ID_REQUIRED, "me")
    assert driven.asks(Join).member_id == "me"


def test_a_follower_gets_what_the_leader_assigned() -> None:
    driven = Driven()
    driven.subscribe()
    driven.find()
    driven.joined(5)
    assert driven.asks(Sync).assignments == ()
    driven.synced("a1")
    assert driven.says(Assigned) == Assigned(frozenset(parts("a1")), 5)
    assert driven.member.identity == ("billing", "me", 5, None)


def test_the_leader_assigns_with_fresh_metadata() -> None:
    driven = Driven()
    driven.subscribe()
    driven.find()
    driven.joined(1, leads=True)
    ((member_id, data),) = driven.asks(Sync).assignments
    assert member_id == "me" and decode_assignment(data).partitions == {"a": [0, 1], "b": [0]}


def test_a_leader_without_metadata_asks_again_and_keeps_its_heartbeats() -> None:
    driven = Driven()
    driven.subscribe()
    driven.find()
    driven.answer(joined_leader(driven))
    driven.answer(NoAnswer())
    assert driven.member.state is State.ASSIGNING and driven.asked == []
    driven.wait(100)
    assert len(driven.asked) == 1
    driven.wait(3_000)
    assert isinstance(driven.asked[1], Heartbeat)


def joined_leader(driven: Driven) -> Joined:
    join = driven.asks(Join)
    return Joined("me", 1, "range", "me", (JoinedMember("me", None, join.protocols[0][1]),))


def test_a_static_leader_that_came_back_leaves_the_assignment_as_it_is() -> None:
    driven = Driven(instance_id="i1")
    driven.subscribe()
    driven.find()
    metadata = driven.asks(Join).protocols[0][1]
    members = (JoinedMember("me", "i1", metadata),)
    driven.answer(Joined("me", 5, "range", "me", members, "consumer", skip_assignment=True))
    assert driven.asks(Sync).assignments == ()
    driven.synced("a0")
    assert driven.member.watched_topics == {"a", "b"}


def test_a_member_with_an_unknown_subscription_gets_nothing_and_is_noted() -> None:
    driven = Driven()
    driven.subscribe()
    driven.find()
    metadata = driven.asks(Join).protocols[0][1]
    members = (JoinedMember("me", None, metadata), JoinedMember("odd", None, b"\xff"))
    driven.answer(Joined("me", 1, "range", "me", members))
    assert "odd" in driven.says(Noted).text
    driven.answer(TopicsDescribed(LAYOUT))
    assert decode_assignment(dict(driven.asks(Sync).assignments)["odd"]).partitions == {}


def test_an_empty_assignment_is_one() -> None:
    driven = Driven()
    driven.subscribe()
    driven.find()
    driven.joined(1)
    driven.answer(Synced(b""))
    assert driven.says(Assigned).partitions == frozenset()


# ---------------------------------------------------------------------------------------------------------- heartbeats
def test_heartbeats_go_at_the_interval_one_at_a_time() -> None:
    driven = Driven().stable()
    assert driven.member.next_deadline_ms == driven.now + 3_000
    driven.wait(3_000)
    driven.wait(3_000)
    driven.asks(Heartbeat)
    driven.answer(HeartbeatTaken())
    assert driven.asks(Heartbeat).generation == 5


def test_a_heartbeat_without_answer_finds_the_coordinator_and_goes_on() -> None:
    driven = Driven().stable()
    driven.wait(3_000)
    driven.answer(NoAnswer())
    driven.wait(200)
    driven.find()
    driven.wait(200)
    assert driven.asks(Heartbeat).generation == 5
    assert driven.member.owned == frozenset(parts("a0 b0"))


# ---------------------------------------------------------------------------------------------------------- rebalances
def test_eager_gives_all_up_before_it_joins_again() -> None:
    driven = Driven().stable()
    driven.beats(ErrorCode.REBALANCE_IN_PROGRESS)
    revoke = driven.says(Revoke)
    assert revoke.partitions == frozenset(parts("a0 b0")) and revoke.deadline_ms == driven.now + 57_000
    assert driven.asked == []
    driven.wait(3_000)
    driven.answer(HeartbeatTaken())  # heartbeats go on meanwhile
    driven.release()
    join = driven.asks(Join)
    assert decode_subscription(join.protocols[0][1]).owned_partitions == {}
    assert join.reason == "group is already rebalancing"


def test_it_joins_again_when_the_last_partition_is_given_up() -> None:
    driven = Driven().stable()
    driven.beats(ErrorCode.REBALANCE_IN_PROGRESS)
    for partition, is_last in zip(parts("a0 b0"), (False, True), strict=True):
        driven.member.revoked([partition], driven.now)
        driven.take()
        assert len(driven.asked) == is_last


def test_cooperative_keeps_all_and_tells_what_it_owns() -> None:
    driven = Driven(COOPERATIVE).stable()
    driven.beats(ErrorCode.REBALANCE_IN_PROGRESS)
    said = decode_subscription(driven.asks(Join).protocols[0][1])
    assert (said.owned_partitions, said.generation) == ({"a": [0], "b": [0]}, 5)
    assert driven.said == []


def test_cooperative_revokes_before_it_takes_and_then_joins_again() -> None:
    driven = Driven(COOPERATIVE).stable()
    driven.beats(ErrorCode.REBALANCE_IN_PROGRESS)
    driven.joined(6)
    driven.synced("a0 a1")
    assert driven.says(Revoke).partitions == frozenset(parts("b0"))
    driven.member.revoked(parts("b0"), driven.now)
    driven.take()
    assert driven.says(Assigned).partitions == frozenset(parts("a1"))
    said = decode_subscription(driven.asks(Join).protocols[0][1])
    assert (said.owned_partitions, said.generation) == ({"a": [0, 1]}, 6)


def test_what_is_owned_keeps_its_generation_when_a_sync_fails() -> None:
    driven = Driven(COOPERATIVE).stable()
    driven.beats(ErrorCode.REBALANCE_IN_PROGRESS)
    driven.joined(6)
    driven.refuse(ErrorCode.REBALANCE_IN_PROGRESS)
    assert decode_subscription(driven.asks(Join).protocols[0][1]).generation == 5


def test_a_changed_subscription_rebalances_and_revokes_what_is_not_read_any_more() -> None:
    driven = Driven(COOPERATIVE).stable()
    driven.subscribe("a")
    assert driven.says(Revoke).partitions == frozenset(parts("b0"))
    driven.member.revoked(parts("b0"), driven.now)
    driven.take()
    assert driven.asks(Join).reason == "subscription has changed"


def test_a_subscription_that_changes_during_a_rebalance_is_told_in_the_next() -> None:
    driven = Driven()
    driven.subscribe()
    driven.find()
    driven.subscribe("a")
    driven.joined(1)
    driven.synced("a0 b0")
    assert driven.said[0] == Assigned(frozenset(parts("a0")), 1)
    driven.release()
    assert driven.asks(Join).reason == "subscription has changed"


@pytest.mark.parametrize("layout", [{**LAYOUT, "a": TopicLayout(3)}, {"a": TopicLayout(2)}])
def test_the_leader_joins_again_when_topics_of_the_group_change(layout: dict[str, TopicLayout]) -> None:
    driven = Driven()
    driven.subscribe()
    driven.find()
    driven.joined(1, leads=True)
    driven.synced("a0 a1 b0")
    driven.member.topics_changed({**LAYOUT, "unrelated": TopicLayout(9)}, driven.now)
    assert driven.member.is_stable
    driven.member.topics_changed(layout, driven.now)
    driven.take()
    driven.release()
    assert driven.asks(Join).reason == "cached metadata has changed"


def test_a_follower_leaves_changed_topics_to_the_leader() -> None:
    driven = Driven().stable()
    driven.member.topics_changed({"a": TopicLayout(9)}, driven.now)
    assert driven.member.is_stable


def test_the_user_may_ask_for_a_rebalance() -> None:
    driven = Driven(COOPERATIVE).stable()
    driven.member.rejoin("told to", driven.now)
    driven.take()
    assert driven.asks(Join).reason == "told to"


# ------------------------------------------------------------------------------------------------------- poll interval
def stall(driven: Driven, ms: float) -> None:
    driven.now += ms
    driven.member.advance(driven.now)
    driven.take()


def test_who_is_not_polled_leaves_says_so_and_comes_back() -> None:
    driven = Driven().stable()
    driven.wait(1)
    stall(driven, 59_999)
    driven.answer(HeartbeatTaken())
    assert driven.member.next_deadline_ms == driven.now + 1
    stall(driven, 1)
    leave = driven.asks(Leave)
    assert (leave.member_id, leave.reason) == ("me", "consumer poll timeout has expired.")
    noted, lost = driven.said
    assert isinstance(noted, Noted) and "max_poll_interval_ms (60000 ms)" in noted.text
    assert isinstance(lost, Lost) and lost.partitions == frozenset(parts("a0 b0"))
    driven.answer(Left())
    driven.release()
    stall(driven, 100_000)
    assert driven.asked == [] and driven.member.next_deadline_ms == inf
    driven.wait(0)
    assert driven.asks(Join).member_id == ""


def test_a_static_member_that_is_not_polled_only_stops_its_heartbeats() -> None:
    driven = Driven(instance_id="i1").stable()
    stall(driven, 60_000)
    assert driven.asked == []
    driven.release()
    driven.wait(0)
    join = driven.asks(Join)
    assert (join.member_id, join.group_instance_id) == ("", "i1")


def test_who_comes_back_before_the_lost_is_given_up_waits_for_that() -> None:
    driven = Driven().stable()
    stall(driven, 60_000)
    driven.answer(Left())
    driven.wait(0)
    assert driven.asked == [] and driven.member.state is State.LOSING
    driven.release()
    driven.asks(Join)


# ------------------------------------------------------------------------------------------------------------- leaving
def test_leaving_revokes_all_then_tells_the_group() -> None:
    driven = Driven().stable()
    driven.member.leave(driven.now)
    driven.take()
    assert driven.says(Revoke).reason == "the consumer is being closed"
    driven.release()
    assert driven.asks(Leave).member_id == "me"
    driven.answer(NoAnswer())
    assert driven.member.state is State.CLOSED and driven.member.has_ended


@pytest.mark.parametrize(
    ("instance_id", "wish", "is_told"),
    [(None, None, True), (None, False, False), ("i1", None, False), ("i1", True, True), ("i1", False, False)],
)
def test_who_tells_the_group_that_it_leaves(instance_id: str | None, wish: bool | None, is_told: bool) -> None:
    driven = Driven(instance_id=instance_id).stable("")
    driven.member.leave(driven.now, leaves_group=wish)
    driven.take()
    assert [type(request) for request in driven.asked] == [Leave] * is_told
    assert driven.member.has_ended is not is_told


def test_who_has_no_coordinator_does_not_look_for_one_to_leave() -> None:
    driven = Driven().stable("")
    driven.member.coordinator_lost(7, driven.now)
    driven.member.leave(driven.now)
    driven.take()
    assert driven.asked == [] and driven.member.has_ended


def test_leaving_while_joining_does_not_wait_for_the_group() -> None:
    driven = Driven()
    driven.subscribe()
    driven.find()
    driven.refuse(ErrorCode.MEMBER_ID_REQUIRED, "me")
    driven.member.leave(driven.now)
    driven.take()
    join, leave = driven.asked
    assert isinstance(leave, Leave)
    driven.answer(NoAnswer(), join)
    driven.answer(Left(), leave)
    assert driven.member.has_ended


def test_without_topics_it_leaves_and_comes_back_with_others() -> None:
    driven = Driven().stable()
    driven.subscribe("")
    driven.release()
    driven.asks(Leave)
    driven.subscribe("b")
    driven.answer(Left())
    assert decode_subscription(driven.asks(Join).protocols[0][1]).topics == ("b",)


def test_topics_that_come_before_the_revocation_ends_keep_it_in_the_group() -> None:
    driven = Driven().stable()
    driven.subscribe("")
    driven.subscribe("a")
    driven.release()
    assert driven.asks(Join).member_id == "me"


def test_nothing_is_done_after_the_end() -> None:
    driven = Driven().stable("")
    driven.member.leave(driven.now, leaves_group=False)
    driven.take()
    driven.subscribe("a")
    driven.wait(100_000)
    driven.member.leave(driven.now)
    driven.take()
    assert not driven.asked and not driven.said and driven.member.next_deadline_ms == inf


def test_an_unknown_coordinator_is_asked_for_with_backoff() -> None:
    driven = Driven()
    driven.subscribe()
    driven.refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert driven.asked == [] and driven.member.next_deadline_ms == driven.now + 100
    driven.wait(100)
    driven.answer(NoAnswer())
    driven.wait(199)
    assert driven.asked == []
    driven.wait(1)
    driven.asks(FindCoordinator)
