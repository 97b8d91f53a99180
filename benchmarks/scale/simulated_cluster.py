"""A large cluster in the simulator, with costs fed in: what the loss of a broker means to a hundred of them.

Brokers run their production code, each on a machine of its own in virtual time. What a turn of a broker's event loop
takes is the CPU time that it takes here, so the figures are those of brokers with a core each like this one. The
metadata store takes one request after the other, as long as etcd took for it (`store_costs.py`). Devices cost nothing,
and no records are written: metadata, heartbeats, elections and fetches are what is seen. That all brokers share the
caches of one core makes them slower than they would be.

    python -m benchmarks.scale.simulated_cluster 30 3000        30 brokers, 3,000 partitions with three replicas
"""

import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import median
from typing import Final

from benchmarks.figures.table import markdown
from benchmarks.harness.bench import Bench
from benchmarks.harness.results import Outcome
from benchmarks.host.machine import REPOSITORY
from odradek.broker.cluster.keys import KeyKind, PartitionState, decode_partition, parse_key, parse_partition
from odradek.broker.cluster.placement import UsableBroker, place
from odradek.broker.cluster.store import Change, Txn
from odradek.broker.offline.adopt.plan import topic_values
from odradek.testing.sim.cluster.brokers import Brokers
from odradek.testing.sim.world.machine import Machine
from odradek.testing.sim.world.process import Cpu
from odradek.testing.sim.world.store import Request, SimStore
from odradek.testing.sim.world.world import World

REPLICAS: Final = 3
PARTITIONS_A_TOPIC: Final = 50
COMMIT_MS: Final = 0.5
"""Of etcd's time: a request, and besides it each key that is written, and that told to one watch."""
KEY_MS: Final = 0.0105
TOLD_KEY_MS: Final = 0.0014
CREATED_EVERY_S: Final = 0.02
STORE_TIMEOUT_MS: Final = 10_000.0
STEP_S: Final = 0.01
REST_S: Final = 5.0
PATIENCE_S: Final = 300.0


class MeasuredCpu(Cpu):
    """A round takes what it takes here."""

    __slots__ = ("_began_s", "busy_s")

    def __init__(self) -> None:
        super().__init__()
        self.busy_s = self._began_s = 0.0

    def begin(self) -> None:
        self._began_s = time.thread_time()

    def round_s(self, chance: float) -> float:
        now_s = time.thread_time()
        took_s, self._began_s = now_s - self._began_s, now_s
        self.busy_s += took_s
        return took_s


class BusyStore(SimStore):
    """A store that takes its time."""

    busy_s = 0.0
    _free_at_s = 0.0

    def carry_out(self, request: Request) -> None:
        self._spend(COMMIT_MS)
        self.scheduler.at(self._free_at_s, super().carry_out, request)

    def commit(self, txn: Txn, host: str = "") -> int:
        keys = len(txn.put) + len(txn.delete)
        self._spend(keys * (KEY_MS + TOLD_KEY_MS * len(self.clients)))
        return super().commit(txn, host)

    def _spend(self, ms: float) -> None:
        self.busy_s += ms / 1000.0
        self._free_at_s = max(self._free_at_s, self.scheduler.now_s) + ms / 1000.0


class Metadata:
    """Who leads, and where replicas are missing, by the store."""

    def __init__(self, store: SimStore) -> None:
        self.states: dict[str, PartitionState] = {}
        store.changed = self._changed

    def _changed(self, change: Change, host: str) -> None:
        for event in change.events:
            kind, name = parse_key(event.key)
            if kind is KeyKind.PARTITION and event.value is not None:
                self.states[event.key] = decode_partition(event.value, *parse_partition(name), change.revision)

    def led_by(self, broker_id: int) -> int:
        return sum(state.leader == broker_id for state in self.states.values())

    def missing(self) -> int:
        return sum(len(state.isr) < len(state.replicas) for state in self.states.values())


@dataclass(frozen=True, slots=True)
class SimulatedScale:
    """Virtual seconds, and shares of a broker's core."""

    brokers: int
    partitions: int
    opened_s: float
    """From the first topic's commit until every broker has opened its replicas."""
    idle_percent: float
    idle_controller_percent: float
    killed_s: float
    """From a broker's death until all that it led is led by others, and each of them knows that."""
    returned_s: float
    """From its start until it is in sync everywhere."""
    silent_s: float
    """The same for one whose machine ends, from which nothing is heard any more."""
    store_s: float
    """How long the store was busy for the first loss."""
    commits: int


