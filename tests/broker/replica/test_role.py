"""`Role`: what may be asked in each kind, and what a term is."""

import pytest

from odradek.broker.cluster.keys import NO_LEADER
from odradek.broker.replica.role import Role, RoleKind
from odradek.protocol.errors import ErrorCode, KafkaError


def code_of(role: Role, current_leader_epoch: int, *, for_replica: bool) -> ErrorCode:
    try:
        (role.require_replica if for_replica else role.require_leader)(current_leader_epoch)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def leader() -> Role:
    role = Role("orders-0")
    role.lead(0, 4, 10)
    return role


def follower() -> Role:
    role = leader()
    role.follow(2, 4)
    return role


def nobody() -> Role:
    role = leader()
    role.follow(NO_LEADER, 5)
    return role


@pytest.mark.parametrize(
    ("role", "epoch", "of_replica", "of_leader"),
    [
        (leader(), -1, ErrorCode.NONE, ErrorCode.NONE),
        (leader(), 4, ErrorCode.NONE, ErrorCode.NONE),
        (leader(), 3, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_LEADER_EPOCH),
        (leader(), 5, ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (follower(), -1, ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (follower(), 3, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_LEADER_EPOCH),
        (nobody(), -1, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (nobody(), 3, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (Role("orders-0"), -1, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_who_may_be_asked_in_which_epoch(role: Role, epoch: int, of_replica: ErrorCode, of_leader: ErrorCode) -> None:
    assert code_of(role, epoch, for_replica=True) is of_replica
    assert code_of(role, epoch, for_replica=False) is of_leader


def test_a_term_that_has_ended_is_over_even_if_this_broker_leads_again() -> None:
    role = leader()
    before = role.terms_ended
    role.require_term(before)
    role.follow(2, 5)
    role.lead(0, 6, 20)
    assert (role.kind, role.epoch_start_offset) == (RoleKind.LEADER, 20)
    with pytest.raises(KafkaError, match="NOT_LEADER_OR_FOLLOWER"):
        role.require_term(before)
    role.require_term(role.terms_ended)


def test_who_resigns_with_an_error_answers_it_until_the_next_role() -> None:
    role = leader()
    gone = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the directory has failed")
    assert role.resign(gone) is gone
    assert code_of(role, -1, for_replica=True) is ErrorCode.KAFKA_STORAGE_ERROR
    role.follow(2, 5)
    assert code_of(role, -1, for_replica=False) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_an_epoch_never_goes_back() -> None:
    role = leader()
    with pytest.raises(AssertionError):
        role.lead(0, 4, 10)
    with pytest.raises(AssertionError):
        role.follow(1, 3)
