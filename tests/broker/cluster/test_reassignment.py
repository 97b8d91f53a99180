"""Reassignments: cases, some of Kafka's own, and that whatever operators ask for takes no copy away that is needed."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from odradek.broker.cluster.keys import NO_LEADER, PartitionState
from odradek.broker.cluster.reassignment import (
    cancelled,
    completed,
    keeps_enough,
    may_complete,
    original_replicas,
    reassigned,
    target_replicas,
)

TOPIC_ID = bytes(range(16))
THREE = PartitionState(TOPIC_ID, (1, 2, 3), (1, 2, 3), 1, leader_epoch=4, partition_epoch=7)


def moving(state: PartitionState, *target: int, min_insync: int = 1) -> PartitionState:
    return reassigned(state, target, min_insync)


# -- cases -------------------------------------------------------------------------------------------------------------


def test_a_reassignment_waits_for_those_that_are_added() -> None:
    state = moving(THREE, 3, 4, 5)
    assert state.replicas == (3, 4, 5, 1, 2)
    assert (state.adding, state.removing) == ((4, 5), (1, 2))
    assert original_replicas(state) == (3, 1, 2)
    assert target_replicas(state) == (3, 4, 5)
    assert completed(state, 1) is state
    assert completed(replace(state, isr=(3, 4, 1, 2)), 1).adding == (4, 5)
    done = completed(replace(state, isr=(3, 4, 5, 1, 2)), 1)
    assert (done.replicas, done.isr, done.adding, done.removing) == ((3, 4, 5), (3, 4, 5), (), ())
    assert done.leader == NO_LEADER, "the leader went with its replica"


def test_only_the_order_can_be_changed_at_once() -> None:
    assert moving(THREE, 3, 2, 1) == replace(THREE, replicas=(3, 2, 1), isr=(3, 2, 1))


@pytest.mark.parametrize("min_insync", [1, 2, 3])
def test_no_copy_goes_while_its_successor_is_not_in_sync(min_insync: int) -> None:
    """Of replicas 1, 2 and 3 broker 3 is down, and the target is 2 and 3: broker 1 stays until 3 is in sync."""
    state = moving(replace(THREE, isr=(1, 2)), 2, 3, min_insync=min_insync)
    assert (state.replicas, state.removing) == ((2, 3, 1), (1,))
    assert completed(state, min_insync) is state
    done = completed(replace(state, isr=(2, 3, 1)), min_insync)
    assert (done.replicas, done.isr) == ((2, 3), (2, 3))


@pytest.mark.parametrize(
    ("target", "isr", "is_done"),
    [
        ((1, 2, 3, 4), (1, 3, 4), True),
        ((2, 3, 4), (1, 3, 4), True),
        ((2, 4, 5), (1, 3, 4, 5), True),
        ((2, 3, 4), (1, 3), False),
        ((2, 3), (1, 3), False),
        ((2, 4), (1, 3, 4), False),
        ((3,), (1, 3), True),
    ],
)
def test_out_of_sync_replicas_are_awaited_only_where_fewer_are_added_than_removed(
    target: tuple[int, ...], isr: tuple[int, ...], is_done: bool
) -> None:
    """KAFKA-19975: replica 2 of 1, 2 and 3 is not well."""
    state = replace(moving(THREE, *target), isr=isr)
    assert may_complete(state, 1) is is_done


def test_no_completion_leaves_fewer_in_sync_than_the_minimum() -> None:
    """Kafka completes it, and 4 is alone: what 1 and 4 have acknowledged is on one disk then."""
    state = replace(moving(THREE, 2, 3, 4), isr=(4, 1))
    assert not may_complete(state, 2)
    assert may_complete(state, 1)
    assert may_complete(replace(state, isr=(3, 4, 1)), 2)
    assert not may_complete(state, 3), "two are too few already, and one would be fewer"


def test_a_target_smaller_than_the_minimum_is_reached() -> None:
    state = moving(THREE, 3, min_insync=2)
    done = completed(state, 2)
    assert (done.replicas, done.isr) == ((3,), (3,))


def test_whoever_is_eligible_counts_as_a_copy() -> None:
    """3 is to go, and has all that was acknowledged; of the target 1 alone has it, too."""
    state = PartitionState(TOPIC_ID, (1, 2, 4, 3), (1, 4), 1, elr=(3,), adding=(4,), removing=(3,))
    assert not may_complete(state, 3)
    done = completed(replace(state, elr=()), 3)
    assert (done.replicas, done.isr) == ((1, 2, 4), (1, 4)), "it was unregistered, and its copy is gone anyway"


def test_nobody_is_eligible_any_more_when_enough_are_in_sync_for_fewer_replicas() -> None:
    state = PartitionState(TOPIC_ID, (1, 2, 3, 4), (1, 2), 1, elr=(3,), removing=(4,))
    assert completed(replace(state, isr=(1, 2, 3), elr=()), 3).replicas == (1, 2, 3)
    shrunk = completed(replace(state, replicas=(1, 2, 3), removing=(3,)), 3)
    assert (shrunk.replicas, shrunk.isr, shrunk.elr) == ((1, 2), (1, 2), ())


def test_a_reassignment_can_be_cancelled_while_one_of_the_former_is_in_sync() -> None:
    state = replace(moving(THREE, 4, 5), isr=(4, 1))
    back = cancelled(state, 1)
    assert (back.replicas, back.isr, back.adding, back.removing) == ((1, 2, 3), (1,), (), ())
    stuck = replace(state, isr=(4,), elr=())
    assert cancelled(stuck, 1) is stuck


def test_nor_does_a_cancellation_leave_fewer_in_sync_than_the_minimum() -> None:
    state = replace(moving(THREE, 4, 5), isr=(4, 5, 1), leader=1)
    assert cancelled(state, 2) is state
    assert cancelled(replace(state, isr=(4, 5, 1, 3)), 2).isr == (1, 3)
    assert cancelled(replace(state, isr=(1,)), 2).isr == (1,), "none goes that is in sync"


def test_another_reassignment_replaces_the_one_under_way() -> None:
    again = moving(moving(THREE, 4, 5, 6), 1, 2, 7)
    assert target_replicas(again) == (1, 2, 7)
    assert original_replicas(again) == (1, 2, 3)


def test_who_was_added_and_is_needed_stays_until_another_reassignment_is_complete() -> None:
    """Of the original replicas 1 alone is in sync; 6 never came, and goes at once."""
    first = replace(moving(THREE, 4, 5, 6), isr=(4, 5, 1), leader=1)
    again = moving(first, 1, 2, 7, min_insync=2)
    assert (again.replicas, again.isr) == ((1, 2, 7, 4, 5, 3), (1, 4, 5))
    assert (again.adding, again.removing) == ((7,), (4, 5, 3))
    assert not may_complete(replace(again, isr=(1, 7, 4, 5)), 2)
    done = completed(replace(again, isr=(1, 2, 7, 4, 5)), 2)
    assert (done.replicas, done.isr) == ((1, 2, 7), (1, 2, 7))
    assert moving(first, 1, 2, 7, min_insync=1).isr == (1,), "one is enough"


@pytest.mark.parametrize(("isr", "elr"), [((4,), ()), ((), (4,))])
def test_the_last_copy_stays_though_another_reassignment_does_not_want_it(
    isr: tuple[int, ...], elr: tuple[int, ...]
) -> None:
    state = replace(moving(THREE, 4, 5, 6), isr=isr, elr=elr, leader=NO_LEADER)
    again = moving(state, 1, 2, 3)
    assert (again.isr, again.elr, again.adding, again.removing) == (isr, elr, (), (4,))


# -- properties --------------------------------------------------------------------------------------------------------

BROKERS = range(1, 7)


@st.composite
def states(draw: st.DrawFn) -> PartitionState:
    """Any partition on its way: those added and those removed are some of its replicas, the target is not empty."""
    replicas = tuple(draw(st.lists(st.sampled_from(BROKERS), min_size=1, unique=True)))
    roles = draw(st.lists(st.sampled_from(("stays", "stays", "adding", "removing")), min_size=6, max_size=6))
    seats = draw(st.lists(st.sampled_from(("isr", "isr", "elr", "none")), min_size=6, max_size=6))

    def those(chosen: Sequence[str], what: str) -> tuple[int, ...]:
        return tuple(broker for broker, found in zip(replicas, chosen, strict=False) if found == what)

    adding, removing = those(roles, "adding"), those(roles, "removing")
    assume(len(removing) < len(replicas))
    assume(len(adding) < len(replicas))
    isr = those(seats, "isr")
    leader = draw(st.sampled_from((NO_LEADER, *isr)))
    return PartitionState(
        TOPIC_ID, replicas, isr, leader, elr=those(seats, "elr"), adding=adding, removing=removing, revision=5
    )


def check_sound(before: PartitionState, after: PartitionState, min_insync: int) -> None:
    """Nobody is in sync or eligible who was not, or is no replica; and no copy is taken away that is needed."""
    assert len(set(after.replicas)) == len(after.replicas) > 0
    assert set(after.isr) <= set(before.isr) & set(after.replicas)
    assert set(after.elr) <= set(before.elr) & set(after.replicas)
    assert after.leader in (NO_LEADER, before.leader)
    assert after.leader == NO_LEADER or after.leader in after.isr
    enough = min(min_insync, len(after.replicas))
    assert len(after.isr) >= min(enough, len(before.isr))
    assert len({*after.isr, *after.elr}) >= min(enough, len({*before.isr, *before.elr}))
    assert not after.elr or len(after.isr) < enough


@given(states(), st.integers(1, 5))
def test_a_completed_reassignment_has_its_target_and_all_successors_in_sync(
    state: PartitionState, min_insync: int
) -> None:
    after = completed(state, min_insync)
    if after is state:
        return
    check_sound(state, after, min_insync)
    assert (after.replicas, after.adding, after.removing) == (target_replicas(state), (), ())
    assert set(state.adding) <= set(after.isr)
    assert len(state.adding) >= len(state.removing) or set(after.isr) == set(after.replicas)
    assert completed(after, min_insync) is after


@given(states(), st.integers(1, 5))
def test_a_reassignment_whose_target_is_in_sync_is_completed_whatever_the_minimum(
    state: PartitionState, min_insync: int
) -> None:
    assume(state.adding or state.removing)
    ready = replace(state, isr=state.replicas, elr=())
    assert completed(ready, min_insync).replicas == target_replicas(state)
    ready = replace(state, isr=target_replicas(state), elr=())
    assert completed(ready, min_insync).replicas == target_replicas(state)


@given(states(), st.integers(1, 5))
def test_a_cancelled_reassignment_has_its_original_replicas(state: PartitionState, min_insync: int) -> None:
    after = cancelled(state, min_insync)
    if after is not state:
        check_sound(state, after, min_insync)
        assert (after.replicas, after.adding, after.removing) == (original_replicas(state), (), ())
    elif min_insync == 1:
        assert not set(state.isr) & set(original_replicas(state)), "Kafka's rule"


@given(states(), st.integers(1, 5), st.lists(st.sampled_from(BROKERS), min_size=1, unique=True))
def test_another_reassignment_takes_nothing_away_that_is_needed(
    state: PartitionState, min_insync: int, target: list[int]
) -> None:
    after = reassigned(state, target, min_insync)
    check_sound(state, after, min_insync)
    assert keeps_enough(state, after, min_insync)
    assert list(target_replicas(after)) == target
    assert set(original_replicas(after)) - set(original_replicas(state)) <= {*state.isr, *state.elr}
    assert set(original_replicas(state)) <= set(original_replicas(after))
    done = completed(after, min_insync)
    assert done is after or done.replicas == tuple(target)
