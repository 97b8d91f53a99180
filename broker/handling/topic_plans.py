"""New topics and new partitions, checked and placed: what CreateTopics, CreatePartitions and auto-creation share.

A plan holds everything that creation needs, so that `validate_only` is a plan without what follows. The rules and
their order are those of Kafka's ReplicationControlManager: replicas go to registered brokers, whether they are there or
not, and leaders, and who is in sync from the start, are among those that are there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import CLUSTER, of_topic
from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.keys import PartitionState, check_collision, check_topic_name
from odradek.broker.cluster.placement import (
    UsableBroker,
    check_added_assignments,
    check_counts,
    check_increase,
    check_new_topic_assignments,
    check_partitions_per_request,
    place,
)
from odradek.broker.cluster.topic_image import TopicImage
from odradek.broker.cluster.topics import add_partitions, create_topic, new_partition
from odradek.broker.handling.context import Call, Context
from odradek.broker.handling.metadata_change import MetadataChange
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.describe_quorum import METADATA_TOPIC

DEFAULT = -1
"""In place of a partition count or a replication factor: the broker's default (KIP-464)."""


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """A topic that may be created as it is."""

    name: str
    topic_id: bytes
    partitions: tuple[PartitionState, ...]
    configs: Mapping[str, str]

    @property
    def replication_factor(self) -> int:
        return len(self.partitions[0].replicas)


def require_create(context: Context, call: Call, name: str) -> None:
    """Raises KafkaError TOPIC_AUTHORIZATION_FAILED for who may create neither any topic nor this one."""
    if not context.permits(call, Operation.CREATE, CLUSTER, logs_refusal=False):
        context.require(call, Operation.CREATE, of_topic(name))


def check_allowed_name(name: str) -> None:
    """Raises KafkaError INVALID_REQUEST for what nobody may create, whatever his rights."""
    if name == METADATA_TOPIC:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Creation of internal topic {name} is prohibited.")


def check_new_name(image: ClusterImage, name: str) -> None:
    """Raises KafkaError: INVALID_TOPIC_EXCEPTION, TOPIC_ALREADY_EXISTS, INVALID_REQUEST."""
    check_allowed_name(name)
    check_topic_name(name)
    if name in image.topics:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    check_collision(name, image.topics)


def plan_topic(
    context: Context,
    name: str,
    partition_count: int,
    replication_factor: int,
    assignments: Sequence[tuple[int, Sequence[int]]],
    configs: Mapping[str, str],
    topic_id: bytes | None = None,
) -> TopicPlan:
    """A topic with a new id, or with this one; replicas placed by us or, where `assignments` (partition and brokers)
    are given, by hand.

    Name and configs were checked before. Raises KafkaError: INVALID_PARTITIONS, INVALID_REPLICATION_FACTOR,
    INVALID_REPLICA_ASSIGNMENT, INVALID_REQUEST, POLICY_VIOLATION.
    """
    image = context.metadata.image
    if assignments:
        if replication_factor != DEFAULT or partition_count != DEFAULT:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                "A manual partition assignment was specified, but the number of partitions and the replication factor "
                "were not both set to -1.",
            )
        placed = check_new_topic_assignments(_by_partition(assignments), image.registered)
    else:
        if replication_factor == DEFAULT:
            replication_factor = context.config.default_replication_factor
        if partition_count == DEFAULT:
            partition_count = context.config.num_partitions
        check_counts(partition_count, replication_factor)
        try:
            placed = _place(context, partition_count, replication_factor)
        except KafkaError as error:
            text = f"Unable to replicate the partition {replication_factor} time(s): {error.message}"
            raise KafkaError(error.code, text) from None
    topic_id = topic_id or context.environment.random_uuid()
    partitions = _partitions(image, topic_id, 0, placed)
    return TopicPlan(name, topic_id, partitions, configs)


def _by_partition(assignments: Sequence[tuple[int, Sequence[int]]]) -> dict[int, Sequence[int]]:
    """Raises KafkaError INVALID_REPLICA_ASSIGNMENT."""
    by_partition = dict(assignments)
    if len(by_partition) != len(assignments):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "Found multiple manual partition assignments for one partition."
        )
    return by_partition


def plan_partitions(
    context: Context, topic: TopicImage, count: int, assignments: Sequence[Sequence[int]] | None
) -> tuple[PartitionState, ...]:
    """What `topic` lacks to `count` partitions. Raises KafkaError: INVALID_PARTITIONS, INVALID_REPLICA_ASSIGNMENT,
    INVALID_REPLICATION_FACTOR, POLICY_VIOLATION."""
    image = context.metadata.image
    present = len(topic.partitions)
    check_increase(topic.name, present, count)
    if assignments is None:
        check_partitions_per_request(count - present)
        placed = _place(context, count - present, topic.replication_factor)
    else:
        placed = check_added_assignments(assignments, count - present, topic.replication_factor, image.registered)
        check_partitions_per_request(count - present)
    return _partitions(image, topic.topic_id, present, placed)


async def create(context: Context, changes: MetadataChange, topic: TopicPlan) -> None:
    """Raises KafkaError: TOPIC_ALREADY_EXISTS, and as `MetadataChange.apply`."""
    store = context.metadata.store
    await changes.apply(lambda: create_topic(store, topic.name, topic.topic_id, topic.partitions, topic.configs))


async def enlarge(
    context: Context, changes: MetadataChange, topic: TopicImage, added: Sequence[PartitionState]
) -> None:
    """Raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION, and as `MetadataChange.apply`."""
    store = context.metadata.store
    await changes.apply(lambda: add_partitions(store, topic, added))


def _place(context: Context, partition_count: int, replication_factor: int) -> tuple[tuple[int, ...], ...]:
    image = context.metadata.image
    brokers = [
        UsableBroker(broker_id, image.rack(broker_id), is_fenced=not image.is_usable(broker_id))
        for broker_id in image.registered
    ]
    start, shift = context.environment.random_bytes(2)
    return place(partition_count, replication_factor, brokers, start, shift)


def _partitions(
    image: ClusterImage, topic_id: bytes, first: int, placed: Sequence[Sequence[int]]
) -> tuple[PartitionState, ...]:
    return tuple(new_partition(topic_id, first + at, replicas, image.is_usable) for at, replicas in enumerate(placed))
