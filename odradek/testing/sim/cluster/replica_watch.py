"""Lays the replicas of a running world side by side: their logs, as they lie on their machines' disks.

At each look, of who leads as stored: fetches that it counts come from its own leader epoch; and with acks=all nothing
is appended while fewer than `min.insync.replicas` are in sync. At each election seen, now and then, and at the end the
logs themselves (replica_logs.py): what could be read is there, and who is in sync has it byte for byte.

What a look is told may be old: a leader may not know yet that it was deposed, nor that a follower has lost data and is
not in sync any more. So only leaders and members count that the metadata names, too. A compacted log of which an
unclean election has taken the end is laid beside no other any more: some replicas have lost the newest record of a key
with it, and the one before that to compaction.
"""

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.log.leftovers import SWAP_SUFFIX
from odradek.broker.log.segment import LOG_SUFFIX
from odradek.broker.replica.acknowledgements import ACKS_ALL
from odradek.broker.replica.partition import Partition
from odradek.broker.replica.replicas import NEVER_MS
from odradek.protocol.batches.batch import iterate_batches
from odradek.protocol.batches.records import iterate_records
from odradek.testing.sim.checking.cluster_history import PartitionStored
from odradek.testing.sim.checking.expectations import MINIMUM_OPTION, TopicPartition
from odradek.testing.sim.checking.finding import Anomaly, Finding
from odradek.testing.sim.checking.history import ReplicaSeen
from odradek.testing.sim.checking.replica_logs import Readable, ReplicaLog, replicas_differ
from odradek.testing.sim.checking.topics import name_of
from odradek.testing.sim.cluster.brokers import Brokers
from odradek.testing.sim.cluster.evidence import Evidence
from odradek.testing.sim.cluster.looking import replica_seen
from odradek.testing.sim.cluster.workload import Workload, number_of
from odradek.testing.sim.world.machine import Machine, Running
from odradek.testing.sim.world.world import World

COMPARED_EVERY_MS: Final = 4_000.0
ANNOUNCED_BEFORE_MS: Final = 5_000.0
"""An unclean election is announced so long before anybody sees its leader, at most."""


@dataclass(frozen=True, slots=True)
class Replica:
    """One that is open."""

    machine: Machine
    running: Running
    partition: Partition
    seen: ReplicaSeen


