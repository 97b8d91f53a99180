"""Histories: what is planned comes to pass, what must hold does, and what does not hold is found.

That each mistake put in on purpose is found by the seed that is recorded for it, `make sim` shows.
"""

import asyncio
from dataclasses import replace

import pytest

from odradek.broker.replica.acknowledgements import Acknowledgements
from odradek.broker.replica.append_ticket import AppendTicket
from odradek.testing.sim.checking.checker import check
from odradek.testing.sim.checking.cluster_history import UncleanElection
from odradek.testing.sim.checking.expectations import Rules, TopicRules
from odradek.testing.sim.checking.finding import Anomaly, Verdict
from odradek.testing.sim.checking.group_history import CommitAnswered
from odradek.testing.sim.checking.history import Acknowledged, Answered, Happened, Polled, ReplicaSeen, Sent
from odradek.testing.sim.checking.transaction_history import Ended
from odradek.testing.sim.cluster.faults import Action, Faults
from odradek.testing.sim.cluster.group_member import Seat
from odradek.testing.sim.cluster.reading import FINAL
from odradek.testing.sim.cluster.transactor import Desk
from odradek.testing.sim.cluster.transactors import Desks
from odradek.testing.sim.directed.alone import STORIES_ALONE
from odradek.testing.sim.directed.clusters import STORIES
from odradek.testing.sim.directed.groups import GROUP_STORIES
from odradek.testing.sim.directed.operators import CLEAN_STOP, OPERATOR_STORIES
from odradek.testing.sim.directed.transactions import TRANSACTION_STORIES
from odradek.testing.sim.scenario import ALL_ACKS, TOPIC, UNDISTURBED_S, Scenario
from odradek.testing.sim.simulation import Result, Script, simulate
from tests.sim.canaries import CANARIES, sung
from tests.sim.recorded import FOUND_BY

QUIET = Scenario(safety_s=3.0, faults=0, partitions=2)
CLUSTER = Scenario(
    brokers=3,
    partitions=1,
    replication_factor=3,
    min_insync_replicas=2,
    is_synced=False,
    lag_ms=1_000,
    interval_ms=200.0,
    safety_s=16.0,
    faults=0,
    keeps_to_loss_model=True,
)


def once(kind: str) -> Script:
    """Something that happens to the broker in the second second."""

    def script(faults: Faults) -> list[Action]:
        machine = faults.brokers.machines[0]
        actions: dict[str, list[Action]] = {
            "process crash": [(2.0, lambda: faults.crash(machine, 0.2))],
            "power failure": [(2.0, lambda: faults.power_off(machine, 0.2))],
            "clean stop": [(2.0, lambda: faults.stop(machine))],
            "pause": [(2.0, lambda: faults.pause(machine)), (2.8, lambda: faults.resume(machine))],
            "suspend": [(2.0, lambda: faults.suspend(machine)), (2.8, lambda: faults.wake(machine))],
            "clock jump": [(2.0, lambda: faults.jump(machine, -3600.0))],
        }
        return actions[kind]

    return script


def test_without_faults_everything_is_acknowledged_and_read_where_it_was_said() -> None:
    result = simulate(1, QUIET)
    assert result.violations == []
    sent, acknowledged = result.history.of(Sent), result.history.of(Acknowledged)
    assert len(sent) == len(acknowledged) > 30
    last = [record for poll in result.history.of(Polled) if poll.client == FINAL for record in poll.records]
    assert len(last) == len(sent)
    assert {ack.value: ack.offset for ack in acknowledged} == {value: offset for offset, value in last}
    assert any(seen.is_leader and seen.high_watermark > 0 for seen in result.history.of(ReplicaSeen))


@pytest.mark.parametrize("kind", ["process crash", "power failure", "clean stop", "pause", "suspend", "clock jump"])
def test_nothing_acknowledged_is_lost_by(kind: str) -> None:
    result = simulate(2, QUIET, once(kind))
    assert result.violations == []
    happened = [each for each in result.history.of(Happened) if each.kind == kind]
    assert [each.machine for each in happened] == ["b1"]
    assert 2_000.0 < happened[0].at_ms < 2_200.0
    later = [ack for ack in result.history.of(Acknowledged) if ack.at_ms > happened[0].at_ms]
    assert later, "it goes on"


