"""The life of a member of a KIP-848 group, rule by rule, and every error of ConsumerGroupHeartbeat."""

from math import inf

import pytest

from odradek.client.consumer.assignment.assignor import TopicLayout
from odradek.client.consumer.membership.actions import Assigned, Failed, Lost, Noted, Revoke
from odradek.client.consumer.membership.consumer_states import MOVES, State
from odradek.client.consumer.membership.membership import Membership
from odradek.client.consumer.membership.requests import (
    Answer,
    ConsumerHeartbeat,
    ConsumerHeartbeatAnswer,
    CoordinatorFound,
    DescribeTopics,
    FindCoordinator,
    NoAnswer,
    Refused,
    TopicsDescribed,
)
from odradek.protocol.errors import ErrorCode
from tests.client.consumer.assignment.groups import parts
from tests.client.consumer.membership.consumer_member import Driven, target


# ------------------------------------------------------------------------------------------------------------- joining
def test_it_is_a_membership() -> None:
    member: Membership = Driven().member
    assert member.next_deadline_ms == inf and not member.owned


def test_the_first_heartbeat_joins_and_says_all() -> None:
    assert vars_of(Driven("i1").joining().beat()) == ("me", 0, "i1", "rack1", 60_000, ("a", "b"), "range", {})


def vars_of(beat: ConsumerHeartbeat) -> tuple[object, ...]:
    return (
        beat.member_id,
        beat.member_epoch,
        beat.instance_id,
        beat.rack_id,
        beat.rebalance_timeout_ms,
        beat.subscribed_topics,
        beat.server_assignor,
        beat.owned,
    )


def test_what_is_assigned_is_taken_and_acknowledged_at_once() -> None:
    driven = Driven().joining()
    driven.accept(3, "a0 b1")
    assert driven.says(Assigned) == Assigned(frozenset(parts("a0 b1")), 3)
    assert vars_of(driven.beat()) == ("me", 3, None, None, -1, None, None, target("a0 b1"))


def test_later_heartbeats_say_what_has_changed_at_the_broker_s_interval() -> None:
    driven = Driven().stable()
    assert driven.member.next_deadline_ms == driven.now + 5_000
    driven.wait(5_000)
    assert vars_of(driven.beat()) == ("me", 3, None, None, -1, None, None, None)
    driven.accept(3)
    driven.member.subscribe(["a"], driven.now)
    driven.take()
    assert driven.beat().subscribed_topics == ("a",)


# ------------------------------------------------------------------------------------------------------ reconciliation
def test_what_is_not_assigned_any_more_is_given_up_before_anything_is_taken() -> None:
    driven = Driven().stable()
    driven.wait(5_000)
    driven.accept(3, "a0 a1")
    assert driven.says(Revoke).partitions == frozenset(parts("b0"))
    assert driven.asked == []
    driven.wait(5_000)
    assert driven.beat().owned is None  # heartbeats go on, and acknowledge nothing
    driven.accept(3)
    driven.member.revoked(parts("b0"), driven.now)
    driven.take()
    assert driven.says(Assigned).partitions == frozenset(parts("a1"))
    assert driven.beat().owned == target("a0 a1")


def test_nothing_is_taken_before_the_last_partition_is_given_up() -> None:
    driven = Driven().stable()
    driven.wait(5_000)
    driven.accept(3, "a1")
    driven.said.clear()
    for partition, is_last in zip(parts("a0 b0"), (False, True), strict=True):
        driven.member.revoked([partition], driven.now)
        driven.take()
        assert len(driven.said) == len(driven.asked) == is_last


def test_another_target_that_comes_during_the_revocation_counts() -> None:
    driven = Driven().stable()
    driven.wait(5_000)
    driven.accept(3, "a0 a1")
    driven.wait(5_000)
    driven.accept(4, "a2")
    driven.said.clear()
    driven.member.revoked(parts("b0"), driven.now)
    driven.take()
    assert driven.says(Revoke).partitions == frozenset(parts("a0"))
    driven.release()
    assert driven.says(Assigned).partitions == frozenset(parts("a2"))


