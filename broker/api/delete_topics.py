"""DeleteTopics (key 20): delete topics by name, and since version 6 by id.

A topic that the request names twice, once by name and once by id included, is not deleted: INVALID_REQUEST. With
`delete.topic.enable=false` nothing is (TOPIC_DELETION_DISABLED; INVALID_REQUEST before version 3, which did not know
it). When the answer is out the name is free again.

Versions: 3 TOPIC_DELETION_DISABLED (KIP-322). 4 flexible. 5 error messages, THROTTLING_QUOTA_EXCEEDED may be answered
(KIP-599). 6 topic ids (KIP-516).
"""

from collections import Counter

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import CLUSTER, of_topic
from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.topic_image import TopicImage
from odradek.broker.cluster.topics import delete_topic
from odradek.broker.handling.context import Call, Context
from odradek.broker.handling.internal_protection import require_deletable
from odradek.broker.handling.metadata_change import MetadataChange
from odradek.protocol.codec.schema import ZERO_UUID, uuid_text
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

DELETION_DISABLED_SINCE = 3
STRICT_SINCE = 5
"""A client that is over its quota of changes is refused, and before, silenced."""


async def handle(context: Context, call: Call, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    if not context.config.delete_topic_enable:
        raise KafkaError(_disabled(call), "Topic deletion is disabled.")
    changes = MetadataChange(context, call, request.timeout_ms)
    wanted = _wanted(request)
    times, same = _times_named(context.metadata.image, wanted), Counter((each.name, each.topic_id) for each in wanted)
    responses: list[DeletableTopicResult] = []
    for topic in wanted:
        answer = DeletableTopicResult(name=topic.name, topic_id=topic.topic_id)
        responses.append(answer)
        try:
            _check(topic)
            if same[topic.name, topic.topic_id] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "The request names this topic more than once.")
            found = _find(context, call, topic, answer)
            if times.get(_key(context.metadata.image, topic), 0) > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "The request names this topic by its name and by its id.")
            _require_deletable(context, call, found)
            answer.name = found.name
            answer.topic_id = found.topic_id
            if context.quotas is not None:
                context.quotas.mutates(call, len(found.partitions), strict_since=STRICT_SINCE)
            await _delete(context, changes, found)
        except KafkaError as error:
            answer.error_code = call.failed(error)
            answer.error_message = error.message
    return DeleteTopicsResponse(responses=responses)


def _require_deletable(context: Context, call: Call, topic: TopicImage) -> None:
    """Raises KafkaError, with a code that the version knows."""
    try:
        require_deletable(context, topic)
    except KafkaError as error:
        raise KafkaError(_disabled(call), error.message) from None


def _disabled(call: Call) -> ErrorCode:
    if call.version < DELETION_DISABLED_SINCE:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.TOPIC_DELETION_DISABLED


async def _delete(context: Context, changes: MetadataChange, topic: TopicImage) -> None:
    store = context.metadata.store
    await changes.apply(lambda: delete_topic(store, topic))


def _wanted(request: DeleteTopicsRequest) -> list[DeleteTopicState]:
    """A version carries one of the two lists."""
    return [*request.topics, *(DeleteTopicState(name=name) for name in request.topic_names)]


def _times_named(image: ClusterImage, wanted: list[DeleteTopicState]) -> dict[str | bytes, int]:
    """How often each topic is named: by its id where it exists, else by what the request calls it. What names none, or
    by both, does not count."""
    times: dict[str | bytes, int] = {}
    for topic in wanted:
        if (topic.name is None) == (topic.topic_id == ZERO_UUID):
            continue
        key = _key(image, topic)
        times[key] = times.get(key, 0) + 1
    return times


def _key(image: ClusterImage, topic: DeleteTopicState) -> str | bytes:
    if topic.name is None:
        return topic.topic_id
    found = image.topics.get(topic.name)
    return topic.name if found is None else found.topic_id


def _check(topic: DeleteTopicState) -> None:
    """Raises KafkaError INVALID_REQUEST."""
    if topic.name is None and topic.topic_id == ZERO_UUID:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
    if topic.name is not None and topic.topic_id != ZERO_UUID:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")


def _find(context: Context, call: Call, topic: DeleteTopicState, answer: DeletableTopicResult) -> TopicImage:
    """The topic, which the caller may delete. An id hides nothing, but the name that it belongs to is told only to who
    may describe the topic. Raises KafkaError: TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION,
    UNKNOWN_TOPIC_ID."""
    image = context.metadata.image
    if topic.name is not None:
        if not _may(context, call, Operation.DESCRIBE, topic.name):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if (found := image.topics.get(topic.name)) is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{topic.name}' does not exist.")
        if not _may(context, call, Operation.DELETE, topic.name):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        return found
    if (found := image.topic_by_id(topic.topic_id)) is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"There is no topic with id {uuid_text(topic.topic_id)}.")
    if not _may(context, call, Operation.DELETE, found.name):
        answer.name = found.name if _may(context, call, Operation.DESCRIBE, found.name) else None
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)  # without a text, which would name the topic
    return found


def _may(context: Context, call: Call, operation: Operation, topic: str) -> bool:
    """Who may delete in the cluster may do that to each topic."""
    if context.permits(call, Operation.DELETE, CLUSTER, logs_refusal=False):
        return True
    return context.permits(call, operation, of_topic(topic))


def fail(request: DeleteTopicsRequest, code: ErrorCode) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(
        responses=[
            DeletableTopicResult(name=topic.name, topic_id=topic.topic_id, error_code=code, error_message=code.text)
            for topic in _wanted(request)
        ]
    )
