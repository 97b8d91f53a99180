"""What brokers ask of one another for transactions, as requests and answers of the protocol: markers (WriteTxnMarkers)
and whether a transaction includes partitions (AddPartitionsToTxn from version 4 on, KIP-890)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from odradek.broker.txn.marker_writer import MarkerOrder, Written
from odradek.broker.txn.transaction import ProducerIdentity, TopicPartition
from odradek.client.network.connection import Connection
from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage, code_of
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from odradek.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

ANSWER_MS = 30_000.0
"""So long another broker may take, whose replicas have to answer, too."""


class Inclusion(NamedTuple):
    """A question to the coordinator: are these partitions in the transaction, or (`adds`) let them be."""

    transactional_id: str
    producer: ProducerIdentity
    partitions: frozenset[TopicPartition]
    adds: bool


Included = Mapping[TopicPartition, ErrorCode]


async def ask_for_markers(connection: Connection, orders: Sequence[MarkerOrder]) -> list[Written]:
    """Raises MalformedMessage, and as the connection does."""
    request = WriteTxnMarkersRequest(
        markers=[
            WritableTxnMarker(
                producer_id=order.producer.producer_id,
                producer_epoch=order.producer.epoch,
                transaction_result=order.is_commit,
                topics=[
                    WritableTxnMarkerTopic(name=name, partition_indexes=indexes)
                    for name, indexes in by_topic(order.partitions).items()
                ],
                coordinator_epoch=order.coordinator_epoch,
                transaction_version=order.transaction_version,
            )
            for order in orders
        ]
    )
    response = await connection.ask(request, timeout_ms=ANSWER_MS)
    if [marker.producer_id for marker in response.markers] != [order.producer.producer_id for order in orders]:
        raise MalformedMessage("WriteTxnMarkers: other markers are answered than were asked for")
    return [
        {
            (topic.name, partition.partition_index): as_error(partition.error_code)
            for topic in marker.topics
            for partition in topic.partitions
        }
        for marker in response.markers
    ]


async def ask_for_inclusion(connection: Connection, questions: Sequence[Inclusion]) -> list[Included]:
    """Raises MalformedMessage, KafkaError, and as the connection does."""
    request = AddPartitionsToTxnRequest(
        transactions=[
            AddPartitionsToTxnTransaction(
                transactional_id=question.transactional_id,
                producer_id=question.producer.producer_id,
                producer_epoch=question.producer.epoch,
                verify_only=not question.adds,
                topics=[
                    AddPartitionsToTxnTopic(name=name, partitions=indexes)
                    for name, indexes in by_topic(question.partitions).items()
                ],
            )
            for question in questions
        ]
    )
    response = await connection.ask(request, timeout_ms=ANSWER_MS)
    answers: list[Included] = [
        {
            (topic.name, partition.partition_index): code_of(partition.partition_error_code)
            for topic in result.topic_results
            for partition in topic.results_by_partition
        }
        for result in response.results_by_transaction
    ]
    if response.error_code:
        code = code_of(response.error_code)
        return [dict.fromkeys(question.partitions, code) for question in questions]
    if len(answers) != len(questions):
        raise MalformedMessage("AddPartitionsToTxn: other transactions are answered than were asked for")
    return answers


def by_topic(places: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """In order."""
    found: dict[str, list[int]] = {}
    for topic, index in sorted(places):
        found.setdefault(topic, []).append(index)
    return found


def as_error(code: int) -> KafkaError | None:
    return KafkaError(code_of(code)) if code else None
