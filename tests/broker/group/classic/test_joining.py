"""The rules of JoinGroup, one by one."""

from typing import Any

import pytest

from odradek.broker.group.classic.requests import JoinedMember
from odradek.broker.group.classic.states import ClassicState
from odradek.protocol.errors import ErrorCode
from tests.broker.group.classic.groups import DELAY_MS, RANGE, REBALANCE_MS, SESSION_MS, Stage, offers


# -- who is let in -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("timeout_ms", "code"),
    [
        (5_999, ErrorCode.INVALID_SESSION_TIMEOUT),
        (6_000, None),
        (1_800_000, None),
        (1_800_001, ErrorCode.INVALID_SESSION_TIMEOUT),
    ],
)
def test_sessions_are_bounded_by_the_options(timeout_ms: int, code: ErrorCode | None) -> None:
    assert Stage().join(session_timeout_ms=timeout_ms).error is code


@pytest.mark.parametrize("fields", [{"protocol_type": ""}, {"protocols": ()}])
def test_an_empty_group_takes_any_type_but_no_join_without_one(fields: dict[str, Any]) -> None:
    assert Stage().join(**fields).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert Stage().join(protocol_type="connect", protocols=offers("compatible")).error is None


@pytest.mark.parametrize("fields", [{"protocol_type": "connect"}, {"protocols": offers("sticky")}, {"protocols": ()}])
def test_a_member_must_share_type_and_a_protocol_with_all_others(fields: dict[str, Any]) -> None:
    stage = Stage()
    stage.stabilize(2)
    assert stage.join(**fields).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert stage.group.state is ClassicState.STABLE
    assert stage.join(protocols=offers("sticky", "range")).error is None


def test_a_single_member_cannot_change_to_protocols_it_did_not_offer() -> None:
    stage = Stage()
    (member_id,) = stage.stabilize()
    assert stage.join(member_id, protocols=offers("sticky")).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_full_group_takes_nobody_but_its_members() -> None:
    stage = Stage(group_max_size=2)
    leader_id, follower_id = stage.stabilize(2)
    assert stage.join().error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert stage.join(follower_id).error is ErrorCode.NONE
    assert stage.join(leader_id).error is None, "held: it rebalances"


def test_the_last_to_join_are_left_out_of_a_group_that_is_too_large() -> None:
    stage = Stage()
    ids = stage.stabilize(3)
    stage.options.group_max_size = 2
    first, second = stage.join(ids[0]), stage.join(ids[1])
    assert stage.join(ids[2]).error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert first.answer.generation == second.answer.generation == 2, "nobody else is waited for"
    assert len(first.answer.members) == 2


def test_a_member_that_waits_may_join_again_however_full_the_group() -> None:
    stage = Stage()
    ids = stage.stabilize(2)
    earlier = stage.join(ids[0])
    stage.options.group_max_size = 1
    later = stage.join(ids[0])
    assert earlier.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert later.error is None
    assert stage.join(ids[1]).error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert len(later.answer.members) == 1


def test_during_the_first_joins_as_many_may_wait_as_may_be_in_the_group() -> None:
    stage = Stage(group_max_size=1)
    first = stage.join()
    assert stage.join().error is ErrorCode.GROUP_MAX_SIZE_REACHED
    stage.wait(DELAY_MS)
    assert first.error is ErrorCode.NONE


# -- new members -------------------------------------------------------------------------------------------------------
def test_a_new_dynamic_member_is_given_an_id_and_joins_again_with_it() -> None:
    stage = Stage()
    asked = stage.join(requires_known_member_id=True)
    member_id = asked.answer.member_id
    assert asked.answer.error_code is ErrorCode.MEMBER_ID_REQUIRED
    assert member_id == "app-00000000-0000-0000-0000-000000000001"
    assert stage.group.state is ClassicState.EMPTY
    again = stage.join(member_id, requires_known_member_id=True)
    stage.wait(DELAY_MS)
    assert (again.answer.member_id, again.answer.error_code) == (member_id, ErrorCode.NONE)


def test_an_old_client_is_let_in_without_that_step() -> None:
    stage = Stage()
    asked = stage.join()
    stage.wait(DELAY_MS)
    assert asked.answer.member_id == "app-00000000-0000-0000-0000-000000000001"


def test_a_static_member_is_let_in_without_that_step_under_its_own_name() -> None:
    stage = Stage()
    asked = stage.join(instance_id="till-7", requires_known_member_id=True)
    stage.wait(DELAY_MS)
    assert asked.answer.member_id == "till-7-00000000-0000-0000-0000-000000000001"


def test_a_member_id_fits_into_a_string_whatever_the_client_id() -> None:
    stage = Stage()
    asked = stage.join(client_id="\U0001f600" * 8_100, requires_known_member_id=True)
    assert len(asked.answer.member_id.encode()) < 2**15


@pytest.mark.parametrize("instance_id", [None, "till-7"])
def test_an_id_that_was_not_given_is_unknown(instance_id: str | None) -> None:
    stage = Stage()
    assert stage.join("app-1", instance_id).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert stage.group.is_vacant
    assert stage.stored() is None


