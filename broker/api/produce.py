"""Produce (key 0): append batches, answer when the acknowledgement that was asked for is true.

Each partition of a request stands alone: its error is its own. What its batch must be like, and what a topic changes in
it, is for `odradek.broker.log.validation` to say. A transaction's first batch in a partition waits for its
coordinator's word (handling/transaction_proofs.py). Then all appends happen, without an await, so arrival order is log
order; then one wait covers them all, with the request's deadline (with acks=1 only for topics that are synced, by
`flush.messages`). acks=0 has no answer: nothing is written back, and an error closes the connection, which is the only
way to tell (`KafkaApis.handleProduceRequest`).

Versions: 3 transactional id, magic 2 only (KIP-98). 5 log start offset. 7 zstd (KIP-110). 8 record errors (KIP-467).
9 flexible. 10 current leader in the answer (KIP-951). 11 TRANSACTION_ABORTABLE may be answered (KIP-890). 12 what a
transaction writes to is included in it by that. 13 topic ids in the place of names (KIP-516). 0 to 2 are advertised and
not served: librdkafka switches gzip and snappy off unless it sees 0 (KAFKA-18659).
"""

from collections.abc import Collection, Mapping
from typing import Final

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import of_topic
from odradek.broker.handling.client_view import current_leader
from odradek.broker.handling.context import Call, CloseConnection, Context, of_partition
from odradek.broker.handling.internal_protection import require_appendable
from odradek.broker.handling.log_text import shown
from odradek.broker.handling.transaction_proofs import FirstBatch, proofs_of, refusal
from odradek.broker.handling.transaction_requests import require_write
from odradek.broker.log.validation import RECORD_ERRORS_MAX, RecordsRefused
from odradek.broker.log.verifications import NO_PROOF, Proof
from odradek.broker.replica.acknowledgements import ACKS_ALL
from odradek.broker.replica.append_ticket import AppendTicket, outcomes
from odradek.broker.replica.partition import Partition
from odradek.broker.txn.transaction import ProducerIdentity, TopicPartition
from odradek.protocol.batches.batch import is_of_transaction, read_header
from odradek.protocol.codec.schema import uuid_text
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

ZSTD_SINCE = 7
CURRENT_LEADER_SINCE = 10
ABORTABLE_SINCE = 11
INCLUDES_SINCE = 12
TOPIC_IDS_SINCE = 13
WRITE: Final = Operation.WRITE  # an enum looks its members up slowly, and each partition of each request asks

Proofs = Mapping[TopicPartition, Proof | ErrorCode]
NO_PROOFS: Final[Proofs] = {}

Appends = list[tuple[str, AppendTicket, PartitionProduceResponse]]
"""What was appended: topic, ticket, and the answer to complete."""


async def handle(context: Context, call: Call, request: ProduceRequest) -> ProduceResponse | None:
    if context.quotas is not None:
        context.quotas.produced(call)
    is_of_a_transaction = _require_transactional_id(context, call, request)
    response = ProduceResponse(responses=[])
    now_ms = context.environment.now_ms()
    appends: Appends = []
    proofs = await _proofs(context, call, request) if is_of_a_transaction else NO_PROOFS
    for topic in request.topic_data:
        name = _name(context, call, topic)
        answers: list[PartitionProduceResponse] = []
        for data in topic.partition_data:
            answer = PartitionProduceResponse(index=data.index, error_code=0, base_offset=-1)
            answers.append(answer)
            try:
                proof = proofs.get((name, data.index), NO_PROOF)
                ticket = _append(context, call, request, name, data, answer, now_ms, proof)
                appends.append((name, ticket, answer))
            except Exception as error:  # noqa: BLE001 - the other partitions are answered all the same
                _fail(context, call, name, answer, of_partition(error, name, data.index), response)
        response.responses.append(
            TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=answers)
        )
    if request.acks == 0:
        if call.errors:
            raise CloseConnection(f"Produce with acks=0 failed ({_first_error(response)}), and has no other answer")
        return None
    errors = await outcomes([ticket for _, ticket, _ in appends], request.timeout_ms, context.environment)
    for (name, _, answer), failure in zip(appends, errors, strict=True):
        if failure is not None:
            _fail(context, call, name, answer, failure, response)
    return response


def _require_transactional_id(context: Context, call: Call, request: ProduceRequest) -> bool:
    """Whether any batch is of a transaction; then all of the request needs the right to its id, before anything else is
    looked at. Raises KafkaError TRANSACTIONAL_ID_AUTHORIZATION_FAILED."""
    if not _is_of_a_transaction(request):
        return False
    if request.transactional_id is None:
        raise KafkaError(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            "a batch is of a transaction, and the request names no transactional id",
        )
    require_write(context, call, request.transactional_id)
    return True


def _is_of_a_transaction(request: ProduceRequest) -> bool:
    for topic in request.topic_data:
        for data in topic.partition_data:
            if data.records is not None and is_of_transaction(data.records):
                return True
    return False


def _name(context: Context, call: Call, topic: TopicProduceData) -> str:
    """Of the topic that is meant; "" for an id that no topic has: none has that name."""
    return topic.name if call.version < TOPIC_IDS_SINCE else context.metadata.image.name_by_id(topic.topic_id)


