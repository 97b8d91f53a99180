"""What operators do by chance, at any moment: topics, replicas, leaders, options, records, brokers.

    plan = OperatorPlan(faults, evidence, "orders", configs).by_chance(rng, from_s=3, to_s=18, count=4)

As in `Faults`, an action is planned with all its chance, and looks at what there is when it begins.
"""

import random
from collections.abc import Callable
from functools import partial
from typing import Final

from odradek.testing.sim.checking.expectations import MINIMUM_OPTION, UNCLEAN_OPTION
from odradek.testing.sim.checking.topics import name_of
from odradek.testing.sim.cluster.evidence import Evidence
from odradek.testing.sim.cluster.faults import Action, Faults
from odradek.testing.sim.cluster.operators import Asking
from odradek.testing.sim.world.machine import Machine

PARTITIONS_MAX: Final = 6
SMALL_BYTES: Final = "20000"
"""Of retention: more comes in a second or two."""
LARGE_BYTES: Final = str(2**40)
AWAY_S: Final = 4.0
"""Until a broker that is not there is not registered any more, and some."""

Choice = Callable[[random.Random], list[Action]]


class OperatorPlan:
    """See the module. All actions are about one topic, but for those that create others."""

    def __init__(self, faults: Faults, evidence: Evidence, topic: str, topic_configs: dict[str, str]) -> None:
        self.faults = faults
        self.world = faults.world
        self.brokers = faults.brokers
        self.operators = faults.operators
        self.evidence = evidence
        self.topic = topic
        self.topic_configs = topic_configs
        self._created = 0

    def by_chance(self, rng: random.Random, from_s: float, to_s: float, count: int) -> list[Action]:
        """So many, in order of time."""
        choices = self._choices()
        plan: list[Action] = []
        for _ in range(count):
            choice = rng.choices([each for each, _ in choices], [weight for _, weight in choices])[0]
            at_s = rng.uniform(from_s, to_s)
            plan += [(at_s + delay_s, action) for delay_s, action in choice(rng)]
        return sorted(plan, key=lambda action: action[0])

    def _choices(self) -> list[tuple[Choice, int]]:
        choices: list[tuple[Choice, int]] = [
            (self._delete_records, 5),
            (self._retain_little, 2),
            (self._make_anew, 2),
            (self._add_partitions, 2),
            (self._alter_options, 3),
            (self._create_another, 2),
        ]
        if self.world.store is not None:
            choices += [
                (self._reassign, 4),
                (self._reassign_and_cancel, 2),
                (self._prefer, 2),
                (self._elect_whoever, 2),
                (self._unregister, 1),
                (self._roll, 1),
            ]
        return choices

    # -- what there is -----------------------------------------------------------------------------------------------

    def partition_count(self) -> int:
        """Of the topic; 0 where it does not exist."""
        found = self.evidence.topics.current(self.topic)
        return 0 if found is None else found.partition_count

    def partition(self, share: float) -> int:
        return int(share * self.partition_count())

    def replicas(self, partition: int) -> tuple[int, ...]:
        state = self.evidence.states.get(self.evidence.current(self.topic, partition))
        return () if state is None else state.replicas

    @property
    def replication_factor(self) -> int:
        """What the topic began with."""
        return min(len(self.brokers.machines), 3) if not self.replicas(0) else len(self.replicas(0))

    def end_offset(self, partition: int) -> int:
        """Of what can be read, as far as anybody leads that."""
        key = self.evidence.current(self.topic, partition)
        for machine in self.brokers.machines:
            broker = self.brokers.broker(machine)
            for each in () if broker is None else broker.context.partitions:
                if each.is_leader and self.evidence.key_of(each) == key:
                    return each.high_watermark.value
        return 0

    # -- records -----------------------------------------------------------------------------------------------------

    def _delete_records(self, rng: random.Random) -> list[Action]:
        return [(0.0, partial(self.delete_records, rng.random(), rng.choice((None, 0.5, 0.9, 1.0))))]

    def delete_records(self, partition_share: float, share: float | None) -> None:
        """That part of what can be read; None: all, by the number that says so."""
        partition = self.partition(partition_share)
        before = -1 if share is None else int(share * self.end_offset(partition))
        self.operators.delete_records(self.topic, partition, before)

    def _retain_little(self, rng: random.Random) -> list[Action]:
        def begin(size_bytes: str) -> None:
            self.operators.alter_options(self.topic, {"retention.bytes": size_bytes, "segment.ms": "1000"})

        return [(0.0, partial(begin, SMALL_BYTES)), (rng.uniform(1.5, 5.0), partial(begin, LARGE_BYTES))]

    # -- topics ------------------------------------------------------------------------------------------------------

    def _make_anew(self, rng: random.Random) -> list[Action]:
        return [(0.0, partial(self.make_anew, rng.choice((0.0, 10.0, 500.0, 3_000.0))))]

    def make_anew(self, pause_ms: float) -> Asking:
        """With as many partitions and replicas as it has. What is answered is the deletion."""
        count = max(1, self.partition_count())
        return self.operators.make_anew(self.topic, count, self.replication_factor, self.topic_configs, pause_ms)

    def _add_partitions(self, rng: random.Random) -> list[Action]:
        return [(0.0, partial(self.add_partitions, rng.choice((1, 2))))]

    def add_partitions(self, more: int) -> Asking:
        """If it has not got many already: then it is asked for those that it has, which is refused."""
        count = self.partition_count()
        return self.operators.add_partitions(self.topic, min(count + more, max(count, PARTITIONS_MAX)))

    def _alter_options(self, rng: random.Random) -> list[Action]:
        which = rng.choice(("minimum", "minimum", "unclean", "brokers"))
        value = rng.choice(("1", "2"))

        def begin() -> None:
            if which == "brokers":
                self.operators.alter_options("", {"log.retention.bytes": f"{value}000000000"})
            elif which == "unclean":
                self.operators.alter_options(self.topic, {UNCLEAN_OPTION: "true" if value == "2" else "false"})
            else:
                self.operators.alter_options(self.topic, {MINIMUM_OPTION: value})

        return [(0.0, begin)]

    def _create_another(self, rng: random.Random) -> list[Action]:
        """Half of the time while a broker is away."""
        if self.world.store is None or rng.random() < 0.5:
            return [(0.0, self.create_another)]
        machine = rng.choice(self.brokers.machines)
        away_s = rng.uniform(0.5, AWAY_S)
        return [
            (0.0, partial(self.faults.crash, machine)),
            (away_s, self.create_another),
            (away_s + rng.uniform(0.1, 1.0), partial(self.brokers.start, machine)),
        ]

    def create_another(self) -> str:
        """One with as many replicas as there are brokers. Its name."""
        self._created += 1
        name = f"another{self._created}"
        self.operators.create_topic(name, 1, len(self.brokers.machines), self.topic_configs)
        return name

    # -- replicas ----------------------------------------------------------------------------------------------------

    def _reassign(self, rng: random.Random) -> list[Action]:
        """To as many replicas as before, more, or fewer."""
        share, count = rng.random(), rng.choice((1, 2, 2, 3))
        return [(0.0, partial(self.reassign, share, self._order(rng)[:count]))]

    def _order(self, rng: random.Random) -> list[int]:
        return rng.sample(range(1, len(self.brokers.machines) + 1), len(self.brokers.machines))

    def reassign(self, partition_share: float, replicas: list[int]) -> None:
        self.operators.reassign(self.topic, self.partition(partition_share), replicas)

    def _reassign_and_cancel(self, rng: random.Random) -> list[Action]:
        share = rng.random()

        def cancel() -> None:
            self.operators.cancel(self.topic, self.partition(share))

        replicas = self._order(rng)[: rng.choice((2, 3))]
        return [(0.0, partial(self.reassign, share, replicas)), (rng.choice((0.05, 0.5, 2.0)), cancel)]

    def _prefer(self, rng: random.Random) -> list[Action]:
        share = rng.random()
        return [(0.0, lambda: self.operators.prefer(self.topic, self.partition(share)))]

    def _elect_whoever(self, rng: random.Random) -> list[Action]:
        """For what nobody leads at that moment; whether or not somebody could soon."""
        del rng

        def begin() -> None:
            for (topic, index), state in list(self.evidence.states.items()):
                if state.leader < 1:
                    self.operators.elect_whoever(name_of(topic), index)

        return [(0.0, begin)]

    # -- brokers -----------------------------------------------------------------------------------------------------

    def _unregister(self, rng: random.Random) -> list[Action]:
        """One that is away, and comes back."""
        machine = rng.choice(self.brokers.machines)
        away_s = rng.uniform(2.0, AWAY_S)
        return [
            (0.0, partial(self.faults.crash, machine)),
            (away_s, partial(self.unregister, machine)),
            (away_s + rng.uniform(0.1, 2.0), partial(self.brokers.start, machine)),
        ]

    def unregister(self, machine: Machine) -> None:
        """If it is not there, and others have what it has."""
        if machine.running is None and self.faults.may_lose(machine, "unregistered"):
            self.world.happened("unregistered", machine.name)
            self.operators.unregister(self.brokers.ids[machine.name])

    def _roll(self, rng: random.Random) -> list[Action]:
        """All of them, one after the other, in a hurry or not."""
        pause_s = rng.choice((0.5, 2.0))
        return [
            (pause_s * number, partial(self.faults.stop, each)) for number, each in enumerate(self.brokers.machines)
        ]
