"""Produce (key 0): append batches, answer when the acknowledgement that was asked for is true.

Each partition of a request stands alone: its error is its own. All appends happen first, without an await, so arrival
order is log order; then one wait covers them all, with the request's deadline. acks=0 has no answer: nothing is
written back, and an error closes the connection, which is the only way to tell (`KafkaApis.handleProduceRequest`).

Versions: 3 transactional id, magic 2 only (KIP-98). 5 log start offset. 7 zstd (KIP-110). 8 record errors (KIP-467).
9 flexible. 10 current leader in the answer (KIP-951). 11 TRANSACTION_ABORTABLE may be answered (KIP-890). 0 to 2 are
advertised and not served: librdkafka switches gzip and snappy off unless it sees 0 (KAFKA-18659).
"""

from broker.context import Call, CloseConnection, Context
from broker.replication.partition import ACKS_ALL, Partition
from protocol.batch import BatchHeader, check_batch
from protocol.compression import Codec
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.produce import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from protocol.records import check_records

ZSTD_SINCE = 7
CURRENT_LEADER_SINCE = 10

Parked = tuple[Partition, int, PartitionProduceResponse]
"""A partition whose append waits for its replicas, the last offset appended, and the answer to complete."""


async def handle(context: Context, call: Call, request: ProduceRequest) -> ProduceResponse | None:
    if request.acks not in (ACKS_ALL, 0, 1):
        raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks={request.acks}; it must be 0, 1 or -1 (all)")
    response = ProduceResponse(responses=[])
    parked: list[Parked] = []
    for topic in request.topic_data:
        answers: list[PartitionProduceResponse] = []
        for data in topic.partition_data:
            answer = PartitionProduceResponse(index=data.index, error_code=0, base_offset=-1)
            answers.append(answer)
            try:
                _append(context, call, request, topic.name, data, answer, parked)
            except KafkaError as error:
                _fail(context, call, topic.name, answer, error, response)
        response.responses.append(TopicProduceResponse(name=topic.name, partition_responses=answers))
    if request.acks == 0:
        if call.errors:
            raise CloseConnection(f"Produce with acks=0 failed ({_first_error(response)}), and has no other answer")
        return None
    if request.acks == ACKS_ALL:
        await _wait(context, call, request.timeout_ms, parked, response)
    return response


def _append(
    context: Context,
    call: Call,
    request: ProduceRequest,
    topic: str,
    data: PartitionProduceData,
    answer: PartitionProduceResponse,
    parked: list[Parked],
) -> None:
    """Checks and appends one partition's batch. Raises KafkaError, and then nothing was appended."""
    partition = context.partitions.leader(topic, data.index)
    partition.require_replicas(request.acks)
    if data.records is None:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"no batch for {topic}-{data.index}; exactly one is required")
    batch = memoryview(data.records)
    header = _checked(partition, batch, call.version)
    appended = partition.append(batch, header)
    answer.base_offset = appended.base_offset
    answer.log_append_time_ms = appended.log_append_time_ms
    answer.log_start_offset = partition.log.log_start_offset
    parked.append((partition, appended.last_offset, answer))


def _checked(partition: Partition, batch: memoryview, version: int) -> BatchHeader:
    """The header of a batch that may be appended. Raises KafkaError."""
    config = partition.config
    if len(batch) > config.max_message_bytes:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"a batch of {len(batch)} bytes for {partition.topic}-{partition.index}; "
            f"max.message.bytes is {config.max_message_bytes}",
        )
    header = check_batch(batch)
    if header.codec == Codec.ZSTD and version < ZSTD_SINCE:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"zstd needs Produce version {ZSTD_SINCE}, this is {version}"
        )
    if config.record_validation == "full":
        check_records(batch, header)
    return header


async def _wait(context: Context, call: Call, timeout_ms: int, parked: list[Parked], response: ProduceResponse) -> None:
    """One wait for all partitions: what was not replicated by the deadline answers REQUEST_TIMED_OUT."""
    deadline_ms = context.environment.monotonic_ms() + timeout_ms
    for partition, last_offset, answer in parked:
        try:
            await partition.replicated(last_offset, max(0.0, deadline_ms - context.environment.monotonic_ms()))
        except KafkaError as error:
            _fail(context, call, partition.topic, answer, error, response)


def _fail(
    context: Context,
    call: Call,
    topic: str,
    answer: PartitionProduceResponse,
    error: KafkaError,
    response: ProduceResponse,
) -> None:
    answer.error_code = call.failed(error)
    answer.error_message = error.message
    answer.base_offset = -1
    answer.log_append_time_ms = -1
    answer.log_start_offset = -1
    if error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER and call.version >= CURRENT_LEADER_SINCE:
        _name_the_leader(context, call, topic, answer, response)


def _name_the_leader(
    context: Context, call: Call, topic: str, answer: PartitionProduceResponse, response: ProduceResponse
) -> None:
    """Spares the client a Metadata request (KIP-951)."""
    state = context.metadata.image.partition(topic, answer.index)
    if state is None:
        return
    answer.current_leader = LeaderIdAndEpoch(leader_id=state.leader, leader_epoch=state.leader_epoch)
    endpoint = context.endpoint(state.leader, call.caller.listener)
    if endpoint is not None and all(node.node_id != state.leader for node in response.node_endpoints):
        response.node_endpoints.append(
            NodeEndpoint(node_id=state.leader, host=endpoint.host, port=endpoint.port, rack=None)
        )


def _first_error(response: ProduceResponse) -> str:
    return next(
        f"{topic.name}-{answer.index}: {ErrorCode(answer.error_code).name}, {answer.error_message}"
        for topic in response.responses
        for answer in topic.partition_responses
        if answer.error_code
    )


def fail(request: ProduceRequest, code: ErrorCode) -> ProduceResponse | None:
    """The whole request failed: every partition says so."""
    if request.acks == 0:
        raise CloseConnection(f"Produce with acks=0 failed ({code.name}), and has no other answer")
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                partition_responses=[
                    PartitionProduceResponse(index=data.index, error_code=code, base_offset=-1)
                    for data in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )
