"""Messages of transactions at the tricky places, written out by hand from Kafka's definitions.

`golden/` has what clients and brokers send, at the versions that they pick. Here stand the versions between which a
message changes its form, the errors, and what transactions need of messages that others have, too.
"""

import pytest

from odradek.protocol.codec.codec import decode, encode
from odradek.protocol.codec.schema import Message
from odradek.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from odradek.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicRequest,
    TopicResponse,
)
from odradek.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
)
from odradek.protocol.messages.describe_transactions import TransactionState as DescribedTransaction
from odradek.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from odradek.protocol.messages.list_transactions import TransactionState as ListedTransaction
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from odradek.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopic,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

PRODUCER = b"\x00\x00\x00\x00\x00\x00\x00\x05\x00\x02"
"""Producer id 5, epoch 2."""
OFFSET = b"\x00\x00\x00\x00\x00\x00\x00\x09"
NO_NUMBER = b"\xff" * 8

ADDED_TOPICS = [AddPartitionsToTxnTopic(name="o", partitions=[3])]
ADD_ONE = AddPartitionsToTxnRequest(
    v3_and_below_transactional_id="t",
    v3_and_below_producer_id=5,
    v3_and_below_producer_epoch=2,
    v3_and_below_topics=ADDED_TOPICS,
)


def add_several(verify_only: bool) -> AddPartitionsToTxnRequest:
    transaction = AddPartitionsToTxnTransaction(
        transactional_id="t", producer_id=5, producer_epoch=2, verify_only=verify_only, topics=ADDED_TOPICS
    )
    return AddPartitionsToTxnRequest(transactions=[transaction])


RESULTS = [
    AddPartitionsToTxnTopicResult(
        name="o",
        results_by_partition=[
            AddPartitionsToTxnPartitionResult(partition_index=3, partition_error_code=29),
            AddPartitionsToTxnPartitionResult(partition_index=4, partition_error_code=55),
        ],
    )
]


def offset_commit(**member: object) -> TxnOffsetCommitRequest:
    partition = TxnOffsetCommitRequestPartition(partition_index=3, committed_offset=9, committed_metadata=None)
    request = TxnOffsetCommitRequest(
        transactional_id="t",
        group_id="g",
        producer_id=5,
        producer_epoch=2,
        topics=[TxnOffsetCommitRequestTopic(name="o", partitions=[partition])],
    )
    for name, value in member.items():
        setattr(request, name, value)
    return request


def with_leader_epoch(request: TxnOffsetCommitRequest) -> TxnOffsetCommitRequest:
    request.topics[0].partitions[0].committed_leader_epoch = 7
    return request


def marked(transaction_version: int = 0) -> WriteTxnMarkersRequest:
    marker = WritableTxnMarker(
        producer_id=5,
        producer_epoch=2,
        transaction_result=True,
        topics=[WritableTxnMarkerTopic(name="o", partition_indexes=[3])],
        coordinator_epoch=6,
        transaction_version=transaction_version,
    )
    return WriteTxnMarkersRequest(markers=[marker])


COMMITTED_OFFSETS = TxnOffsetCommitResponse(
    topics=[
        TxnOffsetCommitResponseTopic(
            name="o", partitions=[TxnOffsetCommitResponsePartition(partition_index=3, error_code=22)]
        )
    ]
)
WRITTEN_MARKERS = WriteTxnMarkersResponse(
    markers=[
        WritableTxnMarkerResult(
            producer_id=5,
            topics=[
                WritableTxnMarkerTopicResult(
                    name="o", partitions=[WritableTxnMarkerPartitionResult(partition_index=3, error_code=52)]
                )
            ],
        )
    ]
)
PRODUCERS = DescribeProducersResponse(
    topics=[
        TopicResponse(
            name="o",
            partitions=[
                PartitionResponse(
                    partition_index=3,
                    active_producers=[ProducerState(producer_id=5, producer_epoch=2, coordinator_epoch=-1)],
                ),
                PartitionResponse(partition_index=4, error_code=6, error_message="no"),
            ],
        )
    ]
)
ONGOING = DescribedTransaction(
    transactional_id="t",
    transaction_state="Ongoing",
    transaction_timeout_ms=9,
    transaction_start_time_ms=9,
    producer_id=5,
    producer_epoch=2,
    topics=[TopicData(topic="o", partitions=[3])],
)

