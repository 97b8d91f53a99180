"""How handlers ask the coordinator of a transaction on this broker, and which errors which clients know."""

import logging
from collections.abc import Callable
from typing import Final, TypeVar

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import of_transactional_id
from odradek.broker.coordinator.machine import Now, Waiting
from odradek.broker.handling.context import Call, Context
from odradek.broker.handling.log_text import shown
from odradek.broker.txn.machine import TransactionMachine
from odradek.broker.txn.requests import AddPartitions
from odradek.protocol.errors import ErrorCode, KafkaError

logger = logging.getLogger(__name__)

R = TypeVar("R")

Asking = Callable[[TransactionMachine, Waiting[R], Now], None]
"""Gives a request to the machine of the transactional id's shard."""

VERSION_OF_PRODUCERS: Final = 0
"""The transaction version of a producer that names its partitions itself: no later one does."""
FENCED_SINCE: Final = 2
"""AddPartitionsToTxn, AddOffsetsToTxn and EndTxn answer PRODUCER_FENCED from this version on (KIP-588)."""


async def ask_coordinator(context: Context, call: Call, transactional_id: str, asking: Asking[R]) -> R:
    """The machine's answer, once everything that it depends on is committed.

    Raises KafkaError: INVALID_REQUEST, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, and
    what the machine answers.
    """
    require_transactional_id(transactional_id)
    shard = context.transactions.shards.of(transactional_id)
    with context.waiting(call):
        return await shard.ask(asking)


async def include(context: Context, call: Call, add: AddPartitions) -> None:
    """A producer names what its transaction is about to write to. Raises KafkaError, as the client knows it."""

    def asking(machine: TransactionMachine, waiting: Waiting[None], now: Now) -> None:
        machine.add_partitions(add, waiting, now)

    try:
        await ask_coordinator(context, call, add.transactional_id, asking)
    except KafkaError as error:
        raise known_to(call, error, add.transactional_id) from error


def require_transactional_id(transactional_id: str) -> None:
    """Raises KafkaError INVALID_REQUEST."""
    if not transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "a transactional id is not empty")


def require_write(context: Context, call: Call, transactional_id: str) -> None:
    """Raises KafkaError TRANSACTIONAL_ID_AUTHORIZATION_FAILED."""
    context.require(call, Operation.WRITE, of_transactional_id(transactional_id))


def known_to(call: Call, error: KafkaError, transactional_id: str, *, fenced_since: int = FENCED_SINCE) -> KafkaError:
    """PRODUCER_FENCED as clients of earlier versions know it; the log says who it is."""
    if error.code is not ErrorCode.PRODUCER_FENCED:
        return error
    logger.warning(
        "transactional id %r: the producer of %s at %s is fenced: %s. Each program that runs at a time needs an id of "
        "its own",
        shown(transactional_id),
        shown(call.client_id),
        call.caller.peer,
        error.message,
    )
    return KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, error.message) if call.version < fenced_since else error
