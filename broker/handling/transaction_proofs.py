"""What a partition has to know before it takes the first batch of a transaction: that the coordinator says that the
transaction is under way, and includes the partition (KIP-890; ReplicaManager.appendRecordsWithVerification).

From transaction version 2 on, the same question has the coordinator include it.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from odradek.broker.handling.context import Call, Context
from odradek.broker.log.verifications import Proof
from odradek.broker.replica.partition import Partition
from odradek.broker.txn.peer_requests import Inclusion
from odradek.broker.txn.transaction import ProducerIdentity, TopicPartition
from odradek.protocol.errors import ErrorCode, KafkaError

NO_SEQUENCE: Final = -1

_AGAIN: Final = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""The coordinator may say yes a moment later."""


def refusal(code: ErrorCode, transactional_id: str | None, passing: ErrorCode, *, includes: bool) -> KafkaError:
    """What a client is told of a coordinator's refusal. `passing`: what its request calls one that passes; where the
    request includes partitions in the transaction (`includes`), it knows CONCURRENT_TRANSACTIONS itself."""
    why = f"the coordinator of {transactional_id!r} answered {code.name}"
    passes = code in _AGAIN and (code is not ErrorCode.CONCURRENT_TRANSACTIONS or not includes)
    return KafkaError(passing if passes else code, why)


class FirstBatch(NamedTuple):
    """A batch that may be the first of its transaction in a partition."""

    partition: Partition
    base_sequence: int = NO_SEQUENCE

    @property
    def place(self) -> TopicPartition:
        return self.partition.topic, self.partition.index


async def proofs_of(
    context: Context,
    call: Call,
    transactional_id: str,
    producer: ProducerIdentity,
    batches: Sequence[FirstBatch],
    *,
    adds: bool,
    is_coordinators: bool = False,
) -> Mapping[TopicPartition, Proof | ErrorCode]:
    """For each of these partitions of which this broker does not know the transaction yet: what the batch is to be
    appended with, or the coordinator's refusal. `adds`: the transaction is to include them. Of the others: nothing.

    The questions of one producer are answered in their order, and while one is asked its connection begins no other
    request: one that needs no question any more would be appended before this one.
    """
    now_ms = context.environment.now_ms()
    asked = {
        each.place: each.partition.log.producers.verifications.begin(*producer, each.base_sequence, now_ms)
        for each in batches
        if not each.partition.log.producers.has_open_transaction(*producer)
    }
    if not asked:
        return {}
    if adds or context.config.transaction_partition_verification_enable:
        question = Inclusion(transactional_id, producer, frozenset(asked), adds)
        call.caller.keeps_turn = True
        try:
            with context.waiting(call):
                answers = await context.transactions.inclusions.ask(question)
        except KafkaError as error:
            answers = dict.fromkeys(asked, error.code)
        finally:
            call.caller.keeps_turn = False
    else:
        answers = dict.fromkeys(asked, ErrorCode.NONE)
    return {
        place: answers.get(place, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        or Proof(verification, is_coordinators=is_coordinators)
        for place, verification in asked.items()
    }
