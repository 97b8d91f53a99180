"""What operators ask of single partitions: what is refused, in whose words, and what becomes of the others."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.keys import NO_LEADER, BrokerState, NodeState, PartitionState
from odradek.broker.cluster.topic_image import TopicImage
from odradek.broker.handling.partition_plans import ElectionType, find, with_elected_leader, with_replicas
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.controller.test_decisions import BROKERS, clusters, states

TOPIC_ID = bytes(range(16))
STATE = PartitionState(TOPIC_ID, (1, 2, 3), (1, 2, 3), 1, leader_epoch=4, partition_epoch=7, revision=50)
PREFERRED, UNCLEAN = ElectionType.PREFERRED, ElectionType.UNCLEAN


def cluster(
    state: PartitionState,
    *,
    up: tuple[int, ...] = (1, 2, 3, 4, 5),
    stopping: tuple[int, ...] = (),
    restarted: tuple[int, ...] = (),
) -> ClusterImage:
    """Brokers 1 to 6 are known; those `up` are there."""
    return ClusterImage(
        revision=100,
        topics={"orders": TopicImage("orders", TOPIC_ID, (state,))},
        brokers={each: BrokerState(each, {}, epoch=60 if each in restarted else 40) for each in up},
        nodes={each: NodeState((bytes([each]) * 16,)) for each in range(1, 7)},
        stopping=frozenset(stopping),
    )


def code_of(ask: Callable[[], object]) -> ErrorCode:
    with pytest.raises(KafkaError) as raised:
        ask()
    assert raised.value.message
    return raised.value.code


def reassign(
    image: ClusterImage, target: tuple[int, ...] | None, min_insync: int = 1, *, may_change_count: bool = True
) -> PartitionState:
    return with_replicas(image, "orders", 0, target, min_insync, may_change_count=may_change_count)


def elect(image: ClusterImage, election: ElectionType) -> PartitionState:
    return with_elected_leader(image, "orders", 0, election)


def test_what_does_not_exist_is_not_found() -> None:
    image = cluster(STATE)
    assert find(image, "orders", 0) == (image.topics["orders"], STATE)
    for topic, index in (("orders", 1), ("orders", -1), ("bills", 0)):
        assert code_of(lambda: find(image, topic, index)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION  # noqa: B023


# -- replicas ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "code"),
    [
        ((), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((1, 2, 1), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((1, 2, 7), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((1, 2, -1), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
    ],
)
def test_what_is_refused(target: tuple[int, ...] | None, code: ErrorCode) -> None:
    assert code_of(lambda: reassign(cluster(STATE), target)) == code


def test_the_number_of_replicas_changes_only_if_it_may() -> None:
    image = cluster(STATE)
    refused = code_of(lambda: reassign(image, (1, 2), may_change_count=False))
    assert refused == ErrorCode.INVALID_REPLICATION_FACTOR
    assert reassign(image, (1, 2)).replicas == (1, 2)
    assert reassign(image, (1, 2, 6), may_change_count=False).adding == (6,), "one that is down may be a target"
    moving = cluster(replace(STATE, replicas=(4, 5, 1, 2, 3), adding=(4, 5), removing=(1, 2, 3)))
    assert reassign(moving, (1, 5), may_change_count=False).adding == (5,), "of one under way its target counts"


def test_a_reassignment_begins_and_the_leader_stays_meanwhile() -> None:
    after = reassign(cluster(STATE), (4, 5, 3))
    assert (after.replicas, after.adding, after.removing) == ((4, 5, 3, 1, 2), (4, 5), (1, 2))
    assert (after.leader, after.leader_epoch, after.partition_epoch) == (1, 5, 8)


def test_where_only_replicas_go_it_is_over_at_once_and_led_by_one_that_stays() -> None:
    after = reassign(cluster(STATE), (2, 3))
    assert (after.replicas, after.isr, after.leader, after.removing) == ((2, 3), (2, 3), 2, ())


def test_the_same_replicas_again_are_no_change() -> None:
    assert reassign(cluster(STATE), (1, 2, 3)) is STATE


def test_who_was_being_added_and_is_not_wanted_any_more_is_in_sync_no_more() -> None:
    """Else it would be in sync and no replica: nobody would wait for it, and nobody ask it."""
    moving = replace(STATE, replicas=(4, 5, 1, 2, 3), adding=(4, 5), removing=(1, 2, 3), isr=(4, 1, 2, 3), leader=4)
    after = reassign(cluster(moving), (2, 3, 6))
    assert (after.replicas, after.adding, after.removing) == ((2, 3, 6, 1), (6,), (1,))
    assert (after.isr, after.leader) == ((2, 3, 1), 2)


def test_who_is_down_counts_for_nothing_though_the_stored_set_names_it() -> None:
    """Else a copy went for a successor that the controller is about to take out of the in-sync set."""
    image = cluster(STATE, up=(1, 2))
    after = reassign(image, (2, 3), 2)
    assert (after.replicas, after.isr, after.removing) == ((2, 3, 1), (2, 1), (1,))
    assert reassign(cluster(STATE, stopping=(3,)), (2, 3), 2) == after
    assert reassign(image, (2,), 2).replicas == (2,)


@pytest.mark.parametrize("target", [(1, 2, 3), (1, 2, 6)])
def test_an_added_replica_alone_in_sync_stays_until_another_reassignment_completes(
    target: tuple[int, ...],
) -> None:
    moving = replace(STATE, replicas=(4, 1, 2, 3), adding=(4,), removing=(3,), isr=(4,), leader=4)
    after = reassign(cluster(moving), target)
    assert (after.leader, after.isr, 4 in after.removing) == (4, (4,), True)
    assert reassign(cluster(replace(moving, isr=(4, 1))), target).isr == (1,)
    assert reassign(cluster(replace(moving, isr=(4, 1))), target, 2).isr == (1, 4)


def test_a_reassignment_is_cancelled_if_somebody_of_before_has_everything() -> None:
    moving = replace(STATE, replicas=(4, 1, 2, 3), adding=(4,), removing=(3,), isr=(4, 2), leader=4)
    after = reassign(cluster(moving), None)
    assert (after.replicas, after.isr, after.leader, after.adding) == ((1, 2, 3), (2,), 2, ())
    stuck = replace(moving, isr=(4,))
    assert code_of(lambda: reassign(cluster(stuck), None)) == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_a_cancellation_that_would_leave_too_few_in_sync_is_refused_with_what_to_do() -> None:
    moving = replace(STATE, replicas=(4, 1, 2, 3), adding=(4,), removing=(3,), isr=(4, 2), leader=4)
    with pytest.raises(KafkaError) as raised:
        reassign(cluster(moving), None, 2)
    assert raised.value.code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert raised.value.message == (
        "orders-0 cannot go back to its former replicas [1, 2, 3] now: of these only [2] are in sync, too few for "
        "min.insync.replicas=2 without [4], which are in sync or eligible, too. Cancel again when more of them "
        "are in sync, or reassign the partition to brokers that are"
    )
    three = replace(moving, isr=(4, 1, 2))
    assert reassign(cluster(three), None, 2).isr == (1, 2)
    down = code_of(lambda: reassign(cluster(three, up=(2, 3, 4)), None, 2))
    assert down == ErrorCode.INVALID_REPLICA_ASSIGNMENT, "1 is in sync in the store alone"


def test_a_leader_that_was_restarted_takes_its_new_epoch_with_the_change() -> None:
    moving = replace(STATE, replicas=(2, 3, 1), adding=(), removing=(1,), leader=2)
    after = reassign(cluster(replace(moving, isr=(1,), leader=1), restarted=(1,)), (2, 3, 1))
    assert (after.replicas, after.leader, after.leader_epoch) == ((2, 3, 1), 1, 5)


@given(states(), clusters(), st.integers(1, 4), st.none() | st.lists(st.sampled_from(BROKERS), unique=True))
def test_no_request_for_other_replicas_takes_a_copy_away_that_is_needed(
    state: PartitionState, image: ClusterImage, min_insync: int, target: list[int] | None
) -> None:
    image = replace(image, topics=cluster(state).topics, nodes=cluster(state).nodes)
    try:
        after = with_replicas(image, "orders", 0, target, min_insync, may_change_count=True)
    except KafkaError:
        return
    here = {each for each in state.isr if image.is_usable(each) and each not in state.offline}
    members, left = {*state.isr, *state.elr}, {*after.isr, *after.elr}
    enough = min(min_insync, len(after.replicas))
    assert len(after.isr) >= min(enough, len(here))
    assert len(left) >= min(enough, len(members))
    assert left <= members
    assert after.leader == NO_LEADER or after.leader in after.isr


# -- leaders -----------------------------------------------------------------------------------------------------------


def test_the_preferred_leader_is_elected_if_it_is_in_sync_and_there() -> None:
    state = replace(STATE, leader=2)
    after = elect(cluster(state), PREFERRED)
    assert (after.leader, after.leader_epoch) == (1, 5)
    assert code_of(lambda: elect(cluster(STATE), PREFERRED)) == ErrorCode.ELECTION_NOT_NEEDED
    for image in (
        cluster(replace(state, isr=(2, 3))),
        cluster(state, up=(2, 3)),
        cluster(state, stopping=(1,)),
    ):
        assert code_of(lambda: elect(image, PREFERRED)) == ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE  # noqa: B023


def test_an_unclean_election_is_for_who_has_no_leader() -> None:
    assert code_of(lambda: elect(cluster(STATE), UNCLEAN)) == ErrorCode.ELECTION_NOT_NEEDED
    lost = replace(STATE, isr=(), elr=(), leader=NO_LEADER, last_known_leader=3)
    after = elect(cluster(lost), UNCLEAN)
    assert (after.leader, after.isr, after.leader_epoch) == (3, (3,), 5)
    after = elect(cluster(lost, up=(2,)), UNCLEAN)
    assert (after.leader, after.isr) == (2, (2,))
    nobody = code_of(lambda: elect(cluster(lost, up=(4, 5)), UNCLEAN))
    assert nobody == ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE


def test_an_unclean_election_takes_a_clean_way_if_there_is_one() -> None:
    waiting = replace(STATE, isr=(2,), leader=NO_LEADER)
    after = elect(cluster(waiting), UNCLEAN)
    assert (after.leader, after.isr) == (2, (2,))