class Cluster:
    """Brokers that are there and have opened what they have."""

    def __init__(self, world: World, brokers: int, partitions: int) -> None:
        assert isinstance(world.store, BusyStore)
        self.world = world
        self.store = world.store
        self.metadata = Metadata(world.store)
        self.brokers = Brokers(world, [1] * brokers, {"auto.leader.rebalance.enable": "false"})
        for machine in self.brokers.machines:
            machine.cpu = MeasuredCpu()
            world.store.faults(machine.name).timeout_ms = STORE_TIMEOUT_MS
        self.brokers.start_all()
        self.until(lambda: len(self.brokers.serving) == brokers, "all brokers serve")
        self.opened_s = self._create(world.store, partitions)

    def _create(self, store: SimStore, partitions: int) -> float:
        began_s, usable = self.world.now_ms / 1000.0, [UsableBroker(node_id) for node_id in self.brokers.ids.values()]
        for number in range(partitions // PARTITIONS_A_TOPIC):
            first = number * PARTITIONS_A_TOPIC
            topic_id = (number + 1).to_bytes(16, "big")
            placed = place(PARTITIONS_A_TOPIC, REPLICAS, usable, first, number)
            states = [PartitionState(topic_id, replicas, replicas, replicas[0]) for replicas in placed]
            txn = Txn(put=topic_values(f"t{number}", topic_id, states, {}))
            self.world.after(number * CREATED_EVERY_S, store.commit, txn)
        replicas = REPLICAS * (partitions // PARTITIONS_A_TOPIC) * PARTITIONS_A_TOPIC
        self.until(lambda: self._open_count() == replicas, "all replicas are opened")
        return self.world.now_ms / 1000.0 - began_s

    def _open_count(self) -> int:
        return sum(len(broker.context.partitions) for broker in self.brokers.serving.values())

    def until(self, is_so: Callable[[], bool], what: str) -> float:
        """Lets time pass; how many seconds. Raises TimeoutError."""
        began_s = now_s = self.world.now_ms / 1000.0
        while not is_so():
            if now_s - began_s > PATIENCE_S:
                raise TimeoutError(f"not within {PATIENCE_S:g} s: {what}")
            now_s += STEP_S
            self.world.run(now_s)
        return now_s - began_s

    def rest(self) -> list[float]:
        """What each broker uses of a core, by node id from 1 on, while nothing happens."""
        self.world.run(self.world.now_ms / 1000.0 + REST_S)
        cpus = [machine.cpu for machine in self.brokers.machines if isinstance(machine.cpu, MeasuredCpu)]
        before = [cpu.busy_s for cpu in cpus]
        self.world.run(self.world.now_ms / 1000.0 + REST_S)
        return [100.0 * (cpu.busy_s - then_s) / REST_S for cpu, then_s in zip(cpus, before, strict=True)]

    @property
    def controller_id(self) -> int:
        return next(iter(self.brokers.serving.values())).context.metadata.image.controller_id

    def lost(self, machine: Machine, node_id: int) -> float:
        """Seconds until nobody says any more that this broker leads anything."""
        took_s = self.until(lambda: not self.metadata.led_by(node_id), "all is led by others")
        revision = self.store.state.revision
        others = [broker for name, broker in self.brokers.serving.items() if name != machine.name]
        return took_s + self.until(
            lambda: all(broker.context.metadata.image.revision >= revision for broker in others), "all know of it"
        )


def simulated_scale(brokers: int, partitions: int) -> SimulatedScale:
    """Raises TimeoutError."""
    with World(1, has_store=True, store_type=BusyStore) as world:
        cluster = Cluster(world, brokers, partitions)
        idle = cluster.rest()
        controller = cluster.controller_id
        killed, silent = [node_id for node_id in cluster.brokers.ids.values() if node_id != controller][:2]
        machine = cluster.brokers.machine(killed)
        store_s, commits = cluster.store.busy_s, cluster.store.state.revision
        machine.kill()
        killed_s = cluster.lost(machine, killed)
        store_s, commits = cluster.store.busy_s - store_s, cluster.store.state.revision - commits
        cluster.rest()
        cluster.brokers.start(machine)
        returned_s = cluster.until(lambda: not cluster.metadata.missing(), "all are in sync again")
        machine = cluster.brokers.machine(silent)
        machine.suspend()
        silent_s = cluster.lost(machine, silent)
    return SimulatedScale(
        brokers=brokers,
        partitions=partitions,
        opened_s=cluster.opened_s,
        idle_percent=median(idle),
        idle_controller_percent=idle[controller - 1],
        killed_s=killed_s,
        returned_s=returned_s,
        silent_s=silent_s,
        store_s=store_s,
        commits=commits,
    )


def measure_simulated_scale(bench: Bench) -> Outcome:
    """Raises CalledProcessError."""
    found: list[SimulatedScale] = []
    for brokers, partitions in bench.plan.simulated_scale:
        command = [sys.executable, "-m", "benchmarks.scale.simulated_cluster", str(brokers), str(partitions)]
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=True)
        found.append(SimulatedScale(**json.loads(done.stdout)))
        bench.say(f"simulated-scale: {found[-1]}")
    return Outcome(tables=[scale_table(found)])


def scale_table(found: list[SimulatedScale]) -> str:
    rows: list[tuple[str, Callable[[SimulatedScale], str]]] = [
        ("topics created in a row: until all replicas are opened, s", lambda each: f"{each.opened_s:.1f}"),
        ("idle, a broker, % of a core", lambda each: f"{each.idle_percent:.1f}"),
        ("– the controller", lambda each: f"{each.idle_controller_percent:.1f}"),
        ("a broker's process ends: until all is led by others, s", lambda each: f"{each.killed_s:.2f}"),
        ("– commits of the metadata", lambda each: f"{each.commits:,}"),
        ("– the store is busy, s", lambda each: f"{each.store_s:.2f}"),
        ("it starts again: until it is in sync everywhere, s", lambda each: f"{each.returned_s:.1f}"),
        ("a broker's machine ends, silently: until all is led by others, s", lambda each: f"{each.silent_s:.2f}"),
    ]
    head = ["simulated, three replicas", *(f"{each.brokers} brokers, {each.partitions:,}" for each in found)]
    return markdown(head, [[title, *(tell(each) for each in found)] for title, tell in rows])


def main(brokers: str, partitions: str) -> None:
    gc.collect()
    gc.freeze()  # what was imported stays
    print(json.dumps(asdict(simulated_scale(int(brokers), int(partitions)))))


if __name__ == "__main__":
    main(*sys.argv[1:])
