"""TxnOffsetCommit (key 28): offsets of a group that count when a transaction is committed (KIP-98, KIP-447).

The coordinator of the transaction has to know of it, as for a Produce (handling/transaction_proofs.py). Until the
marker comes, who asks for stable offsets only is told UNSTABLE_OFFSET_COMMIT.

Versions: 2 leader epoch (KIP-320). 3 flexible, generation and member (KIP-447). 4 TRANSACTION_ABORTABLE may be
answered. 5 the transaction includes the group's offsets by that (KIP-890). 6 topic ids in the place of names;
UNKNOWN_TOPIC_ID, GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH may be answered (KIP-1319, Kafka 4.4).
"""

from collections.abc import Collection
from typing import Final

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import of_group, of_topic
from odradek.broker.group.offset_requests import CommitInTransaction, OffsetToCommit
from odradek.broker.group.offsets import Position
from odradek.broker.handling.context import Call, Context
from odradek.broker.handling.group_requests import ask_group, require_group_id
from odradek.broker.handling.large_requests import Steps
from odradek.broker.handling.transaction_proofs import FirstBatch, proofs_of, refusal
from odradek.broker.handling.transaction_requests import require_transactional_id, require_write
from odradek.broker.log.verifications import Proof
from odradek.broker.txn.transaction import ProducerIdentity
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

LOADING_SINCE: Final = 2
"""Before, clients do not know COORDINATOR_LOAD_IN_PROGRESS."""
ABORTABLE_SINCE: Final = 4
INCLUDES_SINCE: Final = 5
TOPIC_IDS_SINCE: Final = 6

Codes = dict[Position, ErrorCode]


async def handle(context: Context, call: Call, request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
    require_write(context, call, request.transactional_id)
    context.require(call, Operation.READ, of_group(request.group_id))
    require_transactional_id(request.transactional_id)
    require_group_id(request.group_id)
    steps = Steps(call)
    codes, offsets = await _looked_at(context, call, request, steps)
    if offsets:
        try:
            codes |= await _commit(context, call, request, offsets)
        except KafkaError as error:
            codes |= dict.fromkeys((each.position for each in offsets), _known_to(call, error.code))
    return await _response(call, request, codes, steps)


async def _looked_at(
    context: Context, call: Call, request: TxnOffsetCommitRequest, steps: Steps
) -> tuple[Codes, list[OffsetToCommit]]:
    """The refusals, and what is left to commit."""
    codes: Codes = {}
    offsets: list[OffsetToCommit] = []
    image = context.metadata.image
    for topic in request.topics:
        if call.version >= TOPIC_IDS_SINCE:
            topic.name = image.name_by_id(topic.topic_id)
        is_unknown_id = call.version >= TOPIC_IDS_SINCE and not topic.name
        is_permitted = is_unknown_id or context.permits(call, Operation.READ, of_topic(topic.name))
        found = image.topics.get(topic.name)
        for partition in topic.partitions:
            await steps.step()
            position = topic.name, partition.partition_index
            if is_unknown_id:
                codes[position] = ErrorCode.UNKNOWN_TOPIC_ID
            elif not is_permitted:
                codes[position] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif found is None or not 0 <= partition.partition_index < len(found.partitions):
                codes[position] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                epoch, metadata = partition.committed_leader_epoch, partition.committed_metadata or ""
                offset = partition.committed_offset
                offsets.append(OffsetToCommit(position, found.topic_id, offset, epoch, metadata))
    return codes, offsets


async def _commit(
    context: Context, call: Call, request: TxnOffsetCommitRequest, offsets: list[OffsetToCommit]
) -> Codes:
    """Raises KafkaError: nothing is committed."""
    commit = CommitInTransaction(
        request.group_id,
        request.member_id,
        request.group_instance_id,
        request.generation_id,
        request.producer_id,
        request.producer_epoch,
        await _proof(context, call, request),
        offsets,
        call.version,
    )
    errors: list[ErrorCode] = await ask_group(
        context,
        call,
        request.group_id,
        lambda machine, waiting, now: machine.commit_in_transaction(commit, waiting, now),
    )
    return {each.position: code for each, code in zip(offsets, errors, strict=True)}


async def _proof(context: Context, call: Call, request: TxnOffsetCommitRequest) -> Proof:
    """Raises KafkaError: as the coordinators of the group and of the transaction refuse."""
    partition = context.groups.of(request.group_id).partition
    producer = ProducerIdentity(request.producer_id, request.producer_epoch)
    proofs = await proofs_of(
        context,
        call,
        request.transactional_id,
        producer,
        [FirstBatch(partition)],
        adds=call.version >= INCLUDES_SINCE,
        is_coordinators=True,
    )
    proof = proofs.get((partition.topic, partition.index), Proof(is_coordinators=True))
    if isinstance(proof, ErrorCode):
        # As in Kafka. The others would be taken for the group's coordinator's, and CONCURRENT_TRANSACTIONS for the end
        # of the transaction.
        passing, includes = ErrorCode.COORDINATOR_NOT_AVAILABLE, call.version >= INCLUDES_SINCE
        raise refusal(proof, request.transactional_id, passing, includes=includes)
    return proof


def _known_to(call: Call, code: ErrorCode) -> ErrorCode:
    """As clients of this version understand it."""
    if code is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.TRANSACTION_ABORTABLE and call.version < ABORTABLE_SINCE:
        return ErrorCode.INVALID_TXN_STATE
    if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and call.version < LOADING_SINCE:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return code


async def _response(call: Call, request: TxnOffsetCommitRequest, codes: Codes, steps: Steps) -> TxnOffsetCommitResponse:
    response = TxnOffsetCommitResponse(topics=[])
    for topic in request.topics:
        told: list[TxnOffsetCommitResponsePartition] = []
        for each in topic.partitions:
            await steps.step()
            code = codes[topic.name, each.partition_index]
            if code:
                call.failed(KafkaError(code))
            told.append(TxnOffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code))
        response.topics.append(TxnOffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=told))
    return response


def refuse(
    context: Context, call: Call, answer: TxnOffsetCommitResponse, topics: Collection[str], error: KafkaError
) -> TxnOffsetCommitResponse:
    """The rights to these topics were taken away while the offsets were stored."""
    for topic in answer.topics:
        name = context.metadata.image.name_by_id(topic.topic_id) if call.version >= TOPIC_IDS_SINCE else topic.name
        if name in topics or not name:
            for each in topic.partitions:
                each.error_code = call.failed(error)
    return answer


def fail(request: TxnOffsetCommitRequest, code: ErrorCode) -> TxnOffsetCommitResponse:
    """Every partition says so."""
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    TxnOffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
