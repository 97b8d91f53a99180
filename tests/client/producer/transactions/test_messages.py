"""Requests as messages, at the versions that mean what is meant, and their answers."""

from typing import Any, cast

import pytest

from odradek.client.producer.idempotence.sequences import NOBODY, Identity
from odradek.client.producer.transactions.messages import Wire, answer_of, wire_of
from odradek.client.producer.transactions.requests import (
    AddOffsets,
    AddPartitions,
    Codes,
    CommitOffsets,
    Coordinated,
    CoordinatorFound,
    End,
    FindCoordinator,
    Given,
    Init,
    KeyType,
    OffsetsOfGroup,
    Request,
)
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.codec.codec import decode, encode_parts
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnResponse
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from odradek.protocol.messages.end_txn import EndTxnResponse
from odradek.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from tests.client.transaction_driver import IDENTITY, KEY, NODE, OTHER, Member, Offset, offsets_of

FIND = FindCoordinator(Coordinated(KeyType.TRANSACTION, "payments"))
PARTITIONS = AddPartitions(NODE, IDENTITY, frozenset([OTHER, KEY]))


def wire(asked: Request) -> Wire:
    return wire_of(asked, "payments", 30_000)


def sent(asked: Request, version: int) -> Any:
    """What a broker reads."""
    request = wire(asked).request
    return decode(cast(Any, type(request)), version, memoryview(b"".join(encode_parts(request, version))), 0)


def test_the_coordinator_of_a_transactional_id_is_asked_for_in_both_forms() -> None:
    assert wire(FIND).at_least == 1, "before, there were groups alone"
    old, new = sent(FIND, 3), sent(FIND, 4)
    assert (old.key, old.key_type) == ("payments", 1)
    assert (new.coordinator_keys, new.key_type) == (["payments"], 1)
    group = FindCoordinator(Coordinated(KeyType.GROUP, "billing"))
    assert (wire(group).at_least, sent(group, 0).key) == (0, "billing")


def test_a_first_init_names_nobody_and_a_later_one_needs_the_version_that_names_it() -> None:
    first, later = Init(NODE, NOBODY), Init(NODE, IDENTITY)
    assert (wire(first).at_least, wire(later).at_least) == (0, 3)
    assert wire(first).at_most == 5
    request = sent(first, 4)
    assert (request.transactional_id, request.transaction_timeout_ms) == ("payments", 30_000)
    assert (request.producer_id, request.producer_epoch) == (-1, -1)
    assert (sent(later, 4).producer_id, sent(later, 4).producer_epoch) == IDENTITY


def test_two_phases_are_asked_for_by_their_version_alone() -> None:
    for init in (Init(NODE, NOBODY), Init(NODE, IDENTITY)):
        asked = wire_of(init, "payments", 30_000, is_two_phase=True)
        assert (asked.at_least, asked.at_most) == (6, 6)
        assert isinstance(asked.request, InitProducerIdRequest)
        assert asked.request.enable2_pc
        assert not asked.request.keep_prepared_txn
    assert not sent(Init(NODE, NOBODY), 5).enable2_pc


def test_partitions_are_named_by_the_versions_for_producers() -> None:
    assert wire(PARTITIONS).at_most == 3
    request = sent(PARTITIONS, 3)
    assert [(topic.name, topic.partitions) for topic in request.v3_and_below_topics] == [("orders", [3, 4])]
    assert (request.v3_and_below_producer_id, request.v3_and_below_producer_epoch) == IDENTITY


@pytest.mark.parametrize(("uses_v2", "at_least", "at_most"), [(False, 0, 4), (True, 5, 5)])
def test_an_end_means_transaction_version_two_by_its_version(uses_v2: bool, at_least: int, at_most: int | None) -> None:
    found = wire(End(NODE, IDENTITY, is_commit=True, uses_v2=uses_v2))
    assert (found.at_least, found.at_most) == (at_least, at_most)
    assert sent(End(NODE, IDENTITY, is_commit=False, uses_v2=uses_v2), 4).committed is False


