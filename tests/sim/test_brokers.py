"""Whoever supervises brokers starts them again, and does as their logs say."""

from typing import Final

from odradek.testing.sim.checking.history import Happened
from odradek.testing.sim.cluster.faults import Action, Faults
from odradek.testing.sim.cluster.workload import ProducerAcks
from odradek.testing.sim.scenario import Scenario
from odradek.testing.sim.simulation import simulate

ALONE = Scenario(partitions=1, producers=(ProducerAcks(1, is_idempotent=False),), safety_s=8.0, faults=0)
MARK: Final = "data/orders-0/.odradek-unsynced"


def test_where_the_mark_of_a_failed_sync_is_missing_the_machine_is_restarted_first() -> None:
    """Else readers would be shown what the loss of power at 6 s takes."""

    def script(faults: Faults) -> list[Action]:
        (machine,) = faults.brokers.machines

        def fail() -> None:
            faults.world.happened("directory fails", machine.name)
            machine.disk_faults.sync_share, machine.disk_faults.dead_directory = 1.0, MARK

        def mend() -> None:
            faults.world.happened("disk fault", machine.name, "mended")
            machine.disk_faults.heal()

        return [
            (2.0, fail),
            (3.0, lambda: faults.stop(machine)),
            (3.5, mend),
            (6.0, lambda: faults.power_off(machine, 0.1, share=0.0)),
        ]

    result = simulate(1, ALONE, script)
    assert result.violations == []
    happened = [(each.kind, each.detail) for each in result.history.of(Happened)]
    restart = happened.index(("power failure", "its operator restarts it; all is left"))
    assert happened[restart - 1][0] == "exit"
    assert happened[restart + 1] == ("start", "")
    assert [kind for kind, _ in happened].count("power failure") == 2, "once, and the other is the script's"


def test_a_broker_whose_stop_takes_too_long_is_killed_and_started_again() -> None:
    """Its disk takes two seconds a sync: the stop would last longer than clients wait once all is repaired."""

    def script(faults: Faults) -> list[Action]:
        (machine,) = faults.brokers.machines

        def slow_down() -> None:
            machine.disk_faults.sync_ms = 2_000.0

        return [(6.0, slow_down), (7.0, lambda: faults.stop(machine))]

    result = simulate(1, ALONE, script)
    assert result.violations == []
    happened = [each.kind for each in result.history.of(Happened)]
    assert happened[happened.index("heal") :] == ["heal", "process crash", "start"]