def test_nothing_is_taken_while_it_is_open_what_the_broker_has_heard() -> None:
    """After an error all is said, and what is not said to be owned is free: the answer may take it away."""
    driven = Driven().stable()
    driven.wait(5_000)
    driven.accept(3, "a0 a1")
    driven.wait(5_000)
    driven.answer(NoAnswer())
    driven.said.clear()
    driven.wait(200)
    driven.answer(CoordinatorFound(7))
    assert driven.beat().owned == target("a0 b0")
    driven.member.revoked(parts("b0"), driven.now)
    driven.take()
    assert driven.said == []
    driven.accept(4, "a0")  # a1 went to another
    assert driven.said == [] and driven.beat().owned == target("a0")


def test_a_target_that_takes_back_what_was_never_taken_is_acknowledged() -> None:
    driven = Driven().stable("a0")
    driven.wait(5_000)
    driven.member.subscribe(["a", "b"], driven.now)
    driven.answer(ConsumerHeartbeatAnswer(3, 5_000, "me", {**target("a0"), b"c" * 16: frozenset((0,))}))
    assert isinstance(driven.asked[-1], DescribeTopics)
    driven.asked = driven.asked[:-1]
    driven.accept(3)  # acknowledges what could be reached
    driven.wait(5_000)
    driven.accept(3, "a0")
    assert driven.beat().owned == target("a0") and driven.said == []


def test_topics_that_are_not_known_by_name_are_described() -> None:
    driven = Driven().stable("")
    driven.wait(5_000)
    new = TopicLayout(1, topic_id=b"c" * 16)
    driven.answer(ConsumerHeartbeatAnswer(4, 5_000, "me", {new.topic_id: frozenset((0,))}))
    beat, describe = driven.asked
    assert isinstance(beat, ConsumerHeartbeat) and isinstance(describe, DescribeTopics)
    assert describe.topic_ids == {new.topic_id} and driven.member.state is State.RECONCILING
    driven.accept(4)
    driven.answer(NoAnswer())
    assert driven.asked == []
    driven.wait(100)
    driven.answer(TopicsDescribed({"c": new}))
    assert driven.says(Assigned).partitions == frozenset(parts("c0"))
    assert driven.beat().owned == {new.topic_id: frozenset((0,))}


def test_a_topic_that_was_made_again_is_another_one() -> None:
    driven = Driven().stable("a0")
    again = TopicLayout(1, topic_id=b"A" * 16)
    driven.member.topics_changed({"a": again}, driven.now)
    driven.wait(5_000)
    driven.answer(ConsumerHeartbeatAnswer(4, 5_000, "me", {again.topic_id: frozenset((0,))}))
    assert driven.says(Revoke).partitions == frozenset(parts("a0"))
    driven.release()
    assert driven.says(Assigned).partitions == frozenset(parts("a0"))
    assert driven.beat().owned == {again.topic_id: frozenset((0,))}


# -------------------------------------------------------------------------------------------------------------- errors
@pytest.mark.parametrize("code", [ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID])
def test_who_is_fenced_loses_all_and_joins_again_by_the_same_id(code: ErrorCode) -> None:
    driven = Driven().stable()
    driven.wait(5_000)
    driven.answer(Refused(code))
    assert driven.says(Lost).partitions == frozenset(parts("a0 b0"))
    assert driven.asked == []
    driven.release()
    assert vars_of(driven.beat()) == ("me", 0, None, "rack1", 60_000, ("a", "b"), "range", {})


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.UNSUPPORTED_ASSIGNOR,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.GROUP_ID_NOT_FOUND,
    ],
)
def test_a_fatal_error_loses_all_and_ends_the_membership(code: ErrorCode) -> None:
    driven = Driven().stable()
    driven.wait(5_000)
    driven.answer(Refused(code, "the broker's words"))
    lost, failed = driven.said
    assert isinstance(lost, Lost) and lost.partitions == frozenset(parts("a0 b0"))
    assert isinstance(failed, Failed) and failed.code is code and "the broker's words" in failed.text
    assert driven.member.has_ended


