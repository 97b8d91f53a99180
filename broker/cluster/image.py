"""The cluster as this broker knows it: an immutable picture, moved forward one change of the store at a time. Pure.

`ClusterImage.apply(change)` gives the next image and a `Delta` of what is different; images share what did not change.
Handlers hold one image for the length of a request and see one consistent cluster.

A topic is visible while `/topics/<name>` exists, with as many partitions as that key says. Partition keys that belong
to no visible topic (a creation under way, leftovers of a deletion, partitions being added) wait in `_hidden` until a
topic with their id and enough partitions appears.

Cost of one change: a copy of the dict of topics (10,000 topics: 50 µs) and of the partition tuple of each topic
touched (5,000 partitions: 80 µs). No other topic is looked at.
"""

from collections.abc import Callable, Collection, Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from odradek.broker.cluster.keys import (
    BrokerState,
    KeyKind,
    NodeState,
    PartitionState,
    decode_broker,
    decode_cluster,
    decode_configs,
    decode_controller,
    decode_features,
    decode_node,
    parse_broker_id,
    parse_key,
    parse_partition,
)
from odradek.broker.cluster.lineage import KnownHistory, Lineage
from odradek.broker.cluster.quotas import NO_QUOTAS, EntityQuotas, QuotaEntity, changed_quotas
from odradek.broker.cluster.scram_image import changed_scram
from odradek.broker.cluster.store import Change, Event, Snapshot
from odradek.broker.cluster.topic_image import NO_CONFIGS, TopicImage, partition_states, rebuild, topic_state

if TYPE_CHECKING:
    from odradek.broker.access.acl import AclBinding
    from odradek.broker.cluster.scram_credentials import ScramCredentials

NO_FEATURES: Mapping[str, int] = {}
OF_LINEAGE = frozenset({KeyKind.COMMIT, KeyKind.INCARNATION, KeyKind.ORIGIN})
NO_CONTROLLER = -1


@dataclass(frozen=True, slots=True)
class Delta:
    """What is different between two images."""

    created: tuple[TopicImage, ...] = ()
    deleted: tuple[TopicImage, ...] = ()
    """As they were, and somebody deleted them. One that is then created under its name is another topic."""
    vanished: tuple[TopicImage, ...] = ()
    """As they were. They are not there any more, and no deletion was seen."""
    changed: tuple[TopicImage, ...] = ()
    """As they are now: partitions added, led by another broker, other replicas, or another configuration."""
    brokers: tuple[int, ...] = ()
    """Ids of the brokers that came, went, registered anew, or are about to stop."""
    broker_configs: tuple[str, ...] = ()
    """Broker ids, or `default`, whose configuration changed."""
    is_controller_changed: bool = False
    are_quotas_changed: bool = False
    acls_added: tuple["AclBinding", ...] = ()
    acls_removed: tuple["AclBinding", ...] = ()


@dataclass(slots=True)
class _Touched:
    """The events of one change that concern one topic."""

    topic: Event | None = None
    config: Event | None = None
    partitions: dict[int, Event] = field(default_factory=dict[int, Event])