def _append(
    context: Context,
    call: Call,
    request: ProduceRequest,
    topic: str,
    data: PartitionProduceData,
    answer: PartitionProduceResponse,
    now_ms: int,
    proof: Proof | ErrorCode,
) -> AppendTicket:
    """Checks and appends one partition's batch. Raises KafkaError, and then nothing was appended."""
    partition = _writable(context, call, topic, data.index)
    if request.acks not in (ACKS_ALL, 0, 1):
        raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks={request.acks}; it must be 0, 1 or -1 (all)")
    if data.records is None:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"no batch for {topic}-{data.index}; exactly one is required")
    if isinstance(proof, ErrorCode):
        raise _not_included(call, proof, request.transactional_id)
    with_zstd = call.version >= ZSTD_SINCE
    if partition.config.takes_batches_as_sent:
        ticket = partition.append(data.records, request.acks, now_ms, with_zstd=with_zstd, proof=proof)
    else:
        begun_s = context.environment.precise_s()
        ticket = partition.append(data.records, request.acks, now_ms, with_zstd=with_zstd, proof=proof)
        call.times.conversions_s += context.environment.precise_s() - begun_s
    answer.base_offset = ticket.appended.base_offset
    answer.log_append_time_ms = ticket.appended.log_append_time_ms
    answer.log_start_offset = partition.log.end.log_start_offset
    return ticket


def _writable(context: Context, call: Call, topic: str, index: int) -> Partition:
    """Raises KafkaError."""
    if not topic and call.version >= TOPIC_IDS_SINCE:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "there is no topic with this id")
    context.require(call, WRITE, of_topic(topic))
    require_appendable(call, topic)
    return context.partitions.find(topic, index)


async def _proofs(context: Context, call: Call, request: ProduceRequest) -> Proofs:
    """For the batches that may be the first of their transaction. Raises KafkaError: INVALID_PRODUCER_ID_MAPPING where
    they are of several producers."""
    transactional_id = request.transactional_id or ""
    producers: set[ProducerIdentity] = set()
    batches: list[FirstBatch] = []
    for topic in request.topic_data:
        name = _name(context, call, topic)
        for data in topic.partition_data:
            if data.records is None or not is_of_transaction(data.records):
                continue
            header = read_header(data.records)
            producers.add(ProducerIdentity(header.producer_id, header.producer_epoch))
            try:
                partition = _writable(context, call, name, data.index)
            except KafkaError:
                continue  # it is refused where it would be appended
            if partition.is_leader:
                batches.append(FirstBatch(partition, header.base_sequence))
    if not batches:
        return NO_PROOFS
    if len(producers) > 1:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, "one request has batches of several producers")
    [producer] = producers
    return await proofs_of(context, call, transactional_id, producer, batches, adds=call.version >= INCLUDES_SINCE)


def _not_included(call: Call, code: ErrorCode, transactional_id: str | None) -> KafkaError:
    """What clients of this version understand of a coordinator's refusal."""
    refused = refusal(code, transactional_id, ErrorCode.NOT_ENOUGH_REPLICAS, includes=call.version >= INCLUDES_SINCE)
    if code is ErrorCode.PRODUCER_FENCED:
        return KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, refused.message)
    if code is ErrorCode.TRANSACTION_ABORTABLE and call.version < ABORTABLE_SINCE:
        return KafkaError(ErrorCode.INVALID_TXN_STATE, refused.message)
    return refused


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
    if isinstance(error, RecordsRefused):
        _name_the_records(call, answer, error)
    if error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER and call.version >= CURRENT_LEADER_SINCE:
        _name_the_leader(context, call, topic, answer, response)


def refuse(
    context: Context, call: Call, answer: ProduceResponse, topics: Collection[str], error: KafkaError
) -> ProduceResponse:
    """The rights to these topics were taken away while their replicas were waited for."""
    for topic in answer.responses:
        name = context.metadata.image.name_by_id(topic.topic_id) if call.version >= TOPIC_IDS_SINCE else topic.name
        if name in topics or not name:
            for each in topic.partition_responses:
                _fail(context, call, name, each, error, answer)
    return answer


def _name_the_records(call: Call, answer: PartitionProduceResponse, error: RecordsRefused) -> None:
    """Which records of the batch are to blame (KIP-467).

    Each partition that fails has fewer of them than the one before, so that an answer stays small whatever was sent.
    """
    assert call.errors is not None, "this error is one of them"
    answer.record_errors = [
        BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
        for index, message in error.record_errors[: RECORD_ERRORS_MAX // len(call.errors)]
    ]


def _name_the_leader(
    context: Context, call: Call, topic: str, answer: PartitionProduceResponse, response: ProduceResponse
) -> None:
    """Spares the client a Metadata request (KIP-951)."""
    leader = current_leader(context, call, topic, answer.index)
    if leader is None:
        return
    answer.current_leader = LeaderIdAndEpoch(leader_id=leader.leader_id, leader_epoch=leader.leader_epoch)
    endpoint = leader.endpoint
    if endpoint is not None and all(node.node_id != leader.leader_id for node in response.node_endpoints):
        response.node_endpoints.append(
            NodeEndpoint(node_id=leader.leader_id, host=endpoint.host, port=endpoint.port, rack=leader.rack)
        )


def _first_error(response: ProduceResponse) -> str:
    return next(
        f"{shown(topic.name) or uuid_text(topic.topic_id)}-{answer.index}: "
        f"{ErrorCode(answer.error_code).name}, {shown(answer.error_message)}"
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
                topic_id=topic.topic_id,
                partition_responses=[
                    PartitionProduceResponse(index=data.index, error_code=code, base_offset=-1)
                    for data in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )
