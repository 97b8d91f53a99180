"""Where a story plays, and how it is told: one partition of a running world, who plays which part, and when to go on.

    Director(faults).tell(story, Stage(faults, plan, evidence, rng, "orders", 0), then)

A story (directed.py) is a generator: it does something, yields how long to wait, or what to wait `Until`, and goes on
then. It looks at what the metadata store holds and at what clients were told, never into the brokers. What it waited
for may not have come: it goes on all the same, and ends where it makes no sense any more.
"""

import random
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import Final

from odradek.broker.cluster.keys import broker_key, decode_partition, partition_key
from odradek.broker.cluster.store import Txn
from odradek.testing.sim.checking.cluster_history import PartitionStored
from odradek.testing.sim.checking.history import Acknowledged
from odradek.testing.sim.cluster.evidence import Evidence
from odradek.testing.sim.cluster.faults import Faults
from odradek.testing.sim.cluster.operator_plan import OperatorPlan
from odradek.testing.sim.world.machine import Machine
from odradek.testing.sim.world.store import HOST as STORE_HOST
from odradek.testing.sim.world.store import Hold, SimStore

STEP_S: Final = 0.002
ELECTION_S: Final = 6.0
"""How long a story waits for another leader: a lease, a session timeout, and some."""
OVERLOADED: Final = 400.0
"""So many times as long as else the machine of a leader computes that can hardly cope,"""
OVERLOADED_S: Final = 2.0
"""for so long."""
RETURN_S: Final = 8.0
"""And for a follower that comes back into the in-sync set."""


@dataclass(frozen=True, slots=True)
class Until:
    """Waits for a condition, but not longer than so many seconds. It is looked at every `step_s`."""

    condition: Callable[[], object]
    limit_s: float
    step_s: float = STEP_S


Waits = Generator["float | Until", None, None]
Story = Callable[["Stage"], Waits]