@dataclass(frozen=True, slots=True)
class ClusterImage:
    """Everything the metadata store said up to `revision`."""

    revision: int = 0
    cluster_id: str | None = None
    topics: Mapping[str, TopicImage] = field(default_factory=dict[str, TopicImage])
    names: Mapping[bytes, str] = field(default_factory=dict[bytes, str])
    """Topic id -> name."""
    brokers: Mapping[int, BrokerState] = field(default_factory=dict[int, BrokerState])
    """Those that are there: they have a lease now. Who asks which brokers the cluster has asks `registered`."""
    nodes: Mapping[int, NodeState] = field(default_factory=dict[int, NodeState])
    """What outlives their runs, of those that are registered."""
    stopping: frozenset[int] = frozenset()
    """Those that are about to stop: they give up what they lead, and join no in-sync set."""
    controller_id: int = NO_CONTROLLER
    controller_revision: int = 0
    broker_configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    """Broker id as text, or `default` -> dynamic configuration."""
    group_configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    """What groups set for themselves; one without a configuration of its own is not there."""
    quotas: Mapping[QuotaEntity, EntityQuotas] = field(default_factory=lambda: NO_QUOTAS)
    """Limits of clients. The same object for as long as none changes."""
    features: Mapping[str, int] = field(default_factory=dict[str, int])
    """What all brokers can do, and rely on (features.py)."""
    held_features: Mapping[str, int] = field(default_factory=dict[str, int])
    """The levels of those that an operator has set."""
    features_revision: int = 0
    scram: "ScramCredentials | None" = None
    """The users that authenticate by SCRAM; None: there was never one."""
    acls: Mapping[str, "AclBinding"] = field(default_factory=dict[str, "AclBinding"])
    """By the hash of what each says (acls.py)."""
    lineage: Lineage = field(default_factory=Lineage)
    """Which history this is."""
    _hidden: Mapping[str, Mapping[int, PartitionState]] = field(default_factory=dict[str, Mapping[int, PartitionState]])
    _topic_configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])

    # -- reading ------------------------------------------------------------------------------------------------

    def topic_by_id(self, topic_id: bytes) -> TopicImage | None:
        name = self.names.get(topic_id)
        return None if name is None else self.topics[name]

    def name_by_id(self, topic_id: bytes) -> str:
        """Empty for an id that no topic has: none has that name."""
        return self.names.get(topic_id, "")

    def partition(self, topic: str, index: int) -> PartitionState | None:
        image = self.topics.get(topic)
        if image is None or not 0 <= index < len(image.partitions):
            return None
        return image.partitions[index]

    def topic_configs(self, topic: str) -> Mapping[str, str]:
        """The topic's own configuration, empty when it has none or does not exist."""
        image = self.topics.get(topic)
        return NO_CONFIGS if image is None else image.configs

    def configs_of_broker(self, broker_id: int | None) -> Mapping[str, str]:
        """The dynamic configuration of one broker, or with None of all of them."""
        return self.broker_configs.get("default" if broker_id is None else str(broker_id), NO_CONFIGS)

    def configs_of_group(self, group_id: str) -> Mapping[str, str]:
        """The group's own configuration; empty when it has none."""
        return self.group_configs.get(group_id, NO_CONFIGS)

    @property
    def partition_count(self) -> int:
        return sum(len(topic.partitions) for topic in self.topics.values())

    def led_by(self, broker_id: int) -> int:
        """How many partitions the broker leads; NO_LEADER: how many nobody leads."""
        return sum(state.leader == broker_id for topic in self.topics.values() for state in topic.partitions)

    @property
    def registered(self) -> Collection[int]:
        """The brokers of the cluster: those that are there, that stop, and that stopped or failed, until somebody
        unregisters them (`brokerRegistrations` of Kafka's ClusterControlManager, which calls the last ones fenced)."""
        return self.nodes.keys() | self.brokers.keys()

    def rack(self, broker_id: int) -> str | None:
        """Of a registered broker; None without one."""
        state = self.brokers.get(broker_id) or self.nodes.get(broker_id)
        return None if state is None else state.rack

    def is_usable(self, broker_id: int) -> bool:
        """Whether the broker may lead, and join in-sync sets: it is there, and not about to stop (`isActive`)."""
        return broker_id in self.brokers and broker_id not in self.stopping

    def endpoint(self, broker_id: int, listener: str) -> tuple[str, int] | None:
        """Where the broker is reached on `listener`: host and port, None where it is not there."""
        broker = self.brokers.get(broker_id)
        return None if broker is None else broker.endpoints.get(listener)

    @property
    def followed(self) -> KnownHistory:
        """What is known of the history up to here."""
        return self.lineage.followed(self.revision)

    # -- building -----------------------------------------------------------------------------------------------

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> "ClusterImage":
        """The image of everything in the store. Raises MalformedMetadata."""
        events = [Event(key, entry.value) for key, entry in snapshot.entries.items()]
        revisions = {key: entry.revision for key, entry in snapshot.entries.items()}
        image, _ = ClusterImage()._apply(snapshot.revision, events, revisions)
        return image

    def apply(self, change: Change) -> tuple["ClusterImage", Delta]:
        """The image after `change`, and what is different. Raises MalformedMetadata."""
        assert change.revision > self.revision, (change.revision, self.revision)
        return self._apply(change.revision, change.events, {})

    def _apply(
        self, revision: int, events: Iterable[Event], revisions: Mapping[str, int]
    ) -> tuple["ClusterImage", Delta]:
        """`revisions` holds those of the keys that were not written at `revision`."""
        touched: dict[str, _Touched] = {}
        others: list[tuple[KeyKind, str, Event]] = []
        lineage = self.lineage
        for event in events:
            kind, name = parse_key(event.key)
            if kind is KeyKind.PARTITION:
                topic, index = parse_partition(name)
                touched.setdefault(topic, _Touched()).partitions[index] = event
            elif kind is KeyKind.TOPIC:
                touched.setdefault(name, _Touched()).topic = event
            elif kind is KeyKind.TOPIC_CONFIG:
                touched.setdefault(name, _Touched()).config = event
            elif kind in OF_LINEAGE:
                lineage = lineage.apply(kind, name, event.value, revisions.get(event.key, revision))
            else:
                others.append((kind, name, event))
        image, delta = self._apply_topics(revision, lineage, touched, revisions)
        return image._apply_others(others, revisions, delta)

    # -- topics -------------------------------------------------------------------------------------------------

    def _apply_topics(
        self, revision: int, lineage: Lineage, touched: Mapping[str, _Touched], revisions: Mapping[str, int]
    ) -> tuple["ClusterImage", Delta]:
        if not touched:
            return replace(self, revision=revision, lineage=lineage), Delta()
        topics = dict(self.topics)
        hidden = dict(self._hidden)
        configs = self._topic_configs
        if any(events.config is not None for events in touched.values()):
            configs = dict(configs)
            for name, events in touched.items():
                if events.config is not None:
                    _put_or_remove(configs, name, events.config, decode_configs)
        for name, events in touched.items():
            before = self.topics.get(name)
            state = topic_state(before, events.topic, name, revision, revisions)
            topic, waiting = rebuild(
                name,
                state,
                before,
                self._hidden.get(name, {}),
                partition_states(name, events.partitions, revision, revisions),
                configs.get(name, NO_CONFIGS),
            )
            if topic is None:
                topics.pop(name, None)
            else:
                topics[name] = topic
            if waiting:
                hidden[name] = waiting
            else:
                hidden.pop(name, None)
        delta = _compare_topics(
            self.topics,
            topics,
            touched,
            deleted={name for name, events in touched.items() if events.topic is not None and not events.topic.value},
        )
        names = self.names
        if delta.created or delta.deleted or delta.vanished:
            names = dict(names)
            for topic in (*delta.deleted, *delta.vanished):
                del names[topic.topic_id]
            for topic in delta.created:
                names[topic.topic_id] = topic.name
        image = replace(
            self,
            revision=revision,
            lineage=lineage,
            topics=topics,
            names=names,
            _hidden=hidden,
            _topic_configs=configs,
        )
        return image, delta

    # -- everything else ----------------------------------------------------------------------------------------

    def _apply_others(
        self, others: list[tuple[KeyKind, str, Event]], revisions: Mapping[str, int], delta: Delta
    ) -> tuple["ClusterImage", Delta]:
        if not others:
            return self, delta
        cluster_id, controller = self.cluster_id, (self.controller_id, self.controller_revision)
        brokers, nodes, stopping = dict(self.brokers), dict(self.nodes), set(self.stopping)
        features, features_revision = (self.features, self.held_features), self.features_revision
        for kind, name, event in others:
            revision = revisions.get(event.key, self.revision)
            if kind is KeyKind.BROKER:
                broker_id = parse_broker_id(name)
                if event.value is None:
                    brokers.pop(broker_id, None)
                else:
                    brokers[broker_id] = decode_broker(event.value, broker_id, revision)
            elif kind is KeyKind.NODE:
                broker_id = parse_broker_id(name)
                if event.value is None:
                    nodes.pop(broker_id, None)
                else:
                    nodes[broker_id] = decode_node(event.value, broker_id, revision)
            elif kind is KeyKind.STOPPING:
                (stopping.discard if event.value is None else stopping.add)(parse_broker_id(name))
            elif kind is KeyKind.CONTROLLER:
                gone = NO_CONTROLLER, 0
                controller = gone if event.value is None else (decode_controller(event.value), revision)
            elif kind is KeyKind.FEATURES:
                features = (NO_FEATURES, NO_FEATURES) if event.value is None else decode_features(event.value)
                features_revision = 0 if event.value is None else revision
            elif kind is KeyKind.CLUSTER:
                cluster_id = None if event.value is None else decode_cluster(event.value)
        image = replace(
            self,
            cluster_id=cluster_id,
            brokers=brokers,
            nodes=nodes,
            stopping=frozenset(stopping),
            broker_configs=_changed_configs(self.broker_configs, KeyKind.BROKER_CONFIG, others),
            group_configs=_changed_configs(self.group_configs, KeyKind.GROUP_CONFIG, others),
            quotas=changed_quotas(self.quotas, others, lambda event: revisions.get(event.key, self.revision)),
            scram=changed_scram(self.scram, others),
            controller_id=controller[0],
            controller_revision=controller[1],
            features=features[0],
            held_features=features[1],
            features_revision=features_revision,
        )
        delta = replace(
            delta,
            brokers=tuple(
                dict.fromkeys(
                    parse_broker_id(name) for kind, name, _ in others if kind in (KeyKind.BROKER, KeyKind.STOPPING)
                )
            ),
            broker_configs=tuple(name for kind, name, _ in others if kind is KeyKind.BROKER_CONFIG),
            is_controller_changed=controller != (self.controller_id, self.controller_revision),
            are_quotas_changed=image.quotas is not self.quotas,
        )
        if acl_events := [(name, event) for kind, name, event in others if kind is KeyKind.ACL]:
            from odradek.broker.cluster.acls import changed  # only where there are any

            change = changed(self.acls, acl_events)
            image = replace(image, acls=change.acls)
            delta = replace(delta, acls_added=change.added, acls_removed=change.removed)
        return image, delta


def compare(before: ClusterImage, after: ClusterImage) -> Delta:
    """What is different between two images read apart: at start (from an empty one), and after `Compacted`. Who has
    deleted a topic that is not there any more was not seen."""
    delta = _compare_topics(before.topics, after.topics, (*before.topics, *(after.topics.keys() - before.topics)))
    return replace(
        delta,
        brokers=tuple(
            broker_id
            for broker_id in sorted(before.brokers.keys() | after.brokers.keys())
            if _registration(before, broker_id) != _registration(after, broker_id)
            or (broker_id in before.stopping) != (broker_id in after.stopping)
        ),
        broker_configs=tuple(
            name
            for name in sorted(before.broker_configs.keys() | after.broker_configs.keys())
            if before.broker_configs.get(name) != after.broker_configs.get(name)
        ),
        is_controller_changed=(before.controller_id, before.controller_revision)
        != (after.controller_id, after.controller_revision),
        are_quotas_changed=before.quotas != after.quotas,
        acls_added=tuple(acl for name, acl in after.acls.items() if name not in before.acls),
        acls_removed=tuple(acl for name, acl in before.acls.items() if name not in after.acls),
    )


def _registration(image: ClusterImage, broker_id: int) -> int:
    broker = image.brokers.get(broker_id)
    return -1 if broker is None else broker.epoch


