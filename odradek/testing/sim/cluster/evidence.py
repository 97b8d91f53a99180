"""What the checker is told besides the history: what the metadata held, which losses were logged, what was deleted.

Each commit of a shared store that touches a partition becomes a `PartitionStored`, at its virtual time and with its
writer. A store that a broker has of its own is looked into now and then (`look`). Lines in a broker's log that announce
a loss become an `UncleanElection`:

| logged by | says |
|---|---|
| controller/controller.py | a leader was elected from outside the in-sync and eligible replicas |
| broker/membership/startup_losses.py | the last one in sync comes back without what its machine had not written |

Whoever starts a broker again is told which marks of failed syncs its device did not take (log/log_durability.py).

Where a leader's log start moves, `RecordsDeleted` says so as of the last look before, for readers see it at once.
Topics that come and go, options and registrations are written down, too.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from odradek.broker.cluster.keys import (
    CONTROLLER_KEY,
    DEFAULT_BROKER,
    TOPICS_PREFIX,
    KeyKind,
    decode_configs,
    decode_controller,
    decode_partition,
    decode_topic,
    parse_key,
    parse_partition,
    topic_key,
)
from odradek.broker.cluster.state import State
from odradek.broker.cluster.store import Change, Compacted, Event
from odradek.broker.replica.partition import Partition
from odradek.testing.sim.checking.cluster_history import (
    ClusterRecord,
    NodesStored,
    OptionsStored,
    PartitionStored,
    RecordsDeleted,
    TopicStored,
    UncleanElection,
)
from odradek.testing.sim.checking.expectations import TopicPartition, minimums_of
from odradek.testing.sim.checking.loss_model import broker_id_of
from odradek.testing.sim.checking.topics import Topics
from odradek.testing.sim.cluster.brokers import Brokers
from odradek.testing.sim.world.world import World

ELECTED = "%s: broker %d is elected at epoch %d although it may lack what was acknowledged"
MARK_REFUSED = "%s could not be written; while it is not there, restart the machine before the broker"
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
        self.options: dict[str, list[OptionsStored]] = {}
        """Of topics, by identity, one after the other; under an empty one those of all brokers."""
        self.topics = Topics(lambda: world.now_ms, is_told=world.store is not None)
        self.nodes: set[int] = set()
        """Those that are registered."""
        self._live: set[int] = set()
        self._stopping: set[int] = set()
        self.topic_changed: Callable[[str, int], object] = _ignore
        """Called with a topic's name and how many partitions it has now; 0: it is gone."""
        self._own: State | None = None  # of a broker that is alone, as its newest process has it or had it
        self._revision = 0  # of that, as far as it was looked at
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

    def minimums(self, topic: str, default: int) -> list[int]:
        """What `min.insync.replicas` of a topic has been, by its identity."""
        return [value for _, value in minimums_of(self.options.get(topic, ()), default)]

    # -- the metadata ----------------------------------------------------------------------------------------------

    def _changed(self, change: Change, host: str) -> None:
        for event in change.events:
            if event.key == CONTROLLER_KEY:
                self.controller = None if event.value is None else decode_controller(event.value)
        self._take_change(change, broker_id_of(host, self.brokers.ids) if host else None)

    def _take_change(self, change: Change, writer: int | None) -> None:
        for event in sorted(change.events, key=lambda each: not each.key.startswith(TOPICS_PREFIX)):
            self._take(event, change.revision, writer)

    def _take(self, event: Event, revision: int, writer: int | None) -> None:
        kind, name = parse_key(event.key)
        if kind is KeyKind.PARTITION and event.value is not None:
            self._take_partition(name, event.value, revision, writer)
        elif kind is KeyKind.TOPIC:
            self._take_topic(name, event.value)
        elif kind in (KeyKind.TOPIC_CONFIG, KeyKind.BROKER_CONFIG):
            options = {} if event.value is None else decode_configs(event.value, event.key)
            self._take_options(kind, name, options)
        elif kind in (KeyKind.BROKER, KeyKind.STOPPING):
            there = self._live if kind is KeyKind.BROKER else self._stopping
            there.discard(int(name)) if event.value is None else there.add(int(name))
        elif kind is KeyKind.NODE:
            self.nodes.discard(int(name)) if event.value is None else self.nodes.add(int(name))
            self.records.append(NodesStored(self.world.now_ms, tuple(sorted(self.nodes))))

    def _take_partition(self, name: str, value: bytes, revision: int, writer: int | None) -> None:
        topic, index = parse_partition(name)
        state = decode_partition(value, topic, index, revision)
        identity = self.topics.identity(topic, state.topic_id)
        stored = PartitionStored(
            self.world.now_ms,
            identity,
            index,
            state.replicas,
            state.isr,
            state.leader,
            state.leader_epoch,
            state.partition_epoch,
            state.elr,
            writer,
            self.controller,
            state.adding,
            state.removing,
            tuple(sorted(self._live - self._stopping - {*state.offline})) if self.world.store is not None else None,
        )
        self.records.append(stored)
        self.states[identity, index] = stored

    def _take_topic(self, name: str, value: bytes | None) -> None:
        before = self.topics.current(name)
        state = None if value is None else decode_topic(value, name)
        if before is not None and (state is None or before.topic_id != state.topic_id):
            before.is_stored = False
            self.records.append(TopicStored(self.world.now_ms, before.identity, 0))
            for key in [key for key in self.states if key[0] == before.identity]:
                del self.states[key]
        if state is not None:
            topic = self.topics.topic(name, state.topic_id)
            topic.is_stored, topic.partition_count = True, state.partition_count
            self.records.append(TopicStored(self.world.now_ms, topic.identity, state.partition_count))
        self.topic_changed(name, 0 if state is None else state.partition_count)

    def _take_options(self, kind: KeyKind, name: str, options: Mapping[str, str]) -> None:
        topic = self.topics.current(name)
        if kind is KeyKind.BROKER_CONFIG and name == DEFAULT_BROKER:
            identity = ""
        elif kind is KeyKind.TOPIC_CONFIG and topic is not None:
            identity = topic.identity
        else:
            return
        stored = OptionsStored(self.world.now_ms, identity, options)
        self.records.append(stored)
        self.options.setdefault(identity, []).append(stored)

    def _look_into_own_store(self) -> None:
        """Of a broker that is alone, or was until it ended: all topics since the last look, and what stands now of all
        else. When a commit was made is not known, so no state is told that was overwritten by then."""
        broker = self.brokers.broker(self.brokers.machines[0])
        own: Any = None if broker is None else broker._store  # pyright: ignore
        if self._own is not None:
            self._follow(self._own)
        if own is not None and own._state is not self._own:
            self._own = own._state
            self._follow(own._state)

    def _follow(self, own: State) -> None:
        """A start forgets how its store came to be what it is. Then what was overwritten before it is not seen."""
        try:
            changes = own.changes("/", self._revision)
        except Compacted:
            self._compare(own)
        else:
            newest = {event.key: change.revision for change in changes for event in change.events}
            for change in changes:
                told = tuple(
                    event
                    for event in change.events
                    if event.key.startswith(TOPICS_PREFIX) or newest[event.key] == change.revision
                )
                self._take_change(Change(change.revision, told), None)
        self._revision = max(self._revision, own.revision)

    def _compare(self, own: State) -> None:
        entries = own.read("/").entries
        for name in self.topics.stored_names():
            if topic_key(name) not in entries:
                self._take(Event(topic_key(name), None), own.revision, None)
        found = sorted(entries.items(), key=lambda each: (not each[0].startswith(TOPICS_PREFIX), each[1].revision))
        for key, entry in found:
            if entry.revision > self._revision:
                self._take(Event(key, entry.value), entry.revision, None)

    # -- the brokers -----------------------------------------------------------------------------------------------

    def look(self) -> None:
        """To be called now and then."""
        if self.world.store is None:
            self._look_into_own_store()
        held: set[bytes] = set()
        for machine in self.brokers.machines:
            broker = self.brokers.broker(machine)
            for partition in () if broker is None else broker.context.partitions:
                held.add(partition.topic_id)
                key, start = self.key_of(partition), partition.log.log_start_offset
                if partition.is_leader and start > self._log_starts.get(key, 0):
                    self._log_starts[key] = start
                    self.records.append(RecordsDeleted(self._looked_ms, *key, start))
        self._looked_ms = self.world.now_ms
        if self.world.store is not None or self.brokers.broker(self.brokers.machines[0]) is not None:
            self.topics.looked(held)

    def key_of(self, partition: Partition) -> TopicPartition:
        """By topic id."""
        return self.topics.identity(partition.topic, partition.topic_id), partition.index

    def current(self, topic: str, index: int) -> TopicPartition:
        """The partition of the topic that has the name now; of the first one of that name, where none has."""
        found = self.topics.current(topic)
        return topic if found is None else found.identity, index

    def _logged(self, record: logging.LogRecord) -> None:
        arguments: Any = record.args
        text = str(record.msg)
        if record.name == "odradek.broker.controller.controller" and text.startswith(ELECTED):
            kind, name = parse_key(arguments[0])
            assert kind is KeyKind.PARTITION, "it is about one"
            self._announce(self.current(*parse_partition(name)), arguments[1], arguments[2], "elected from outside")
        elif record.name == "odradek.broker.membership.startup_losses" and text.startswith(LAST_IN_SYNC):
            names: list[str] = arguments[2].split(", ")
            keys = [self.current(*_partition(name)) for name in names if name != "…"]
            for key in keys if "…" not in names else sorted(self.states):
                state = self.states.get(key)
                epoch = -1 if state is None else state.leader_epoch
                self._announce(key, arguments[1], epoch, "the last one in sync has lost what was not written")
        elif record.name == "odradek.broker.log.log_durability" and text.startswith(MARK_REFUSED):
            self.brokers.mark_refused(arguments[0])

    def _announce(self, key: TopicPartition, leader: int, leader_epoch: int, why: str) -> None:
        announced = UncleanElection(self.world.now_ms, *key, leader, leader_epoch, why)
        self.records.append(announced)
        self.announced.setdefault(key, []).append(announced)


def _ignore(topic: str, partition_count: int) -> None: ...


def _partition(name: str) -> TopicPartition:
    topic, _, index = name.rpartition("-")
    return topic, int(index)
