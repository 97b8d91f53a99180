"""Stories of operators: what they do at the moment at which it does most harm, told as those of failures are.

Each tries a promise that an answer makes (docs/guarantees.md): who was told that something is done must find it done
by whoever leads, decides or answers next.
"""

from typing import Final

from odradek.testing.sim.checking.expectations import MINIMUM_OPTION
from odradek.testing.sim.cluster.operators import Asking
from odradek.testing.sim.directed.stage import ELECTION_S, RETURN_S, Stage, Story, Until, Waits
from odradek.testing.sim.world.disk import DiskFaults
from odradek.testing.sim.world.machine import Machine

ANSWER_S: Final = 3.0
STOP_S: Final = 8.0
SLOW_SYNC_MS: Final = 1_000.0
"""A start makes a dozen of them."""


def answered(asking: Asking) -> Until:
    return Until(lambda: asking.is_over, ANSWER_S)


def gone(machine: Machine) -> Until:
    """Its process has ended."""
    return Until(lambda: machine.running is None, STOP_S)


def records_deleted_then_lose_the_leader(stage: Stage) -> Waits:
    """The next one must not bring them back (KIP-107)."""
    yield stage.acknowledged()
    if (cast := stage.cast()) is None:
        return
    leader, followers = cast
    if stage.rng.random() < 0.3:
        stage.cut(leader, stage.rng.choice(followers))
    asking = stage.operators.delete_records(stage.topic, stage.partition, -1)
    yield answered(asking)
    stage.crash(leader)
    stage.mend()
    yield stage.led_by_another(leader)
    yield stage.rng.uniform(0.3, 1.0)
    stage.start(leader)
    yield stage.back(leader)


def back_in_sync_since_records_were_deleted(stage: Stage) -> Waits:
    """Who was away meanwhile, and has them all, has to write that down before it may lead; its disk takes long."""
    yield stage.acknowledged()
    if (cast := stage.cast()) is None:
        return
    heir = stage.rng.choice(cast[1])
    others = [machine for machine in stage.brokers.machines if machine is not heir]
    before = stage.plan.end_offset(stage.partition)
    stage.cut(heir, *others)
    yield stage.out(heir)
    yield stage.acknowledged()
    asking = stage.operators.delete_records(stage.topic, stage.partition, before)
    yield answered(asking)
    if stage.rng.random() < 0.7:
        stage.slow_disk(heir, SLOW_SYNC_MS)
    stage.mend()
    yield Until(lambda: heir in stage.isr, RETURN_S / 2, 0.0002)
    stage.slow_disk(heir, DiskFaults().sync_ms)  # what has begun takes its time
    stage.crash(*others)
    yield stage.led_by(heir)
    yield stage.rng.uniform(0.3, 1.0)
    stage.start(*others)
    yield 1.0


def reassigned_while_a_successor_is_away(stage: Stage) -> Waits:
    """Who is in sync must stay until as many others are."""
    if (cast := stage.cast()) is None:
        return
    leader, followers = cast
    away = stage.rng.choice(followers)
    stage.crash(away)
    yield stage.out(away)
    staying = stage.rng.choice([machine for machine in (leader, *followers) if machine is not away])
    target = stage.rng.sample([staying, away], 2)
    stage.operators.reassign(stage.topic, stage.partition, stage.ids(*target))
    yield stage.rng.uniform(0.5, 2.0)
    stage.start(away)
    yield Until(lambda: stage.state is None or set(stage.state.replicas) == set(stage.ids(*target)), RETURN_S)
    everybody = stage.ids(leader, *followers)
    stage.operators.reassign(stage.topic, stage.partition, everybody)
    yield Until(lambda: len(stage.isr) == len(everybody), RETURN_S)


def moved_and_its_first_replicas_lost(stage: Stage) -> Waits:
    """From few to others: those that came must have all that those had that went."""
    if (cast := stage.cast()) is None:
        return
    leader, followers = cast
    stage.operators.reassign(stage.topic, stage.partition, stage.ids(leader))
    yield Until(lambda: stage.isr == {leader}, ELECTION_S)
    yield stage.acknowledged()
    stage.operators.reassign(stage.topic, stage.partition, stage.ids(*followers))
    if stage.rng.random() < 0.3:
        yield stage.rng.uniform(0.0, 0.3)
        stage.operators.cancel(stage.topic, stage.partition)
    yield Until(lambda: leader not in stage.isr, ELECTION_S)
    stage.crash(leader)
    yield stage.rng.uniform(0.3, 1.0)
    stage.start(leader)
    stage.operators.reassign(stage.topic, stage.partition, stage.ids(*followers, leader))
    yield stage.back(leader)


