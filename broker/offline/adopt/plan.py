"""Decides what is taken over from a data directory, and what the metadata store says of it then. Pure.

A topic is taken whole or not at all: with each partition that the cluster's metadata gives it or, where there is none,
with all from 0 up to the largest number found. This broker becomes the only replica and the leader of all, at an epoch
that is not below any in the log; the start that follows takes the next one.

What is not taken stays where it is. The start moves its directories aside (`-stray`), but not those of Kafka's own.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from odradek.broker.cluster.keys import (
    CLUSTER_KEY,
    PRODUCER_IDS_KEY,
    PartitionState,
    TopicState,
    broker_config_key,
    check_topic_name,
    colliding_name,
    encode_cluster,
    encode_configs,
    encode_producer_ids,
    group_config_key,
    partition_key,
    topic_config_key,
    topic_key,
)
from odradek.broker.cluster.store import Entry
from odradek.broker.config.alterations import new_group_overrides, new_topic_overrides, replace_broker
from odradek.broker.config.broker_config import ConfigError, broker_row
from odradek.broker.directories.partition_directories import KAFKAS_OWN
from odradek.broker.internal_topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from odradek.broker.offline.adopt.directory import Found
from odradek.broker.offline.adopt.kafka_metadata import KafkaMetadata, KafkaTopic
from odradek.broker.offline.adopt.partition import PartitionFacts
from odradek.protocol.codec.schema import uuid_text
from odradek.protocol.configs import ResourceType
from odradek.protocol.errors import KafkaError

PRODUCER_ID_BLOCK: Final = 1000
PRODUCER_IDS_SKIPPED: Final = 1_000_000
"""Where the cluster's metadata does not say which ids were given out: more than one may be that left no trace."""
OF_COORDINATORS: Final = {"cleanup.policy": "compact"}
"""What every cluster has for `__consumer_offsets` and `__transaction_state`."""
COORDINATED: Final = (OFFSETS_TOPIC, TRANSACTIONS_TOPIC)
KEEPS_EVERYTHING: Final = {"retention.ms": "-1"}
"""The options of a topic of which nobody knows them: the default would delete what is older than a week."""

Change = Callable[[Mapping[str, str | None]], dict[str, str]]


class _NotTaken(Exception):
    """Why a topic cannot be taken."""


@dataclass(frozen=True, slots=True)
class TakenTopic:
    """A topic as it will be."""

    name: str
    topic_id: bytes
    partitions: tuple[PartitionState, ...]
    configs: Mapping[str, str]
    segment_count: int
    size_bytes: int


@dataclass(slots=True)
class Plan:
    """What an adoption does. `left` has topics and directories with the reason, `remarks` whole sentences."""

    node_id: int
    taken: list[TakenTopic] = field(default_factory=list[TakenTopic])
    left: dict[str, str] = field(default_factory=dict[str, str])
    remarks: list[str] = field(default_factory=list[str])
    broker_configs: dict[int | None, dict[str, str]] = field(default_factory=dict[int | None, dict[str, str]])
    group_configs: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    next_producer_id: int = 0


def make_plan(found: Found, metadata: KafkaMetadata | None, node_id: int) -> Plan:
    """`metadata` is what the cluster knew, if that is there to be read."""
    plan = Plan(node_id, left=dict(found.others), remarks=list(found.remarks))
    by_topic: defaultdict[str, list[PartitionFacts]] = defaultdict(list)
    for partition in found.partitions:
        by_topic[partition.topic].append(partition)
    for name, partitions in sorted(by_topic.items()):
        try:
            plan.taken.append(_topic(plan, name, partitions, metadata))
        except _NotTaken as reason:
            plan.left[name] = str(reason)
    if metadata is not None:
        absent = {topic.name for topic in metadata.topics.values()} - by_topic.keys() - KAFKAS_OWN
        plan.left |= dict.fromkeys(sorted(absent), "the cluster's metadata knows it, and no directory of it is here")
    _part_those_alike(plan)
    _remark_partitions(plan, found, metadata)
    plan.next_producer_id = _next_producer_id(found.partitions, metadata)
    if metadata is not None:
        _take_broker_configs(plan, metadata)
        _take_group_configs(plan, metadata)
        if metadata.torn_bytes:
            plan.remarks.append(
                f"the cluster's metadata ends with {metadata.torn_bytes} bytes of no whole batch, as after a crash: "
                "what was changed last may be missing"
            )
        plan.remarks += [f"{what} of the cluster are not taken: there are none here" for what in metadata.foreign()]
    return plan


