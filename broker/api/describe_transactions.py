"""DescribeTransactions (key 65): where transactions stand, as this broker coordinates them.

It waits until what it tells is committed. Partitions of topics that the caller may not describe are left out.

Versions: 0 the API (KIP-664).
"""

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import of_topic, of_transactional_id
from odradek.broker.coordinator.machine import Now, Waiting
from odradek.broker.handling.context import Call, Context
from odradek.broker.handling.transaction_requests import ask_coordinator
from odradek.broker.txn.machine import TransactionMachine
from odradek.broker.txn.peer_requests import by_topic
from odradek.broker.txn.transaction import Transaction
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)


async def handle(context: Context, call: Call, request: DescribeTransactionsRequest) -> DescribeTransactionsResponse:
    states: list[TransactionState] = []
    for transactional_id in request.transactional_ids:
        try:
            states.append(await _describe(context, call, transactional_id))
        except KafkaError as error:
            states.append(TransactionState(transactional_id=transactional_id, error_code=call.failed(error)))
    return DescribeTransactionsResponse(transaction_states=states)


async def _describe(context: Context, call: Call, transactional_id: str) -> TransactionState:
    """Raises KafkaError."""
    context.require(call, Operation.DESCRIBE, of_transactional_id(transactional_id))

    def asking(machine: TransactionMachine, waiting: Waiting[Transaction], now: Now) -> None:
        machine.describe(transactional_id, waiting, now)

    found = await ask_coordinator(context, call, transactional_id, asking)
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=found.state.text,
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.started_ms,
        producer_id=found.producer_id,
        producer_epoch=found.epoch,
        topics=[
            TopicData(topic=name, partitions=indexes)
            for name, indexes in by_topic(found.partitions).items()
            if context.permits(call, Operation.DESCRIBE, of_topic(name))
        ],
    )


def fail(request: DescribeTransactionsRequest, code: ErrorCode) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=[
            TransactionState(transactional_id=each, error_code=code) for each in request.transactional_ids
        ]
    )
