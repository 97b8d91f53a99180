"""The metadata store of a whole cluster set back and put right: nobody goes on with the older one, new as it looks."""

import pytest

from odradek.testing.sim.checking.history import Happened
from odradek.testing.sim.cluster.faults import Action, Faults
from odradek.testing.sim.scenario import Scenario
from odradek.testing.sim.simulation import Result, simulate
from tests.sim.canaries import CANARIES, sung

CLUSTER = Scenario(
    brokers=3,
    partitions=1,
    replication_factor=3,
    min_insync_replicas=2,
    is_synced=False,
    lag_ms=1_000,
    safety_s=12.0,
    faults=0,
    keeps_to_loss_model=True,
)


def set_back(*, are_stopped: bool) -> Result:
    """Each broker starts anew after the snapshot, so that each knows of something that it lacks."""

    def script(faults: Faults) -> list[Action]:
        older = faults.older_store
        starts = [(1.0 + number, machine) for number, machine in enumerate(faults.brokers.machines)]
        return [
            (0.5, older.save),
            *((at_s, lambda machine=machine: faults.crash(machine, 0.3)) for at_s, machine in starts),
            (7.0, lambda: older.set_back(are_stopped=are_stopped)),
            (10.0, older.put_right),
        ]

    return simulate(1, CLUSTER, script)


@pytest.mark.parametrize("are_stopped", [False, True])
def test_brokers_end_with_an_older_store_and_go_on_with_the_right_one(are_stopped: bool) -> None:
    result = set_back(are_stopped=are_stopped)
    assert result.violations == []
    happened = result.history.of(Happened)
    (begun_ms,) = (each.at_ms for each in happened if each.detail.startswith("set back to revision"))
    ended = {each.machine for each in happened if each.kind == "exit" and each.at_ms > begun_ms}
    assert ended == {"b1", "b2", "b3"}


def test_by_its_revision_the_older_one_is_taken_for_the_newest() -> None:
    with sung(CANARIES["an older store is known by its revision alone"]):
        assert set_back(are_stopped=True).violations


def test_nothing_is_set_back_that_somebody_might_rightly_go_on_with() -> None:
    """Nobody has written since the snapshot."""

    def script(faults: Faults) -> list[Action]:
        older = faults.older_store
        return [(3.0, older.save), (3.5, lambda: older.set_back(are_stopped=False)), (4.0, older.put_right)]

    result = simulate(1, CLUSTER, script)
    assert result.violations == []
    assert not [each for each in result.history.of(Happened) if each.kind == "store fault"]
