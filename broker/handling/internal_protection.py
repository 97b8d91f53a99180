"""What clients may not do to the topics that brokers keep their state in: what is in `__consumer_offsets` is every
group's, and where its records are depends on how many partitions it has.

Apache Kafka refuses a Produce to it, and DeleteRecords; it deletes it, and gives it more partitions, when asked. Here
that is refused, too: a clean-up of all topics would erase every group.
"""

from collections.abc import Mapping
from typing import Final

from odradek.broker.cluster.image import TopicImage
from odradek.broker.handling.context import Call, Context
from odradek.broker.internal_topic_names import OFFSETS_TOPIC, is_internal
from odradek.protocol.errors import ErrorCode, KafkaError

ADMIN_CLIENT_ID: Final = "__admin_client"
"""Whoever calls itself so may write to internal topics, as in Kafka (AdminUtils)."""
COMPACT: Final = "compact"
CLEANUP_POLICY: Final = "cleanup.policy"


def require_appendable(call: Call, topic: str) -> None:
    """Raises KafkaError INVALID_TOPIC_EXCEPTION for a Produce to an internal topic."""
    if is_internal(topic) and call.client_id != ADMIN_CLIENT_ID:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic} is the brokers' own: clients do not append to it")


def require_deletable(context: Context, topic: TopicImage) -> None:
    """One of that name that is not compacted is nobody's but its maker's: no coordinator uses it (offsets_topic.py).
    Raises KafkaError TOPIC_DELETION_DISABLED."""
    if topic.name == OFFSETS_TOPIC and COMPACT in context.config.topic(topic.configs).cleanup_policy:
        raise KafkaError(
            ErrorCode.TOPIC_DELETION_DISABLED,
            f"{topic.name} holds the offsets of all groups, and is not deleted; delete groups one by one instead",
        )


def require_growable(topic: str) -> None:
    """Raises KafkaError INVALID_PARTITIONS."""
    if topic == OFFSETS_TOPIC:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"the number of partitions of {topic} stays: each group's offsets are in one that follows from it",
        )


def require_configs(topic: str, configs: Mapping[str, str]) -> None:
    """For what a topic is to be configured like. Raises KafkaError INVALID_CONFIG."""
    if topic == OFFSETS_TOPIC and configs.get(CLEANUP_POLICY) != COMPACT:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, f"{topic} has {CLEANUP_POLICY}={COMPACT} and nothing else: it holds all offsets"
        )


def require_shape(context: Context, topic: str, partition_count: int) -> None:
    """For what a topic is to be created like. Raises KafkaError INVALID_PARTITIONS."""
    wanted = context.config.offsets_topic_num_partitions
    if topic == OFFSETS_TOPIC and partition_count != wanted:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"{topic} is created with {wanted} partitions, by offsets.topic.num.partitions; it is made when the first "
            "group needs it",
        )