def test_what_was_not_synced_may_be_lost_with_the_power_and_is_announced() -> None:
    """That the device really loses it: the same histories, judged as if nobody had said so."""
    scenario = Scenario(safety_s=3.0, partitions=1, is_synced=False)
    results = [simulate(seed, scenario, once("power failure")) for seed in range(1, 6)]
    assert [result.violations for result in results] == [[]] * 5
    kinds = {anomaly for result in results for anomaly in judged_without_excuses(result).kinds}
    assert kinds & {Anomaly.LOST_WRITE, Anomaly.UNSEEN}


@pytest.mark.parametrize("scenario", [QUIET, CLUSTER], ids=["one broker", "three"])
def test_of_a_compacted_topic_the_newest_of_each_key_is_read_in_the_end(scenario: Scenario) -> None:
    result = simulate(1, replace(scenario, safety_s=10.0, interval_ms=50.0, is_compacted=True))
    assert result.violations == []
    keys = {sent.value: sent.key for sent in result.history.of(Sent)}
    acknowledged = result.history.of(Acknowledged)
    newest = {(ack.partition, keys[ack.value]): ack.offset for ack in sorted(acknowledged, key=lambda ack: ack.offset)}
    polls = [poll for poll in result.history.of(Polled) if poll.client == FINAL]
    last = {(poll.partition, offset) for poll in polls for offset, _ in poll.records}
    assert {(partition, offset) for (partition, _), offset in newest.items()} <= last
    assert len(last) < 0.8 * len(acknowledged), "others are gone"


def judged_without_excuses(result: Result) -> Verdict:
    """As if nobody had announced a loss."""
    evidence = [each for each in result.evidence.records if not isinstance(each, UncleanElection)]
    return check(result.history, evidence, Rules(default=TopicRules(is_synced=True, has_one_replica=True)))


def test_a_lost_disk_is_an_empty_one() -> None:
    """With the metadata that was on it: nobody is left who could say so."""

    def script(faults: Faults) -> list[Action]:
        machine = faults.brokers.machines[0]
        return [(1.0, lambda: faults.lose_disk(machine)), (1.5, lambda: faults.brokers.start(machine))]

    result = simulate(1, Scenario(safety_s=3.0, partitions=1), script)
    assert judged_without_excuses(result).kinds & {Anomaly.LOST_WRITE, Anomaly.UNSEEN, Anomaly.INCONSISTENT_OFFSET}


def test_what_never_ends_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(ticket: AppendTicket, timeout_ms: float) -> None:
        await asyncio.get_running_loop().create_future()

    def not_yet(ticket: AppendTicket) -> bool:
        del ticket
        return False

    monkeypatch.setattr(AppendTicket, "acknowledged", never)
    monkeypatch.setattr(AppendTicket, "is_acknowledged", not_yet)
    result = simulate(1, QUIET)
    assert result.violations == ["with all repaired, records did not get through within 20 s"]


def test_a_mistake_in_a_task_of_the_broker_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(acknowledgements: Acknowledgements) -> None:
        raise ZeroDivisionError("a mistake")

    monkeypatch.setattr(Acknowledgements, "update", fail)
    violations = simulate(1, QUIET).violations
    assert violations