def test_offsets_name_the_member_and_need_the_version_that_does() -> None:
    as_member = CommitOffsets(NODE, IDENTITY, offsets_of(), uses_v2=False)
    assert (wire(as_member).at_least, wire(as_member).at_most) == (3, 4)
    request = sent(as_member, 3)
    assert (request.group_id, request.generation_id, request.member_id) == ("billing", 4, "member-1")
    [topic] = request.topics
    assert (topic.name, topic.partitions[0].committed_offset) == ("input", 10)


def test_offsets_from_outside_of_a_group_go_to_old_brokers_too() -> None:
    nobody = OffsetsOfGroup(Member("billing", "", -1), {TopicPartition("input", 0): Offset(3, "note", 9)})
    asked = CommitOffsets(NODE, IDENTITY, nobody, uses_v2=False)
    assert wire(asked).at_least == 0
    [partition] = sent(asked, 2).topics[0].partitions
    assert (partition.committed_leader_epoch, partition.committed_metadata) == (9, "note")
    newer = wire(CommitOffsets(NODE, IDENTITY, nobody, uses_v2=True))
    assert (newer.at_least, newer.at_most) == (5, 5), "from 6 on, topics are named by their ids"


def test_a_coordinator_is_found_in_either_form_of_the_answer() -> None:
    one = Coordinator(key="payments", node_id=4, host="b", port=1)
    assert answer_of(FIND, FindCoordinatorResponse(coordinators=[one])) == CoordinatorFound(4)
    assert answer_of(FIND, FindCoordinatorResponse(node_id=3)) == CoordinatorFound(3)
    refused = FindCoordinatorResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE, error_message="wait")
    assert answer_of(FIND, refused) == Codes({"payments": ErrorCode.COORDINATOR_NOT_AVAILABLE}, "wait")


def test_an_identity_is_taken_from_the_answers_that_bring_one() -> None:
    init, end = Init(NODE, NOBODY), End(NODE, IDENTITY, is_commit=True, uses_v2=True)
    assert answer_of(init, InitProducerIdResponse(producer_id=9, producer_epoch=2)) == Given(Identity(9, 2))
    assert answer_of(end, EndTxnResponse(producer_id=9, producer_epoch=3)) == Given(Identity(9, 3))
    assert answer_of(end, EndTxnResponse()) == Given(NOBODY)
    refused = EndTxnResponse(error_code=ErrorCode.PRODUCER_FENCED)
    assert answer_of(end, refused) == Codes({"": ErrorCode.PRODUCER_FENCED})


def test_a_partition_that_the_answer_leaves_out_was_not_done() -> None:
    result = AddPartitionsToTxnPartitionResult(partition_index=3)
    topic = AddPartitionsToTxnTopicResult(name="orders", results_by_partition=[result])
    answer = answer_of(PARTITIONS, AddPartitionsToTxnResponse(results_by_topic_v3_and_below=[topic]))
    expected = {"orders-3": ErrorCode.NONE, "orders-4": ErrorCode.UNKNOWN_SERVER_ERROR}
    assert isinstance(answer, Codes)
    assert answer.codes == expected


def test_offsets_are_answered_partition_by_partition() -> None:
    asked = CommitOffsets(NODE, IDENTITY, offsets_of(), uses_v2=False)
    parts = [TxnOffsetCommitResponsePartition(partition_index=0, error_code=ErrorCode.ILLEGAL_GENERATION)]
    answer = answer_of(
        asked, TxnOffsetCommitResponse(topics=[TxnOffsetCommitResponseTopic(name="input", partitions=parts)])
    )
    assert answer == Codes({"input-0": ErrorCode.ILLEGAL_GENERATION})
    group = AddOffsets(NODE, IDENTITY, "billing")
    assert answer_of(group, AddOffsetsToTxnResponse()) == Codes({"": ErrorCode.NONE})
