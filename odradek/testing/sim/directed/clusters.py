"""Stories: what goes wrong on purpose, in the order in which it does most harm (stage.py says how they are told).

    Director(faults).tell(STORIES["below the minimum, and back"], stage, then)

Each plays on one partition of a cluster, comes from a rule that it tries (a KIP, or a line of docs/guarantees.md), and
leaves the world repaired.
"""

from typing import Final

from odradek.testing.sim.directed.stage import ELECTION_S, RETURN_S, Stage, Story, Until, Waits

# -- the stories ------------------------------------------------------------------------------------------------------


def followers_out_then_lose_the_leader(stage: Stage) -> Waits:
    """What the leader had alone is not what was promised (KIP-966)."""
    if (cast := stage.cast()) is None:
        return
    leader, followers = cast
    stage.cut(leader, *followers)
    yield stage.alone(leader)
    yield stage.rng.uniform(0.3, 1.5) + stage.compaction_s
    lose = stage.rng.choice((stage.faults.crash, stage.faults.power_off, stage.faults.lose_disk))
    lose(leader)
    stage.mend()
    yield stage.led_by_another(leader)
    yield stage.rng.uniform(0.5, 3.0)
    stage.start(leader)
    yield 1.0


def the_leader_sleeps_past_its_lease(stage: Stage) -> Waits:
    """With requests in its buffers; what it knows of the metadata may be old, too, when it goes on."""
    leader = stage.leader
    if leader is None:
        return
    if stage.rng.random() < 0.5:
        stage.forget_watch(leader, 3_000.0)
    stage.faults.pause(leader)
    yield stage.led_by_another(leader)
    yield stage.rng.uniform(0.0, 1.0)
    stage.faults.resume(leader)
    yield 3.0
    stage.forget_watch(leader, 0.0)


def power_fails_right_after_an_acknowledgement(stage: Stage) -> Waits:
    for _ in range(stage.rng.choice((1, 2))):
        yield stage.acknowledged()
        if (leader := stage.leader) is None:
            return
        stage.faults.power_off(leader, stage.rng.choice((0.01, 0.5, 3.0)))
        yield stage.led_by_another(leader)
        yield Until(lambda: len(stage.isr) == len(stage.followers) + 1, RETURN_S)


def two_elections_with_divergent_tails(stage: Stage) -> Waits:
    """Each leader writes a while for itself; all of that has to go (KIP-101, KIP-279)."""
    if (cast := stage.cast()) is None:
        return
    leader, followers = cast
    stage.cut(leader, *followers)
    yield stage.rng.uniform(0.2, 0.8)
    stage.crash(leader)
    yield stage.led_by_another(leader)
    second = stage.leader
    if second is None:
        stage.mend()
        stage.start(leader)
        return
    for follower in followers:
        if follower is not second:
            stage.cut(second, follower)
    yield stage.rng.uniform(0.2, 0.8)
    stage.crash(second)
    yield stage.led_by_another(second)
    yield stage.rng.uniform(0.1, 1.0)
    stage.mend()
    stage.start(*stage.rng.sample((leader, second), 2))
    yield 1.0


def one_leader_after_the_other(stage: Stage) -> Waits:
    """The third one hears of the second, and must still have everything when that is gone (KIP-101)."""
    if (cast := stage.cast()) is None:
        return
    leader, followers = cast
    yield stage.acknowledged()
    if len(followers) > 1:
        stage.cut(followers[0], followers[1])
    stage.crash(leader)
    yield stage.led_by(followers[0])
    yield stage.rng.uniform(0.05, 0.6)
    stage.crash(followers[0])
    stage.mend()
    yield stage.led_by_another(followers[0])
    yield stage.rng.uniform(0.3, 1.0)
    stage.start(leader, followers[0])
    yield 1.0


