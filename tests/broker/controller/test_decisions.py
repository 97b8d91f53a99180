"""What the controller makes of a partition: cases, and properties over all states and clusters that can be."""

from dataclasses import replace

from hypothesis import example, given
from hypothesis import strategies as st

from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.keys import NO_LEADER, BrokerState, PartitionState
from odradek.broker.cluster.partition_changes import without_unusable
from odradek.broker.controller.decisions import decided, preferred

TOPIC_ID = bytes(range(16))
BROKERS = (1, 2, 3, 4, 5)
STATE = PartitionState(TOPIC_ID, (1, 2, 3), (1, 2, 3), 1, leader_epoch=4, partition_epoch=7, revision=50)


def cluster(*up: int, stopping: tuple[int, ...] = (), restarted: tuple[int, ...] = ()) -> ClusterImage:
    """Brokers that registered before the partition was last changed, or after it (`restarted`)."""
    return ClusterImage(
        revision=100,
        brokers={broker_id: BrokerState(broker_id, {}, epoch=60 if broker_id in restarted else 40) for broker_id in up},
        stopping=frozenset(stopping),
    )


def decide(state: PartitionState, image: ClusterImage, min_insync: int = 2, *, unclean: bool = False) -> PartitionState:
    return decided(state, image, min_insync, unclean=unclean)


# -- cases -------------------------------------------------------------------------------------------------------------


def test_when_all_is_well_nothing_is_decided() -> None:
    assert decide(STATE, cluster(1, 2, 3)) is STATE


def test_a_leader_that_is_gone_is_replaced_by_the_first_in_sync_replica() -> None:
    after = decide(STATE, cluster(2, 3))
    assert (after.leader, after.isr, after.leader_epoch, after.partition_epoch) == (2, (2, 3), 5, 8)


def test_a_follower_that_is_gone_leaves_and_the_epoch_of_the_leader_stays() -> None:
    after = decide(STATE, cluster(1, 2))
    assert (after.leader, after.isr, after.leader_epoch, after.partition_epoch) == (1, (1, 2), 4, 8)


def test_who_stops_gives_up_what_it_leads_and_leaves() -> None:
    after = decide(STATE, cluster(1, 2, 3, stopping=(1,)))
    assert (after.leader, after.isr, after.leader_epoch) == (2, (2, 3), 5)


def test_the_last_one_that_stops_stays_eligible() -> None:
    alone = replace(STATE, isr=(1,), elr=(2,))
    after = decide(alone, cluster(1, stopping=(1,)))
    assert (after.leader, after.isr, after.elr) == (NO_LEADER, (), (1, 2))
    assert decide(after, cluster(1)).leader == 1


def test_a_leader_that_was_restarted_takes_a_new_epoch_and_only_that() -> None:
    after = decide(STATE, cluster(1, 2, 3, restarted=(1,)))
    assert after == replace(STATE, leader_epoch=5, partition_epoch=8)


def test_a_follower_that_was_restarted_changes_nothing() -> None:
    assert decide(STATE, cluster(1, 2, 3, restarted=(2, 3))) is STATE


def test_brokers_that_go_between_two_decisions_are_all_eligible_when_too_few_stay() -> None:
    """One after the other they would not be: the first one leaves while enough stay."""
    after = decide(STATE, cluster(3))
    assert (after.leader, after.isr, after.elr) == (3, (3,), (1, 2))
    none = decide(STATE, cluster())
    assert (none.leader, none.isr, none.elr) == (NO_LEADER, (), (1, 2, 3))
    for broker_id in (1, 2, 3):
        assert decide(none, cluster(broker_id)).leader == broker_id, "whoever comes back first has all of it"


def test_when_all_stop_at_once_with_a_minimum_of_one_each_of_them_may_lead_again() -> None:
    none = decide(STATE, cluster(1, 2, 3, stopping=(1, 2, 3)), min_insync=1)
    assert (none.isr, none.elr) == ((), (1, 2, 3))


def test_a_partition_that_nobody_leads_is_led_by_who_comes_back() -> None:
    waiting = replace(STATE, isr=(2,), leader=NO_LEADER, elr=(3,))
    assert decide(waiting, cluster(1)).leader == NO_LEADER
    after = decide(waiting, cluster(1, 2))
    assert (after.leader, after.isr, after.elr) == (2, (2,), (3,))


