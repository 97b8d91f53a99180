"""Every error that JoinGroup, SyncGroup and Heartbeat of a classic group may be answered with, and what a member does.

No error but the fatal ones ends the membership, and none makes it forget that it has to read on: what it owned is lost
or kept, and it joins again.
"""

from collections.abc import Callable

import pytest

from odradek.client.consumer.membership.classic_states import MOVES, State
from odradek.client.consumer.membership.requests import (
    Answer,
    FindCoordinator,
    Heartbeat,
    HeartbeatTaken,
    Join,
    Joined,
    JoinedMember,
    Leave,
    NoAnswer,
    Refused,
    Sync,
    Synced,
)
from odradek.protocol.errors import ErrorCode
from tests.client.consumer.assignment.groups import parts
from tests.client.consumer.membership.classic_member import Driven, Failed, Lost, Noted, assignment

COOPERATIVE = ("cooperative-sticky",)
OWNED = frozenset(parts("a0 b0"))
FATAL = [
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    ErrorCode.GROUP_MAX_SIZE_REACHED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.INVALID_SESSION_TIMEOUT,
    ErrorCode.INVALID_GROUP_ID,
    ErrorCode.UNSUPPORTED_VERSION,
]
COORDINATOR_GONE = [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE]


def joining() -> Driven:
    """A cooperative member that owns something and joins again."""
    driven = Driven(COOPERATIVE).stable()
    driven.beats(ErrorCode.REBALANCE_IN_PROGRESS)
    driven.asks(Join)
    return driven


def syncing() -> Driven:
    driven = joining()
    driven.joined(6)
    driven.asks(Sync)
    return driven


def test_it_commits_by_the_generation_of_what_it_owns_until_it_has_its_assignment() -> None:
    driven = Driven(COOPERATIVE)
    assert driven.member.settled.generation == -1
    driven.stable()
    before = driven.member.settled
    driven.beats(ErrorCode.REBALANCE_IN_PROGRESS)
    driven.asks(Join)
    driven.joined(6)
    assert driven.member.identity.generation == 6
    assert driven.member.settled == before
    assert before.generation < 6
    driven.synced("a0 b0")
    assert driven.member.settled == driven.member.identity


def beating() -> Driven:
    driven = Driven(COOPERATIVE).stable()
    driven.wait(3_000)
    driven.asks(Heartbeat)
    return driven


STAGES = [joining, syncing, beating]


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("code", FATAL)
def test_a_fatal_error_loses_all_and_ends_the_membership(stage: Callable[[], Driven], code: ErrorCode) -> None:
    driven = stage()
    driven.refuse(code)
    lost, failed = driven.said
    assert isinstance(lost, Lost) and lost.partitions == OWNED
    assert isinstance(failed, Failed) and failed.code is code and "group billing" in failed.text
    assert driven.member.has_ended
    driven.release()
    driven.wait(100_000)
    assert driven.asked == [] and not driven.member.owned


@pytest.mark.parametrize("stage", STAGES)
def test_an_unknown_member_loses_all_and_joins_as_a_new_one(stage: Callable[[], Driven]) -> None:
    driven = stage()
    driven.refuse(ErrorCode.UNKNOWN_MEMBER_ID)
    assert driven.says(Lost).partitions == OWNED
    assert driven.asked == [] and driven.member.state is State.LOSING
    driven.release()
    assert driven.asks(Join).member_id == ""


@pytest.mark.parametrize("stage", STAGES)
def test_an_illegal_generation_loses_all_and_keeps_the_member_id(stage: Callable[[], Driven]) -> None:
    driven = stage()
    driven.refuse(ErrorCode.ILLEGAL_GENERATION)
    assert driven.says(Lost).partitions == OWNED
    driven.release()
    assert driven.asks(Join).member_id == "me"


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("code", COORDINATOR_GONE)
def test_a_coordinator_that_is_gone_is_looked_for_and_nothing_is_lost(
    stage: Callable[[], Driven], code: ErrorCode
) -> None:
    driven = stage()
    driven.refuse(code)
    assert not driven.asked and not driven.said
    driven.wait(100)
    driven.find()
    driven.wait(100)
    assert type(driven.asked[0]) is (Heartbeat if stage is beating else Join)
    assert driven.member.owned == OWNED


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("code", [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.REQUEST_TIMED_OUT])
def test_a_retriable_error_is_tried_again_after_the_backoff(stage: Callable[[], Driven], code: ErrorCode) -> None:
    driven = stage()
    driven.refuse(code)
    assert not driven.asked and not driven.said
    driven.wait(100)
    assert type(driven.asked[0]) is (Heartbeat if stage is beating else Join)
    assert driven.member.owned == OWNED