BY_HAND: list[tuple[Message, int, bytes]] = [
    (ADD_ONE, 0, b"\x00\x01t" + PRODUCER + b"\x00\x00\x00\x01\x00\x01o\x00\x00\x00\x01\x00\x00\x00\x03"),
    (ADD_ONE, 3, b"\x02t" + PRODUCER + b"\x02\x02o\x02\x00\x00\x00\x03\x00\x00"),
    (add_several(True), 4, b"\x02\x02t" + PRODUCER + b"\x01\x02\x02o\x02\x00\x00\x00\x03\x00\x00\x00"),
    (add_several(False), 5, b"\x02\x02t" + PRODUCER + b"\x00\x02\x02o\x02\x00\x00\x00\x03\x00\x00\x00"),
    (
        AddPartitionsToTxnResponse(results_by_topic_v3_and_below=RESULTS),
        2,
        b"\x00\x00\x00\x00\x00\x00\x00\x01\x00\x01o\x00\x00\x00\x02\x00\x00\x00\x03\x00\x1d\x00\x00\x00\x04\x00\x37",
    ),
    (
        AddPartitionsToTxnResponse(results_by_topic_v3_and_below=RESULTS),
        3,
        b"\x00\x00\x00\x00\x02\x02o\x03\x00\x00\x00\x03\x00\x1d\x00\x00\x00\x00\x04\x00\x37\x00\x00\x00",
    ),
    (
        AddPartitionsToTxnResponse(
            results_by_transaction=[AddPartitionsToTxnResult(transactional_id="t", topic_results=RESULTS)]
        ),
        4,
        b"\x00\x00\x00\x00\x00\x00\x02\x02t\x02\x02o\x03\x00\x00\x00\x03\x00\x1d\x00\x00\x00\x00\x04\x00\x37\x00"
        b"\x00\x00\x00",
    ),
    (AddPartitionsToTxnResponse(error_code=31), 5, b"\x00\x00\x00\x00\x00\x1f\x01\x00"),
    (
        AddOffsetsToTxnRequest(transactional_id="t", producer_id=5, producer_epoch=2, group_id="g"),
        2,
        b"\x00\x01t" + PRODUCER + b"\x00\x01g",
    ),
    (
        AddOffsetsToTxnRequest(transactional_id="t", producer_id=5, producer_epoch=2, group_id="g"),
        3,
        b"\x02t" + PRODUCER + b"\x02g\x00",
    ),
    (AddOffsetsToTxnResponse(error_code=51), 0, b"\x00\x00\x00\x00\x00\x33"),
    (AddOffsetsToTxnResponse(error_code=120), 4, b"\x00\x00\x00\x00\x00\x78\x00"),
    (
        EndTxnRequest(transactional_id="t", producer_id=5, producer_epoch=2, committed=True),
        2,
        b"\x00\x01t" + PRODUCER + b"\x01",
    ),
    (
        EndTxnRequest(transactional_id="t", producer_id=5, producer_epoch=2, committed=False),
        5,
        b"\x02t" + PRODUCER + b"\x00\x00",
    ),
    (EndTxnResponse(error_code=48), 2, b"\x00\x00\x00\x00\x00\x30"),
    (EndTxnResponse(error_code=48), 4, b"\x00\x00\x00\x00\x00\x30\x00"),
    (EndTxnResponse(producer_id=5, producer_epoch=2), 5, b"\x00\x00\x00\x00\x00\x00" + PRODUCER + b"\x00"),
    (EndTxnResponse(error_code=90), 5, b"\x00\x00\x00\x00\x00\x5a" + NO_NUMBER + b"\xff\xff\x00"),
    (marked(), 1, b"\x02" + PRODUCER + b"\x01\x02\x02o\x02\x00\x00\x00\x03\x00\x00\x00\x00\x06\x00\x00"),
    (marked(2), 2, b"\x02" + PRODUCER + b"\x01\x02\x02o\x02\x00\x00\x00\x03\x00\x00\x00\x00\x06\x02\x00\x00"),
    (WRITTEN_MARKERS, 2, b"\x02" + PRODUCER[:8] + b"\x02\x02o\x02\x00\x00\x00\x03\x00\x34\x00\x00\x00\x00"),
    (
        offset_commit(),
        1,
        b"\x00\x01t\x00\x01g" + PRODUCER + b"\x00\x00\x00\x01\x00\x01o\x00\x00\x00\x01"
        b"\x00\x00\x00\x03" + OFFSET + b"\xff\xff",
    ),
    (
        with_leader_epoch(offset_commit()),
        2,
        b"\x00\x01t\x00\x01g" + PRODUCER + b"\x00\x00\x00\x01\x00\x01o\x00\x00\x00\x01"
        b"\x00\x00\x00\x03" + OFFSET + b"\x00\x00\x00\x07\xff\xff",
    ),
    (
        with_leader_epoch(offset_commit(generation_id=4, member_id="m", group_instance_id="i")),
        3,
        b"\x02t\x02g" + PRODUCER + b"\x00\x00\x00\x04\x02m\x02i\x02\x02o\x02"
        b"\x00\x00\x00\x03" + OFFSET + b"\x00\x00\x00\x07\x00\x00\x00\x00",
    ),
    (
        offset_commit(),
        5,
        b"\x02t\x02g" + PRODUCER + b"\xff\xff\xff\xff\x01\x00\x02\x02o\x02"
        b"\x00\x00\x00\x03" + OFFSET + b"\xff\xff\xff\xff\x00\x00\x00\x00",
    ),
    (COMMITTED_OFFSETS, 0, b"\x00\x00\x00\x00\x00\x00\x00\x01\x00\x01o\x00\x00\x00\x01\x00\x00\x00\x03\x00\x16"),
    (COMMITTED_OFFSETS, 3, b"\x00\x00\x00\x00\x02\x02o\x02\x00\x00\x00\x03\x00\x16\x00\x00\x00"),
    (
        DescribeProducersRequest(topics=[TopicRequest(name="o", partition_indexes=[3])]),
        0,
        b"\x02\x02o\x02\x00\x00\x00\x03\x00\x00",
    ),
    (
        PRODUCERS,
        0,
        b"\x00\x00\x00\x00\x02\x02o\x03\x00\x00\x00\x03\x00\x00\x00"  # up to the error message of partition 3
        b"\x02"
        + PRODUCER[:8]
        + b"\x00\x00\x00\x02\xff\xff\xff\xff"
        + NO_NUMBER
        + b"\xff\xff\xff\xff"
        + NO_NUMBER
        + b"\x00\x00"  # no tags of the producer and of the partition
        b"\x00\x00\x00\x04\x00\x06\x03no\x01\x00\x00\x00",
    ),
    (DescribeTransactionsRequest(transactional_ids=["t"]), 0, b"\x02\x02t\x00"),
    (
        DescribeTransactionsResponse(transaction_states=[ONGOING]),
        0,
        b"\x00\x00\x00\x00\x02\x00\x00\x02t\x08Ongoing\x00\x00\x00\x09"
        + OFFSET
        + PRODUCER
        + b"\x02\x02o\x02\x00\x00\x00\x03\x00\x00\x00",
    ),
    (
        DescribeTransactionsResponse(transaction_states=[DescribedTransaction(error_code=105, transactional_id="t")]),
        0,
        b"\x00\x00\x00\x00\x02\x00\x69\x02t\x01" + bytes(22) + b"\x01\x00\x00",
    ),
    (ListTransactionsRequest(), 0, b"\x01\x01\x00"),
    (
        ListTransactionsRequest(state_filters=["Ongoing"], producer_id_filters=[5]),
        1,
        b"\x02\x08Ongoing\x02" + PRODUCER[:8] + NO_NUMBER + b"\x00",
    ),
    (
        ListTransactionsRequest(duration_filter=9, transactional_id_pattern="t.*"),
        2,
        b"\x01\x01" + OFFSET + b"\x04t.*\x00",
    ),
    (ListTransactionsRequest(), 2, b"\x01\x01" + NO_NUMBER + b"\x00\x00"),
    (
        ListTransactionsResponse(
            unknown_state_filters=["x"],
            transaction_states=[ListedTransaction(transactional_id="t", producer_id=5, transaction_state="Empty")],
        ),
        2,
        b"\x00\x00\x00\x00\x00\x00\x02\x02x\x02\x02t" + PRODUCER[:8] + b"\x06Empty\x00\x00",
    ),
    (
        ProduceRequest(
            transactional_id="t",
            acks=-1,
            timeout_ms=9,
            topic_data=[TopicProduceData(name="o", partition_data=[PartitionProduceData(index=3, records=b"rr")])],
        ),
        12,
        b"\x02t\xff\xff\x00\x00\x00\x09\x02\x02o\x02\x00\x00\x00\x03\x03rr\x00\x00\x00",
    ),
    (InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=9), 1, b"\x00\x01t\x00\x00\x00\x09"),
    (
        InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=9, producer_id=5, producer_epoch=2),
        3,
        b"\x02t\x00\x00\x00\x09" + PRODUCER + b"\x00",
    ),
    (
        InitProducerIdResponse(error_code=51, producer_epoch=-1),
        5,
        b"\x00\x00\x00\x00\x00\x33" + NO_NUMBER + b"\xff\xff\x00",
    ),
    (
        InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=1, enable2_pc=True, keep_prepared_txn=True),
        6,
        b"\x02t\x00\x00\x00\x01" + NO_NUMBER + b"\xff\xff\x01\x01\x00",
    ),
    (
        InitProducerIdResponse(
            producer_id=5, producer_epoch=2, ongoing_txn_producer_id=5, ongoing_txn_producer_epoch=1
        ),
        6,
        b"\x00\x00\x00\x00\x00\x00" + PRODUCER + PRODUCER[:-1] + b"\x01\x00",
    ),
    (
        InitProducerIdResponse(producer_id=5, producer_epoch=2),
        6,
        b"\x00\x00\x00\x00\x00\x00" + PRODUCER + NO_NUMBER + b"\xff\xff\x00",
    ),
    (FindCoordinatorRequest(key="t", key_type=1), 1, b"\x00\x01t\x01"),
    (FindCoordinatorRequest(coordinator_keys=["t"], key_type=1), 5, b"\x01\x02\x02t\x00"),
]