def test_outside_the_in_sync_and_eligible_only_with_unclean_elections() -> None:
    waiting = replace(STATE, isr=(2,), elr=(), leader=NO_LEADER)
    assert decide(waiting, cluster(1, 3)).leader == NO_LEADER
    after = decide(waiting, cluster(1, 3), unclean=True)
    assert (after.leader, after.isr) == (1, (1,))


def test_a_reassignment_is_completed_and_led_by_one_of_its_replicas() -> None:
    moving = replace(STATE, replicas=(4, 5, 1, 2, 3), isr=(1, 2, 3, 4, 5), adding=(4, 5), removing=(1, 2, 3), leader=1)
    after = decide(moving, cluster(*BROKERS))
    assert (after.replicas, after.isr, after.leader, after.leader_epoch) == ((4, 5), (4, 5), 4, 5)
    assert (after.adding, after.removing) == ((), ())
    not_yet = replace(moving, isr=(1, 2, 3, 4))
    assert decide(not_yet, cluster(*BROKERS)) is not_yet


def test_a_reassignment_is_completed_by_those_in_sync_who_are_there() -> None:
    """Broker 3, the successor, is in the stored set, and is gone: 1 stays, and acks=all goes on."""
    moving = replace(STATE, replicas=(2, 3, 1), adding=(3,), removing=(1,))
    after = decide(moving, cluster(1, 2))
    assert (after.replicas, after.isr, after.leader) == ((2, 3, 1), (1, 2), 1)
    assert decide(replace(after, revision=101), cluster(1, 2, 3)).removing == (1,), "it is there, and not in sync yet"
    assert decide(moving, cluster(1, 2, 3)).replicas == (2, 3)


def test_a_reassignment_is_completed_once_a_lower_minimum_allows_it() -> None:
    moving = replace(STATE, replicas=(2, 3, 4, 1), isr=(4, 1), adding=(4,), removing=(1,))
    assert decide(moving, cluster(*BROKERS), 2) is moving
    assert decide(moving, cluster(*BROKERS), 1).replicas == (2, 3, 4)


def test_the_preferred_leader() -> None:
    state = replace(STATE, leader=3)
    after = preferred(state, cluster(1, 2, 3))
    assert (after.leader, after.leader_epoch) == (1, 5)
    assert preferred(state, cluster(2, 3)) is state
    assert preferred(state, cluster(1, 2, 3, stopping=(1,))) is state
    assert preferred(STATE, cluster(1, 2, 3, restarted=(1,))) is STATE, "that is for `decided`"


def test_whose_data_directory_has_failed_leads_nothing_and_may_do_so_when_it_is_back() -> None:
    lost = replace(STATE, isr=(1,), leader=NO_LEADER, offline=(1,))
    after = decide(lost, cluster(1, 2, 3))
    assert (after.leader, after.isr, after.elr) == (NO_LEADER, (), (1,)), "it is remembered, and nobody else has all"
    assert decide(after, cluster(1, 2, 3)) is after
    assert decide(after, cluster(1, 2, 3), unclean=True).leader == 2
    back = decide(replace(after, offline=()), cluster(1, 2, 3))
    assert (back.leader, back.isr) == (1, (1,))


def test_others_that_are_in_sync_lead_what_lies_in_a_failed_directory() -> None:
    lost = replace(STATE, isr=(2, 3), leader=NO_LEADER, offline=(1,))
    assert decide(lost, cluster(1, 2, 3)).leader == 2
    assert preferred(replace(lost, isr=(1, 2, 3), leader=2), cluster(1, 2, 3)).leader == 2


# -- properties --------------------------------------------------------------------------------------------------------


