"""What clients may not do to the topics that brokers keep their state in: what is in `__consumer_offsets` is every
group's, what is in `__transaction_state` every transactional producer's, and where their records are depends on how
many partitions they have.

Apache Kafka refuses a Produce to them, and DeleteRecords; it deletes them, and gives them more partitions, when asked.
Here that is refused, too: a clean-up of all topics would erase every group.
"""

from collections.abc import Mapping
from typing import Final

from odradek.broker.cluster.topic_image import TopicImage
from odradek.broker.handling.context import Call, Context
from odradek.broker.handling.coordinator_topics import COORDINATOR_TOPICS, OF_GROUPS
from odradek.broker.internal_topic_names import is_internal
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
    """One of that name that is not compacted is nobody's but its maker's: no coordinator uses it
    (coordinator_topics.py). Raises KafkaError TOPIC_DELETION_DISABLED."""
    own = COORDINATOR_TOPICS.get(topic.name)
    if own is not None and COMPACT in context.config.topic(topic.configs).cleanup_policy:
        raise KafkaError(
            ErrorCode.TOPIC_DELETION_DISABLED,
            f"{topic.name} holds {own.holds}, and is not deleted"
            + ("; delete groups one by one instead" if own is OF_GROUPS else ""),
        )


def require_growable(topic: str) -> None:
    """Raises KafkaError INVALID_PARTITIONS."""
    if topic in COORDINATOR_TOPICS:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"the number of partitions of {topic} stays: in which one somebody's records are follows from it",
        )


def require_configs(topic: str, configs: Mapping[str, str]) -> None:
    """For what a topic is to be configured like. Raises KafkaError INVALID_CONFIG."""
    own = COORDINATOR_TOPICS.get(topic)
    if own is not None and configs.get(CLEANUP_POLICY) != COMPACT:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, f"{topic} has {CLEANUP_POLICY}={COMPACT} and nothing else: it holds {own.holds}"
        )


def require_shape(context: Context, topic: str, partition_count: int) -> None:
    """For what a topic is to be created like. Raises KafkaError INVALID_PARTITIONS."""
    own = COORDINATOR_TOPICS.get(topic)
    if own is None:
        return
    wanted = own.shape(context.config).partition_count
    if partition_count != wanted:
        option = "offsets.topic.num.partitions" if own is OF_GROUPS else "transaction.state.log.num.partitions"
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"{topic} is created with {wanted} partitions, by {option}; it is made when it is needed first",
        )