@pytest.mark.parametrize("stage", STAGES)
def test_a_lost_answer_keeps_what_is_owned(stage: Callable[[], Driven]) -> None:
    driven = stage()
    driven.answer(NoAnswer())
    assert driven.said == [] and driven.member.owned == OWNED
    driven.wait(100)
    driven.asks(FindCoordinator)


def test_a_rebalance_during_sync_is_joined_at_once_and_during_join_after_the_backoff() -> None:
    driven = syncing()
    driven.refuse(ErrorCode.REBALANCE_IN_PROGRESS)
    driven.asks(Join)
    driven.refuse(ErrorCode.REBALANCE_IN_PROGRESS)
    assert driven.asked == []
    driven.wait(100)
    driven.asks(Join)


def test_a_coordinator_that_refuses_every_member_is_not_asked_in_a_loop() -> None:
    driven = Driven()
    driven.subscribe()
    driven.find()
    driven.refuse(ErrorCode.UNKNOWN_MEMBER_ID)
    driven.refuse(ErrorCode.UNKNOWN_MEMBER_ID)
    assert driven.asked == []
    driven.wait(200)
    driven.asks(Join)


def test_a_member_id_that_is_asked_for_twice_is_not_asked_in_a_loop() -> None:
    driven = Driven()
    driven.subscribe()
    driven.find()
    driven.refuse(ErrorCode.MEMBER_ID_REQUIRED, "me")
    driven.refuse(ErrorCode.MEMBER_ID_REQUIRED, "me too")
    assert driven.asked == []
    driven.wait(100)
    assert driven.asks(Join).member_id == "me too"


