"""Stories of coordinators of transactions, told as those of failures are, on the partition that holds these."""

from collections.abc import Callable
from typing import Final

from odradek.testing.sim.checking.transaction_history import Ended, Ending, InTransaction
from odradek.testing.sim.directed.stage import Stage, Story, Until, Waits

TRIES: Final = 12
DECISION_S: Final = 0.0015
"""About so long it takes from the wish to commit to the decision where nothing else has to be written."""
HELD_UP_S: Final = 0.5
"""So long it hears nothing. A question of a follower that waits there is answered by what comes first; what comes after
that stands in the log of the coordinator alone."""
AWAY_S: Final = 6.0
"""So long the clients stay away at most: longer than a transaction may be open."""


def decides_alone_and_dies(stage: Stage) -> Waits:
    """In the middle of a commit it hears nothing of its followers any more: what it decides stands in its log alone.
    What it sends reaches everybody. Then it dies, and with it the clients that would ask the next one again."""
    if (cast := stage.cast()) is None:
        return
    leader, followers = cast
    for _ in range(TRIES):
        yield Until(_happens(stage, Ending), 4.0, step_s=0.0005)
        yield stage.rng.uniform(0.0, DECISION_S)
        is_ended = _happens(stage, Ended)
        for follower in followers:
            stage.silence(follower, [leader])
        yield HELD_UP_S
        if not is_ended():
            break
        stage.mend()
    transactors = stage.faults.transactors
    for machine in transactors.machines:
        transactors.kill(machine)
    stage.crash(leader)
    stage.mend()
    yield stage.led_by_another(leader)
    yield stage.rng.uniform(0.1, AWAY_S)
    for machine in transactors.machines:
        transactors.come(machine)
    stage.start(leader)
    yield stage.back(leader)


def marker_comes_late(stage: Stage) -> Waits:
    """One broker hears nothing of the coordinator, so that transactions stay undecided there. The next coordinator ends
    them, and their producers begin others; then that broker hears the former one."""
    if (cast := stage.cast()) is None:
        return
    leader, followers = cast
    deaf, *others = stage.rng.sample(followers, len(followers))
    stage.silence(leader, [deaf])
    yield stage.out(deaf)
    yield Until(_happens(stage, Ended), 4.0)
    yield stage.rng.uniform(0.0, 0.3)
    stage.cut(leader, *others)
    stage.cut_from_store(leader)
    yield stage.led_by_another(leader)
    yield stage.rng.uniform(0.1, 2.0)
    yield Until(_happens(stage, InTransaction), 4.0)
    stage.heard_again(leader, [deaf])
    yield stage.rng.uniform(0.5, 2.0)
    stage.mend()
    yield stage.back(leader)


def _happens(stage: Stage, kind: type[Ending | Ended | InTransaction]) -> Callable[[], bool]:
    """Whether a client has sent something in a transaction, or asked for its end, or was told of it, since."""
    records, since = stage.world.history.records, len(stage.world.history)
    return lambda: any(isinstance(each, kind) for each in records[since:])


TRANSACTION_STORIES: Final[dict[str, Story]] = {
    "a coordinator decides alone, and dies with its clients": decides_alone_and_dies,
    "a coordinator's marker comes late": marker_comes_late,
}
