"""ListTransactions (key 66): the transactional ids that this broker coordinates (KIP-664).

It waits for nothing, and may name what is not committed yet. A partition that is being loaded is
COORDINATOR_LOAD_IN_PROGRESS for the whole answer, as in Kafka.

Versions: 1 for how long a transaction has been open (KIP-994). 2 a pattern for ids (KIP-1152).
"""

from collections.abc import Callable
from typing import Final

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import of_transactional_id
from odradek.broker.coordinator.shard import ShardState
from odradek.broker.handling.context import Call, Context
from odradek.broker.topic_patterns import compile_pattern
from odradek.broker.txn.transaction import Transaction, TxnState
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)
from odradek.runtime.tasks import breathe

IDS_TOGETHER: Final = 1000
"""So many are looked at before the loop has a turn."""
NAMES: Final = {*(state.text for state in TxnState), "Dead", "PrepareEpochFence"}
"""Kafka knows two more states, in which nothing is here."""


async def handle(context: Context, call: Call, request: ListTransactionsRequest) -> ListTransactionsResponse:
    response = ListTransactionsResponse(
        unknown_state_filters=[name for name in request.state_filters if name not in NAMES], transaction_states=[]
    )
    passes = _filter(request, context.environment.now_ms())
    looked_at = 0
    for shard in tuple(context.transactions.shards.all):
        if shard.state is ShardState.LOADING:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{shard.name} is being loaded; try again")
        if shard.state is not ShardState.ACTIVE:
            continue
        for transactional_id, transaction in tuple(shard.machine.transactions):
            looked_at += 1
            if looked_at % IDS_TOGETHER == 0:
                await breathe()
            if passes(transactional_id, transaction) and context.permits(
                call, Operation.DESCRIBE, of_transactional_id(transactional_id)
            ):
                response.transaction_states.append(
                    TransactionState(
                        transactional_id=transactional_id,
                        producer_id=transaction.producer_id,
                        transaction_state=transaction.state.text,
                    )
                )
    return response


def _filter(request: ListTransactionsRequest, now_ms: int) -> Callable[[str, Transaction], bool]:
    """Raises KafkaError INVALID_REGULAR_EXPRESSION."""
    states, producers = set(request.state_filters), set(request.producer_id_filters)
    matches = compile_pattern(request.transactional_id_pattern) if request.transactional_id_pattern else None

    def passes(transactional_id: str, transaction: Transaction) -> bool:
        if states and transaction.state.text not in states:
            return False
        if producers and transaction.producer_id not in producers:
            return False
        if request.duration_filter >= 0 and not _is_open_for(transaction, request.duration_filter, now_ms):
            return False
        return matches is None or matches(transactional_id)

    return passes


def _is_open_for(transaction: Transaction, duration_ms: int, now_ms: int) -> bool:
    is_open = transaction.state is TxnState.ONGOING or transaction.state.is_prepared
    return is_open and now_ms - transaction.started_ms > duration_ms


def fail(request: ListTransactionsRequest, code: ErrorCode) -> ListTransactionsResponse:
    del request
    return ListTransactionsResponse(error_code=code, transaction_states=[])