def test_what_an_operator_can_mend_is_noted_and_tried_again() -> None:
    driven = joining()
    driven.refuse(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert driven.says(Noted).code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    driven.wait(100)
    driven.asks(Join)


@pytest.mark.parametrize("name", ["range", ""])
def test_a_protocol_that_the_member_has_not_is_fatal(name: str) -> None:
    driven = joining()
    driven.answer(Joined("me", 6, name, "other", (), "consumer"))
    assert driven.member.state is State.FAILED


@pytest.mark.parametrize(
    "answer",
    [
        Synced(assignment("a0"), "connect", None),
        Synced(assignment("a0"), "consumer", "range"),
        Synced(b"\x00"),
        Synced(b"\x00\x00\x7f\xff\xff\xff"),
    ],
)
def test_an_assignment_that_is_not_understood_is_fatal(answer: Synced) -> None:
    driven = syncing()
    driven.answer(answer)
    assert isinstance(driven.said[-1], Failed)
    assert driven.said[-1].code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_the_search_for_the_coordinator_may_be_fatal() -> None:
    driven = Driven()
    driven.subscribe()
    driven.refuse(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    assert driven.says(Failed).code is ErrorCode.GROUP_AUTHORIZATION_FAILED


# ----------------------------------------------------------------------------------------------- late answers, commits
def test_a_heartbeat_of_a_former_generation_says_nothing() -> None:
    driven = beating()
    heartbeat = driven.asks(Heartbeat)
    driven.member.rejoin("told to", driven.now)
    driven.take()
    join = driven.asked[-1]
    driven.answer(Refused(ErrorCode.UNKNOWN_MEMBER_ID), heartbeat)
    assert driven.said == [] and driven.asked == [join]


def test_a_join_that_is_answered_after_the_member_went_away_is_ignored() -> None:
    driven = joining()
    join = driven.asks(Join)
    driven.now += 60_000
    driven.member.advance(driven.now)
    driven.take()
    assert isinstance(driven.asked[-1], Leave)
    driven.answer(Joined("me", 6, COOPERATIVE[0], "other"), join)
    assert driven.member.state is State.LOSING


@pytest.mark.parametrize(
    ("code", "state"),
    [
        (ErrorCode.UNKNOWN_MEMBER_ID, State.LOSING),
        (ErrorCode.ILLEGAL_GENERATION, State.LOSING),
        (ErrorCode.FENCED_INSTANCE_ID, State.FAILED),
        (ErrorCode.REBALANCE_IN_PROGRESS, State.JOINING),
        (ErrorCode.OFFSET_METADATA_TOO_LARGE, State.STABLE),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, State.STABLE),
        (ErrorCode.STALE_MEMBER_EPOCH, State.STABLE),
    ],
)
def test_a_refused_commit_tells_how_the_member_stands(code: ErrorCode, state: State) -> None:
    driven = Driven(COOPERATIVE).stable()
    driven.member.commit_refused(driven.member.identity, code, driven.now)
    assert driven.member.state is state


def test_a_refused_commit_of_a_former_generation_or_during_a_rebalance_says_nothing() -> None:
    driven = Driven(COOPERATIVE).stable()
    former = driven.member.identity._replace(generation=4)
    driven.member.commit_refused(former, ErrorCode.UNKNOWN_MEMBER_ID, driven.now)
    assert driven.member.state is State.STABLE
    driven = joining()
    driven.member.commit_refused(driven.member.identity, ErrorCode.ILLEGAL_GENERATION, driven.now)
    assert driven.member.state is State.JOINING


def test_what_is_being_revoked_when_the_membership_ends_is_lost_too() -> None:
    driven = Driven().stable()
    driven.beats(ErrorCode.REBALANCE_IN_PROGRESS)
    driven.said.clear()
    driven.beats(ErrorCode.UNKNOWN_MEMBER_ID)
    assert driven.says(Lost).partitions == OWNED
    driven.release()
    assert driven.asks(Join).member_id == ""


def test_a_member_that_leaves_when_it_is_expelled_has_left() -> None:
    driven = Driven().stable()
    driven.member.leave(driven.now)
    driven.take()
    driven.said.clear()
    driven.beats(ErrorCode.UNKNOWN_MEMBER_ID)
    assert driven.says(Lost).partitions == OWNED
    driven.release()
    assert driven.member.state is State.CLOSED and driven.asked == []


# --------------------------------------------------------------------------------------------------- states and events
def in_state(state: State) -> Driven:
    """A member in each state, with something owned where that can be."""
    driven = Driven(COOPERATIVE)
    match state:
        case State.IDLE:
            return driven
        case State.UNJOINED:
            driven.subscribe()
        case State.JOINING:
            return joining()
        case State.ASSIGNING:
            driven = joining()
            name, metadata = driven.asks(Join).protocols[0]
            driven.answer(Joined("me", 6, name, "me", (JoinedMember("me", None, metadata),)))
        case State.SYNCING:
            return syncing()
        case State.STABLE:
            driven.stable()
        case State.REVOKING | State.LEAVING:
            driven.stable()
            driven.member.leave(driven.now)
            driven.take()
            if state is State.LEAVING:
                driven.release()
        case State.LOSING:
            driven.stable()
            driven.beats(ErrorCode.UNKNOWN_MEMBER_ID)
        case State.CLOSED:
            driven.member.leave(driven.now)
        case State.FAILED:
            driven.subscribe()
            driven.refuse(ErrorCode.INVALID_GROUP_ID)
    driven.take()
    return driven


def answer_all(driven: Driven, answer: Answer) -> None:
    for request in list(driven.asked):
        driven.answer(answer, request)


EVENTS: dict[str, Callable[[Driven], None]] = {
    "subscribe": lambda driven: driven.member.subscribe(["a"], driven.now),
    "unsubscribe": lambda driven: driven.member.subscribe([], driven.now),
    "topics changed": lambda driven: driven.member.topics_changed({}, driven.now),
    "polled": lambda driven: driven.member.polled(driven.now),
    "revoked": lambda driven: driven.member.revoked(driven.member.owned, driven.now),
    "rejoin": lambda driven: driven.member.rejoin("told to", driven.now),
    "leave": lambda driven: driven.member.leave(driven.now),
    "coordinator lost": lambda driven: driven.member.coordinator_lost(7, driven.now),
    "time passes": lambda driven: driven.member.advance(driven.now + 5_000),
    "not polled": lambda driven: driven.member.advance(driven.now + 500_000),
    "no answer": lambda driven: answer_all(driven, NoAnswer()),
    "expelled": lambda driven: answer_all(driven, Refused(ErrorCode.UNKNOWN_MEMBER_ID)),
}


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("state", State)
def test_every_event_in_every_state_moves_as_the_table_says(state: State, event: str) -> None:
    """And what is owned is owned, until it is said to be given up; in the end states nothing is asked any more."""
    driven = in_state(state)
    assert driven.member.state is state
    owned = driven.member.owned
    driven.asked = [request for request in driven.asked if not isinstance(request, FindCoordinator)]
    EVENTS[event](driven)
    driven.take()
    if event != "revoked":
        assert driven.member.owned >= owned
    if not MOVES[state]:
        assert driven.member.state is state and driven.asked == []
    if event == "leave" and state is not State.FAILED:
        driven.release()
        for request in list(driven.asked):
            driven.answer(NoAnswer(), request)
        assert driven.member.state is State.CLOSED


def test_an_accepted_heartbeat_changes_nothing() -> None:
    driven = beating()
    driven.answer(HeartbeatTaken())
    assert driven.member.is_stable and driven.said == [] and driven.asked == []