def entries(plan: Plan, cluster_id: str, revision: int) -> dict[str, Entry]:
    """All that the metadata store holds after the adoption, written at one revision."""
    values = {CLUSTER_KEY: encode_cluster(cluster_id), PRODUCER_IDS_KEY: encode_producer_ids(plan.next_producer_id)}
    for broker_id, configs in plan.broker_configs.items():
        values[broker_config_key(broker_id)] = encode_configs(configs)
    for group_id, configs in plan.group_configs.items():
        values[group_config_key(group_id)] = encode_configs(configs)
    for topic in plan.taken:
        values |= topic_values(topic.name, topic.topic_id, topic.partitions, topic.configs)
    return {key: Entry(values[key], revision) for key in sorted(values)}


def topic_values(
    name: str, topic_id: bytes, partitions: Sequence[PartitionState], configs: Mapping[str, str]
) -> dict[str, bytes]:
    """All that the metadata store holds of a topic, by key."""
    values = {topic_key(name): TopicState(topic_id, len(partitions)).encode()}
    for index, partition in enumerate(partitions):
        values[partition_key(name, index)] = partition.encode()
    if configs:
        values[topic_config_key(name)] = encode_configs(configs)
    return values


# -- topics ---------------------------------------------------------------------------------------------------------


def _topic(plan: Plan, name: str, partitions: list[PartitionFacts], metadata: KafkaMetadata | None) -> TakenTopic:
    """Raises _NotTaken."""
    try:
        check_topic_name(name)
    except KafkaError as error:
        raise _NotTaken(error.message) from error
    known = None
    if metadata is not None:
        known = metadata.topic_named(name)
        if known is None:
            raise _NotTaken("the cluster's metadata does not know this topic (any more)")
        partitions = [partition for partition in partitions if _is_assigned(plan, partition, known)]
    for partition in partitions:
        for obstacle in partition.obstacles:
            raise _NotTaken(f"of {partition.name}, {obstacle}")
    topic_ids = {partition.topic_id for partition in partitions}
    if len(topic_ids) > 1:
        raise _NotTaken("its partitions carry different topic ids, so some are of another topic of this name")
    by_index = {partition.index: partition for partition in partitions}
    count = max(by_index, default=0) + 1 if known is None else len(known.partitions)
    if not count:
        raise _NotTaken("the cluster's metadata gives it no partition")
    missing = [str(index) for index in range(count) if index not in by_index]
    if missing:
        raise _NotTaken(
            f"of its {count} partitions, {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not here; another "
            "broker or another directory of log.dirs may have them"
        )
    (topic_id,) = topic_ids
    assert topic_id is not None, "a partition without one has an obstacle"
    if metadata is None:
        configs = OF_COORDINATORS if name in COORDINATED else KEEPS_EVERYTHING
    else:
        configs = _usable(plan, f"topic {name}", metadata.configs_of(ResourceType.TOPIC, name), new_topic_overrides)
    return TakenTopic(
        name,
        topic_id,
        tuple(_state(by_index[index], topic_id, known, plan.node_id) for index in range(count)),
        configs,
        sum(partition.segment_count for partition in partitions),
        sum(partition.size_bytes for partition in partitions),
    )


def _is_assigned(plan: Plan, partition: PartitionFacts, known: KafkaTopic) -> bool:
    """Whether the cluster's metadata has this very partition on this node; if not, it is named as left."""
    if partition.topic_id is not None and partition.topic_id != known.topic_id:
        plan.left[partition.name] = (
            f"it is of another topic of this name: its id is {uuid_text(partition.topic_id)}, and that of the "
            f"cluster's metadata {uuid_text(known.topic_id)}"
        )
        return False
    state = known.partitions.get(partition.index)
    if state is None or plan.node_id not in state.replicas:
        plan.left[partition.name] = f"the cluster's metadata does not have it on node {plan.node_id} (any more)"
        return False
    return True


def _state(partition: PartitionFacts, topic_id: bytes, known: KafkaTopic | None, node_id: int) -> PartitionState:
    epoch = max(0, partition.leader_epoch)
    if known is not None:
        epoch = max(epoch, known.partitions[partition.index].leader_epoch)
    return PartitionState(topic_id, (node_id,), (node_id,), node_id, leader_epoch=epoch)


def _part_those_alike(plan: Plan) -> None:
    """Topics that cannot stand beside one another are left, all of them: which one is meant, nobody here can tell."""
    ids = Counter(topic.topic_id for topic in plan.taken)
    names = Counter(colliding_name(topic.name) for topic in plan.taken)
    for topic in plan.taken:
        if ids[topic.topic_id] > 1:
            plan.left[topic.name] = f"another topic has the same id, {uuid_text(topic.topic_id)}"
        elif names[colliding_name(topic.name)] > 1:
            plan.left[topic.name] = (
                "its name and that of another topic differ in '.' and '_' only, which collide; rename the directories "
                "of one of the two, which is then called so"
            )
    plan.taken = [topic for topic in plan.taken if topic.name not in plan.left]


