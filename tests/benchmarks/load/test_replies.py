"""The load generator counts only replies that are right: the others are put to it one by one."""

import pytest

from benchmarks.load.frames import PRODUCE_VERSION, Load
from benchmarks.load.replies import LoadFailed, Replies, ReplyShape, canned_reply
from odradek.protocol.codec.codec import decode, encode
from odradek.protocol.errors import ErrorCode
from odradek.protocol.frames import read_response_header, response_frame
from odradek.protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse

LOAD = Load("produce-1", 40 * 16 * 1024, timestamp_ms=1_700_000_000_000)


def error_reply(code: ErrorCode, text: str | None) -> bytes:
    """An error that differs from a good reply by its code alone, or by its text as well."""
    partition = PartitionProduceResponse(
        index=0, error_code=code.value, base_offset=0, log_start_offset=0, error_message=text
    )
    response = ProduceResponse(responses=[TopicProduceResponse(name=LOAD.topic, partition_responses=[partition])])
    return b"".join(response_frame(0, True, [encode(response, PRODUCE_VERSION)]))


@pytest.mark.parametrize("topic", ["t", "produce-1", "a" * 100])
def test_a_reply_is_read_where_the_codec_wrote_it(topic: str) -> None:
    shape = ReplyShape(topic)
    data = b"before" + canned_reply(topic, 7, 1 << 40, 3)
    reply = shape.read(memoryview(data), 6)
    assert reply == (shape.size_bytes - 4, 7, 3, 0, 1 << 40)
    assert shape.size_bytes == len(data) - 6
    correlation_id, position = read_response_header(data[10:], True)
    assert correlation_id == 7
    response = decode(ProduceResponse, PRODUCE_VERSION, data[10:], position)
    (partition,) = response.responses[0].partition_responses
    assert (partition.index, partition.base_offset) == (3, 1 << 40)


def test_replies_are_taken_whole_in_whatever_portions_they_come() -> None:
    data = b"".join(canned_reply(LOAD.topic, number, number * 16) for number in range(5))
    replies, received = Replies(LOAD), b""
    for position in range(len(data)):
        received += data[position : position + 1]
        received = received[replies.take(memoryview(received)) :]
    assert replies.count == 5
    assert received == b""


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (canned_reply(LOAD.topic, 1, 0), "correlation id 1"),
        (canned_reply(LOAD.topic, 0, 16), "base offset 16"),
        (canned_reply(LOAD.topic, 0, 0, 1), "partition 1"),
        (error_reply(ErrorCode.NOT_LEADER_OR_FOLLOWER, None), "NOT_LEADER_OR_FOLLOWER"),
        (error_reply(ErrorCode.CORRUPT_MESSAGE, "a wrong checksum"), r"CORRUPT_MESSAGE \(a wrong checksum\)"),
        (b"\0\0\0\x05\0\0\0\0\0", "reply 0"),
    ],
)
def test_a_reply_out_of_order_at_another_offset_or_with_an_error_ends_the_run(reply: bytes, said: str) -> None:
    with pytest.raises(LoadFailed, match=said):
        Replies(LOAD).take(memoryview(reply))


def test_where_connections_share_a_partition_offsets_only_have_to_rise_by_a_batch() -> None:
    load = Load("t", LOAD.total_bytes, timestamp_ms=0, connections=2)
    replies = Replies(load)
    replies.take(memoryview(canned_reply("t", 0, 320) + canned_reply("t", 1, 336)))
    with pytest.raises(LoadFailed, match="base offset 351"):
        replies.take(memoryview(canned_reply("t", 2, 351)))


def test_where_a_connection_spreads_over_partitions_each_has_offsets_of_its_own() -> None:
    load = Load("t", LOAD.total_bytes, timestamp_ms=0, partitions=2, spread=2)
    good = [(0, 0, 0), (1, 0, 1), (2, 16, 0), (3, 16, 1)]
    replies = Replies(load)
    replies.take(memoryview(b"".join(canned_reply("t", *reply) for reply in good)))
    assert replies.count == 4
    with pytest.raises(LoadFailed, match="partition 1"):
        replies.take(memoryview(canned_reply("t", 4, 32, 1)))
