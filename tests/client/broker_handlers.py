"""What the scripted brokers do for each request when nothing goes wrong: the rules of a real broker, in few lines.

ApiVersions with the fallback of KIP-511; Metadata from the cluster's truth, or from what a broker last heard of it;
InitProducerId, which gives an idempotent producer a new id whatever it had; Produce to the leader alone, partition by
partition, with the new leader named where it is another (KIP-951).
"""

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from odradek.protocol.codec.schema import ZERO_UUID, Request, Response
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from odradek.protocol.messages.produce import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from tests.client.broker_connection import BrokerConnection
from tests.client.broker_faults import Exchange, Fault

if TYPE_CHECKING:
    from tests.client.scripted_broker import Partition, ScriptedBroker, Topic


class Call(NamedTuple):
    """A request that takes effect, and where."""

    broker: "ScriptedBroker"
    connection: BrokerConnection
    exchange: Exchange
    faults: tuple[Fault, ...]


Handler = Callable[[Call], Response | None]
"""Lets a request take effect and returns the response, or None for no answer at all."""


# -------------------------------------------------------------------------------------------------------- ApiVersions
def api_versions(call: Call) -> Response:
    broker, exchange = call.broker, call.exchange
    low, high = broker.versions[ApiVersionsRequest]
    ranges = [
        ApiVersion(api_key=cls.api_key, min_version=first, max_version=last)
        for cls, (first, last) in broker.versions.items()
    ]
    if low <= exchange.version <= high:
        return ApiVersionsResponse(api_keys=ranges)
    only_this = [each for each in ranges if each.api_key == ApiVersionsRequest.api_key]
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=only_this)


# ----------------------------------------------------------------------------------------------------------- Metadata
def metadata(call: Call) -> Response:
    broker, exchange, request = call.broker, call.exchange, call.exchange.request
    assert isinstance(request, MetadataRequest)
    whole = whole_metadata(broker) if broker.stale_metadata is None else copy.deepcopy(broker.stale_metadata)
    assert isinstance(whole, MetadataResponse)
    if request.topics is None or (exchange.version == 0 and not request.topics):
        return whole
    known = {topic.name: topic for topic in whole.topics}
    by_id = {topic.topic_id: topic for topic in whole.topics}
    whole.topics = []
    for asked in request.topics:
        if asked.name is None:
            whole.topics.append(by_id.get(asked.topic_id) or _unknown(None, ErrorCode.UNKNOWN_TOPIC_ID, asked.topic_id))
        elif asked.name in known:
            whole.topics.append(known[asked.name])
        else:
            may_create = request.allow_auto_topic_creation or exchange.version < 4
            _, code = broker.cluster.topic_for_metadata(asked.name, may_create and broker.stale_metadata is None)
            whole.topics.append(_unknown(asked.name, code or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    return whole


def whole_metadata(broker: "ScriptedBroker") -> MetadataResponse:
    """The truth about the cluster and all topics."""
    cluster = broker.cluster
    listed = [each for each in cluster.brokers.values() if not each.is_fenced]
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=each.node_id, host=each.host, port=each.port) for each in listed],
        cluster_id="c2NyaXB0ZWQtY2x1c3Rlcg",
        controller_id=cluster.controller_id,
        topics=[_described(topic, {each.node_id for each in listed}) for topic in cluster.topics.values()],
    )


def _described(topic: "Topic", alive: set[int]) -> MetadataResponseTopic:
    parts: list[MetadataResponsePartition] = []
    for index, partition in enumerate(topic.partitions):
        leader = partition.leader if partition.leader in alive else -1
        parts.append(
            MetadataResponsePartition(
                error_code=ErrorCode.LEADER_NOT_AVAILABLE if leader < 0 else ErrorCode.NONE,
                partition_index=index,
                leader_id=leader,
                leader_epoch=partition.leader_epoch,
                replica_nodes=[partition.leader],
                isr_nodes=[partition.leader],
            )
        )
    return MetadataResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=parts)


