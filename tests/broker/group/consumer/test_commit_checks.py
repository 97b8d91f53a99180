"""Who may commit and fetch offsets, by member epoch and by assignment epoch (KIP-1251)."""

import pytest

from odradek.broker.group.consumer.commit_checks import check_commit, check_fetch
from odradek.broker.group.consumer.group_state import GroupState
from odradek.broker.group.consumer.group_values import ClassicMember, Current, Key, Kind, Member, MemberState
from odradek.protocol.errors import ErrorCode, KafkaError

T, U = b"t" * 16, b"u" * 16


def group(*, classic: bool = False) -> GroupState:
    """`a` has epoch 5. It has partition 0 since epoch 3, and has to give up partition 1, which it has since epoch 4."""
    state = GroupState()
    state.apply(Key(Kind.MEMBER, "a"), Member(classic=ClassicMember(10_000, ()) if classic else None))
    current = Current(5, 4, MemberState.UNREVOKED_PARTITIONS, {T: {0: 3}}, {T: {1: 4}})
    state.apply(Key(Kind.CURRENT, "a"), current)
    return state


def commit(state: GroupState, epoch: int, partition: int = 0, topic_id: bytes = T, member_id: str = "a") -> None:
    check = check_commit(state, "g", member_id, epoch, is_transactional=False, version=9)
    check.check(topic_id, partition)


def refused(state: GroupState, code: ErrorCode, epoch: int, partition: int = 0, topic_id: bytes = T) -> None:
    with pytest.raises(KafkaError) as error:
        commit(state, epoch, partition, topic_id)
    assert error.value.code is code


def test_the_newest_epoch_commits_anything() -> None:
    commit(group(), 5)
    commit(group(), 5, 7, U)


def test_an_older_epoch_commits_what_was_assigned_by_then() -> None:
    commit(group(), 4)
    commit(group(), 3)
    commit(group(), 4, 1)
    refused(group(), ErrorCode.STALE_MEMBER_EPOCH, 2)
    refused(group(), ErrorCode.STALE_MEMBER_EPOCH, 3, 1)
    refused(group(), ErrorCode.STALE_MEMBER_EPOCH, 4, 2)
    refused(group(), ErrorCode.STALE_MEMBER_EPOCH, 4, 0, U)


def test_a_newer_epoch_commits_nothing() -> None:
    refused(group(), ErrorCode.STALE_MEMBER_EPOCH, 6)


def test_classic_members_are_told_in_their_own_words() -> None:
    refused(group(classic=True), ErrorCode.ILLEGAL_GENERATION, 6)
    refused(group(classic=True), ErrorCode.ILLEGAL_GENERATION, 4, 2)
    check_commit(group(classic=True), "g", "a", 5, is_transactional=False, version=2)


@pytest.mark.parametrize(
    ("classic", "version", "code"),
    [
        (False, 5, ErrorCode.ILLEGAL_GENERATION),
        (False, 6, ErrorCode.STALE_MEMBER_EPOCH),
        (True, 6, ErrorCode.ILLEGAL_GENERATION),
    ],
)
@pytest.mark.parametrize(("epoch", "partition"), [(6, 0), (4, 2), (-1, 0)])
def test_producers_are_told_of_a_stale_epoch_as_they_know_it(
    epoch: int, partition: int, classic: bool, version: int, code: ErrorCode
) -> None:
    state = group(classic=classic)
    with pytest.raises(KafkaError) as error:
        check_commit(state, "g", "a", epoch, is_transactional=True, version=version).check(T, partition)
    assert error.value.code is code


def test_old_versions_commit_in_transactions_only() -> None:
    with pytest.raises(KafkaError) as error:
        check_commit(group(), "g", "a", 5, is_transactional=False, version=8)
    assert error.value.code is ErrorCode.UNSUPPORTED_VERSION
    check_commit(group(), "g", "a", 5, is_transactional=True, version=3)


def test_who_is_no_member_commits_in_an_empty_group_only() -> None:
    commit(GroupState(), -1, member_id="")
    for epoch in (-1, 5):
        with pytest.raises(KafkaError) as error:
            commit(group(), epoch, member_id="b")
        assert error.value.code is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_that_is_away_commits_nothing() -> None:
    state = group()
    state.apply(Key(Kind.CURRENT, "a"), Current(-2, 4, MemberState.STABLE, {T: {0: 0}}))
    refused(state, ErrorCode.STALE_MEMBER_EPOCH, 4)


def test_a_fetch_needs_the_newest_epoch_or_none() -> None:
    check_fetch(group(), "g", None, -1)
    check_fetch(group(), "g", "a", 5)
    for member_id, epoch, code in (
        ("a", 4, ErrorCode.STALE_MEMBER_EPOCH),
        ("a", 6, ErrorCode.STALE_MEMBER_EPOCH),
        ("a", -1, ErrorCode.STALE_MEMBER_EPOCH),
        ("b", 5, ErrorCode.UNKNOWN_MEMBER_ID),
        (None, 5, ErrorCode.UNKNOWN_MEMBER_ID),
    ):
        with pytest.raises(KafkaError) as error:
            check_fetch(group(), "g", member_id, epoch)
        assert error.value.code is code
    with pytest.raises(KafkaError) as error:
        check_fetch(group(classic=True), "g", "a", 4)
    assert error.value.code is ErrorCode.ILLEGAL_GENERATION
