"""AddOffsetsToTxn (key 25): a transaction is about to commit offsets of a group (KIP-98): it includes the partition of
`__consumer_offsets` that they will be in.

Versions: 2 PRODUCER_FENCED may be answered (KIP-588). 3 flexible. 4 TRANSACTION_ABORTABLE may be answered (KIP-890).
"""

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import of_group
from odradek.broker.coordinator.key_partition import partition_of
from odradek.broker.handling.context import Call, Context
from odradek.broker.handling.coordinator_topics import OF_GROUPS, ensure_coordinator_topic
from odradek.broker.handling.transaction_requests import VERSION_OF_PRODUCERS, include, require_write
from odradek.broker.txn.requests import AddPartitions
from odradek.broker.txn.transaction import ProducerIdentity
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse


async def handle(context: Context, call: Call, request: AddOffsetsToTxnRequest) -> AddOffsetsToTxnResponse:
    require_write(context, call, request.transactional_id)
    context.require(call, Operation.READ, of_group(request.group_id))
    topic = await ensure_coordinator_topic(context, OF_GROUPS)
    place = topic.name, partition_of(request.group_id, len(topic.partitions))
    producer = ProducerIdentity(request.producer_id, request.producer_epoch)
    await include(
        context, call, AddPartitions(request.transactional_id, producer, frozenset((place,)), VERSION_OF_PRODUCERS)
    )
    return AddOffsetsToTxnResponse()


def fail(request: AddOffsetsToTxnRequest, code: ErrorCode) -> AddOffsetsToTxnResponse:
    del request
    return AddOffsetsToTxnResponse(error_code=code)