@pytest.mark.parametrize(
    ("message", "version", "expected"), BY_HAND, ids=[f"{type(case[0]).__name__}-{case[1]}" for case in BY_HAND]
)
def test_messages_written_out_by_hand(message: Message, version: int, expected: bytes) -> None:
    """Encoded to exactly these bytes, and decoded from them."""
    assert encode(message, version).hex(" ") == expected.hex(" ")
    assert decode(type(message), version, expected) == message


def test_a_marker_before_kip_1228_is_told_without_its_version_of_transactions() -> None:
    assert encode(marked(2), 1) == encode(marked(), 1)
    (marker,) = decode(WriteTxnMarkersRequest, 1, encode(marked(2), 1)).markers
    assert marker.transaction_version == 0


def test_before_transaction_version_2_an_end_tells_no_next_epoch() -> None:
    """So a producer of an older version keeps the epoch that it has."""
    for version in range(5):
        encoded = encode(EndTxnResponse(producer_id=5, producer_epoch=2), version)
        assert encoded == encode(EndTxnResponse(), version)
        assert decode(EndTxnResponse, version, encoded).producer_id == -1


def test_filters_that_a_version_does_not_carry_let_everything_pass() -> None:
    asked = ListTransactionsRequest(duration_filter=9, transactional_id_pattern="t.*")
    understood = decode(ListTransactionsRequest, 0, encode(asked, 0))
    assert (understood.duration_filter, understood.transactional_id_pattern) == (-1, None)