def test_a_seed_says_what_its_history_is_made_of() -> None:
    scenarios = [Scenario.of(seed) for seed in range(400)]
    assert scenarios[7] == Scenario.of(7)
    assert {scenario.is_synced for scenario in scenarios} == {True, False}
    assert {acks for scenario in scenarios for acks in scenario.producers} == set(ALL_ACKS)
    clusters = [scenario for scenario in scenarios if scenario.has_store]
    assert 0.65 < len(clusters) / len(scenarios) < 0.85
    alone = [scenario for scenario in scenarios if not scenario.has_store]
    assert {story for scenario in alone for story in scenario.stories} == set(STORIES_ALONE)
    assert {story for scenario in clusters for story in scenario.stories} == set(STORIES)
    assert {scenario.replication_factor for scenario in clusters} == {2, 3}
    assert {scenario.min_insync_replicas for scenario in clusters} == {1, 2}
    assert {scenario.keeps_to_loss_model for scenario in clusters} == {True, False}
    assert {scenario.may_elect_uncleanly for scenario in clusters} == {True, False}
    assert {scenario.is_compacted for scenario in clusters} == {True, False}
    assert {scenario.is_compacted for scenario in alone} == {True, False}
    assert 2 <= sum(scenario.has_default_times for scenario in clusters) <= 40


def test_operators_act_in_half_of_the_seeds_and_change_nothing_else() -> None:
    scenarios = [Scenario.of(seed) for seed in range(400)]
    acting = [scenario for scenario in scenarios if scenario.has_operators]
    assert 0.4 < len(acting) / len(scenarios) < 0.6
    assert {story for scenario in acting for story in scenario.operator_stories} == set(OPERATOR_STORIES)
    assert {scenario.has_store for scenario in acting} == {True, False}
    assert all(scenario.operations for scenario in acting)
    with_more = [each.has_operators or bool(each.seats) or each.has_transactions for each in scenarios]
    others = [scenario for scenario, has_more in zip(scenarios, with_more, strict=True) if not has_more]
    assert {len(scenario.broker_options) for scenario in others} == {4, 5, 6, 7, 8}


def test_a_group_reads_in_a_quarter_of_the_seeds_where_nothing_may_go() -> None:
    scenarios = [Scenario.of(seed) for seed in range(400)]
    reading = [scenario for scenario in scenarios if scenario.seats]
    assert 0.2 < len(reading) / len(scenarios) < 0.3
    assert all(scenario.keeps_to_loss_model or not scenario.has_store for scenario in reading)
    assert not any(scenario.has_operators or scenario.is_compacted for scenario in reading)
    protocols = {frozenset(seat.protocol for seat in scenario.seats) for scenario in reading}
    assert protocols == {frozenset({"classic"}), frozenset({"consumer"}), frozenset({"classic", "consumer"})}


def test_clients_have_transactions_in_a_quarter_of_the_seeds_where_all_is_kept() -> None:
    scenarios = [Scenario.of(seed) for seed in range(400)]
    writing = [scenario for scenario in scenarios if scenario.has_transactions]
    assert 0.2 < len(writing) / len(scenarios) < 0.35
    assert all(scenario.keeps_all for scenario in writing)
    assert (
        {scenario.has_operators for scenario in writing}
        == {scenario.has_store for scenario in writing}
        == {True, False}
    )
    assert {len(scenario.desks.copiers) for scenario in writing} == {0, 1, 2}
    assert {story for scenario in writing for story in scenario.transaction_stories} == set(TRANSACTION_STORIES)


def test_in_some_seeds_a_story_of_transactions_is_all_that_goes_wrong() -> None:
    """A partition takes no marker for another one's then, if a mistake has it: writers work, and have version 1."""
    told = [scenario for scenario in map(Scenario.of, range(400)) if scenario.transaction_stories]
    alone = [each for each in told if not (each.faults or each.stories or each.operations or each.desk_moves)]
    assert 0.1 < len(alone) / len(told) < 0.4
    assert {story for scenario in alone for story in scenario.transaction_stories} == set(TRANSACTION_STORIES)
    assert all(
        each.options["act.as"] == "3.9" for each in alone if {seat.protocol for seat in each.seats} <= {"classic"}
    )
    assert all(each.safety_s >= UNDISTURBED_S and not each.has_default_times for each in alone)


@pytest.mark.only_in_sim
@pytest.mark.parametrize("name", TRANSACTION_STORIES)
def test_a_story_of_transactions_is_told_to_its_end_and_nothing_is_found(name: str) -> None:
    desks = Desks((Desk("writer", work_ms=100.0),), (Desk("copier"),))
    result = simulate(3, replace(CLUSTER, safety_s=16.0, desks=desks, transaction_stories=(name,)))
    assert result.violations == []
    assert {each.outcome for each in result.history.of(Ended)} == {"committed", "aborted"}


