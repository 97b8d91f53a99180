"""What the checker is told besides the history: what the metadata held, which losses were logged, what was deleted.

Each commit of a shared store that touches a partition becomes a `PartitionStored`, at its virtual time and with its
writer. A store that a broker has of its own is looked into now and then (`look`). Lines in a broker's log that announce
a loss become an `UncleanElection`:

| logged by | says |
|---|---|
| controller/controller.py | a leader was elected from outside the in-sync and eligible replicas |
| restart.py | the last one in sync comes back without what its machine had not written |

Where a leader's log start moves, `RecordsDeleted` says so as of the last look before, for readers see it at once.
"""

import logging
from typing import Any

from broker.cluster.keys import CONTROLLER_KEY, KeyKind, decode_controller, decode_partition, parse_key, parse_partition
from broker.cluster.store import Change, Entry, Event
from tests.sim.brokers import Brokers
from tests.sim.cluster_history import ClusterRecord, PartitionStored, RecordsDeleted, UncleanElection
from tests.sim.expectations import TopicPartition
from tests.sim.loss_model import broker_id_of
from tests.sim.world import World

ELECTED = "%s: broker %d is elected at epoch %d although it may lack what was acknowledged"
LAST_IN_SYNC = "%d partitions were in sync on broker %d only, whose machine went down without a clean stop"


class Evidence:
    """Gathers as long as the world runs. `records` are in the order of the commits."""

    def __init__(self, world: World, brokers: Brokers) -> None:
        self.world = world
        self.brokers = brokers
        self.records: list[ClusterRecord] = []
        self.states: dict[TopicPartition, PartitionStored] = {}
        """As stored now."""
        self.announced: dict[TopicPartition, list[UncleanElection]] = {}
        self.controller: int | None = None
        """Who is it now; None for nobody."""
        self._revision = 0  # of a store of a broker's own, as far as it was looked at
        self._log_starts: dict[TopicPartition, int] = {}
        self._looked_ms = 0.0
        world.logged = self._logged
        if world.store is not None:
            world.store.changed = self._changed

    def stored(self, topic: str, partition: int) -> list[PartitionStored]:
        """All states of one partition, in order."""
        return [
            each
            for each in self.records
            if isinstance(each, PartitionStored) and (each.topic, each.partition) == (topic, partition)
        ]

    # -- the metadata ----------------------------------------------------------------------------------------------

    def _changed(self, change: Change, host: str) -> None:
        for event in change.events:
            if event.key == CONTROLLER_KEY:
                self.controller = None if event.value is None else decode_controller(event.value)
        for event in change.events:
            self._take(event, change.revision, broker_id_of(host, self.brokers.ids) if host else None)

    def _take(self, event: Event, revision: int, writer: int | None) -> None:
        kind, name = parse_key(event.key)
        if kind is not KeyKind.PARTITION or event.value is None:
            return
        topic, index = parse_partition(name)
        state = decode_partition(event.value, topic, index, revision)
        stored = PartitionStored(
            self.world.now_ms,
            topic,
            index,
            state.replicas,
            state.isr,
            state.leader,
            state.leader_epoch,
            state.partition_epoch,
            state.elr,
            writer,
            self.controller,
        )
        self.records.append(stored)
        self.states[topic, index] = stored

    def _look_into_own_store(self) -> None:
        """Of a broker that is alone. What was written and overwritten between two looks is not seen."""
        broker = self.brokers.broker(self.brokers.machines[0])
        own: Any = None if broker is None else broker._store  # pyright: ignore
        if own is None or own._state.revision <= self._revision:
            return
        entries: dict[str, Entry] = own._state.read("/").entries
        for key, entry in sorted(entries.items(), key=lambda each: each[1].revision):
            if entry.revision > self._revision:
                self._take(Event(key, entry.value), entry.revision, None)
        self._revision = own._state.revision

    # -- the brokers -----------------------------------------------------------------------------------------------

    def look(self) -> None:
        """To be called now and then."""
        if self.world.store is None:
            self._look_into_own_store()
        for machine in self.brokers.machines:
            broker = self.brokers.broker(machine)
            for partition in () if broker is None else broker.context.partitions:
                key, start = (partition.topic, partition.index), partition.log.log_start_offset
                if partition.is_leader and start > self._log_starts.get(key, 0):
                    self._log_starts[key] = start
                    self.records.append(RecordsDeleted(self._looked_ms, *key, start))
        self._looked_ms = self.world.now_ms

    def _logged(self, record: logging.LogRecord) -> None:
        arguments: Any = record.args
        text = str(record.msg)
        if record.name == "broker.controller.controller" and text.startswith(ELECTED):
            kind, name = parse_key(arguments[0])
            assert kind is KeyKind.PARTITION, "it is about one"
            self._announce(parse_partition(name), arguments[1], arguments[2], "elected from outside")
        elif record.name == "broker.restart" and text.startswith(LAST_IN_SYNC):
            names: list[str] = arguments[2].split(", ")
            keys = [_partition(name) for name in names if name != "…"]
            for key in keys if "…" not in names else sorted(self.states):
                state = self.states.get(key)
                epoch = -1 if state is None else state.leader_epoch
                self._announce(key, arguments[1], epoch, "the last one in sync has lost what was not written")

    def _announce(self, key: TopicPartition, leader: int, leader_epoch: int, why: str) -> None:
        announced = UncleanElection(self.world.now_ms, *key, leader, leader_epoch, why)
        self.records.append(announced)
        self.announced.setdefault(key, []).append(announced)


def _partition(name: str) -> TopicPartition:
    topic, _, index = name.rpartition("-")
    return topic, int(index)
