"""WriteTxnMarkers (key 27): a coordinator, or an operator in its place, ends a transaction in partitions that this
broker leads (KIP-98; `Admin.abortTransaction`, KIP-664).

A partition refuses what is older than what it knows: INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED.

Versions: 1 flexible. 2 the transaction's version, by which a marker that comes late is known (KIP-1228).
"""

import asyncio
import logging
from typing import Final

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import CLUSTER
from odradek.broker.handling.context import Call, Context
from odradek.broker.handling.log_text import shown
from odradek.broker.membership.peers import is_peer
from odradek.broker.txn.marker_writer import MarkerOrder, Written
from odradek.broker.txn.transaction import ProducerIdentity
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

NAMED_MAX: Final = 10
"""So many partitions are named in the log."""

logger = logging.getLogger(__name__)


async def handle(context: Context, call: Call, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
    if not context.permits(call, Operation.ALTER, CLUSTER, logs_refusal=False):
        context.require(call, Operation.CLUSTER_ACTION, CLUSTER)
    if not _is_of_a_broker(context, call):
        for marker in request.markers:
            _tell(call, marker)
    with context.waiting(call):
        written = await asyncio.gather(*(_write(context, marker) for marker in request.markers))
    return WriteTxnMarkersResponse(
        markers=[_result(call, marker, answers) for marker, answers in zip(request.markers, written, strict=True)]
    )


def _is_of_a_broker(context: Context, call: Call) -> bool:
    """Anybody may call himself one by his client id: that is not enough to do this silently."""
    return is_peer(call.client_id) and context.is_from_brokers_listener(call) and context.permits_broker(call)


async def _write(context: Context, marker: WritableTxnMarker) -> Written:
    order = MarkerOrder(
        ProducerIdentity(marker.producer_id, marker.producer_epoch),
        marker.transaction_result,
        marker.coordinator_epoch,
        [(topic.name, index) for topic in marker.topics for index in topic.partition_indexes],
        marker.transaction_version,
    )
    return await context.transactions.writer.write(order)


def _tell(call: Call, marker: WritableTxnMarker) -> None:
    logger.warning(
        "%s from %s ends a transaction by hand: producer %d epoch %d, %s, in %s",
        *(shown(str(call.principal)), call.host, marker.producer_id, marker.producer_epoch),
        "commit" if marker.transaction_result else "abort",
        _named(marker),
    )


def _named(marker: WritableTxnMarker) -> str:
    """The partitions; of many, the first ones."""
    names = [f"{shown(topic.name)}-{index}" for topic in marker.topics for index in topic.partition_indexes]
    left = len(names) - NAMED_MAX
    return ", ".join(names[:NAMED_MAX]) + (f" and {left} more" if left > 0 else "")


def _result(call: Call, marker: WritableTxnMarker, answers: Written) -> WritableTxnMarkerResult:
    def code(topic: str, index: int) -> ErrorCode:
        error = answers[topic, index]
        return ErrorCode.NONE if error is None else call.failed(error)

    return WritableTxnMarkerResult(
        producer_id=marker.producer_id,
        topics=[
            WritableTxnMarkerTopicResult(
                name=topic.name,
                partitions=[
                    WritableTxnMarkerPartitionResult(partition_index=index, error_code=code(topic.name, index))
                    for index in topic.partition_indexes
                ],
            )
            for topic in marker.topics
        ],
    )


def fail(request: WriteTxnMarkersRequest, code: ErrorCode) -> WriteTxnMarkersResponse:
    """Every partition says so."""
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(partition_index=index, error_code=code)
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )
