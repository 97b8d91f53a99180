"""CreatePartitions (key 37): add partitions to topics; they are there when the answer is out.

`count` is the new total and must be larger than the present one. Assignments, where given, are one list of brokers for
each added partition. A topic named twice gets INVALID_REQUEST both times, and stays as it is. `validate_only` checks
everything and changes nothing.

Versions: 2 flexible. 3 THROTTLING_QUOTA_EXCEEDED may be answered (KIP-599).
"""

from collections import Counter

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import of_topic
from odradek.broker.handling.context import Call, Context
from odradek.broker.handling.internal_protection import require_growable
from odradek.broker.handling.metadata_change import MetadataChange
from odradek.broker.handling.topic_plans import enlarge, plan_partitions
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

STRICT_SINCE = 3
"""A client that is over its quota of changes is refused, and before, silenced."""


async def handle(context: Context, call: Call, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    changes = MetadataChange(context, call, request.timeout_ms)
    times = Counter(topic.name for topic in request.topics)
    results: list[CreatePartitionsTopicResult] = []
    for topic in request.topics:
        result = CreatePartitionsTopicResult(name=topic.name)
        results.append(result)
        try:
            if times[topic.name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            context.require(call, Operation.ALTER, of_topic(topic.name))
            await _create(context, call, changes, topic, request.validate_only)
        except KafkaError as error:
            result.error_code = call.failed(error)
            result.error_message = error.message
    return CreatePartitionsResponse(results=results)


async def _create(
    context: Context, call: Call, changes: MetadataChange, topic: CreatePartitionsTopic, validate_only: bool
) -> None:
    found = context.metadata.image.topics.get(topic.name)
    if found is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{topic.name}' does not exist.")
    require_growable(topic.name)
    assignments = None if topic.assignments is None else [given.broker_ids for given in topic.assignments]
    added = plan_partitions(context, found, topic.count, assignments)
    if context.quotas is not None:
        context.quotas.mutates(call, len(added), strict_since=STRICT_SINCE)
    if not validate_only:
        await enlarge(context, changes, found, added)


def fail(request: CreatePartitionsRequest, code: ErrorCode) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(name=topic.name, error_code=code, error_message=code.text)
            for topic in request.topics
        ]
    )