class ReplicaWatch:
    """`findings` are what was seen that must not be."""

    def __init__(
        self, world: World, brokers: Brokers, evidence: Evidence, workload: Workload, min_insync_replicas: int
    ) -> None:
        self.world = world
        self.brokers = brokers
        self.evidence = evidence
        self.workload = workload
        self.min_insync_replicas = min_insync_replicas
        self.findings: list[Finding] = []
        self._readable: dict[TopicPartition, Readable] = {}
        self._led: dict[TopicPartition, tuple[int, float]] = {}
        """The leader epoch that was seen last, and when it was seen first."""
        self._before: dict[TopicPartition, Replica] = {}
        """Who led at the last look."""
        self._compared_ms = 0.0
        self._compacted: dict[TopicPartition, int] = {}
        """So far anybody may have compacted it: up to the last segment, which compaction leaves alone. What is fetched
        from there is compacted, wherever it lies."""

    # -- looking ---------------------------------------------------------------------------------------------------

    def look(self) -> None:
        """To be called now and then."""
        is_due = self.world.now_ms - self._compared_ms >= COMPARED_EVERY_MS
        if is_due:
            self._compared_ms = self.world.now_ms
        self._look_for_compacted()
        for key, state in self.evidence.states.items():
            leader = self._leader(key, state)
            if leader is None:
                self._before.pop(key, None)
                continue
            self._check_appended(key, leader)
            self._check_fetches(key, state, leader)
            self._before[key] = leader
            if self._led.get(key, (-1, 0.0))[0] != state.leader_epoch:
                self._elected(key, state, leader)
            elif is_due:
                self._compare(key, state, leader)

    def look_at_all(self) -> None:
        """At the end."""
        self._look_for_compacted()
        for key, state in self.evidence.states.items():
            if (leader := self._leader(key, state)) is not None:
                self._compare(key, state, leader)
        for machine in self.brokers.machines:
            broker = self.brokers.broker(machine)
            for partition in () if broker is None else broker.context.partitions:
                self._check_options(machine, partition)

    def _check_options(self, machine: Machine, partition: Partition) -> None:
        """Each broker goes by the newest ones, when there has been time to hear of them."""
        key = self.evidence.key_of(partition)
        stored = self.evidence.options.get(key[0], [])
        wanted = stored[-1].options.get(MINIMUM_OPTION) if stored else None
        value = partition.config.min_insync_replicas
        if wanted is not None and value != int(wanted):
            text = f"{MINIMUM_OPTION} is {wanted}, and {value} at {machine.name}"
            self.findings.append(Finding(Anomaly.NOT_IN_FORCE, *key, None, text, ((-1, stored[-1]),)))

    def not_in_sync(self) -> list[str]:
        """The partitions that lack a replica in sync, as stored."""
        return [
            f"{topic}-{index}: {sorted(state.isr)} of {sorted(state.replicas)}"
            for (topic, index), state in self.evidence.states.items()
            if {*state.isr} != {*state.replicas}
        ]

    def _leader(self, key: TopicPartition, state: PartitionStored) -> Replica | None:
        """If it knows that it is."""
        found = None if state.leader < 1 else self._replica(key, state.leader)
        if found is None or not found.partition.is_leader or found.partition.leader_epoch != state.leader_epoch:
            return None
        return found

    def _replica(self, key: TopicPartition, broker_id: int) -> Replica | None:
        machine = self.brokers.machine(broker_id)
        broker, running = self.brokers.broker(machine), machine.running
        if broker is None or running is None:
            return None
        for partition in broker.context.partitions:
            if self.evidence.key_of(partition) == key:
                return Replica(machine, running, partition, replica_seen(self.world, running, partition, key[0]))
        return None

    # -- logs ------------------------------------------------------------------------------------------------------

    def _look_for_compacted(self) -> None:
        for machine in self.brokers.machines:
            broker = self.brokers.broker(machine)
            for partition in () if broker is None else broker.context.partitions:
                if partition.log.config.is_compacted:
                    key, offset = self.evidence.key_of(partition), partition.log.segments.active.base_offset
                    self._compacted[key] = max(offset, self._compacted.get(key, 0))

    def _log(self, replica: Replica, from_offset: int = 0) -> ReplicaLog:
        """What lies on its disk, as far as the log reaches; whole files, from the one that holds `from_offset` on."""
        end_offset = replica.partition.log.log_end_offset
        device, directory = replica.machine.device, replica.partition.log.directory
        segments = segments_on(device, directory)
        bases = list(segments)
        batches: list[bytes] = []
        for index, path in enumerate(segments.values()):
            if index + 1 < len(bases) and bases[index + 1] <= from_offset:
                continue
            data = device.read_whole(path)
            for position, header in iterate_batches(data):
                if header.last_offset < end_offset:
                    batches.append(data[position : position + header.size_bytes])
        key = self.evidence.key_of(replica.partition)
        return ReplicaLog(replica.seen, tuple(batches), self._compacted.get(key, 0))

    def _is_comparable(self, key: TopicPartition) -> bool:
        return key not in self._compacted or not self.evidence.announced.get(key)

    def _elected(self, key: TopicPartition, state: PartitionStored, leader: Replica) -> None:
        """A leader that was not seen in this epoch before has all that could be read."""
        _, since_ms = self._led.get(key, (-1, 0.0))
        self._led[key] = state.leader_epoch, self.world.now_ms
        if not self._is_comparable(key):
            return
        readable = self._readable.setdefault(key, Readable(*key))
        announced = self.evidence.announced.get(key, [])
        is_clean = not any(each.at_ms >= since_ms - ANNOUNCED_BEFORE_MS for each in announced)
        log = self._log(leader)
        self.findings += readable.elected(log, is_clean=is_clean)
        self.findings += readable.saw(log)

    def _compare(self, key: TopicPartition, state: PartitionStored, leader: Replica) -> None:
        if not self._is_comparable(key):
            return
        log = self._log(leader)
        self.findings += self._readable.setdefault(key, Readable(*key)).saw(log)
        members = [each for each in state.isr if each != state.leader and each in leader.seen.maximal_in_sync]
        followers = [found for each in members if (found := self._replica(key, each)) is not None]
        self.findings += replicas_differ(log, [self._log(follower) for follower in followers])

    # -- what a leader does ----------------------------------------------------------------------------------------

    def _check_fetches(self, key: TopicPartition, state: PartitionStored, leader: Replica) -> None:
        """A follower that has not come to this leader's epoch, and never was there in its present life, has fetched in
        another one: that must not count."""
        for broker_id, follower in leader.partition.replicas.followers.items():
            found = self._replica(key, broker_id) if follower.last_fetch_ms != NEVER_MS else None
            if found is None or found.partition.leader_epoch >= state.leader_epoch:
                continue
            broker = self.brokers.broker(found.machine)
            if broker is None or broker.context.member.registration.epoch != follower.broker_epoch:
                continue
            self.findings.append(
                Finding(
                    Anomaly.OTHER_EPOCH,
                    *key,
                    follower.log_end_offset,
                    f"{leader.machine.name} leads in epoch {state.leader_epoch} and counts a fetch of "
                    f"{found.machine.name}, which is in epoch {found.partition.leader_epoch}",
                    ((-1, leader.seen), (-1, found.seen)),
                )
            )

    def _check_appended(self, key: TopicPartition, leader: Replica) -> None:
        """Between two looks at the same leader, both with too few in sync, and no more meanwhile."""
        before, now = self._before.get(key), leader.seen
        if name_of(key[0]) != self.workload.topic:
            return  # what stands there is no record of a producer, or of a transaction
        if before is None or before.running is not leader.running or before.seen.leader_epoch != now.leader_epoch:
            return
        minimum = min([self.min_insync_replicas, *self.evidence.minimums(key[0], self.min_insync_replicas)])
        least = min(minimum, len(self.evidence.states[key].replicas))
        if len(before.seen.maximal_in_sync) >= least or len(now.maximal_in_sync) >= least:
            return
        if now.log_end_offset == before.seen.log_end_offset or self._was_enough(key, before.seen.at_ms, least):
            return
        for offset, value in self._values(leader, before.seen.log_end_offset):
            if self.workload.acks_of(value) == ACKS_ALL:
                self.findings.append(
                    Finding(
                        Anomaly.APPENDED_BELOW_MINIMUM,
                        *key,
                        offset,
                        f"value {value}, sent with acks=all, was appended while in sync were {now.in_sync}",
                        ((-1, before.seen), (-1, now)),
                    )
                )

    def _was_enough(self, key: TopicPartition, since_ms: float, least: int) -> bool:
        states = self.evidence.stored(*key)
        return any(len(state.isr) >= least for state in states if state.at_ms >= since_ms)

    def _values(self, replica: Replica, from_offset: int) -> Iterator[tuple[int, int]]:
        for batch in self._log(replica, from_offset).batches:
            for record in iterate_records(batch):
                if record.offset >= from_offset:
                    yield record.offset, number_of(record)


def segments_on(disk: MemoryDisk, directory: str) -> dict[int, str]:
    """The files of a log's segments by base offset. One that compaction has written, and that has not got all of its
    place yet, counts as the next start would have it: whole, instead of those that it was made of."""
    paths = [posixpath.join(directory, name) for name in disk.list_dir(directory)]
    found = {_base_offset(path): path for path in paths if path.endswith(LOG_SUFFIX)}
    for path in paths:
        if path.endswith(LOG_SUFFIX + SWAP_SUFFIX):
            base_offset = last_offset = _base_offset(path)
            for _, header in iterate_batches(disk.read_whole(path)):
                last_offset = header.last_offset
            found = {base: each for base, each in found.items() if not base_offset <= base <= last_offset}
            found[base_offset] = path
    return dict(sorted(found.items()))


def _base_offset(path: str) -> int:
    return int(posixpath.basename(path).partition(".")[0])