@pytest.mark.parametrize(
    ("answer", "finds"),
    [
        (Refused(ErrorCode.NOT_COORDINATOR), True),
        (Refused(ErrorCode.COORDINATOR_NOT_AVAILABLE), True),
        (NoAnswer(), True),
        (Refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), False),
        (Refused(ErrorCode.REQUEST_TIMED_OUT), False),
    ],
)
def test_after_a_failure_all_is_said_again(answer: Answer, finds: bool) -> None:
    driven = Driven().stable()
    driven.wait(5_000)
    driven.answer(answer)
    assert not driven.asked and not driven.said
    driven.wait(100)
    if finds:
        driven.answer(CoordinatorFound(8))
        driven.wait(100)
    assert vars_of(driven.beat()) == ("me", 3, None, "rack1", 60_000, ("a", "b"), "range", target("a0 b0"))
    driven.accept(3, "a0 b0")
    assert driven.said == [] and driven.member.is_stable


@pytest.mark.parametrize("code", [ErrorCode.UNRELEASED_INSTANCE_ID, ErrorCode.TOPIC_AUTHORIZATION_FAILED])
def test_what_ends_by_itself_or_by_an_operator_is_noted_once_and_awaited(code: ErrorCode) -> None:
    driven = Driven("i1").joining()
    driven.answer(Refused(code))
    assert driven.says(Noted).code is code
    for _ in range(5):
        driven.wait(1_000)
        driven.answer(Refused(code))
    assert driven.said == []
    driven.wait(1_000)
    driven.accept(1, "")
    assert driven.member.is_stable


@pytest.mark.parametrize(
    "code", [ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH]
)
def test_a_refused_commit_makes_the_member_ask_how_it_stands(code: ErrorCode) -> None:
    driven = Driven().stable()
    driven.member.commit_refused(driven.member.identity, code, driven.now)
    driven.take()
    assert driven.beat().member_epoch == 3 and driven.said == []


# ---------------------------------------------------------------------------------------------- poll interval, leaving
@pytest.mark.parametrize(("instance_id", "epoch"), [(None, -1), ("i1", -2)])
def test_who_is_not_polled_leaves_says_so_and_comes_back(instance_id: str | None, epoch: int) -> None:
    driven = Driven(instance_id).stable()
    driven.now += 60_000
    driven.member.advance(driven.now)
    driven.take()
    assert driven.beat().member_epoch == epoch
    noted, lost = driven.said
    assert isinstance(noted, Noted) and isinstance(lost, Lost)
    driven.accept(epoch)
    driven.release()
    assert driven.asked == [] and driven.member.next_deadline_ms == inf
    driven.wait(0)
    assert driven.beat().member_epoch == 0


@pytest.mark.parametrize(
    ("instance_id", "wish", "epoch"),
    [
        (None, None, -1),
        (None, True, -1),
        (None, False, None),
        ("i1", None, -2),
        ("i1", True, -1),
        ("i1", False, -2),
    ],
)
def test_leaving_revokes_all_and_tells_the_group(instance_id: str | None, wish: bool | None, epoch: int | None) -> None:
    driven = Driven(instance_id).stable()
    driven.member.leave(driven.now, leaves_group=wish)
    driven.take()
    assert driven.says(Revoke).partitions == frozenset(parts("a0 b0"))
    driven.release()
    if epoch is not None:
        assert driven.beat().member_epoch == epoch
        driven.answer(NoAnswer())
    assert driven.member.state is State.CLOSED and driven.asked == []


def test_without_topics_it_leaves_and_comes_back_with_others() -> None:
    driven = Driven().stable()
    driven.member.subscribe([], driven.now)
    driven.take()
    driven.wait(5_000)
    assert driven.beat().subscribed_topics is None
    driven.accept(3)
    driven.release()
    assert driven.beat().member_epoch == -1
    driven.member.subscribe(["b"], driven.now)
    driven.answer(NoAnswer())
    assert (driven.beat().member_epoch, driven.beat().subscribed_topics) == (0, ("b",))


