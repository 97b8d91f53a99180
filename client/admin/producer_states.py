"""What a partition knows of its producers, as Admin returns it; the requests that tell it, and that end a transaction
in one partition by a marker. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from odradek.client.admin.transaction_errors import transaction_error
from odradek.client.errors.base import ClientError
from odradek.client.errors.client_errors import broker_error
from odradek.client.topic_partition import TopicPartition, by_topic
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import describe_producers
from odradek.protocol.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse
from odradek.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

__all__ = ["MarkerUncertain", "ProducerState"]


@dataclass(frozen=True, slots=True)
class ProducerState:
    """A producer, as a partition knows it.

    `last_sequence` is that of its last record under this epoch, `last_timestamp_ms` the timestamp of its last batch (a
    Unix time in milliseconds, of the producer's clock or of a marker); -1 for none. `coordinator_epoch` is that of the
    last marker, None before the first one. `transaction_start_offset`: where its open transaction begins, None without
    one.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int | None = None
    transaction_start_offset: int | None = None


class MarkerUncertain(ClientError):
    """The answer to a marker was lost, so it may stand in the partition or not.

    It is not sent again by itself: where it stands, another one could end the producer's next transaction.
    """

    hint = "Describe the producers of the partition: if the transaction is still open there, ask again."

    def __init__(self, partition: TopicPartition, why: ClientError) -> None:
        super().__init__(f"whether the transaction has been aborted in {partition} is not known: {why.message}")
        self.partition = partition


# ---------------------------------------------------------------------------------------------------------- describing
def describe_producers_request(partitions: Iterable[TopicPartition]) -> DescribeProducersRequest:
    return DescribeProducersRequest(
        topics=[
            describe_producers.TopicRequest(name=topic, partition_indexes=indexes)
            for topic, indexes in by_topic(partitions).items()
        ]
    )


def described_producers(
    response: DescribeProducersResponse,
) -> dict[TopicPartition, tuple[ProducerState, ...] | ClientError]:
    outcomes: dict[TopicPartition, tuple[ProducerState, ...] | ClientError] = {}
    for topic in response.topics:
        for each in topic.partitions:
            partition = TopicPartition(topic.name, each.partition_index)
            if each.error_code:
                outcomes[partition] = broker_error(
                    each.error_code, each.error_message, f"DescribeProducers of {partition}"
                )
            else:
                outcomes[partition] = tuple(map(_state, each.active_producers))
    return outcomes


def _state(state: describe_producers.ProducerState) -> ProducerState:
    return ProducerState(
        state.producer_id,
        state.producer_epoch,
        state.last_sequence,
        state.last_timestamp,
        state.coordinator_epoch if state.coordinator_epoch >= 0 else None,
        state.current_txn_start_offset if state.current_txn_start_offset >= 0 else None,
    )


# ------------------------------------------------------------------------------------------------------------ aborting
def abort_request(
    partition: TopicPartition, producer_id: int, producer_epoch: int, coordinator_epoch: int
) -> WriteTxnMarkersRequest:
    """The transaction's version stays 0, by which the marker may have the epoch of the transaction's own batches."""
    return WriteTxnMarkersRequest(
        markers=[
            WritableTxnMarker(
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                transaction_result=False,
                topics=[WritableTxnMarkerTopic(name=partition.topic, partition_indexes=[partition.partition])],
                coordinator_epoch=coordinator_epoch,
            )
        ]
    )


def aborted_transaction(
    partition: TopicPartition, producer_id: int, response: WriteTxnMarkersResponse
) -> ClientError | None:
    """None where the marker stands in the partition."""
    found = [
        each.error_code
        for marker in response.markers
        for topic in marker.topics
        for each in topic.partitions
        if (marker.producer_id, topic.name, each.partition_index) == (producer_id, *partition)
    ]
    if len(found) != 1:
        return broker_error(ErrorCode.UNKNOWN_SERVER_ERROR, "", f"WriteTxnMarkers, whose answer lacks {partition},")
    (code,) = found
    return transaction_error(code, "", f"WriteTxnMarkers in {partition}") if code else None