def made_anew_while_a_replica_sleeps(stage: Stage) -> Waits:
    """It goes on with requests and logs of the topic that was."""
    if (cast := stage.cast()) is None:
        return
    sleeper = stage.rng.choice((cast[0], *cast[1]))
    way = stage.rng.choice(("pauses", "is down", "hears late"))
    if way == "pauses":
        stage.faults.pause(sleeper)
    elif way == "is down":
        stage.crash(sleeper)
    else:
        stage.forget_watch(sleeper, 4_000.0)
    yield stage.rng.uniform(0.0, 0.5)
    before = stage.state
    stage.plan.make_anew(stage.rng.choice((0.0, 10.0, 300.0)))
    yield Until(lambda: stage.state is not None and stage.state is not before, ELECTION_S)
    yield stage.rng.uniform(0.0, 1.0)
    _wake(stage, sleeper)
    yield 1.0


def _wake(stage: Stage, sleeper: Machine) -> None:
    stage.faults.resume(sleeper)
    stage.forget_watch(sleeper, 0.0)
    stage.start(sleeper)


def a_change_is_answered_and_the_broker_lost(stage: Stage) -> Waits:
    """What was answered must be in the store: the controller, and who else may have answered, are gone at once."""
    if stage.state is None:
        return
    change = stage.rng.choice(("minimum", "brokers", "partitions", "create", "delete", "reassign"))
    controller = stage.controller
    if change == "minimum":
        asking = stage.operators.alter_options(stage.topic, {MINIMUM_OPTION: stage.rng.choice(("1", "2"))})
    elif change == "brokers":
        asking = stage.operators.alter_options("", {"log.retention.bytes": "3000000000"})
    elif change == "partitions":
        asking = stage.plan.add_partitions(1)
    elif change == "create":
        asking = stage.operators.create_topic("created", 1, len(stage.brokers.machines), stage.plan.topic_configs)
    elif change == "delete":
        asking = stage.plan.make_anew(1_000.0)
    else:
        asking = stage.operators.reassign(stage.topic, stage.partition, stage.ids(*reversed(stage.brokers.machines)))
    yield Until(lambda: asking.is_over, ANSWER_S, 0.0002)
    stage.crash(*stage.brokers.machines)
    yield stage.rng.uniform(0.1, 1.0)
    stage.start(*stage.brokers.machines)
    yield Until(lambda: stage.leader is not None and stage.controller not in (None, controller), ELECTION_S)


def stopped_cleanly_then_its_power_fails(stage: Stage) -> Waits:
    """What it had is on its device, so this is no loss, if all go so, one after the other, either."""
    yield stage.acknowledged()
    machines = stage.brokers.machines
    ended = stage.rng.sample(machines, stage.rng.choice((1, len(machines), len(machines))))
    for machine in ended:
        stage.faults.stop(machine)
        yield gone(machine)
        if machine.running is None:
            stage.faults.power_off(machine, share=0.0)
    yield stage.rng.uniform(0.0, 0.5)
    stage.start(*reversed(ended))
    yield Until(lambda: stage.leader is not None and len(stage.isr) == len(stage.followers) + 1, RETURN_S)


def created_while_a_broker_is_away(stage: Stage) -> Waits:
    """The topic gets as many replicas as were asked for; the broker that is away joins when it is back (KIP-631)."""
    away = stage.rng.choice(stage.brokers.machines)
    stage.crash(away)
    yield Until(lambda: not stage.epoch(away), ELECTION_S)
    asking = stage.operators.create_topic("created", 2, len(stage.brokers.machines), stage.plan.topic_configs)
    yield answered(asking)
    if stage.rng.random() < 0.3:
        stage.plan.add_partitions(1)
        yield 0.5
    stage.start(away)
    yield 2.0


def forgotten_while_it_is_away(stage: Stage) -> Waits:
    """A broker that was unregistered comes back as a new one, and catches up before it counts."""
    if (cast := stage.cast()) is None:
        return
    away = stage.rng.choice((cast[0], *cast[1]))
    stage.crash(away)
    yield Until(lambda: not stage.epoch(away), ELECTION_S)
    stage.plan.unregister(away)
    yield stage.rng.uniform(0.5, 1.5)
    stage.start(away)
    yield stage.back(away)


CLEAN_STOP: Final = "stopped cleanly, then its power fails"
OPERATOR_STORIES: Final[dict[str, Story]] = {
    "records deleted, then lose the leader": records_deleted_then_lose_the_leader,
    "back in sync since records were deleted": back_in_sync_since_records_were_deleted,
    "reassigned while a successor is away": reassigned_while_a_successor_is_away,
    "moved, and its first replicas lost": moved_and_its_first_replicas_lost,
    "made anew while a replica sleeps": made_anew_while_a_replica_sleeps,
    "a change is answered, and the broker lost": a_change_is_answered_and_the_broker_lost,
    CLEAN_STOP: stopped_cleanly_then_its_power_fails,
    "created while a broker is away": created_while_a_broker_is_away,
    "forgotten while it is away": forgotten_while_it_is_away,
}