def restarted_while_it_is_added(stage: Stage) -> Waits:
    """A follower loses its newest while its leader has it added: the addition must fail (KIP-903)."""
    if (cast := stage.cast()) is None:
        return
    leader, followers = cast
    joiner = stage.rng.choice(followers)
    hold = yield from stage.addition_held(leader, joiner)
    yield stage.acknowledged()
    epoch = stage.epoch(joiner)
    stage.faults.power_off(joiner, share=0.0)
    others = [machine for machine in stage.brokers.machines if machine is not joiner]
    stage.cut(joiner, *others)
    stage.start(joiner)
    yield stage.registered_anew(joiner, epoch)
    hold.release()
    yield 0.1
    stage.crash(*others)
    yield stage.led_by(joiner)
    yield 0.5
    stage.mend()
    stage.start(*others)
    yield 1.0


def power_fails_at_one_in_sync_then_at_the_leader(stage: Stage) -> Waits:
    """The second one when the first has caught up again: each alone is survived."""
    if (cast := stage.cast()) is None:
        return
    leader, followers = cast
    first = stage.rng.choice(followers)
    stage.faults.power_off(first, stage.rng.choice((0.01, 0.3, 2.0)))
    yield stage.out(first)
    yield stage.back(first)
    stage.faults.power_off(leader, stage.rng.choice((0.01, 0.3, 2.0)))
    yield stage.led_by_another(leader)
    yield 1.0


def back_at_once_without_its_newest(stage: Stage) -> Waits:
    """Before anybody misses it: it must not be taken for in sync."""
    if (cast := stage.cast()) is None:
        return
    _, followers = cast
    heir = followers[0]
    others = [machine for machine in stage.brokers.machines if machine is not heir]
    yield stage.acknowledged()
    epoch = stage.epoch(heir)
    stage.faults.power_off(heir, share=0.0)
    stage.cut(heir, *others)
    stage.start(heir)
    yield stage.registered_anew(heir, epoch)
    stage.crash(*others)
    yield stage.led_by(heir)
    yield 0.5
    stage.mend()
    stage.start(*others)
    yield 1.0


def the_controller_stands_still(stage: Stage) -> Waits:
    """Between decision and commit, which comes to the store when another one has been elected."""
    controller, leader = stage.controller, stage.leader
    if controller is None or leader is None:
        return
    if leader is controller:
        stage.faults.stop(controller)
        yield Until(lambda: stage.controller not in (None, controller), ELECTION_S)
        yield 2.0
        controller, leader = stage.controller, stage.leader
        if controller is None or leader in (None, controller):
            return
    hold = stage.hold(controller, lambda isr, leader: leader > 0)
    stage.crash(leader)
    yield Until(lambda: len(hold), ELECTION_S)
    stage.faults.pause(controller)
    yield Until(lambda: stage.controller not in (None, controller), ELECTION_S, 0.0002)
    hold.release()
    yield stage.rng.uniform(0.0, 1.0)
    stage.faults.resume(controller)
    stage.start(leader)
    yield 1.0


def the_leader_stands_still(stage: Stage) -> Waits:
    """Between deciding on its in-sync set and the commit: by then another one leads."""
    if (cast := stage.cast()) is None:
        return
    leader, followers = cast
    leader_id = stage.brokers.ids[leader.name]
    hold = stage.hold(leader, lambda isr, led_by: led_by == leader_id)
    stage.cut(leader, followers[-1])
    yield Until(lambda: len(hold), stage.patience_s)
    is_killed = stage.rng.random() < 0.5
    if is_killed:
        stage.crash(leader)
    else:
        stage.faults.pause(leader)
    stage.mend()
    yield stage.led_by_another(leader)
    hold.release()
    yield stage.rng.uniform(0.0, 1.0)
    if is_killed:
        stage.start(leader)
    else:
        stage.faults.resume(leader)
    yield 1.0


def the_leader_fails_with_an_addition_under_way(stage: Stage) -> Waits:
    """The addition is stored, its leader does not know: what it acknowledges meanwhile must be there, too (KIP-497)."""
    if (cast := stage.cast()) is None:
        return
    leader, followers = cast
    joiner = stage.rng.choice(followers)
    hold = yield from stage.addition_held(leader, joiner)
    stage.forget_watch(leader, 10_000.0)
    stage.cut_from_store(leader)
    hold.release(is_answered=False)
    stage.cut(leader, joiner)
    yield stage.lag_s + stage.rng.uniform(0.2, 0.8)
    others = [machine for machine in stage.brokers.machines if machine is not joiner]
    stage.crash(*others)
    stage.forget_watch(leader, 0.0)
    stage.mend()
    yield stage.led_by(joiner)
    yield 0.5
    stage.start(*others)
    yield 1.0


