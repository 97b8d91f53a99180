"""AddPartitionsToTxn (key 24): which partitions a transaction is about to write to (KIP-98).

Producers ask about one transaction, and get all of the partitions or none: where one is refused, the others are
OPERATION_NOT_ATTEMPTED. Brokers ask from version 4 on, about several transactions: whether partitions are included
already, or to have them included (KIP-890); errors of a transaction are those of each of its partitions.

Versions: 2 PRODUCER_FENCED may be answered (KIP-588). 3 flexible. 4 for brokers (KIP-890). 5 TRANSACTION_ABORTABLE may
be answered.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import CLUSTER, of_topic
from odradek.broker.handling.context import Call, Context
from odradek.broker.handling.large_requests import Steps
from odradek.broker.handling.transaction_requests import VERSION_OF_PRODUCERS, include, require_write
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
    context.access.require(call, Operation.CLUSTER_ACTION, CLUSTER)
    context.require_brokers(call.caller.listener)
    with context.waiting(call):
        answers = await asyncio.gather(*(_of_a_broker(context, call, each) for each in request.transactions))
    return AddPartitionsToTxnResponse(
        results_by_transaction=[
            AddPartitionsToTxnResult(
                transactional_id=each.transactional_id, topic_results=_results(call, each.topics, answer)
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
    places = _places(request.v3_and_below_topics)
    answers = await _refusals(context, call, request.v3_and_below_topics)
    if answers:
        answers |= dict.fromkeys(places - answers.keys(), ErrorCode.OPERATION_NOT_ATTEMPTED)
    else:
        producer = ProducerIdentity(request.v3_and_below_producer_id, request.v3_and_below_producer_epoch)
        try:
            await include(context, call, AddPartitions(transactional_id, producer, places, VERSION_OF_PRODUCERS))
        except KafkaError as error:
            answers = dict.fromkeys(places, error.code)
    results = _results(call, request.v3_and_below_topics, answers)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results)


async def _refusals(
    context: Context, call: Call, topics: Iterable[AddPartitionsToTxnTopic]
) -> dict[TopicPartition, ErrorCode]:
    """Of the partitions that may not be written to, or do not exist."""
    found: dict[TopicPartition, ErrorCode] = {}
    image, steps = context.metadata.image, Steps(call)
    for topic in topics:
        is_permitted = context.access.permits(call, Operation.WRITE, of_topic(topic.name))
        for index in topic.partitions:
            await steps.step()
            if not is_permitted:
                found[topic.name, index] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif image.partition(topic.name, index) is None:
                found[topic.name, index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return found


def _places(topics: Iterable[AddPartitionsToTxnTopic]) -> frozenset[TopicPartition]:
    return frozenset((topic.name, index) for topic in topics for index in topic.partitions)


def _results(
    call: Call, topics: Iterable[AddPartitionsToTxnTopic], codes: Included
) -> list[AddPartitionsToTxnTopicResult]:
    """Of a partition that has no code: NONE."""

    def told(place: TopicPartition) -> ErrorCode:
        code = codes.get(place, ErrorCode.NONE)
        return call.failed(KafkaError(code)) if code else code

    return _with_codes(topics, told)


def _with_codes(
    topics: Iterable[AddPartitionsToTxnTopic], code_of: Callable[[TopicPartition], ErrorCode]
) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=index, partition_error_code=code_of((topic.name, index))
                )
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]


def fail(request: AddPartitionsToTxnRequest, code: ErrorCode) -> AddPartitionsToTxnResponse:
    """Both shapes at once: a version carries one of them."""
    every = _with_codes(request.v3_and_below_topics, lambda place: code)
    return AddPartitionsToTxnResponse(error_code=code, results_by_topic_v3_and_below=every)