def test_members_are_cut_off_and_coordinators_have_stories_in_some_of_these() -> None:
    reading = [scenario for scenario in map(Scenario.of, range(400)) if scenario.seats]
    assert {scenario.member_cuts for scenario in reading} == {0, 1, 2}
    assert {story for scenario in reading for story in scenario.group_stories} == set(GROUP_STORIES)
    assert not any(scenario.group_stories for scenario in reading if not scenario.has_store)


@pytest.mark.only_in_sim
@pytest.mark.parametrize("name", GROUP_STORIES)
def test_a_story_of_groups_is_told_to_its_end_and_nothing_is_found(name: str) -> None:
    result = simulate(3, replace(CLUSTER, safety_s=16.0, seats=(Seat(), Seat()), group_stories=(name,)))
    assert result.violations == []
    assert any(not each.error for each in result.history.of(CommitAnswered))


@pytest.mark.only_in_sim
@pytest.mark.parametrize("name", OPERATOR_STORIES)
def test_a_story_of_operators_is_told_to_its_end_and_nothing_is_found(name: str) -> None:
    result = simulate(3, replace(CLUSTER, safety_s=16.0, operator_stories=(name,)))
    assert result.violations == []
    assert result.history.of(Acknowledged)
    if name != CLEAN_STOP:
        assert any(answered.is_done for answered in result.history.of(Answered))


def test_a_topic_that_is_made_anew_is_another_one() -> None:
    """Records of both are read, under their own names; those of the first are not missing in the end."""

    def script(faults: Faults) -> list[Action]:
        operators = faults.operators
        return [(1.0, lambda: operators.make_anew(TOPIC, 2, 3, {"min.insync.replicas": "2"}, pause_ms=100.0))]

    result = simulate(1, replace(CLUSTER, partitions=2, safety_s=4.0, operations=1), script)
    assert result.violations == []
    polled = {poll.topic for poll in result.history.of(Polled)}
    acknowledged = {ack.topic for ack in result.history.of(Acknowledged)}
    assert polled == acknowledged == {TOPIC, f"{TOPIC}#2"}
    assert {poll.topic for poll in result.history.of(Polled) if poll.client == FINAL} == {f"{TOPIC}#2"}
    assert [answered.topic for answered in result.history.of(Answered)][:1] == [TOPIC]


def test_partitions_that_are_added_are_written_to_and_read() -> None:
    def script(faults: Faults) -> list[Action]:
        return [(1.0, lambda: faults.operators.add_partitions(TOPIC, 3))]

    result = simulate(1, replace(CLUSTER, safety_s=4.0, operations=1), script)
    assert result.violations == []
    assert {poll.partition for poll in result.history.of(Polled) if poll.client == FINAL} == {0, 1, 2}
    assert {poll.partition for poll in result.history.of(Polled) if poll.client == "r1"} == {0, 1, 2}


@pytest.mark.only_in_sim
@pytest.mark.parametrize("name", (*STORIES, *STORIES_ALONE))
def test_a_story_is_told_to_its_end_and_nothing_is_found(name: str) -> None:
    result = simulate(3, replace(CLUSTER if name in STORIES else QUIET, safety_s=16.0, stories=(name,)))
    assert result.violations == []
    assert result.history.of(Acknowledged)


@pytest.mark.only_in_sim
def test_a_mistake_put_in_is_found() -> None:
    name = "acknowledged before the high watermark"
    with sung(CANARIES[name]):
        assert simulate(FOUND_BY[name]).violations
    assert simulate(FOUND_BY[name]).violations == []


def test_each_canary_can_be_sung_and_has_its_seed() -> None:
    assert set(FOUND_BY) == set(CANARIES)
    for canary in CANARIES.values():
        real = getattr(canary.owner, canary.function)
        with sung(canary):
            assert getattr(canary.owner, canary.function) is not real
        assert getattr(canary.owner, canary.function) is real
