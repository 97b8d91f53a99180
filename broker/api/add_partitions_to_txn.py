"""AddPartitionsToTxn (key 24): which partitions a transaction is about to write to (KIP-98).

Producers ask about one transaction, and get all of the partitions or none: where one is refused, the others are
OPERATION_NOT_ATTEMPTED. Brokers ask from version 4 on, about several transactions: whether partitions are included
already, or to have them included (KIP-890); errors of a transaction are those of each of its partitions.

Versions: 2 PRODUCER_FENCED may be answered (KIP-588). 3 flexible. 4 for brokers (KIP-890). 5 TRANSACTION_ABORTABLE may
be answered.
"""

import asyncio
from collections.abc import Iterable
from typing import Final

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import of_topic
from odradek.broker.handling.context import Call, Context
from odradek.broker.handling.large_requests import Steps
from odradek.broker.handling.transaction_requests import VERSION_OF_PRODUCERS, include, require_write
from odradek.broker.internal_topic_names import is_internal
from odradek.broker.txn.peer_requests import Included, Inclusion
from odradek.broker.txn.requests import AddPartitions
from odradek.broker.txn.transaction import ProducerIdentity, TopicPartition
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

OF_BROKERS_SINCE: Final = 4
ABORTABLE_SINCE: Final = 5


async def handle(context: Context, call: Call, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
    if call.version < OF_BROKERS_SINCE:
        return await _of_a_producer(context, call, request)
    context.require_broker(call)
    with context.waiting(call):
        answers = await asyncio.gather(*(_of_a_broker(context, call, each) for each in request.transactions))
    steps = Steps(call)
    return AddPartitionsToTxnResponse(
        results_by_transaction=[
            AddPartitionsToTxnResult(
                transactional_id=each.transactional_id, topic_results=await _results(call, each.topics, answer, steps)
            )
            for each, answer in zip(request.transactions, answers, strict=True)
        ]
    )


async def _of_a_broker(context: Context, call: Call, asked: AddPartitionsToTxnTransaction) -> Included:
    producer = ProducerIdentity(asked.producer_id, asked.producer_epoch)
    places = _places(asked.topics)
    try:
        answers = await context.transactions.inclusions.ask_here(
            Inclusion(asked.transactional_id, producer, places, not asked.verify_only)
        )
    except KafkaError as error:
        return dict.fromkeys(places, error.code)
    if call.version >= ABORTABLE_SINCE:
        return answers
    return {
        place: ErrorCode.INVALID_TXN_STATE if code is ErrorCode.TRANSACTION_ABORTABLE else code
        for place, code in answers.items()
    }


async def _of_a_producer(
    context: Context, call: Call, request: AddPartitionsToTxnRequest
) -> AddPartitionsToTxnResponse:
    transactional_id = request.v3_and_below_transactional_id
    require_write(context, call, transactional_id)
    places, steps = _places(request.v3_and_below_topics), Steps(call)
    answers = await _refusals(context, call, request.v3_and_below_topics, steps)
    if answers:
        answers |= dict.fromkeys(places - answers.keys(), ErrorCode.OPERATION_NOT_ATTEMPTED)
    else:
        producer = ProducerIdentity(request.v3_and_below_producer_id, request.v3_and_below_producer_epoch)
        try:
            await include(context, call, AddPartitions(transactional_id, producer, places, VERSION_OF_PRODUCERS))
        except KafkaError as error:
            answers = dict.fromkeys(places, error.code)
    results = await _results(call, request.v3_and_below_topics, answers, steps)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results)


async def _refusals(
    context: Context, call: Call, topics: Iterable[AddPartitionsToTxnTopic], steps: Steps
) -> dict[TopicPartition, ErrorCode]:
    """Of the partitions that may not be written to, or do not exist."""
    found: dict[TopicPartition, ErrorCode] = {}
    image = context.metadata.image
    for topic in topics:
        # To the topics of the coordinators nobody writes in a transaction, whatever he may do.
        is_permitted = not is_internal(topic.name) and context.permits(call, Operation.WRITE, of_topic(topic.name))
        for index in topic.partitions:
            await steps.step()
            if not is_permitted:
                found[topic.name, index] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif image.partition(topic.name, index) is None:
                found[topic.name, index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return found


def _places(topics: Iterable[AddPartitionsToTxnTopic]) -> frozenset[TopicPartition]:
    return frozenset((topic.name, index) for topic in topics for index in topic.partitions)


async def _results(
    call: Call, topics: Iterable[AddPartitionsToTxnTopic], codes: Included, steps: Steps
) -> list[AddPartitionsToTxnTopicResult]:
    """Of a partition that has no code: NONE."""
    results: list[AddPartitionsToTxnTopicResult] = []
    for topic in topics:
        told: list[AddPartitionsToTxnPartitionResult] = []
        for index in topic.partitions:
            await steps.step()
            code = codes.get((topic.name, index), ErrorCode.NONE)
            if code:
                call.failed(KafkaError(code))
            told.append(AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code))
        results.append(AddPartitionsToTxnTopicResult(name=topic.name, results_by_partition=told))
    return results


def fail(request: AddPartitionsToTxnRequest, code: ErrorCode) -> AddPartitionsToTxnResponse:
    """Both shapes at once: a version carries one of them."""
    every = [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
                for index in topic.partitions
            ],
        )
        for topic in request.v3_and_below_topics
    ]
    return AddPartitionsToTxnResponse(error_code=code, results_by_topic_v3_and_below=every)
