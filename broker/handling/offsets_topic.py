"""`__consumer_offsets`: what it is created like, when, and by whom. Created with the first question for a group's
coordinator, if every registered broker can coordinate groups (cluster/features.py).

A topic of that name that is there already, from an earlier release or adopted from Apache Kafka, is taken over with the
partitions that it has, if it is compacted: another one would lose the oldest offsets with its retention.
"""

from dataclasses import replace
from typing import Final

from odradek.broker.cluster.features import GROUPS
from odradek.broker.cluster.image import TopicImage
from odradek.broker.handling.context import Context
from odradek.broker.handling.internal_topics import InternalTopic, ensure_internal_topic
from odradek.broker.internal_topic_names import OFFSETS_TOPIC
from odradek.broker.log.checkpoint import CorruptCheckpoint
from odradek.protocol.errors import ErrorCode, KafkaError

CREATE_MS: Final = 10_000.0
REPLICAS_WITH_MIN_ISR: Final = 3
"""From so many replicas on, an offset has to be on two of them before it is acknowledged."""


def wanted_offsets_topic(context: Context) -> InternalTopic:
    """By the options of this broker, and how many brokers there are."""
    config = context.config
    replicas = min(config.offsets_topic_replication_factor, len(context.metadata.image.registered))
    configs = {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": str(config.offsets_topic_segment_bytes),
    }
    if replicas >= REPLICAS_WITH_MIN_ISR:
        configs["min.insync.replicas"] = "2"
    return InternalTopic(
        OFFSETS_TOPIC, config.offsets_topic_num_partitions, config.offsets_topic_replication_factor, configs
    )


def _with_what_is_left(context: Context) -> InternalTopic:
    """As `wanted_offsets_topic`, over the partitions that an adoption of an earlier release has left where they were.
    Raises KafkaError COORDINATOR_NOT_AVAILABLE where these do not make a topic."""
    wanted = wanted_offsets_topic(context)
    try:
        left_over = context.partitions.left_over(OFFSETS_TOPIC)
    except (OSError, CorruptCheckpoint) as error:
        raise _cannot_be_taken_over(str(error)) from error
    if not left_over:
        return wanted
    topic_ids = set(left_over.values())
    topic_id = topic_ids.pop()
    if topic_ids or topic_id is None or sorted(left_over) != list(range(len(left_over))):
        raise _cannot_be_taken_over(f"the partitions {sorted(left_over)} are there, and not all of one topic")
    if len(context.metadata.image.registered) > 1:
        raise _cannot_be_taken_over("there are other brokers, which would not have what is in them")
    return replace(wanted, partition_count=len(left_over), topic_id=topic_id)


def _cannot_be_taken_over(why: str) -> KafkaError:
    return KafkaError(
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        f"the data directory has directories of {OFFSETS_TOPIC} from before it was adopted, which cannot be taken "
        f"over: {why}. Move them away, and groups begin without offsets",
    )


async def ensure_offsets_topic(context: Context) -> TopicImage:
    """The topic, created where there is none. Raises KafkaError COORDINATOR_NOT_AVAILABLE with the reason: a broker of
    an earlier release is registered, the topic cannot be created now, or one of that name is not compacted."""
    image = context.metadata.image
    if not image.features.get(GROUPS):
        # Also where the topic is there: that broker may lead partitions of it.
        raise KafkaError(
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            "a registered broker is of a release without coordinators: upgrade it, or unregister it",
        )
    topic = image.topics.get(OFFSETS_TOPIC)
    if topic is None:
        try:
            topic = await ensure_internal_topic(context, _with_what_is_left(context), CREATE_MS)
        except KafkaError as error:
            raise KafkaError(
                ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{OFFSETS_TOPIC} cannot be created: {error}"
            ) from error
    if context.config.topic(topic.configs).cleanup_policy != ("compact",):
        raise KafkaError(
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            f"{OFFSETS_TOPIC} is there, and not compacted: groups would lose their offsets. Set its cleanup.policy to "
            "compact if it holds groups; else delete it",
        )
    return topic
