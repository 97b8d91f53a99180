"""InitProducerId (key 22): a producer id, for an idempotent producer or for a transactional one (KIP-98).

Without a transactional id each request gets a fresh id with epoch 0, also one that brings an id and epoch: the client
asks because it cannot go on with those (`TransactionCoordinator.handleInitProducerId`).
It needs IdempotentWrite on the cluster, or Write on any topic (KIP-679).

With one, the coordinator gives the same producer id each time, with a higher epoch: whoever had the one before is
fenced, and what it had begun is aborted. The answer waits for that.

With `transaction.two.phase.commit.enable` a producer may ask for transactions without a time-out, which another system
ends, and its successor may keep the one that is under way: the answer says whose it is, and the successor ends it under
the id and epoch that it has got, before it begins one of its own (KIP-939).

Versions: 2 flexible. 3 the producer's present id and epoch (KIP-360). 4 PRODUCER_FENCED may be answered (KIP-588).
5 TRANSACTION_ABORTABLE may be answered (KIP-890). 6 two phases (KIP-939), with their option alone.
"""

import logging
from typing import Final

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import CLUSTER, ResourceType, of_transactional_id
from odradek.broker.coordinator.machine import Now, Waiting
from odradek.broker.handling.context import Call, Context
from odradek.broker.handling.log_text import shown
from odradek.broker.handling.transaction_requests import (
    ask_coordinator,
    known_to,
    require_transactional_id,
    require_write,
)
from odradek.broker.txn.machine import TransactionMachine
from odradek.broker.txn.requests import InitProducerId, Kept
from odradek.broker.txn.transaction import ProducerIdentity
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

logger = logging.getLogger(__name__)

NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
FENCED_SINCE: Final = 4


async def handle(context: Context, call: Call, request: InitProducerIdRequest) -> InitProducerIdResponse:
    if request.transactional_id is not None:
        require_write(context, call, request.transactional_id)
        if request.enable2_pc:
            wanted = of_transactional_id(request.transactional_id)
            context.require(call, Operation.TWO_PHASE_COMMIT, wanted)
    elif not (
        context.permits(call, Operation.IDEMPOTENT_WRITE, CLUSTER, logs_refusal=False)
        or context.permits_any(call, Operation.WRITE, ResourceType.TOPIC)
    ):
        what = "neither IDEMPOTENT_WRITE on the cluster nor WRITE on any topic"
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, f"{call.principal} has {what}")
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"producer id {request.producer_id} with epoch {request.producer_epoch}: give both or none",
        )
    if request.transactional_id is not None:
        require_transactional_id(request.transactional_id)
    with context.waiting(call):
        producer_id = await context.transactions.new_producer_id()
    if request.transactional_id is None:
        return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
    try:
        identity, ongoing = await _transactional(context, call, request, request.transactional_id, producer_id)
    except KafkaError as error:
        raise known_to(call, error, request.transactional_id, fenced_since=FENCED_SINCE) from error
    if request.producer_id == NO_PRODUCER_ID and identity.epoch > 0:
        logger.info(
            "transactional id %r: the producer of %s at %s has producer id %d and epoch %d now; any before is fenced",
            shown(request.transactional_id),
            shown(call.client_id),
            call.caller.peer,
            *identity,
        )
    response = InitProducerIdResponse(producer_id=identity.producer_id, producer_epoch=identity.epoch)
    if ongoing is not None:
        response.ongoing_txn_producer_id, response.ongoing_txn_producer_epoch = ongoing
    return response


async def _transactional(
    context: Context, call: Call, request: InitProducerIdRequest, transactional_id: str, producer_id: int
) -> Kept:
    expected = None
    if request.producer_id != NO_PRODUCER_ID:
        expected = ProducerIdentity(request.producer_id, request.producer_epoch)
    timeout_ms = request.transaction_timeout_ms
    init = InitProducerId(transactional_id, timeout_ms, expected, producer_id, request.enable2_pc)

    def asking(machine: TransactionMachine, waiting: Waiting[ProducerIdentity], now: Now) -> None:
        machine.init_producer_id(init, waiting, now)

    def keeping(machine: TransactionMachine, waiting: Waiting[Kept], now: Now) -> None:
        machine.keep_prepared(init, waiting, now)

    if request.keep_prepared_txn:
        return await ask_coordinator(context, call, transactional_id, keeping)
    return Kept(await ask_coordinator(context, call, transactional_id, asking), None)


def fail(request: InitProducerIdRequest, code: ErrorCode) -> InitProducerIdResponse:
    del request
    return InitProducerIdResponse(error_code=code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH)
