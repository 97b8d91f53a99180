"""Transactions as their coordinators have them, and the requests that list, describe and fence them. Pure.

States are the words of the brokers ("Ongoing", "PrepareCommit", "CompleteAbort"), since later brokers have more of
them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from odradek.client.admin.transaction_errors import transaction_error
from odradek.client.errors.base import ClientError
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.messages.describe_transactions import DescribeTransactionsResponse, TransactionState
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse

__all__ = ["FencedProducer", "TransactionDescription", "TransactionListing", "UnknownStates"]

DURATION_SINCE: Final = 1
"""The version of ListTransactions from which on transactions can be listed by how long they are open (KIP-994)."""
PATTERN_SINCE: Final = 2
"""The version of ListTransactions from which on they can be listed by a pattern of their ids (KIP-1152)."""
ANY_DURATION: Final = -1


@dataclass(frozen=True, slots=True)
class TransactionListing:
    """A transactional id in the list of all. `coordinator_id`: the broker that coordinates it."""

    transactional_id: str
    producer_id: int
    state: str
    coordinator_id: int


@dataclass(frozen=True, slots=True)
class TransactionDescription:
    """A transactional id, and its transaction, as the coordinator has it.

    `started_ms`: a Unix time in milliseconds; None where no transaction is under way. `timeout_ms`: when the
    coordinator aborts it. `partitions`: those that the transaction includes and that have no marker yet, of topics that
    the principal may describe.
    """

    transactional_id: str
    state: str
    coordinator_id: int
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    started_ms: int | None = None
    partitions: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class FencedProducer:
    """What a transactional id goes on with: producers of an earlier epoch, or of another id, are fenced."""

    producer_id: int
    producer_epoch: int


class UnknownStates(ClientError):
    """A broker knows no such states of transactions, so none of them has been looked for there."""

    hint = "Some that there are: Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, CompleteAbort."

    def __init__(self, node_id: int, states: Sequence[str]) -> None:
        super().__init__(f"broker {node_id} knows no transactions in the state(s) {', '.join(states)}")
        self.states = tuple(states)


# ------------------------------------------------------------------------------------------------------------- listing
def list_transactions_request(
    states: Sequence[str], producer_ids: Sequence[int], duration_ms: int | None, pattern: str | None
) -> tuple[ListTransactionsRequest, int]:
    """With the version that it needs."""
    at_least = DURATION_SINCE if duration_ms is not None else 0
    if pattern:
        at_least = PATTERN_SINCE
    request = ListTransactionsRequest(
        state_filters=list(states),
        producer_id_filters=list(producer_ids),
        duration_filter=ANY_DURATION if duration_ms is None else duration_ms,
        transactional_id_pattern=pattern or None,
    )
    return request, at_least


def listed_transactions(response: ListTransactionsResponse, node_id: int) -> tuple[TransactionListing, ...]:
    """The transactional ids that a broker coordinates. Raises ClientError, also for a broker that still loads some."""
    if response.error_code:
        raise transaction_error(response.error_code, "", f"ListTransactions of broker {node_id}")
    if response.unknown_state_filters:
        raise UnknownStates(node_id, response.unknown_state_filters)
    return tuple(
        TransactionListing(each.transactional_id, each.producer_id, each.transaction_state, node_id)
        for each in response.transaction_states
    )


# ---------------------------------------------------------------------------------------------------------- describing
def described_transactions(
    response: DescribeTransactionsResponse, node_id: int
) -> dict[str, TransactionDescription | ClientError]:
    """By transactional id. `node_id`: who has answered, and so coordinates them."""
    return {
        each.transactional_id: (
            transaction_error(each.error_code, "", f"DescribeTransactions of {each.transactional_id}")
            if each.error_code
            else _described(each, node_id)
        )
        for each in response.transaction_states
    }


def _described(state: TransactionState, node_id: int) -> TransactionDescription:
    return TransactionDescription(
        state.transactional_id,
        state.transaction_state,
        node_id,
        state.producer_id,
        state.producer_epoch,
        state.transaction_timeout_ms,
        state.transaction_start_time_ms if state.transaction_start_time_ms >= 0 else None,
        tuple(sorted(TopicPartition(topic.topic, index) for topic in state.topics for index in topic.partitions)),
    )


# ------------------------------------------------------------------------------------------------------------- fencing
def fence_request(transactional_id: str, timeout_ms: int) -> InitProducerIdRequest:
    """What a producer with this id begins with. The coordinator takes the time for the transactions of the id, and for
    its own write of it (FenceProducersHandler.java)."""
    return InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=timeout_ms)


def fenced_producer(transactional_id: str, response: InitProducerIdResponse) -> FencedProducer | ClientError:
    if response.error_code:
        return transaction_error(response.error_code, "", f"InitProducerId of {transactional_id}")
    return FencedProducer(response.producer_id, response.producer_epoch)