def _compare_topics(
    before: Mapping[str, TopicImage],
    after: Mapping[str, TopicImage],
    names: Iterable[str],
    deleted: Container[str] = (),
) -> Delta:
    """`deleted`: the names of topics whose deletion was seen."""
    created: list[TopicImage] = []
    gone: list[TopicImage] = []
    changed: list[TopicImage] = []
    for name in sorted(names):
        old, new = before.get(name), after.get(name)
        if old is not None and new is not None and old.topic_id == new.topic_id:
            if old != new:
                changed.append(new)
            continue
        if old is not None:
            gone.append(old)
        if new is not None:
            created.append(new)
    return Delta(
        created=tuple(created),
        deleted=tuple(topic for topic in gone if topic.name in deleted),
        vanished=tuple(topic for topic in gone if topic.name not in deleted),
        changed=tuple(changed),
    )


def _changed_configs(
    configs: Mapping[str, Mapping[str, str]], kind: KeyKind, events: Iterable[tuple[KeyKind, str, Event]]
) -> Mapping[str, Mapping[str, str]]:
    """With what these events say of this kind."""
    of_kind = [(name, event) for each, name, event in events if each is kind]
    if not of_kind:
        return configs
    changed = dict(configs)
    for name, event in of_kind:
        _put_or_remove(changed, name, event, decode_configs)
    return changed


def _put_or_remove(
    configs: dict[str, Mapping[str, str]], name: str, event: Event, decode: Callable[[bytes, str], dict[str, str]]
) -> None:
    if event.value is None:
        configs.pop(name, None)
    else:
        configs[name] = decode(event.value, event.key)