def test_topics_that_come_before_the_revocation_ends_keep_it_in_the_group() -> None:
    driven = Driven().stable()
    driven.member.subscribe([], driven.now)
    driven.member.subscribe(["a", "b"], driven.now)
    driven.take()
    driven.said.clear()
    driven.release()
    assert driven.says(Assigned).partitions == frozenset(parts("a0 b0"))


def test_who_is_fenced_while_leaving_has_left() -> None:
    driven = Driven().stable()
    driven.member.leave(driven.now)
    driven.wait(5_000)
    driven.answer(Refused(ErrorCode.UNKNOWN_MEMBER_ID))
    driven.release()
    assert driven.member.state is State.CLOSED and driven.asked == []


# ------------------------------------------------------------------------------------------------------ states, events
def in_state(state: State) -> Driven:
    driven = Driven()
    match state:
        case State.IDLE:
            pass
        case State.JOINING:
            driven.joining()
        case State.STABLE:
            driven.stable()
        case State.RECONCILING:
            driven.stable()
            driven.wait(5_000)
            driven.accept(3, "a0")
        case State.REVOKING | State.LEAVING:
            driven.stable()
            driven.member.leave(driven.now)
            driven.take()
            if state is State.LEAVING:
                driven.release()
        case State.LOSING:
            driven.stable()
            driven.wait(5_000)
            driven.answer(Refused(ErrorCode.FENCED_MEMBER_EPOCH))
        case State.CLOSED:
            driven.member.leave(driven.now)
        case State.FAILED:
            driven.joining()
            driven.answer(Refused(ErrorCode.INVALID_REQUEST))
    driven.take()
    return driven


def happen(driven: Driven, event: str) -> None:
    member, now = driven.member, driven.now
    match event:
        case "subscribe":
            member.subscribe(["a"], now)
        case "unsubscribe":
            member.subscribe([], now)
        case "topics changed":
            member.topics_changed({}, now)
        case "polled":
            member.polled(now)
        case "revoked":
            member.revoked(member.owned, now)
        case "rejoin":
            member.rejoin("told to", now)
        case "leave":
            member.leave(now)
        case "coordinator lost":
            member.coordinator_lost(7, now)
        case "time passes":
            member.advance(now + 6_000)
        case "not polled":
            member.advance(now + 500_000)
        case _:
            answer = NoAnswer() if event == "no answer" else Refused(ErrorCode[event])
            for _ in list(driven.asked):
                driven.answer(answer)
    driven.take()


EVENTS = [
    "subscribe",
    "unsubscribe",
    "topics changed",
    "polled",
    "revoked",
    "rejoin",
    "leave",
    "coordinator lost",
    "time passes",
    "not polled",
    "no answer",
    "UNKNOWN_MEMBER_ID",
    "NOT_COORDINATOR",
    "INVALID_REQUEST",
]


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("state", State)
def test_every_event_in_every_state_moves_as_the_table_says(state: State, event: str) -> None:
    """And what is owned is owned, until it is said to be given up; in the end states nothing is asked any more."""
    driven = in_state(state)
    assert driven.member.state is state
    owned = driven.member.owned
    happen(driven, event)
    if event != "revoked":
        assert driven.member.owned >= owned
    if not MOVES[state]:
        assert driven.member.state is state and driven.asked == []
    if event == "leave" and state is not State.FAILED:
        driven.release()
        for _ in list(driven.asked):
            driven.answer(NoAnswer())
        assert driven.member.state is State.CLOSED


def test_the_coordinator_is_not_asked_for_without_need() -> None:
    driven = Driven()
    driven.wait(10_000)
    assert driven.asked == []
    driven.member.subscribe(["a"], driven.now)
    driven.take()
    assert isinstance(driven.asked[0], FindCoordinator)