def _unknown(name: str | None, code: ErrorCode, topic_id: bytes = ZERO_UUID) -> MetadataResponseTopic:
    return MetadataResponseTopic(error_code=code, name=name, topic_id=topic_id, partitions=[])


# ----------------------------------------------------------------------------------------------------- InitProducerId
def init_producer_id(call: Call) -> Response:
    request = call.exchange.request
    assert isinstance(request, InitProducerIdRequest)
    if request.transactional_id is not None:
        return InitProducerIdResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE, producer_epoch=-1)
    return InitProducerIdResponse(producer_id=call.broker.cluster.next_producer_id(), producer_epoch=0)


# ------------------------------------------------------------------------------------------------------------ Produce
def produce(call: Call) -> Response | None:
    request, partitions = call.exchange.request, call.exchange.partitions
    assert isinstance(request, ProduceRequest)
    if len(set(partitions)) < len(partitions) or not partitions:
        call.broker.violated(f"a Produce for {partitions}: each partition once is what one is for")
    endpoints: dict[int, NodeEndpoint] = {}
    answers: list[TopicProduceResponse] = []
    for topic in request.topic_data:
        parts = [_produce_to(call, request.acks, topic.name, part, endpoints) for part in topic.partition_data]
        answers.append(TopicProduceResponse(name=topic.name, partition_responses=parts))
    if request.acks == 0:
        if any(part.error_code for answer in answers for part in answer.partition_responses):
            call.connection.transport.close()  # the only way to tell
        return None
    return ProduceResponse(responses=answers, node_endpoints=list(endpoints.values()))


def _produce_to(
    call: Call, acks: int, topic_name: str, part: PartitionProduceData, endpoints: dict[int, NodeEndpoint]
) -> PartitionProduceResponse:
    broker, index = call.broker, part.index
    topic = broker.cluster.topics.get(topic_name)
    state = topic.partitions[index] if topic is not None and 0 <= index < len(topic.partitions) else None
    errors = (fault.produce_error for fault in call.faults)
    scripted = next((error for error in errors if error is not None and error.is_for(topic_name, index)), None)
    try:
        if acks not in (-1, 0, 1):
            raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
        if scripted is not None and not scripted.appended:
            raise KafkaError(scripted.code, scripted.message or "")
        if topic is None or state is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if state.leader != broker.node_id:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        appended = state.log.append(part.records or b"", state.leader_epoch, topic.max_message_bytes)
        if scripted is not None:
            raise KafkaError(scripted.code, scripted.message or "")
    except KafkaError as error:
        if error.code in (ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE) and scripted is None:
            broker.violated(f"{topic_name}-{index}: {error}")
        return _failed(broker, index, error, state, endpoints)
    return PartitionProduceResponse(
        index=index,
        base_offset=appended.base_offset,
        log_append_time_ms=broker.cluster.environment.now_ms() if topic.log_append_time else -1,
        log_start_offset=state.log.start_offset,
    )


def _failed(
    broker: "ScriptedBroker",
    index: int,
    error: KafkaError,
    state: "Partition | None",
    endpoints: dict[int, NodeEndpoint],
) -> PartitionProduceResponse:
    answer = PartitionProduceResponse(index=index, error_code=error.code, base_offset=-1, error_message=error.message)
    if state is not None:
        answer.log_start_offset = state.log.start_offset
        leader = broker.cluster.brokers.get(state.leader)
        if error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER and broker.cluster.gives_hints and leader is not None:
            answer.current_leader = LeaderIdAndEpoch(leader_id=state.leader, leader_epoch=state.leader_epoch)
            endpoints[state.leader] = NodeEndpoint(node_id=state.leader, host=leader.host, port=leader.port)
    return answer


HANDLERS: dict[type[Request[Any]], "Handler"] = {
    ApiVersionsRequest: api_versions,
    MetadataRequest: metadata,
    InitProducerIdRequest: init_producer_id,
    ProduceRequest: produce,
}
