"""InitProducerId (key 22): a producer id for an idempotent producer (KIP-98).

Without a transactional id each request gets a fresh id with epoch 0, also one that brings an id and epoch: the client
asks because it cannot go on with those (`TransactionCoordinator.handleInitProducerId`). A transactional id needs a
transaction coordinator, and there is none yet: COORDINATOR_NOT_AVAILABLE, which is retriable.

Versions: 2 flexible. 3 the producer's present id and epoch (KIP-360). 4 PRODUCER_FENCED may be answered (KIP-588).
5 TRANSACTION_ABORTABLE may be answered (KIP-890).
"""

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import CLUSTER, of_transactional_id
from odradek.broker.cluster.store import StoreClosed
from odradek.broker.handling.context import Call, Context
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1


async def handle(context: Context, call: Call, request: InitProducerIdRequest) -> InitProducerIdResponse:
    if request.transactional_id:
        context.access.require(call, Operation.WRITE, of_transactional_id(request.transactional_id))
    else:
        context.access.require(call, Operation.IDEMPOTENT_WRITE, CLUSTER)
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"producer id {request.producer_id} with epoch {request.producer_epoch}: give both or none",
        )
    if request.transactional_id is not None:
        if not request.transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "a transactional id is not empty")
        raise KafkaError(
            ErrorCode.COORDINATOR_NOT_AVAILABLE, "this broker has no coordinators: transactions are not served"
        )
    try:
        with context.waiting(call):
            producer_id = await context.producer_ids.allocate()
    except (OSError, StoreClosed) as error:
        # What Kafka answers while it has no block of ids; producers ask again.
        raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"no block of producer ids: {error}") from error
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def fail(request: InitProducerIdRequest, code: ErrorCode) -> InitProducerIdResponse:
    del request
    return InitProducerIdResponse(error_code=code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH)
