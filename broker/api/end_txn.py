"""EndTxn (key 26): a producer commits or aborts its transaction (KIP-98).

It is answered when the decision is committed in the coordinator's log; markers follow (txn/machine.py).

Versions: 2 PRODUCER_FENCED may be answered (KIP-588). 3 flexible. 4 TRANSACTION_ABORTABLE may be answered. 5 the
producer id and epoch with which the producer goes on: from this version on each transaction has its own (KIP-890).
"""

from typing import Final

from odradek.broker.coordinator.machine import Now, Waiting
from odradek.broker.handling.context import Call, Context
from odradek.broker.handling.transaction_requests import ask_coordinator, known_to, require_write
from odradek.broker.txn.machine import TransactionMachine
from odradek.broker.txn.requests import EndTransaction
from odradek.broker.txn.transaction import BUMPED_FOR_EACH_SINCE, EPOCH_MAX, NO_PRODUCER_ID, ProducerIdentity
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse

NEXT_IDENTITY_SINCE: Final = 5


async def handle(context: Context, call: Call, request: EndTxnRequest) -> EndTxnResponse:
    require_write(context, call, request.transactional_id)
    bumps = call.version >= NEXT_IDENTITY_SINCE
    new_producer_id = NO_PRODUCER_ID
    if bumps and request.producer_epoch >= EPOCH_MAX:
        with context.waiting(call):
            new_producer_id = await context.transactions.new_producer_id()
    end = EndTransaction(
        request.transactional_id,
        ProducerIdentity(request.producer_id, request.producer_epoch),
        request.committed,
        BUMPED_FOR_EACH_SINCE if bumps else 0,
        new_producer_id,
    )

    def asking(machine: TransactionMachine, waiting: Waiting[ProducerIdentity], now: Now) -> None:
        machine.end(end, waiting, now)

    try:
        identity = await ask_coordinator(context, call, request.transactional_id, asking)
    except KafkaError as error:
        raise known_to(call, error, request.transactional_id) from error
    return EndTxnResponse(producer_id=identity.producer_id, producer_epoch=identity.epoch)


def fail(request: EndTxnRequest, code: ErrorCode) -> EndTxnResponse:
    del request
    return EndTxnResponse(error_code=code)
