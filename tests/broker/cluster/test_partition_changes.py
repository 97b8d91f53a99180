"""What becomes of a partition: rules one by one, and histories in which a cleanly elected leader never lacks anything.

The history's model is small: records are counted, and each replica knows how many it has. A record is committed while
the in-sync set is as large as the minimum and nobody is eligible beside it; it is then on every member of the in-sync
set. A broker that loses data has none; one that follows catches up before it joins. Whoever is elected without being
asked to risk anything must have every committed record.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest

from odradek.broker.cluster.keys import NO_LEADER, PartitionState
from odradek.broker.cluster.partition_changes import (
    IsUsable,
    changed,
    may_lead,
    with_directory,
    with_isr,
    with_leader,
    with_preferred_leader,
    without,
    without_directory,
)
from odradek.broker.cluster.reassignment import cancelled, completed, reassigned

TOPIC_ID = bytes(range(16))
THREE = PartitionState(TOPIC_ID, (1, 2, 3), (1, 2, 3), 1, leader_epoch=4, partition_epoch=7)


def everybody(broker: int) -> bool:
    del broker
    return True


# -- one by one --------------------------------------------------------------------------------------------------------


def test_who_leaves_while_enough_stay_is_not_eligible() -> None:
    state = without(THREE, 1, min_insync=2)
    assert (state.isr, state.elr, state.leader) == ((2, 3), (), NO_LEADER)


def test_who_leaves_when_too_few_stay_is_eligible_and_so_is_who_left_last() -> None:
    state = without(without(THREE, 1, min_insync=2), 2, min_insync=2)
    assert (state.isr, state.elr) == ((3,), (2,))
    state = without(state, 3, min_insync=2)
    assert (state.isr, state.elr) == ((), (2, 3))


def test_eligible_replicas_are_forgotten_when_enough_are_in_sync_again() -> None:
    few = without(without(THREE, 1, min_insync=2), 2, min_insync=2)
    assert with_isr(few, (3, 1), min_insync=2) == replace(few, isr=(1, 3), elr=())
    assert with_isr(few, (3,), min_insync=1) == replace(few, elr=()), "the minimum was lowered"


def test_a_minimum_above_the_number_of_replicas_counts_as_that_number() -> None:
    alone = PartitionState(TOPIC_ID, (1,), (1,), 1)
    assert with_isr(alone, (1,), min_insync=3).elr == ()
    assert without(alone, 1, min_insync=3).elr == (1,)


def test_a_broker_that_lost_data_is_in_sync_and_eligible_no_more() -> None:
    state = without(THREE, 2, min_insync=3, lost_data=True)
    assert (state.isr, state.elr, state.leader) == ((1, 3), (), 1)
    eligible = without(without(THREE, 2, min_insync=3), 3, min_insync=3)
    assert without(eligible, 2, min_insync=3, lost_data=True).elr == (3,)


def test_the_last_one_stays_if_it_has_anything_left_and_goes_if_it_has_nothing() -> None:
    last = PartitionState(TOPIC_ID, (1, 2), (2,), 2)
    kept = without(last, 2, min_insync=1, lost_data=True)
    assert (kept.isr, kept.leader) == ((2,), NO_LEADER)
    gone = without(last, 2, min_insync=1, lost_all=True)
    assert (gone.isr, gone.elr, gone.leader, gone.last_known_leader) == ((), (), NO_LEADER, 1)


def test_of_who_lost_everything_nobody_expects_more_than_of_another() -> None:
    """It may be the first of the replicas: an election that may lose records takes one that has some."""
    gone = without(PartitionState(TOPIC_ID, (2, 1, 3), (2,), 2), 2, min_insync=2, lost_all=True)
    elected = with_leader(gone, everybody, unclean=True)
    assert (elected.leader, elected.isr) == (1, (1,))
    assert with_leader(gone, lambda broker: broker == 2, unclean=True).leader == 2
    alone = without(PartitionState(TOPIC_ID, (2,), (2,), 2), 2, min_insync=1, lost_all=True)
    assert with_leader(alone, everybody, unclean=True).leader == 2


def test_the_present_leader_stays_then_the_first_in_sync_then_an_eligible_one() -> None:
    assert with_leader(THREE, everybody) is THREE
    assert with_leader(THREE, lambda broker: broker != 1).leader == 2
    none_in_sync = replace(THREE, isr=(), elr=(2, 3), leader=NO_LEADER)
    elected = with_leader(none_in_sync, lambda broker: broker == 3)
    assert (elected.leader, elected.isr, elected.elr) == (3, (3,), (2,))


def test_an_eligible_one_never_leads_while_somebody_is_in_sync() -> None:
    """Those in sync come first, as in KIP-966: they may hold more, acknowledged with acks=1."""
    state = replace(THREE, isr=(1,), elr=(2,), leader=1)
    assert with_leader(state, lambda broker: broker == 2).leader == NO_LEADER


def test_nobody_else_leads_unless_that_is_wanted_and_then_alone() -> None:
    lost = replace(THREE, isr=(1,), elr=(), leader=1, last_known_leader=1)
    up = (2, 3)
    assert with_leader(lost, lambda broker: broker in up).leader == NO_LEADER
    unclean = with_leader(lost, lambda broker: broker in up, unclean=True)
    assert (unclean.leader, unclean.isr, unclean.elr) == (2, (2,), ())
    clean = with_leader(replace(lost, isr=(3,)), lambda broker: broker in up, unclean=True)
    assert (clean.leader, clean.isr) == (3, (3,)), "never while there is a clean way"


def test_the_preferred_leader_leads_if_it_is_in_sync() -> None:
    state = replace(THREE, leader=3)
    assert with_preferred_leader(state, everybody).leader == 1
    assert with_preferred_leader(state, lambda broker: broker != 1) is state
    assert with_preferred_leader(replace(state, isr=(2, 3)), everybody).leader == 3


def test_epochs() -> None:
    assert changed(THREE, THREE) is THREE
    restarted = changed(THREE, THREE, restarted=True)
    assert (restarted.leader_epoch, restarted.partition_epoch) == (5, 8)
    shrunk = changed(THREE, replace(THREE, isr=(1, 2)))
    assert (shrunk.leader_epoch, shrunk.partition_epoch) == (4, 8)
    for other in (replace(THREE, leader=2), replace(THREE, replicas=(1, 2, 3, 4)), replace(THREE, leader=NO_LEADER)):
        assert changed(THREE, other).leader_epoch == 5


# -- data directories --------------------------------------------------------------------------------------------------


def test_whose_directory_has_failed_leaves_and_does_not_become_eligible() -> None:
    state = without_directory(replace(THREE, isr=(1, 2)), 1, min_insync=2)
    assert (state.isr, state.elr, state.leader, state.offline) == ((2,), (), NO_LEADER, (1,))
    assert without_directory(state, 1, min_insync=2) is state
    back = with_directory(state, 1)
    assert (back.isr, back.offline) == ((2,), ()), "it has to catch up"
    assert with_directory(back, 1) is back


def test_the_last_one_whose_directory_has_failed_keeps_its_seat_and_leads_nothing() -> None:
    state = without_directory(replace(THREE, isr=(1,)), 1, min_insync=2)
    assert (state.isr, state.leader, state.offline) == ((1,), NO_LEADER, (1,))
    assert with_leader(state, may_lead(state, everybody)).leader == NO_LEADER
    assert with_leader(state, may_lead(state, everybody), unclean=True).leader == 2
    back = with_directory(state, 1)
    assert with_leader(back, may_lead(back, everybody)).leader == 1


def test_who_is_no_replica_any_more_is_not_offline_either() -> None:
    state = without_directory(THREE, 1, min_insync=2)
    assert changed(state, replace(state, replicas=(2, 3))).offline == ()
    assert without_directory(THREE, 9, min_insync=2) is THREE


# -- histories ---------------------------------------------------------------------------------------------------------

BROKERS = (1, 2, 3, 4)
EVENTS = (
    *("down", "up", "lose tail", "lose all", "commit", "append", "shrink", "join", "minimum", "move"),
    *("offline", "online", "move to two", "cancel"),
)
WEIGHTS = (6, 8, 1, 1, 12, 6, 8, 8, 4, 1, 2, 3, 1, 1)
OTHER_REPLICAS: Mapping[str, Callable[[int], Sequence[int]]] = {
    "move": lambda broker: [each for each in BROKERS if each != broker],
    "move to two": lambda broker: [broker, broker % len(BROKERS) + 1],
}
HISTORIES = 3000
EVENTS_MAX = 40


class Model:
    """One partition of three replicas, its brokers, and how many records each of them has."""

    def __init__(self) -> None:
        self.state = replace(THREE, replicas=(1, 2, 3))
        self.min_insync = 2
        self.up: set[int] = set(BROKERS)
        self.has: dict[int, int] = dict.fromkeys(BROKERS, 0)
        self.committed = 0
        self.is_lost = False
        """More members than one have lost what they had: then anything may be gone."""

    def decide(self) -> None:
        before = self.state
        state = before
        for broker in before.isr:
            if not self.may_lead(before)(broker):
                state = without(state, broker, self.min_insync)
        state = with_leader(state, self.may_lead(state))
        self.take_away(state, completed(state, self.min_insync))

    def take_away(self, before: PartitionState, after: PartitionState) -> None:
        """What an operator has asked for: no copy of what is committed goes that the minimum asks for."""
        holding = [len(self.holding(state)) for state in (before, after)]
        assert holding[1] >= min(self.min_insync, len(after.replicas), holding[0]), "copies were taken away"
        self.become(with_leader(after, self.may_lead(after)))

    def holding(self, state: PartitionState) -> list[int]:
        """Who may lead without loss, and has everything that is committed."""
        return [each for each in (*state.isr, *state.elr) if self.has[each] >= self.committed]

    def may_lead(self, state: PartitionState) -> IsUsable:
        return may_lead(state, self.up.__contains__)

    def become(self, state: PartitionState) -> None:
        before, self.state = self.state, changed(self.state, state)
        state = self.state
        assert state.leader == NO_LEADER or state.leader in state.isr
        assert set(state.isr) | set(state.elr) <= set(state.replicas)
        assert not set(state.isr) & set(state.elr)
        assert set(state.offline) <= set(state.replicas)
        assert state.leader not in state.offline
        assert state.leader_epoch - before.leader_epoch == (
            state.leader != before.leader or state.replicas != before.replicas
        )
        if state.leader != NO_LEADER and state.leader != before.leader and not self.is_lost:
            assert self.has[state.leader] >= self.committed, "a clean leader lacks what was committed"
            for broker in state.isr:  # they truncate to the leader's log, and fetch from it
                if broker in self.up:
                    self.has[broker] = min(self.has[broker], self.has[state.leader])

    def lose(self, broker: int, *, everything: bool) -> None:
        """A broker comes back without what it had, and says so before it is registered."""
        self.up.discard(broker)
        self.decide()
        is_last = [member for member in (*self.state.isr, *self.state.elr) if member != broker] == []
        if broker in (*self.state.isr, *self.state.elr) and is_last:
            self.is_lost = True
        self.has[broker] = 0
        state = without(self.state, broker, self.min_insync, lost_data=True, lost_all=everything)
        self.become(with_directory(state, broker))
        self.up.add(broker)
        self.decide()

    def come_or_go(self, event: str, broker: int) -> None:
        """The broker, or its data directory."""
        match event:
            case "down":
                self.up.discard(broker)
            case "up":
                self.up.add(broker)
            case "offline":
                self.become(without_directory(self.state, broker, self.min_insync))
            case _:
                self.become(with_directory(self.state, broker))

    def feed(self, event: str, broker: int) -> None:
        state = self.state
        match event:
            case "down" | "up" | "offline" | "online":
                self.come_or_go(event, broker)
                self.decide()
            case "lose tail" | "lose all":
                self.lose(broker, everything=event == "lose all")
            case "append" if state.leader != NO_LEADER:
                self.has[state.leader] += 1
            case "commit" if state.leader != NO_LEADER:
                is_enough = len(state.isr) >= min(self.min_insync, len(state.replicas))
                if is_enough and not state.elr:
                    for member in state.isr:
                        self.has[member] = self.has[state.leader]
                    self.committed = max(self.committed, self.has[state.leader])
            case "shrink" if broker in state.isr and state.leader not in (NO_LEADER, broker):
                self.become(with_isr(state, [each for each in state.isr if each != broker], self.min_insync))
            case "join" if broker in state.replicas and self.may_lead(state)(broker) and state.leader != NO_LEADER:
                self.has[broker] = self.has[state.leader]
                self.become(with_isr(state, (*state.isr, broker), self.min_insync))
                self.decide()
            case "minimum":
                self.min_insync = broker % 3 + 1
            case "move" | "move to two" if state.leader != NO_LEADER:
                self.take_away(state, reassigned(state, OTHER_REPLICAS[event](broker), self.min_insync))
                self.decide()
            case "cancel" if state.adding or state.removing:
                self.take_away(state, cancelled(state, self.min_insync))
            case _:
                pass


def history(seed: int) -> list[tuple[str, int]]:
    chance = random.Random(seed)
    return [(chance.choices(EVENTS, WEIGHTS)[0], chance.choice(BROKERS)) for _ in range(EVENTS_MAX)]


def test_a_clean_leader_has_every_committed_record() -> None:
    elections = commits = 0
    for seed in range(HISTORIES):
        model = Model()
        for number, (event, broker) in enumerate(history(seed)):
            try:
                model.feed(event, broker)
            except AssertionError as error:
                raise AssertionError(f"seed {seed}: {history(seed)[: number + 1]}") from error
        elections += model.state.leader_epoch
        commits += model.committed
    assert elections > 5 * HISTORIES, "there is something to go wrong"
    assert commits > HISTORIES


def test_the_model_finds_an_election_of_anybody() -> None:
    """Two followers leave one after the other, records are committed without them, and one of them is elected."""
    model = Model()
    model.min_insync = 1
    for event, broker in (("shrink", 2), ("shrink", 3), ("append", 1), ("commit", 1)):
        model.feed(event, broker)
    with pytest.raises(AssertionError, match="lacks what was committed"):
        model.become(replace(model.state, leader=2, isr=(2,)))