def below_the_minimum_and_back(stage: Stage) -> Waits:
    """Cut off from both, or both gone; that for so long that producers send again what nobody has answered."""
    if (cast := stage.cast()) is None:
        return
    leader, followers = cast
    are_gone = stage.rng.random() < 0.5
    if are_gone:
        stage.crash(*followers)
    else:
        stage.cut(leader, *followers)
    yield stage.alone(leader)
    if are_gone:
        yield stage.rng.uniform(2.5, 4.0)
        stage.start(*followers)
    else:
        yield stage.rng.uniform(1.0, 2.0)
        stage.mend()
    yield Until(lambda: len(stage.isr) == len(followers) + 1, RETURN_S)


def the_answer_is_lost_and_the_leader_with_it(stage: Stage) -> Waits:
    """Producers ask the next leader, who has to know that it has their records."""
    leader = stage.leader
    if leader is None:
        return
    stage.silence(leader, stage.faults.clients)
    yield stage.rng.uniform(0.1, 0.6)
    stage.reset(leader, stage.faults.clients)  # else its host sends what its process has left
    stage.crash(leader)
    stage.mend()
    yield stage.led_by_another(leader)
    stage.start(leader)
    yield 1.0


def replicas_in_another_order(stage: Stage) -> Waits:
    """The same leader in a new epoch, and a follower that does not know of it yet."""
    if (cast := stage.cast()) is None:
        return
    leader, followers = cast
    unaware = stage.rng.choice(followers)
    stage.forget_watch(unaware, 4_000.0)
    target = [stage.brokers.ids[machine.name] for machine in (leader, *reversed(followers))]
    stage.faults.operators.reassign(stage.topic, stage.partition, target)
    yield 4.0
    stage.forget_watch(unaware, 0.0)


def back_with_a_tail_of_its_own(stage: Stage) -> Waits:
    """To one that leads everything and can hardly cope: it finds appends beside the fetch whose log parts (KIP-595)."""
    for _ in range(stage.rng.choice((1, 2, 3))):
        if (cast := stage.cast()) is None:
            return
        leader, followers = cast
        stage.cut(leader, *followers)
        yield stage.rng.uniform(0.1, 0.5)
        stage.crash(leader)
        stage.mend()
        yield stage.led_by_another(leader)
        if (second := stage.leader) is None:
            stage.start(leader)
            return
        for third in (each for each in followers if each is not second):
            stage.faults.stop(third)
            yield stage.out(third)
            yield stage.back(third)
        stage.overload(second)
        yield stage.rng.uniform(0.3, 1.0)
        stage.start(leader)
        yield stage.back(leader)


STORIES: Final[dict[str, Story]] = {
    "followers out, then lose the leader": followers_out_then_lose_the_leader,
    "the leader sleeps past its lease": the_leader_sleeps_past_its_lease,
    "power fails right after an acknowledgement": power_fails_right_after_an_acknowledgement,
    "two elections with divergent tails": two_elections_with_divergent_tails,
    "one leader after the other": one_leader_after_the_other,
    "restarted while it is added": restarted_while_it_is_added,
    "power fails at one in sync, then at the leader": power_fails_at_one_in_sync_then_at_the_leader,
    "back at once without its newest": back_at_once_without_its_newest,
    "the controller stands still": the_controller_stands_still,
    "the leader stands still": the_leader_stands_still,
    "the leader fails with an addition under way": the_leader_fails_with_an_addition_under_way,
    "below the minimum, and back": below_the_minimum_and_back,
    "the answer is lost, and the leader with it": the_answer_is_lost_and_the_leader_with_it,
    "replicas in another order": replicas_in_another_order,
    "back with a tail of its own": back_with_a_tail_of_its_own,
}