def test_an_id_that_was_given_is_forgotten_after_a_session() -> None:
    stage = Stage()
    member_id = stage.join(requires_known_member_id=True).answer.member_id
    stage.wait(SESSION_MS)
    assert stage.join(member_id).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_an_id_that_was_given_is_no_static_members() -> None:
    stage = Stage()
    member_id = stage.join(requires_known_member_id=True).answer.member_id
    assert stage.join(member_id, "till-7").error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_waits_for_whom_an_id_was_given() -> None:
    stage = Stage()
    (leader_id,) = stage.stabilize()
    given = stage.join(requires_known_member_id=True).answer.member_id
    rejoined = stage.join(leader_id)
    assert not rejoined.is_answered
    joined = stage.join(given)
    assert rejoined.answer.generation == joined.answer.generation == 2


def test_a_new_member_whose_client_has_gone_is_dropped_after_five_minutes() -> None:
    stage = Stage()
    (leader_id,) = stage.stabilize(rebalance_timeout_ms=1_000_000)
    new = stage.join()
    for _ in range(100):
        stage.wait(3_000)
        if new.is_answered:
            break
        assert stage.heartbeat(leader_id) is ErrorCode.REBALANCE_IN_PROGRESS
    assert new.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert len(stage.group.describe().members) == 1


# -- answers -----------------------------------------------------------------------------------------------------------
def test_the_leader_alone_is_told_who_is_there_and_what_they_want() -> None:
    stage = Stage()
    first = stage.join(protocols=offers("sticky", "range", metadata=b"\0first"))
    second = stage.join(protocols=offers("range", metadata=b"\0second"))
    stage.wait(2 * DELAY_MS)
    ids = first.answer.member_id, second.answer.member_id
    assert first.answer.members == (JoinedMember(ids[0], None, b"\0first"), JoinedMember(ids[1], None, b"\0second"))
    assert second.answer.members == ()
    for answer in (first.answer, second.answer):
        assert (answer.generation, answer.protocol_type, answer.protocol_name) == (1, "consumer", "range")
        assert (answer.leader_id, answer.skip_assignment) == (ids[0], False)


# -- members that join again -------------------------------------------------------------------------------------------
def test_an_unchanged_member_is_told_the_generation_again_while_it_completes() -> None:
    stage = Stage()
    first, second = stage.join(), stage.join()
    stage.wait(2 * DELAY_MS)
    assert stage.join(first.answer.member_id).answer == first.answer
    assert stage.join(second.answer.member_id).answer == second.answer
    assert stage.group.state is ClassicState.COMPLETING_REBALANCE


def test_a_changed_member_ends_a_generation_that_completes() -> None:
    stage = Stage()
    first, second = stage.join(), stage.join()
    stage.wait(2 * DELAY_MS)
    held = stage.sync(second.answer.member_id)
    changed = stage.join(first.answer.member_id, protocols=offers("range", metadata=b"\0other"))
    assert held.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert not changed.is_answered
    stage.join(second.answer.member_id)
    assert changed.answer.generation == 2


def test_an_unchanged_follower_of_a_stable_group_is_told_the_generation_again() -> None:
    stage = Stage()
    leader_id, follower_id = stage.stabilize(2)
    answer = stage.join(follower_id).answer
    assert (answer.generation, answer.leader_id, answer.members) == (1, leader_id, ())
    assert stage.group.state is ClassicState.STABLE


@pytest.mark.parametrize("index", [0, 1])
def test_leader_or_changed_follower_that_joins_again_makes_a_rebalance(index: int) -> None:
    stage = Stage()
    ids = stage.stabilize(2)
    protocols = RANGE if index == 0 else offers("range", metadata=b"\0other")
    asked = stage.join(ids[index], protocols=protocols)
    assert stage.group.state is ClassicState.PREPARING_REBALANCE
    stage.join(ids[1 - index])
    assert asked.answer.generation == 2


def test_a_member_that_joins_twice_is_answered_once_for_both() -> None:
    stage = Stage()
    leader_id, follower_id = stage.stabilize(2)
    earlier = stage.join(leader_id)
    later = stage.join(leader_id)
    assert earlier.error is ErrorCode.REBALANCE_IN_PROGRESS
    stage.join(follower_id)
    assert later.answer.generation == 2


def test_what_a_member_says_of_itself_when_it_joins_again_counts() -> None:
    stage = Stage()
    (member_id,) = stage.stabilize()
    joined = stage.join(member_id, rebalance_timeout_ms=REBALANCE_MS + 1, session_timeout_ms=SESSION_MS + 1)
    stage.assign([joined])
    stored = stage.stored()
    assert stored is not None
    assert stored.members[0].rebalance_timeout == REBALANCE_MS + 1
    assert stored.members[0].session_timeout == SESSION_MS + 1


# -- records -----------------------------------------------------------------------------------------------------------
def test_a_group_that_comes_into_being_is_stored_before_anybody_is_told() -> None:
    stage = Stage()
    stage.hold()
    asked = stage.join(requires_known_member_id=True)
    assert not asked.is_answered
    stage.commit()
    stored = stage.stored()
    assert stored is not None
    assert (stored.protocol_type, stored.generation, stored.protocol, stored.leader) == ("", 0, None, None)
    assert (stored.members, stored.current_state_timestamp) == ([], stage.now.unix_ms)
    assert asked.answer.error_code is ErrorCode.MEMBER_ID_REQUIRED
    stage.join()
    assert stage.outbox.record_count == 1


def test_a_group_that_cannot_be_stored_leaves_nobody_in_it() -> None:
    stage = Stage()
    stage.hold()
    asked = stage.join()
    stage.refuse()
    assert asked.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert stage.group.is_vacant
    assert stage.join().error is None
    assert stage.stored() is not None, "the next one tries again"