@st.composite
def states(draw: st.DrawFn) -> PartitionState:
    order: list[int] = draw(st.permutations(BROKERS))
    replicas = tuple(order[: draw(st.integers(1, 5))])
    in_sync, eligible = draw(st.sets(st.sampled_from(BROKERS))), draw(st.sets(st.sampled_from(BROKERS)))
    isr = tuple(each for each in replicas if each in in_sync)
    elr = tuple(each for each in replicas if each in eligible - in_sync)
    to_add, to_remove = draw(st.sets(st.sampled_from(BROKERS), max_size=2)), draw(st.sets(st.sampled_from(BROKERS)))
    adding = tuple(each for each in replicas[1:] if each in to_add)
    removing = tuple(each for each in replicas[1:] if each in to_remove - to_add)
    leader = draw(st.sampled_from((NO_LEADER, *isr)))
    offline = tuple(each for each in replicas if draw(st.integers(0, 3)) == 0)
    return PartitionState(
        TOPIC_ID, replicas, isr, leader, 4, 7, elr=elr, adding=adding, removing=removing, offline=offline, revision=50
    )


@st.composite
def clusters(draw: st.DrawFn) -> ClusterImage:
    up, stopping, restarted = (draw(st.sets(st.sampled_from(BROKERS))) for _ in range(3))
    return cluster(*sorted(up), stopping=tuple(sorted(up & stopping)), restarted=tuple(sorted(up & restarted)))


@given(states(), clusters(), st.integers(1, 4), st.booleans())
@example(STATE, cluster(), 2, False)
def test_every_decision_ends_with_a_usable_leader_if_there_can_be_one_and_is_final(
    state: PartitionState, image: ClusterImage, min_insync: int, unclean: bool
) -> None:
    after = decided(state, image, min_insync, unclean=unclean)
    if after is not state:
        assert after.partition_epoch == state.partition_epoch + 1
        takes_epoch = after.leader_epoch - state.leader_epoch
        leader = image.brokers.get(state.leader)
        was_restarted = leader is not None and leader.epoch > state.revision
        assert takes_epoch == (after.leader != state.leader or after.replicas != state.replicas or was_restarted)
    members = set(state.isr) | set(state.elr)

    def is_usable(broker_id: int) -> bool:
        return image.is_usable(broker_id) and broker_id not in state.offline

    if after.leader == NO_LEADER:
        usable = [each for each in after.replicas if is_usable(each)]
        assert not any(each in after.isr for each in usable)
        assert after.isr or not any(each in after.elr for each in usable)
        assert not (unclean and usable)
    else:
        assert is_usable(after.leader)
        assert after.leader in after.isr
        is_clean = after.leader in members
        assert unclean or is_clean, "nobody is elected who was neither in sync nor eligible"
        assert is_clean or not any(is_usable(each) for each in members), "never while there is a clean way"
    assert all(is_usable(each) for each in after.isr)
    assert set(after.offline) == set(state.offline) & set(after.replicas)
    assert set(after.isr) | set(after.elr) <= set(after.replicas)
    assert not set(after.isr) & set(after.elr)
    assert not members or after.isr or after.elr, "somebody who has everything is always remembered"
    if after.replicas != state.replicas and after.leader in (*members, NO_LEADER):
        here = {each for each in state.isr if is_usable(each)} | {after.leader} - {NO_LEADER}
        assert len(after.isr) >= min(min_insync, len(after.replicas), len(here)), "a completion takes no needed copy"
        assert set(state.adding) <= set(after.isr)
    stored = replace(after, revision=101)
    assert decided(stored, image, min_insync, unclean=unclean) is stored


@given(states(), clusters())
def test_a_preferred_election_changes_the_leader_and_takes_nobody_away(
    state: PartitionState, image: ClusterImage
) -> None:
    after = preferred(state, image)
    if after is not state:
        assert after.leader in state.isr
        assert replace(state, leader=after.leader, leader_epoch=after.leader_epoch, partition_epoch=8) == after


@given(states(), clusters(), st.integers(1, 4))
def test_however_many_stop_at_once_nobody_is_forgotten_while_too_few_stay(
    state: PartitionState, image: ClusterImage, min_insync: int
) -> None:
    after = without_unusable(state, image.is_usable, min_insync)
    assert after.replicas == state.replicas
    if after is not state and len(after.isr) < min(min_insync, len(state.replicas)):
        assert {*after.isr, *after.elr} == {*state.isr, *state.elr}
    assert set(after.isr) == {each for each in state.isr if image.is_usable(each)}