class Stage:
    """One partition, and who plays which part in it."""

    def __init__(
        self, faults: Faults, plan: OperatorPlan, evidence: Evidence, rng: random.Random, topic: str, partition: int
    ) -> None:
        """`plan`: what operators can do, for the stories that are about them."""
        self.faults = faults
        self.plan = plan
        self.operators = faults.operators
        self.world = faults.world
        self.brokers = faults.brokers
        self.evidence = evidence
        self.rng = rng
        self.topic = topic
        self.partition = partition
        self.lag_s = 2.0
        self.compaction_s = 0.0
        """Until what was appended is compacted, if it ever is."""
        self._lines: list[tuple[str, str]] = []

    @property
    def store(self) -> SimStore:
        """Of a cluster."""
        assert self.world.store is not None, "brokers share one"
        return self.world.store

    @property
    def alone_with(self) -> Machine:
        """The only broker's machine."""
        (machine,) = self.brokers.machines
        return machine

    # -- who -------------------------------------------------------------------------------------------------------

    @property
    def state(self) -> PartitionStored | None:
        """As stored; None while there is no such partition: operators delete topics."""
        return self.evidence.states.get(self.evidence.current(self.topic, self.partition))

    @property
    def isr(self) -> set[Machine]:
        """As stored."""
        state = self.state
        return set() if state is None else {self.brokers.machine(broker_id) for broker_id in state.isr}

    @property
    def leader(self) -> Machine | None:
        return self.leader_of(self.topic, self.partition)

    def leader_of(self, topic: str, partition: int) -> Machine | None:
        """Of another partition."""
        state = self.evidence.states.get(self.evidence.current(topic, partition))
        return self.brokers.machine(state.leader) if state is not None and state.leader > 0 else None

    @property
    def followers(self) -> list[Machine]:
        """The other replicas, in the order in which they would be elected."""
        state = self.state
        if state is None:
            return []
        return [self.brokers.machine(broker_id) for broker_id in state.replicas if broker_id != state.leader]

    @property
    def controller(self) -> Machine | None:
        controller = self.evidence.controller
        return None if controller is None else self.brokers.machine(controller)

    def cast(self) -> tuple[Machine, list[Machine]] | None:
        """Leader and followers; None where there is no leader, or nobody who follows."""
        leader, followers = self.leader, self.followers
        return None if leader is None or not followers else (leader, followers)

    def ids(self, *machines: Machine) -> list[int]:
        """Of their brokers, in that order."""
        return [self.brokers.ids[machine.name] for machine in machines]

    def epoch(self, machine: Machine) -> int:
        """Of a broker's registration, as stored; 0 without one."""
        entry = self.store.state.entries.get(broker_key(self.brokers.ids[machine.name]))
        return 0 if entry is None else entry.revision

    # -- what is waited for ------------------------------------------------------------------------------------------

    def alone(self, leader: Machine) -> Until:
        """All others have left the in-sync set."""
        return Until(lambda: self.isr == {leader}, self.patience_s)

    def out(self, follower: Machine) -> Until:
        return Until(lambda: follower not in self.isr, self.patience_s)

    def back(self, follower: Machine) -> Until:
        return Until(lambda: follower in self.isr, RETURN_S)

    def led_by(self, machine: Machine) -> Until:
        return Until(lambda: self.leader is machine, ELECTION_S)

    def led_by_another(self, machine: Machine) -> Until:
        return Until(lambda: self.leader not in (None, machine), ELECTION_S)

    def registered_anew(self, machine: Machine, since: int) -> Until:
        return Until(lambda: self.epoch(machine) > since, ELECTION_S)

    def acknowledged(self) -> Until:
        """A record of the partition, from now on."""
        history = self.world.history
        seen = len(history)

        def has_come() -> bool:
            nonlocal seen
            new, seen = history.records[seen:], len(history)
            return any(isinstance(each, Acknowledged) and each.partition == self.partition for each in new)

        return Until(has_come, 4.0)

    @property
    def patience_s(self) -> float:
        """For a follower that is not heard of to leave the in-sync set."""
        return 2.0 * self.lag_s + 3.0

    # -- what is done ------------------------------------------------------------------------------------------------

    def cut(self, one: Machine, *others: Machine) -> None:
        """Nothing goes between it and the others, in either direction."""
        for other in others:
            self._cut(((one.name, other.name), (other.name, one.name)))

    def cut_from_store(self, machine: Machine) -> None:
        self._cut(((machine.name, STORE_HOST), (STORE_HOST, machine.name)))

    def silence(self, machine: Machine, others: Iterable[Machine]) -> None:
        """They hear nothing from it, and it hears them."""
        self._cut((machine.name, other.name) for other in others)

    def heard_again(self, machine: Machine, others: Iterable[Machine]) -> None:
        """What it sends to them arrives from now on; what it has sent meanwhile, at once."""
        self.world.happened("network fault", "", f"story: {machine.name} is heard again")
        for other in others:
            self.world.network.line(machine.name, other.name).is_cut = False
            self.world.network.send_again(machine.name, other.name)

    def reset(self, machine: Machine, others: Iterable[Machine]) -> None:
        """Their connections end, with what is under way."""
        self.world.happened("network fault", "", f"story: {machine.name} is reset")
        for other in others:
            for connection in self.world.network.between(machine.name, other.name):
                self.world.network.reset(connection)

    def hang_up(self, callers: Iterable[Machine], called: Machine) -> None:
        """The connections end that they have opened to it, with what is under way; those that it has opened stay."""
        self.world.happened("network fault", "", f"story: {called.name} loses who has called")
        for caller in callers:
            for connection in self.world.network.between(caller.name, called.name):
                if caller.running is not None and connection.client is caller.running.process:
                    self.world.network.reset(connection)

    def _cut(self, lines: Iterable[tuple[str, str]]) -> None:
        lines = list(lines)
        self.world.happened("network fault", "", f"story: cut {' '.join(f'{a}>{b}' for a, b in lines)}")
        for source, target in lines:
            self.world.network.cut(source, target)
        self._lines += lines

    def mend(self) -> None:
        """Everything that the story has cut is whole again."""
        self.world.happened("network fault", "", "story: whole again")
        for source, target in self._lines:
            self.world.network.line(source, target).is_cut = False
        self._lines.clear()

    def crash(self, *machines: Machine) -> None:
        """SIGKILL, until `start`."""
        for machine in machines:
            self.faults.crash(machine)

    def start(self, *machines: Machine) -> None:
        """Now and then while the leader can hardly cope."""
        if (leader := self.leader) is not None and self.rng.random() < 0.3:
            self.overload(leader)
        for machine in machines:
            self.brokers.start(machine)

    def overload(self, leader: Machine) -> None:
        """Producers have a lot to send, and the leader hardly gets to run: in each turn it finds some of that."""
        self.faults.slow(leader, OVERLOADED)
        self.faults.rush(OVERLOADED_S)
        self.world.after(OVERLOADED_S, self.faults.slow, leader, 1.0)

    def slow_disk(self, machine: Machine, sync_ms: float) -> None:
        self.world.happened("disk fault", machine.name, f"story: a sync takes {sync_ms:g} ms")
        machine.disk_faults.sync_ms = sync_ms

    def forget_watch(self, machine: Machine, hold_ms: float) -> None:
        """What changes in the metadata comes to it so much later; 0: in time again."""
        self.world.happened("store fault", machine.name, f"story: watches {hold_ms:g} ms behind")
        self.store.faults(machine.name).watch_hold_ms = hold_ms

    def hold(self, machine: Machine, wants: Callable[[tuple[int, ...], int], bool]) -> Hold:
        """Holds commits of a broker that give the partition such an in-sync set and such a leader."""
        key = partition_key(self.topic, self.partition)

        def is_wanted(txn: Txn) -> bool:
            if key not in txn.put:
                return False
            state = decode_partition(txn.put[key], self.topic, self.partition)
            return wants(state.isr, state.leader)

        self.world.happened("store fault", machine.name, "story: holds commits")
        return self.store.hold(machine.name, is_wanted)

    def addition_held(self, leader: Machine, joiner: Machine) -> Generator["float | Until", None, Hold]:
        """A follower falls out and comes back; the commit that adds it stays on its way."""
        self.cut(leader, joiner)
        yield self.out(joiner)
        joiner_id = self.brokers.ids[joiner.name]
        hold = self.hold(leader, lambda isr, _: joiner_id in isr)
        self.mend()
        yield Until(lambda: len(hold), RETURN_S)
        return hold


class Director:
    """Tells stories. None goes on once all is repaired."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._world = faults.world

    def tell(self, story: Story, stage: Stage, then: Callable[[], object]) -> None:
        """From now on; `then` is called when it has ended."""
        self._go_on(story(stage), then)

    def _go_on(self, story: Waits, then: Callable[[], object]) -> None:
        if self._faults.is_over:
            return
        try:
            wait = next(story)
        except StopIteration:
            then()
            return
        if isinstance(wait, Until):
            self._look(wait, self._world.now_ms / 1000.0 + wait.limit_s, story, then)
        else:
            self._world.after(wait, self._go_on, story, then)

    def _look(self, wait: Until, end_s: float, story: Waits, then: Callable[[], object]) -> None:
        if self._faults.is_over:
            return
        if wait.condition() or self._world.now_ms / 1000.0 >= end_s:
            self._go_on(story, then)
        else:
            self._world.after(wait.step_s, self._look, wait, end_s, story, then)
