"""What the APIs of transactions answer where nothing could be done: the error in its place, at every version, for all
that the request names."""

from collections.abc import Iterator
from typing import Any, cast

import pytest

from odradek.broker.served import BY_KEY
from odradek.protocol.codec.codec import decode, encode_parts
from odradek.protocol.codec.schema import Request, Struct
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from odradek.protocol.messages.describe_producers import DescribeProducersRequest
from odradek.protocol.messages.describe_producers import TopicRequest as ProducersOfTopic
from odradek.protocol.messages.describe_transactions import DescribeTransactionsRequest
from odradek.protocol.messages.end_txn import EndTxnRequest
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.list_transactions import ListTransactionsRequest
from odradek.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from odradek.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

CODE = ErrorCode.UNKNOWN_SERVER_ERROR
TOPICS = [AddPartitionsToTxnTopic(name="orders", partitions=[0, 1]), AddPartitionsToTxnTopic(name="b", partitions=[0])]
OF_BROKERS = AddPartitionsToTxnTransaction(transactional_id="id", producer_id=7, producer_epoch=0, topics=TOPICS)
MARKER = WritableTxnMarker(
    producer_id=7,
    producer_epoch=0,
    transaction_result=True,
    topics=[
        WritableTxnMarkerTopic(name="orders", partition_indexes=[0, 1]),
        WritableTxnMarkerTopic(name="b", partition_indexes=[0]),
    ],
    coordinator_epoch=0,
)


def committed(index: int) -> TxnOffsetCommitRequestPartition:
    return TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=1, committed_metadata="")


# Requests of version `first` to `last`, and how many errors an answer to them holds.
REQUESTS: list[tuple[Request[Any], int, int, int]] = [
    (InitProducerIdRequest(transactional_id="id", transaction_timeout_ms=1), 0, 5, 1),
    (AddPartitionsToTxnRequest(v3_and_below_transactional_id="id", v3_and_below_topics=TOPICS), 0, 3, 3),
    (AddPartitionsToTxnRequest(transactions=[OF_BROKERS]), 4, 5, 1),
    (AddOffsetsToTxnRequest(transactional_id="id", producer_id=7, producer_epoch=0, group_id="g"), 0, 4, 1),
    (EndTxnRequest(transactional_id="id", producer_id=7, producer_epoch=0, committed=True), 0, 5, 1),
    (WriteTxnMarkersRequest(markers=[MARKER, MARKER]), 1, 2, 6),
    (
        TxnOffsetCommitRequest(
            transactional_id="id",
            group_id="g",
            producer_id=7,
            producer_epoch=0,
            topics=[
                TxnOffsetCommitRequestTopic(name="orders", partitions=[committed(0), committed(1)]),
                TxnOffsetCommitRequestTopic(name="b", partitions=[committed(0)]),
            ],
        ),
        0,
        6,
        3,
    ),
    (DescribeProducersRequest(topics=[ProducersOfTopic(name="orders", partition_indexes=[0, 1])]), 0, 0, 2),
    (DescribeTransactionsRequest(transactional_ids=["id", "other"]), 0, 0, 2),
    (ListTransactionsRequest(), 0, 2, 1),
]


def codes(value: object) -> Iterator[int]:
    """All error codes in an answer that are there at its version."""
    if isinstance(value, list):
        for each in cast("list[object]", value):
            yield from codes(each)
    elif isinstance(value, Struct):
        for name in value.fields:
            if name.endswith("error_code"):
                yield getattr(value, name)
            else:
                yield from codes(getattr(value, name))


@pytest.mark.parametrize(("request_", "first", "last", "count"), REQUESTS)
def test_the_error_stands_wherever_an_answer_has_place_for_one(
    request_: Request[Any], first: int, last: int, count: int
) -> None:
    api = BY_KEY[request_.api_key]
    for version in range(first, last + 1):
        asked = decode(type(request_), version, memoryview(b"".join(encode_parts(request_, version))))
        body = b"".join(encode_parts(api.fail(asked, CODE), version))
        answer = decode(type(request_).response_type, version, memoryview(body))
        assert [code for code in codes(answer) if code] == [CODE] * count


def test_every_version_that_is_served_is_shown() -> None:
    ranges: dict[int, list[int]] = {}
    for request_, first, last, _ in REQUESTS:
        ranges.setdefault(request_.api_key, []).extend(range(first, last + 1))
    assert ranges == {key: [*range(BY_KEY[key].served[0], BY_KEY[key].served[1] + 1)] for key in ranges}
