"""Metadata (key 3): brokers, controller, topics and their leaders, as the listener that was asked sees them.

Which topics: null means all and `[]` none; in version 0 `[]` means all. Each one asked for is answered once, by id
where an id is given. A missing topic is created first where the request allows it and `auto.create.topics.enable` is
on; it is there when the answer is out, unlike in Kafka, where the client asks again. A topic that the caller may not
describe is refused, whether there is one or not, and of all topics left out. Partitions:

| leader | error |
|---|---|
| none, or its broker is gone | LEADER_NOT_AVAILABLE, leader -1 |
| has no address on this listener | LISTENER_NOT_FOUND since version 6, else LEADER_NOT_AVAILABLE; leader -1 |

Versions: 0 leaves out replicas that cannot be reached, and says REPLICA_NOT_AVAILABLE. 1 controller, rack. 2 cluster
id. 4 auto-creation is asked for. 5 offline replicas (KIP-112). 7 leader epochs (KIP-320). 8 authorized operations
(KIP-430), of the cluster until 10. 9 flexible. 10 topic ids in the answer (KIP-516). 12 and in the request. 13 an error
of the whole answer (KIP-1102).
"""

from odradek.broker.access.operations import NOT_ASKED, Operation
from odradek.broker.access.resource import of_topic
from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.keys import PartitionState, check_topic_name
from odradek.broker.cluster.topic_image import TopicImage
from odradek.broker.handling.client_view import (
    cluster_operations,
    controller_for,
    leader_for,
    offline_replicas,
    usable_brokers,
)
from odradek.broker.handling.context import Call, Context
from odradek.broker.handling.coordinator_topics import COORDINATOR_TOPICS, ensure_coordinator_topic
from odradek.broker.handling.metadata_change import MetadataChange
from odradek.broker.handling.topic_plans import DEFAULT, check_new_name, create, plan_topic, require_create
from odradek.broker.internal_topic_names import is_internal
from odradek.protocol.codec.schema import ZERO_UUID, uuid_text
from odradek.protocol.errors import ErrorCode, KafkaError, code_of
from odradek.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

NULL_MEANS_ALL_SINCE = 1
LISTENER_NOT_FOUND_SINCE = 6
TOPIC_IDS_SINCE = 12
AUTO_CREATE_TIMEOUT_MS = 30_000
"""For all topics of one request. It carries no timeout of its own; this is Kafka's default for a request."""


async def handle(context: Context, call: Call, request: MetadataRequest) -> MetadataResponse:
    wanted = _wanted(call, request)
    failures: dict[str, KafkaError] = {}
    if wanted is not None and request.allow_auto_topic_creation and context.config.auto_create_topics_enable:
        await _create_missing(context, call, wanted, failures)
    # One image for the whole answer, taken after the last await.
    image, listener = context.metadata.image, call.caller.listener
    if wanted is None:
        everything = sorted(image.topics.items())
        visible = (topic for name, topic in everything if _may_see(context, call, name, logs_refusal=False))
        topics = [_topic(image, call, topic) for topic in visible]
    else:
        topics = [_answer(context, image, call, topic_id, name, failures) for topic_id, name in wanted]
    if request.include_topic_authorized_operations:
        for topic in topics:
            if topic.name is not None and code_of(topic.error_code) is not ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                operations = context.access.authorized_operations(call, of_topic(topic.name))
                topic.topic_authorized_operations = operations
    return MetadataResponse(
        brokers=_brokers(image, listener),
        cluster_id=context.identity.cluster_id,
        controller_id=controller_for(image, listener),
        topics=topics,
        cluster_authorized_operations=(
            cluster_operations(context, call) if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


def _wanted(call: Call, request: MetadataRequest) -> list[tuple[bytes, str | None]] | None:
    """Id (zeros: by name) and name of each topic asked for, once; None for all. Raises KafkaError INVALID_REQUEST."""
    topics = request.topics
    if topics is None or (call.version < NULL_MEANS_ALL_SINCE and not topics):
        return None
    for topic in topics:
        _check(call, topic)
    keys = ((topic.topic_id, topic.name if topic.topic_id == ZERO_UUID else None) for topic in topics)
    return list(dict.fromkeys(keys))


def _check(call: Call, topic: MetadataRequestTopic) -> None:
    if call.version < TOPIC_IDS_SINCE and topic.topic_id != ZERO_UUID:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"topic ids may be asked for since version {TOPIC_IDS_SINCE}")
    if topic.name is None and topic.topic_id == ZERO_UUID:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "neither topic name nor topic id is given")


