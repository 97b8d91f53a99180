"""The topics of coordinators, `__consumer_offsets` and `__transaction_state`: what they are created like, when, and by
whom. Each is created with the first question for a coordinator, if every registered broker can coordinate what it is
for (cluster/features.py).

A topic of that name that is there already, from an earlier release or adopted from Apache Kafka, is taken over with the
partitions that it has, if it is compacted: another one would lose the oldest of what it holds with its retention.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from odradek.broker.cluster.features import GROUPS, TRANSACTIONS
from odradek.broker.cluster.topic_image import TopicImage
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.handling.context import Context
from odradek.broker.handling.internal_topics import InternalTopic, ensure_internal_topic
from odradek.broker.internal_topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from odradek.broker.log.checkpoint import CorruptCheckpoint
from odradek.protocol.errors import ErrorCode, KafkaError

CREATE_MS: Final = 10_000.0
REPLICAS_WITH_MIN_ISR: Final = 3
"""From so many replicas on, what a coordinator writes has to be on several of them before it is acknowledged."""


class Shape(NamedTuple):
    """What such a topic is to be like, by the options of a broker."""

    partition_count: int
    replication_factor: int
    segment_bytes: int
    min_isr: int
    compression: str


def _shape_of_offsets(config: BrokerConfig) -> Shape:
    return Shape(
        config.offsets_topic_num_partitions,
        config.offsets_topic_replication_factor,
        config.offsets_topic_segment_bytes,
        2,
        "producer",
    )


def _shape_of_transactions(config: BrokerConfig) -> Shape:
    return Shape(
        config.transaction_state_log_num_partitions,
        config.transaction_state_log_replication_factor,
        config.transaction_state_log_segment_bytes,
        config.transaction_state_log_min_isr,
        "uncompressed",
    )


@dataclass(frozen=True, slots=True)
class CoordinatorTopic:
    """One of them."""

    name: str
    feature: str
    """What all registered brokers must have before it is used."""
    holds: str
    """What is in it, for people."""
    whose: str
    """Who would begin anew without it."""
    shape: Callable[[BrokerConfig], Shape]


OF_GROUPS: Final = CoordinatorTopic(OFFSETS_TOPIC, GROUPS, "the offsets of all groups", "groups", _shape_of_offsets)
OF_TRANSACTIONS: Final = CoordinatorTopic(
    TRANSACTIONS_TOPIC,
    TRANSACTIONS,
    "the state of all transactions",
    "transactional producers",
    _shape_of_transactions,
)
COORDINATOR_TOPICS: Final[Mapping[str, CoordinatorTopic]] = {each.name: each for each in (OF_GROUPS, OF_TRANSACTIONS)}


def wanted_topic(context: Context, topic: CoordinatorTopic) -> InternalTopic:
    """By the options of this broker, and how many brokers there are."""
    shape = topic.shape(context.config)
    replicas = min(shape.replication_factor, len(context.metadata.image.registered))
    configs = {
        "cleanup.policy": "compact",
        "compression.type": shape.compression,
        "segment.bytes": str(shape.segment_bytes),
    }
    if replicas >= REPLICAS_WITH_MIN_ISR:
        configs["min.insync.replicas"] = str(shape.min_isr)
    return InternalTopic(topic.name, shape.partition_count, shape.replication_factor, configs)


def _with_what_is_left(context: Context, topic: CoordinatorTopic) -> InternalTopic:
    """As `wanted_topic`, over the partitions that an adoption of an earlier release has left where they were. Raises
    KafkaError COORDINATOR_NOT_AVAILABLE where these do not make a topic."""
    wanted = wanted_topic(context, topic)
    try:
        left_over = context.partitions.left_over(topic.name)
    except (OSError, CorruptCheckpoint) as error:
        raise _cannot_be_taken_over(topic, str(error)) from error
    if not left_over:
        return wanted
    topic_ids = set(left_over.values())
    topic_id = topic_ids.pop()
    if topic_ids or topic_id is None or sorted(left_over) != list(range(len(left_over))):
        raise _cannot_be_taken_over(topic, f"the partitions {sorted(left_over)} are there, and not all of one topic")
    if len(context.metadata.image.registered) > 1:
        raise _cannot_be_taken_over(topic, "there are other brokers, which would not have what is in them")
    return replace(wanted, partition_count=len(left_over), topic_id=topic_id)


def _cannot_be_taken_over(topic: CoordinatorTopic, why: str) -> KafkaError:
    return KafkaError(
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        f"the data directory has directories of {topic.name} from before it was adopted, which cannot be taken "
        f"over: {why}. Move them away, and {topic.whose} begin anew",
    )


async def ensure_coordinator_topic(context: Context, topic: CoordinatorTopic) -> TopicImage:
    """The topic, created where there is none. Raises KafkaError COORDINATOR_NOT_AVAILABLE with the reason: a broker of
    an earlier release is registered, the topic cannot be created now, or one of that name is not compacted."""
    image = context.metadata.image
    # Also where the topic is there: that broker may lead partitions of it. And also where all could once: it has gone
    # back to an earlier release.
    behind = [number for number, node in image.nodes.items() if not node.features.get(topic.feature)]
    if behind or not image.features.get(topic.feature):
        who = f"broker {min(behind)}" if behind else "a registered broker"
        raise KafkaError(
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            f"{who} is of a release without coordinators of {topic.whose}: upgrade it, or unregister it",
        )
    found = image.topics.get(topic.name)
    if found is None:
        try:
            found = await ensure_internal_topic(context, _with_what_is_left(context, topic), CREATE_MS)
        except KafkaError as error:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{topic.name} cannot be created: {error}") from error
    if context.config.topic(found.configs).cleanup_policy != ("compact",):
        raise KafkaError(
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            f"{topic.name} is there, and not compacted: {topic.holds} would be lost. Set its cleanup.policy to compact "
            "if it holds any; else delete it",
        )
    return found


class EnsuredTopics:
    """Tries to create each of them once, however many keys a request has: a try may take seconds."""

    __slots__ = ("_context", "_errors")

    def __init__(self, context: Context) -> None:
        self._context = context
        self._errors: dict[str, KafkaError] = {}

    async def ensure(self, topic: CoordinatorTopic) -> TopicImage:
        """Raises KafkaError, as `ensure_coordinator_topic`."""
        if topic.name in self._errors:
            raise self._errors[topic.name]
        try:
            return await ensure_coordinator_topic(self._context, topic)
        except KafkaError as error:
            self._errors[topic.name] = error
            raise
