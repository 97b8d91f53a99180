"""Stories of coordinators of transactions, told as those of failures are, on the partition that holds these."""

from collections.abc import Callable
from typing import Final

from odradek.testing.sim.directed.stage import ELECTION_S, Stage, Story, Until, Waits
from odradek.testing.sim.directed.under_way import OpenTransaction, UnderWay
from odradek.testing.sim.world.machine import Machine

CHANCE_S: Final = 8.0
"""So long a story waits for transactions that stand as it needs them; then it takes what there is."""
STEP_S: Final = 0.0002
"""It looks so often for a moment: within a millisecond the wish to commit comes to the coordinator."""
DECISION_S: Final = 0.0015
"""About so long it takes from the wish to commit to the decision where nothing else has to be written."""
HELD_UP_S: Final = 0.4
"""So long it hears nothing: markers are where they get, and nobody has left the in-sync set."""
AWAY_S: Final = 6.0
"""So long the clients stay away at most: longer than a transaction may be open."""


def decides_alone_and_dies(stage: Stage) -> Waits:
    """As it is asked to commit, it loses its followers: what it decides stands in its log alone. It reaches one broker
    that leads partitions of the transaction. Then it dies, and with it the clients that would ask the next one again.

    Connections end, for a question of a follower that waits there would be answered with the decision.
    """
    if (cast := stage.cast()) is None:
        return
    leader, followers = cast
    under_way = UnderWay(stage.world, stage.leader_of)
    reached = stage.rng.choice(followers)

    def is_asked() -> bool:
        nonlocal reached
        for each in under_way.look():
            leaders = under_way.leaders(each.places)
            wanted = [machine for machine in leaders if machine in followers]
            if each.wanted == "commit" and each.is_settled(under_way.now_ms) and wanted and len(leaders) > 1:
                reached = stage.rng.choice(wanted)
                return True
        return False

    yield Until(is_asked, CHANCE_S, STEP_S)
    others = [machine for machine in followers if machine is not reached]
    stage.silence(reached, [leader])
    stage.cut(leader, *others)
    stage.hang_up(followers, leader)
    yield HELD_UP_S
    transactors = stage.faults.transactors
    for machine in transactors.machines:
        transactors.kill(machine)
    stage.reset(leader, others)  # else its host sends what its process has left
    stage.crash(leader)
    stage.mend()
    yield stage.led_by_another(leader)
    yield stage.rng.uniform(0.1, AWAY_S)
    for machine in transactors.machines:
        transactors.come(machine)
    stage.start(leader)
    yield stage.back(leader)


def marker_comes_late(stage: Stage) -> Waits:
    """One broker hears nothing more of the coordinator, as that decides: a transaction stays undecided there. The next
    coordinator ends it, and its producer begins others; then, within one of these, that broker hears the former.

    Neither is the controller: a broker that cannot talk with that is fenced before anything is decided.
    """
    yield from _apart_from_the_controller(stage)
    if (cast := stage.cast()) is None:
        return
    leader, followers = cast
    under_way = UnderWay(stage.world, stage.leader_of)
    former: OpenTransaction | None = None
    deaf = stage.rng.choice([machine for machine in followers if machine is not stage.controller] or followers)

    def is_asked() -> bool:
        nonlocal former, deaf
        for each in under_way.look():
            for machine in under_way.leaders(each.places):
                if each.is_settled(under_way.now_ms) and machine in followers and machine is not stage.controller:
                    former, deaf = each, machine
                    return True
        return False

    yield Until(is_asked, CHANCE_S, STEP_S)
    yield stage.rng.uniform(0.0, DECISION_S)
    stage.silence(leader, [deaf])
    yield Until(_has_ended(under_way, former), CHANCE_S)
    yield stage.rng.uniform(0.0, 0.3)
    stage.cut(leader, *(machine for machine in followers if machine is not deaf))
    stage.cut_from_store(leader)
    yield stage.led_by_another(leader)
    yield stage.rng.uniform(0.3, 0.6)
    yield Until(_is_within_a_later_one(under_way, former, deaf), CHANCE_S)
    stage.heard_again(leader, [deaf])
    yield stage.rng.uniform(0.5, 2.0)
    stage.mend()
    yield stage.back(leader)


def _apart_from_the_controller(stage: Stage) -> Waits:
    """Tries to have another broker lead than controls."""
    for _ in range(2):
        leader = stage.leader
        if leader is None or leader is not stage.controller:
            return
        stage.faults.stop(leader)
        yield stage.led_by_another(leader)
        yield Until(_controls_another(stage, leader), ELECTION_S)
        stage.brokers.start(leader)
        yield stage.back(leader)


def _controls_another(stage: Stage, former: Machine) -> Callable[[], bool]:
    return lambda: stage.controller not in (None, former)


def _has_ended(under_way: UnderWay, transaction: OpenTransaction | None) -> Callable[[], bool]:
    def has_ended() -> bool:
        under_way.look()
        return transaction is not None and transaction.name not in under_way.open

    return has_ended


def _is_within_a_later_one(under_way: UnderWay, former: OpenTransaction | None, leader: Machine) -> Callable[[], bool]:
    """The same producer has another one open, which has records where the former one had some, too."""

    def is_within() -> bool:
        under_way.look()
        if former is None:
            return False
        return any(
            each.producer == former.producer
            and each is not former
            and leader in under_way.leaders(each.places & former.places)
            for each in under_way.settled()
        )

    return is_within


TRANSACTION_STORIES: Final[dict[str, Story]] = {
    "a coordinator decides alone, and dies with its clients": decides_alone_and_dies,
    "a coordinator's marker comes late": marker_comes_late,
}