def _may_see(context: Context, call: Call, topic: str, *, logs_refusal: bool = True) -> bool:
    return context.permits(call, Operation.DESCRIBE, of_topic(topic), logs_refusal=logs_refusal)


async def _create_missing(
    context: Context, call: Call, wanted: list[tuple[bytes, str | None]], failures: dict[str, KafkaError]
) -> None:
    changes = MetadataChange(context, call, AUTO_CREATE_TIMEOUT_MS)
    for _, name in wanted:
        if name is None or name in context.metadata.image.topics or not _may_see(context, call, name):
            continue  # who may not see it does not learn, either, that there was none
        try:
            require_create(context, call, name)
            if (own := COORDINATOR_TOPICS.get(name)) is not None:
                await ensure_coordinator_topic(context, own)
                continue
            check_new_name(context.metadata.image, name)
            plan = plan_topic(context, name, DEFAULT, DEFAULT, (), {})
            if context.quotas is not None:
                context.quotas.may_create(call, len(plan.partitions))
            await create(context, changes, plan)
        except KafkaError as error:
            failures[name] = _as_seen_by_clients(error)


def _as_seen_by_clients(error: KafkaError) -> KafkaError:
    """Whatever may be over at the next request becomes an error at which clients ask for the topic again."""
    if error.code.retriable or error.code in (ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.BROKER_NOT_AVAILABLE):
        return KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, error.message)
    return error


def _answer(
    context: Context,
    image: ClusterImage,
    call: Call,
    topic_id: bytes,
    name: str | None,
    failures: dict[str, KafkaError],
) -> MetadataResponseTopic:
    topic = image.topic_by_id(topic_id) if name is None else image.topics.get(name)
    known_name = name if topic is None else topic.name
    if known_name is not None and not _may_see(context, call, known_name):
        code = call.failed(KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        return MetadataResponseTopic(name=name, topic_id=topic_id, error_code=code, partitions=[])
    if topic is not None:
        return _topic(image, call, topic)
    if name is None:
        error = KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic with id {uuid_text(topic_id)}")
        return MetadataResponseTopic(name=None, topic_id=topic_id, error_code=call.failed(error), partitions=[])
    error = failures.get(name) or _unknown(name)
    return MetadataResponseTopic(name=name, error_code=call.failed(error), is_internal=is_internal(name), partitions=[])


def _unknown(name: str) -> KafkaError:
    try:
        check_topic_name(name)
    except KafkaError as invalid:
        return invalid
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")


def _topic(image: ClusterImage, call: Call, topic: TopicImage) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=is_internal(topic.name),
        partitions=[_partition(image, call, index, partition) for index, partition in enumerate(topic.partitions)],
    )


def _partition(image: ClusterImage, call: Call, index: int, partition: PartitionState) -> MetadataResponsePartition:
    listener = call.caller.listener
    leader_id, code = leader_for(image, partition, listener)
    if code == ErrorCode.LISTENER_NOT_FOUND and call.version < LISTENER_NOT_FOUND_SINCE:
        code = ErrorCode.LEADER_NOT_AVAILABLE
    offline = offline_replicas(image, partition, listener)
    replicas, isr = list(partition.replicas), list(partition.isr)
    if offline and call.version < NULL_MEANS_ALL_SINCE:
        replicas = [broker_id for broker_id in replicas if broker_id not in offline]
        isr = [broker_id for broker_id in isr if broker_id not in offline]
        if code == ErrorCode.NONE:
            code = ErrorCode.REPLICA_NOT_AVAILABLE
    if code:
        call.failed(KafkaError(code, f"partition {index} is led by {partition.leader}"))
    return MetadataResponsePartition(
        partition_index=index,
        error_code=code,
        leader_id=leader_id,
        leader_epoch=partition.leader_epoch,
        replica_nodes=replicas,
        isr_nodes=isr,
        offline_replicas=offline,
    )


def _brokers(image: ClusterImage, listener: str) -> list[MetadataResponseBroker]:
    brokers: list[MetadataResponseBroker] = []
    for broker in usable_brokers(image, listener):
        host, port = broker.endpoints[listener]
        brokers.append(MetadataResponseBroker(node_id=broker.broker_id, host=host, port=port, rack=broker.rack))
    return brokers


def fail(request: MetadataRequest, code: ErrorCode) -> MetadataResponse:
    """Before version 13 there is no error for the whole answer, so every topic says it; no version takes null for both
    name and id."""
    return MetadataResponse(
        error_code=code,
        brokers=[],
        topics=[
            MetadataResponseTopic(name=topic.name or "", topic_id=topic.topic_id, error_code=code, partitions=[])
            for topic in request.topics or []
        ],
    )
