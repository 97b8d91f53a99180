"""Stories of a broker that is alone with its disk, told as those of clusters are (directed.py)."""

from functools import partial
from typing import Final

from odradek.testing.sim.cluster.faults import FATES
from odradek.testing.sim.directed.stage import Stage, Story, Waits

BACK_S: Final = (0.01, 0.1, 0.5)
RESTART_S: Final = 1.5
"""Until it serves again, and some."""


def power_fails_right_after_an_acknowledgement(stage: Stage) -> Waits:
    for _ in range(stage.rng.choice((1, 2, 3))):
        yield stage.acknowledged()
        stage.faults.power_off(stage.alone_with, stage.rng.choice(BACK_S), stage.rng.choice((0.0, *FATES)))
        yield RESTART_S


def a_sync_fails_before_the_power_does(stage: Stage) -> Waits:
    """What the page cache shows, and the device has not, is as good as lost. If only some fail the broker goes on."""
    machine = stage.alone_with
    for _ in range(stage.rng.choice((1, 2, 3))):
        share = stage.rng.choice((0.1, 0.3, 1.0))
        yield stage.acknowledged()
        stage.world.happened("disk fault", machine.name, f"story: of the syncs {share:.0%} fail")
        machine.disk_faults.sync_share = share
        yield stage.rng.uniform(0.05, 0.5)
        machine.disk_faults.sync_share = 0.0
        stage.world.happened("disk fault", machine.name, "story: syncs succeed again")
        yield stage.rng.uniform(0.1, 0.8)
        stage.faults.power_off(machine, stage.rng.choice(BACK_S))
        yield RESTART_S


def struck_while_it_writes(stage: Stage) -> Waits:
    """It dies in the middle of a write, or its machine does."""
    machine, back_s = stage.alone_with, stage.rng.choice(BACK_S)
    die = stage.rng.choice((stage.faults.crash, stage.faults.power_off))
    yield stage.acknowledged()
    machine.disk_faults.arm(stage.rng.randrange(4), partial(die, machine, back_s))
    yield 1.0 + RESTART_S


def answers_are_lost_and_the_process_with_them(stage: Stage) -> Waits:
    """Producers ask it again in its next life."""
    machine = stage.alone_with
    for _ in range(2):
        stage.silence(machine, stage.faults.clients)
        yield stage.rng.uniform(0.05, 0.5)
        stage.reset(machine, stage.faults.clients)  # else its host sends what its process has left
        stage.crash(machine)
        stage.mend()
        stage.start(machine)
        yield RESTART_S


STORIES_ALONE: Final[dict[str, Story]] = {
    "alone: power fails right after an acknowledgement": power_fails_right_after_an_acknowledgement,
    "alone: a sync fails before the power does": a_sync_fails_before_the_power_does,
    "alone: struck while it writes": struck_while_it_writes,
    "alone: answers are lost and the process with them": answers_are_lost_and_the_process_with_them,
}
