"""What follows from the values of a group: its phase, and who owns what, in whatever order the values come."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.broker.group.consumer.group_state import GroupPhase, GroupState
from odradek.broker.group.consumer.group_values import (
    Current,
    GroupEpoch,
    Key,
    Kind,
    Member,
    MemberState,
    Obsolete,
    ResolvedRegex,
    Target,
    TargetEpoch,
    Value,
)

T = b"t" * 16
GROUP, TARGET_EPOCH = Key(Kind.GROUP), Key(Kind.TARGET_EPOCH)
A, A_HAS = Key(Kind.MEMBER, "a"), Key(Kind.CURRENT, "a")


def state_of(values: dict[Key, Value]) -> GroupState:
    state = GroupState()
    for key, value in values.items():
        state.apply(key, value)
    return state


def phase_of(state: GroupState) -> GroupPhase:
    return state.phase


@pytest.mark.parametrize(
    ("values", "phase"),
    [
        ({}, GroupPhase.DEAD),
        ({GROUP: GroupEpoch(3, 0)}, GroupPhase.EMPTY),
        ({GROUP: GroupEpoch(3, 0), TARGET_EPOCH: TargetEpoch(2, 0)}, GroupPhase.EMPTY),
        ({GROUP: GroupEpoch(3, 0), TARGET_EPOCH: TargetEpoch(2, 0), A: Member()}, GroupPhase.ASSIGNING),
        ({GROUP: GroupEpoch(3, 0), TARGET_EPOCH: TargetEpoch(3, 0), A: Member()}, GroupPhase.RECONCILING),
        (
            {GROUP: GroupEpoch(3, 0), TARGET_EPOCH: TargetEpoch(3, 0), A: Member(), A_HAS: Current(2)},
            GroupPhase.RECONCILING,
        ),
        (
            {
                GROUP: GroupEpoch(3, 0),
                TARGET_EPOCH: TargetEpoch(3, 0),
                A: Member(),
                A_HAS: Current(3, state=MemberState.UNRELEASED_PARTITIONS),
            },
            GroupPhase.RECONCILING,
        ),
        (
            {GROUP: GroupEpoch(3, 0), TARGET_EPOCH: TargetEpoch(3, 0), A: Member(), A_HAS: Current(-2)},
            GroupPhase.RECONCILING,
        ),
        (
            {GROUP: GroupEpoch(3, 0), TARGET_EPOCH: TargetEpoch(3, 0), A: Member(), A_HAS: Current(3)},
            GroupPhase.STABLE,
        ),
    ],
)
def test_the_phase_follows_from_the_values(values: dict[Key, Value], phase: GroupPhase) -> None:
    assert state_of(values).phase is phase


def test_the_phase_follows_every_change() -> None:
    state = state_of({GROUP: GroupEpoch(3, 0), TARGET_EPOCH: TargetEpoch(3, 0), A: Member(), A_HAS: Current(3)})
    assert phase_of(state) is GroupPhase.STABLE
    state.apply(GROUP, GroupEpoch(4, 0))
    assert phase_of(state) is GroupPhase.ASSIGNING
    state.apply(TARGET_EPOCH, TargetEpoch(4, 0))
    assert phase_of(state) is GroupPhase.RECONCILING
    state.apply(A_HAS, Current(4))
    assert phase_of(state) is GroupPhase.STABLE
    state.apply(A_HAS, None)
    state.apply(A, None)
    assert phase_of(state) is GroupPhase.EMPTY
    state.apply(GROUP, None)
    assert phase_of(state) is GroupPhase.DEAD


def test_a_value_of_another_kind_is_a_mistake_of_ours() -> None:
    with pytest.raises(AssertionError):
        GroupState().apply(GROUP, Member())


NAMES = st.sampled_from(["a", "b", "c"])
MEMBER = st.builds(Member, st.sampled_from([None, "i"]), topic_names=st.frozensets(st.sampled_from(["x", "y"])))
CHANGES = st.one_of(
    st.tuples(st.builds(Key, st.just(Kind.MEMBER), NAMES), st.none() | MEMBER),
    st.tuples(
        st.builds(Key, st.just(Kind.CURRENT), NAMES),
        st.none() | st.frozensets(st.integers(0, 5)).map(lambda some: Current(assigned={T: dict.fromkeys(some, 1)})),
    ),
)


@settings(max_examples=60)
@given(st.lists(CHANGES, max_size=20))
def test_what_follows_is_what_the_newest_values_say(changes: list[tuple[Key, Value | None]]) -> None:
    """No member is given what another one has."""
    state = GroupState()
    for key, value in changes:
        if isinstance(value, Current):
            free = {index for index in value.assigned[T] if state.owner(T, index) in (None, key.name)}
            value = Current(assigned={T: dict.fromkeys(free, 1)} if free else {})
        state.apply(key, value)
    again = state_of({key: value for key in state.all_keys() if (value := state.value(key)) is not None})
    assert (again.owners, again.subscriptions) == (state.owners, state.subscriptions)
    assert all(state.members[member_id].instance_id == one for one, member_id in state.static_ids.items())


ONE_EACH: dict[Kind, Value] = {
    Kind.GROUP: GroupEpoch(1, 0),
    Kind.TARGET_EPOCH: TargetEpoch(1, 0),
    Kind.MEMBER: Member(),
    Kind.TARGET: Target({}),
    Kind.CURRENT: Current(),
    Kind.REGEX: ResolvedRegex(frozenset(), 0, 0),
    Kind.PARTITION_METADATA: Obsolete(),
}


@pytest.mark.parametrize("kind", Kind)
def test_a_value_of_any_kind_is_enough_not_to_be_blank(kind: Kind) -> None:
    state = GroupState()
    assert (state.is_blank, state.is_dead) == (True, True)
    state.apply(Key(kind), ONE_EACH[kind])
    assert not state.is_blank
    assert state.is_dead is (state.phase is GroupPhase.DEAD)
    state.apply(Key(kind), None)
    assert (state.is_blank, state.is_dead) == (True, True)
