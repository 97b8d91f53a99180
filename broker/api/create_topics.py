"""CreateTopics (key 19): create topics; they can be used when the answer is out.

A count or replication factor of -1 is the broker's default. Assignments made by hand go with -1 for both. A name that
stands in the request more than once is created not at all (INVALID_REQUEST). `validate_only` checks everything, answers
as if, and creates nothing. Each topic has its own error, and a creation happens whole or not at all, also when the
client goes away or its timeout passes (REQUEST_TIMED_OUT; the creation goes on).

Versions: 4 defaults by -1 (KIP-464). 5 flexible, answers counts and configuration (KIP-525).
6 THROTTLING_QUOTA_EXCEEDED may be answered (KIP-599). 7 topic ids (KIP-516).
"""

from collections import Counter

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import of_topic
from odradek.broker.config.alterations import new_topic_overrides
from odradek.broker.handling.context import Call, Context
from odradek.broker.handling.coordinator_topics import COORDINATOR_TOPICS, wanted_topic
from odradek.broker.handling.internal_protection import require_configs, require_shape
from odradek.broker.handling.metadata_change import MetadataChange
from odradek.broker.handling.topic_plans import (
    TopicPlan,
    check_allowed_name,
    check_new_name,
    create,
    plan_topic,
    require_create,
)
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

STRICT_SINCE = 6
"""A client that is over its quota of changes is refused, and before, silenced."""


async def handle(context: Context, call: Call, request: CreateTopicsRequest) -> CreateTopicsResponse:
    changes = MetadataChange(context, call, request.timeout_ms)
    times = Counter(topic.name for topic in request.topics)
    results: list[CreatableTopicResult] = []
    for topic in request.topics:
        try:
            if times[topic.name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            check_allowed_name(topic.name)
            require_create(context, call, topic.name)
            planned = _plan(context, topic)
            if context.quotas is not None:
                context.quotas.mutates(call, len(planned.partitions), strict_since=STRICT_SINCE)
            if not request.validate_only:
                await create(context, changes, planned)
            results.append(_created(context, call, planned))
        except KafkaError as error:
            results.append(_failed(topic.name, call.failed(error), error.message))
    return CreateTopicsResponse(topics=results)


def _plan(context: Context, topic: CreatableTopic) -> TopicPlan:
    """Raises KafkaError."""
    check_new_name(context.metadata.image, topic.name)
    # Of an option given twice the last value counts, as in Kafka.
    configs = new_topic_overrides({config.name: config.value for config in topic.configs})
    assignments = [(assignment.partition_index, assignment.broker_ids) for assignment in topic.assignments]
    if (own := COORDINATOR_TOPICS.get(topic.name)) is not None:
        configs = {**wanted_topic(context, own).configs, **configs}
    plan = plan_topic(context, topic.name, topic.num_partitions, topic.replication_factor, assignments, configs)
    require_configs(plan.name, plan.configs)
    require_shape(context, plan.name, len(plan.partitions))
    return plan


def _created(context: Context, call: Call, topic: TopicPlan) -> CreatableTopicResult:
    """What it is like, for who may describe its configuration."""
    if not context.permits(call, Operation.DESCRIBE_CONFIGS, of_topic(topic.name), logs_refusal=False):
        hidden = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return CreatableTopicResult(
            name=topic.name, topic_id=topic.topic_id, topic_config_error_code=hidden, configs=[]
        )
    return CreatableTopicResult(
        name=topic.name,
        topic_id=topic.topic_id,
        num_partitions=len(topic.partitions),
        replication_factor=topic.replication_factor,
        configs=[
            CreatableTopicConfigs(
                name=entry.name,
                value=entry.value,
                read_only=entry.is_read_only,
                config_source=entry.source,
                is_sensitive=entry.is_sensitive,
            )
            for entry in context.config.describe_topic(topic.configs)
        ],
    )


def _failed(name: str, code: ErrorCode, message: str) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=code, error_message=message, configs=[])


def fail(request: CreateTopicsRequest, code: ErrorCode) -> CreateTopicsResponse:
    return CreateTopicsResponse(topics=[_failed(topic.name, code, code.text) for topic in request.topics])
