"""Looks into the brokers of a world now and then, and writes down how each replica stands (`ReplicaSeen`).

It changes nothing, and takes no time of theirs. What is between two looks it does not see.
"""

from collections.abc import Callable
from typing import Final

from odradek.broker.replica.partition import Partition
from odradek.testing.sim.checking.history import ReplicaSeen
from odradek.testing.sim.cluster.evidence import Evidence
from odradek.testing.sim.world.machine import Running
from odradek.testing.sim.world.world import World

LOOK_S: Final = 0.25


class Looker:
    """Looks as long as the world runs, from `start` on. `looked` is called after each look."""

    def __init__(self, world: World, evidence: Evidence, looked: Callable[[], object]) -> None:
        self.world = world
        self.evidence = evidence
        self.brokers = evidence.brokers
        self.looked = looked
        self._seen: dict[tuple[str, str, int], tuple[object, ...]] = {}

    def start(self) -> None:
        self.look()
        self.looked()
        self.world.after(LOOK_S, self.start)

    def look(self) -> None:
        """Writes down each replica that stands otherwise than when it was last looked at."""
        for machine in self.brokers.machines:
            broker, running = self.brokers.broker(machine), machine.running
            if broker is None or running is None:
                continue
            for partition in broker.context.partitions:
                topic, _ = self.evidence.key_of(partition)
                self._note(replica_seen(self.world, running, partition, topic))

    def _note(self, seen: ReplicaSeen) -> None:
        key = seen.machine, seen.topic, seen.partition
        offsets = seen.log_start_offset, seen.log_end_offset, seen.high_watermark
        in_sync = *seen.in_sync, None, *seen.maximal_in_sync
        state = (seen.incarnation, seen.leader_epoch, seen.is_leader, *offsets, *in_sync)
        if self._seen.get(key) != state:
            self._seen[key] = state
            self.world.trace.note(seen.machine, "replica", seen.topic, seen.partition, *state)
            self.world.history.add(seen)


def replica_seen(world: World, running: Running, partition: Partition, topic: str) -> ReplicaSeen:
    """How a replica stands now, in the process that has it open. `topic`: its identity."""
    is_leader = partition.is_leader
    return ReplicaSeen(
        world.now_ms,
        running.machine.name,
        running.incarnation,
        topic,
        partition.index,
        partition.leader_epoch,
        is_leader,
        partition.log.log_start_offset,
        partition.log.log_end_offset,
        partition.high_watermark.value,
        sorted(partition.replicas.isr) if is_leader else [],
        sorted(partition.replicas.maximal_isr) if is_leader else [],
    )
