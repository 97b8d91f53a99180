"""ListOffsets from the asking side: what stands in the request, which version it needs, what each answer becomes."""

from odradek.client.errors.client_errors import BrokerError, UnknownTopic
from odradek.client.fetching.list_offsets import (
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    ListedOffset,
    list_offsets_request,
    listed_offsets,
    lowest_version,
)
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.codec.codec import decode, encode
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def test_a_request_names_each_topic_once_with_timestamps_and_known_epochs() -> None:
    request = list_offsets_request({A0: EARLIEST, B0: 1_000, A1: LATEST}, {A1: 7}, read_committed=True)
    sent = decode(ListOffsetsRequest, 7, encode(request, 7))
    assert (sent.replica_id, sent.isolation_level) == (-1, 1)
    asked = {
        (topic.name, each.partition_index): (each.timestamp, each.current_leader_epoch)
        for topic in sent.topics
        for each in topic.partitions
    }
    assert asked == {A0: (-2, -1), A1: (-1, 7), B0: (1_000, -1)}
    assert [topic.name for topic in sent.topics] == ["a", "b"]


def test_the_lowest_version_is_the_first_that_knows_what_is_asked() -> None:
    assert lowest_version([EARLIEST, 5], read_committed=False) == 1
    assert lowest_version([LATEST], read_committed=True) == 2
    assert lowest_version([LATEST, MAX_TIMESTAMP], read_committed=True) == 7


def test_each_partition_gets_its_answer_or_error_and_a_retriable_one_if_left_out() -> None:
    response = ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name="a",
                partitions=[
                    ListOffsetsPartitionResponse(partition_index=0, timestamp=9, offset=4, leader_epoch=2),
                    ListOffsetsPartitionResponse(partition_index=1, error_code=3),
                    ListOffsetsPartitionResponse(partition_index=2, offset=5),
                ],
            )
        ]
    )
    outcomes = listed_offsets([A0, A1, B0], response)
    assert set(outcomes) == {A0, A1, B0}
    assert outcomes[A0] == ListedOffset(4, 9, 2)
    assert isinstance(outcomes[A1], UnknownTopic)
    missing = outcomes[B0]
    assert isinstance(missing, BrokerError)
    assert (missing.code, missing.retriable) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, True)
    assert "b-0" in str(missing)
