"""What is gathered for the checker: commits with their writers, losses that brokers announce, log starts that move."""

from odradek.testing.sim.checking.cluster_history import PartitionStored, RecordsDeleted, TopicStored, UncleanElection
from odradek.testing.sim.checking.history import Happened
from odradek.testing.sim.cluster.faults import Action, Faults
from odradek.testing.sim.cluster.workload import ProducerAcks
from odradek.testing.sim.scenario import Scenario
from odradek.testing.sim.simulation import simulate

PAIR = Scenario(
    brokers=3,
    partitions=1,
    replication_factor=2,
    min_insync_replicas=1,
    may_elect_uncleanly=True,
    lag_ms=1_000,
    producers=(ProducerAcks(-1, is_idempotent=True),),
    safety_s=8.0,
    faults=0,
)


def test_an_election_from_outside_is_announced_and_each_commit_has_its_writer() -> None:
    """The follower is down when the leader loses its disk, and comes back alone."""

    def script(faults: Faults) -> list[Action]:
        def cast() -> tuple[int, int]:
            (state,) = faults.partitions.values()
            return state.replicas[0], state.replicas[1]

        machine = faults.brokers.machine
        leader, follower = 0, 0

        def follower_dies() -> None:
            nonlocal leader, follower
            leader, follower = cast()
            faults.crash(machine(follower))

        return [
            (1.0, follower_dies),
            (3.0, lambda: faults.lose_disk(machine(leader))),
            (3.5, lambda: faults.brokers.start(machine(follower))),
        ]

    result = simulate(1, PAIR, script)
    assert result.violations == []
    announced = [each for each in result.evidence.records if isinstance(each, UncleanElection)]
    elected = [each for each in announced if each.why == "elected from outside"]
    states = [each for each in result.evidence.records if isinstance(each, PartitionStored)]
    led = {(state.leader_epoch, state.leader): state for state in reversed(states)}  # the first of each
    assert elected
    for each in elected:
        state = led[each.leader_epoch, each.leader]
        assert state.writer == state.controller != None  # noqa: E711 - both at once
        assert state.at_ms >= each.at_ms
    assert result.excused, "what was lost was announced"


def test_the_last_one_that_comes_back_without_its_newest_is_announced() -> None:
    def script(faults: Faults) -> list[Action]:
        return [(2.0, lambda: faults.power_off(faults.brokers.machines[0], 0.1, share=0.0))]

    result = simulate(1, Scenario(partitions=2, is_synced=False, safety_s=4.0, faults=0), script)
    assert result.violations == []
    announced = [each for each in result.evidence.records if isinstance(each, UncleanElection)]
    (failed,) = [each for each in result.history.of(Happened) if each.kind == "power failure"]
    assert {each.partition for each in announced} == {0, 1}
    assert all(each.at_ms > failed.at_ms for each in announced)


def test_what_retention_takes_is_known_to_be_deleted() -> None:
    scenario = Scenario(
        partitions=1,
        retention_bytes=20_000,
        producers=(ProducerAcks(-1, is_idempotent=True),),
        interval_ms=40.0,
        safety_s=10.0,
        faults=0,
    )
    result = simulate(1, scenario)
    assert result.violations == []
    deleted = [each for each in result.evidence.records if isinstance(each, RecordsDeleted)]
    assert deleted
    assert deleted[-1].before_offset > 0


def test_a_topic_that_lives_between_two_looks_into_a_broker_that_is_alone_is_known() -> None:
    """One deleted and made anew twice within 0.1 s: three topics of one name, and the offsets of each begin at 0."""

    def script(faults: Faults) -> list[Action]:
        def make_anew() -> None:
            faults.operators.make_anew("orders", 2, 1, {}, pause_ms=0.0)

        return [(2.0, make_anew), (2.05, make_anew)]

    scenario = Scenario(
        partitions=2, producers=(ProducerAcks(1, is_idempotent=False),), interval_ms=5.0, safety_s=4.0, faults=0
    )
    result = simulate(1, scenario, script)
    assert result.violations == []
    states = [each for each in result.evidence.records if isinstance(each, TopicStored)]
    assert {each.topic for each in states if each.partition_count} == {"orders", "orders#2", "orders#3"}
