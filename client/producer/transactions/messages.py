"""What a transactional producer asks of coordinators as messages of Kafka, and their answers as the machine takes them.
Pure.

The versions from which on transaction version 2 is spoken (KIP-890) are neither used before, nor is it used without
them: EndTxn 5 and TxnOffsetCommit 5 mean that the coordinator adds what is missing by itself; later ones are not asked
for, since TxnOffsetCommit names topics by their ids then. AddPartitionsToTxn from version 4 on is for brokers.
"""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from odradek.client.offset_commit import Committed
from odradek.client.producer.idempotence.idempotence import Key
from odradek.client.producer.idempotence.sequences import NOBODY, NONE, Identity
from odradek.client.producer.transactions.requests import (
    AddOffsets,
    AddPartitions,
    Answer,
    Codes,
    CommitOffsets,
    CoordinatorFound,
    End,
    FindCoordinator,
    Given,
    Init,
    KeyType,
    Request,
)
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.codec import schema
from odradek.protocol.errors import ErrorCode, code_of
from odradek.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from odradek.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.messages.produce import ProduceRequest
from odradek.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)

__all__ = ["V2_PRODUCE", "V2_SINCE", "Wire", "answer_of", "versions_of_v2", "wire_of"]

V2_SINCE: Final = 2
"""The level of the feature `transaction.version` from which on it is spoken."""
V2_PRODUCE: Final = 12
V2_OTHERS: Final = 5
KEY_TYPES: Final = 1
EPOCHS_ASKED: Final = 3
"""The version of InitProducerId by which a producer goes on in the next epoch (KIP-360; Kafka 2.5)."""
TWO_PHASES: Final = 6
"""The version of InitProducerId that is about transactions of two phases (KIP-939); brokers have it by an option."""
MEMBERS_NAMED: Final = 3
"""The version of TxnOffsetCommit that says as which member it commits (KIP-447; Kafka 2.5)."""
PARTITIONS_AT_MOST: Final = 3


class Wire(NamedTuple):
    request: schema.Request[Any]
    at_least: int = 0
    at_most: int | None = None


def versions_of_v2() -> dict[type[schema.Request[Any]], int]:
    """What a broker must have for transaction version 2."""
    return {ProduceRequest: V2_PRODUCE, EndTxnRequest: V2_OTHERS, TxnOffsetCommitRequest: V2_OTHERS}


def wire_of(asked: Request, transactional_id: str, timeout_ms: int, *, is_two_phase: bool = False) -> Wire:
    """The message for a request. `timeout_ms`: of transactions, unless they have two phases."""
    match asked:
        case FindCoordinator(of):
            request = FindCoordinatorRequest(key=of.key, key_type=of.key_type.value, coordinator_keys=[of.key])
            return Wire(request, KEY_TYPES if of.key_type is KeyType.TRANSACTION else 0)
        case Init():
            identity = asked.identity
            init = InitProducerIdRequest(
                transactional_id=transactional_id,
                transaction_timeout_ms=timeout_ms,
                producer_id=identity.producer_id,
                producer_epoch=identity.epoch,
                enable2_pc=is_two_phase,
            )
            if is_two_phase:
                return Wire(init, TWO_PHASES, TWO_PHASES)
            return Wire(init, 0 if identity == NOBODY else EPOCHS_ASKED, TWO_PHASES - 1)
        case AddPartitions():
            add = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=transactional_id,
                v3_and_below_producer_id=asked.identity.producer_id,
                v3_and_below_producer_epoch=asked.identity.epoch,
                v3_and_below_topics=_topics(asked.partitions),
            )
            return Wire(add, 0, PARTITIONS_AT_MOST)
        case AddOffsets():
            return Wire(
                AddOffsetsToTxnRequest(
                    transactional_id=transactional_id,
                    producer_id=asked.identity.producer_id,
                    producer_epoch=asked.identity.epoch,
                    group_id=asked.group_id,
                )
            )
        case CommitOffsets():
            return _offsets(asked, transactional_id)
        case End():
            end = EndTxnRequest(
                transactional_id=transactional_id,
                producer_id=asked.identity.producer_id,
                producer_epoch=asked.identity.epoch,
                committed=asked.is_commit,
            )
            return Wire(end, V2_OTHERS, V2_OTHERS) if asked.uses_v2 else Wire(end, 0, V2_OTHERS - 1)


def _topics(partitions: Iterable[Key]) -> list[AddPartitionsToTxnTopic]:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return [AddPartitionsToTxnTopic(name=name, partitions=numbers) for name, numbers in topics.items()]


def _offsets(asked: CommitOffsets, transactional_id: str) -> Wire:
    group = asked.what.group
    topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
    for partition, committed in asked.what.offsets.items():
        topics.setdefault(partition.topic, []).append(_offset(partition, committed))
    request = TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=group.group_id,
        producer_id=asked.identity.producer_id,
        producer_epoch=asked.identity.epoch,
        generation_id=group.generation,
        member_id=group.member_id,
        group_instance_id=group.group_instance_id,
        topics=[TxnOffsetCommitRequestTopic(name=name, partitions=parts) for name, parts in topics.items()],
    )
    if asked.uses_v2:
        return Wire(request, V2_OTHERS, V2_OTHERS)
    is_member = group.generation >= 0 or bool(group.member_id) or group.group_instance_id is not None
    return Wire(request, MEMBERS_NAMED if is_member else 0, V2_OTHERS - 1)


def _offset(partition: TopicPartition, committed: Committed) -> TxnOffsetCommitRequestPartition:
    return TxnOffsetCommitRequestPartition(
        partition_index=partition.partition,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        committed_metadata=committed.metadata,
    )


# ----------------------------------------------------------------------------------------------------------- answers
def answer_of(asked: Request, response: schema.Response) -> Answer:
    """What a broker answered. A partition that the answer leaves out was not done."""
    match response:
        case FindCoordinatorResponse():
            found = response.coordinators[0] if response.coordinators else response
            if found.error_code:
                assert isinstance(asked, FindCoordinator)
                return Codes({asked.of.key: code_of(found.error_code)}, found.error_message or "")
            return CoordinatorFound(found.node_id)
        case InitProducerIdResponse() | EndTxnResponse():
            if response.error_code:
                return _code(response.error_code)
            has_none = response.producer_id < 0
            return Given(NOBODY if has_none else Identity(response.producer_id, response.producer_epoch))
        case AddPartitionsToTxnResponse():
            assert isinstance(asked, AddPartitions)
            codes = {
                (topic.name, each.partition_index): each.partition_error_code
                for topic in response.results_by_topic_v3_and_below
                for each in topic.results_by_partition
            }
            return _by_partition(asked.partitions, codes)
        case AddOffsetsToTxnResponse():
            return _code(response.error_code)
        case TxnOffsetCommitResponse():
            assert isinstance(asked, CommitOffsets)
            codes = {
                (topic.name, each.partition_index): each.error_code
                for topic in response.topics
                for each in topic.partitions
            }
            return _by_partition(((each.topic, each.partition) for each in asked.what.offsets), codes)
        case _:
            raise AssertionError(f"{type(response).__name__} answers no request of a transaction")


def _code(number: int) -> Codes:
    return Codes({"": code_of(number)})


def _by_partition(asked: Iterable[Key], codes: dict[Key, int]) -> Codes:
    unknown = int(ErrorCode.UNKNOWN_SERVER_ERROR)
    return Codes({f"{topic}-{number}": code_of(codes.get((topic, number), unknown)) for topic, number in asked})


assert NOBODY == (NONE, NONE), "what InitProducerId takes for no identity"