# -- what else is worth to know -------------------------------------------------------------------------------------


def _remark_partitions(plan: Plan, found: Found, metadata: KafkaMetadata | None) -> None:
    taken = {topic.name for topic in plan.taken}
    partitions = [each for each in found.partitions if each.topic in taken and each.name not in plan.left]
    for partition in partitions:
        plan.remarks += [f"{partition.name}: {remark}" for remark in partition.remarks]
        log_start = found.log_starts.get((partition.topic, partition.index), 0)
        if log_start > partition.log_end_offset:
            plan.remarks.append(
                f"{partition.name}: its log ends at offset {partition.log_end_offset}, before offset {log_start} up to "
                "which its records were deleted: the start drops all of it"
            )
    if metadata is None:
        _remark_lost_options(plan, found, partitions)
    else:
        _remark_replicas(plan, partitions, metadata)


def _remark_lost_options(plan: Plan, found: Found, partitions: Iterable[PartitionFacts]) -> None:
    if not plan.taken:
        return
    plan.remarks.append(
        "the cluster's metadata is not here, so the options of the topics are unknown: each gets retention.ms=-1, "
        "which keeps all of its records, and else the defaults. If metadata.log.dir was another directory, give it "
        "with --metadata-dir; if not, give each topic its own options with `odradek configs set`"
    )
    compacted = {
        partition.topic
        for partition in partitions
        if partition.has_gaps or (partition.topic, partition.index) in found.compacted
    }
    plan.remarks += [f"{name} looks compacted: it may need cleanup.policy=compact" for name in sorted(compacted)]


def _remark_replicas(plan: Plan, partitions: Iterable[PartitionFacts], metadata: KafkaMetadata) -> None:
    replicated: set[str] = set()
    for partition in partitions:
        topic = metadata.topic_named(partition.topic)
        assert topic is not None, "it was taken"
        state = topic.partitions[partition.index]
        if len(state.replicas) > 1:
            replicated.add(partition.topic)
        if not state.is_complete_on(plan.node_id):
            plan.remarks.append(
                f"{partition.name} was not in sync on node {plan.node_id}: records that other brokers have "
                "acknowledged may be missing; adopt the directory of one of them"
            )
    if replicated:
        plan.remarks.append(f"from now on there is one replica: {', '.join(sorted(replicated))} had more")


# -- options and producer ids ---------------------------------------------------------------------------------------


def _take_broker_configs(plan: Plan, metadata: KafkaMetadata) -> None:
    for broker_id, name in ((None, ""), (plan.node_id, str(plan.node_id))):
        configs = metadata.configs_of(ResourceType.BROKER, name)
        what = "all brokers" if broker_id is None else "this broker"
        usable = _usable(plan, what, configs, partial(_known_of_broker, per_broker=broker_id is not None))
        if usable:
            plan.broker_configs[broker_id] = usable


def _take_group_configs(plan: Plan, metadata: KafkaMetadata) -> None:
    for kind, group_id in sorted(metadata.configs):
        if kind == ResourceType.GROUP:
            configs = metadata.configs_of(ResourceType.GROUP, group_id)
            usable = _usable(plan, f"group {group_id}", configs, new_group_overrides)
            if usable:
                plan.group_configs[group_id] = usable


def _known_of_broker(values: Mapping[str, str | None], *, per_broker: bool) -> dict[str, str]:
    """What is stored for these values. Raises ConfigError, also for an option that would have no effect."""
    for name in values:
        broker_row(name)
    return replace_broker(values, per_broker=per_broker)


def _usable(plan: Plan, what: str, configs: Mapping[str, str], check: Change) -> dict[str, str]:
    """The options that can be kept, checked one after another together with those before."""
    usable: dict[str, str] = {}
    for name, value in sorted(configs.items()):
        try:
            usable = check({**usable, name: value})
        except ConfigError as error:
            plan.remarks.append(f"the option {name} of {what} is not taken: {error}")
    return usable


def _next_producer_id(partitions: Iterable[PartitionFacts], metadata: KafkaMetadata | None) -> int:
    """The first id that nobody has: the next block's, as brokers take them (ProducerIdManager.java)."""
    first = max((partition.producer_id for partition in partitions), default=-1) + 1
    if metadata is not None:
        return max(first, metadata.next_producer_id)
    return unused_producer_id(first)


def unused_producer_id(first: int) -> int:
    """An id from `first` on that nobody was given, though some may have left no trace."""
    return -(-first // PRODUCER_ID_BLOCK) * PRODUCER_ID_BLOCK + PRODUCER_IDS_SKIPPED
