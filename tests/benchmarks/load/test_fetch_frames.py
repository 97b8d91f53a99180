"""Questions are what our codec makes of them, and the head of an answer is read where the codec wrote it."""

import pytest

from benchmarks.load.fetch_frames import FETCH_VERSION, FetchAnswer, FetchQuestion, canned_answer
from benchmarks.load.replies import LoadFailed
from odradek.protocol.codec.codec import decode, encode
from odradek.protocol.errors import ErrorCode
from odradek.protocol.frames import read_request_header, response_frame
from odradek.protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)


@pytest.mark.parametrize("topic", ["t", "fetch-1", "a" * 200])
def test_a_question_asks_for_the_offset_it_was_given(topic: str) -> None:
    question = FetchQuestion(topic, 1 << 20, max_wait_ms=77)
    for correlation_id, offset in ((1, 0), (2, 1 << 40)):
        frame = question.frame(correlation_id, offset)
        assert int.from_bytes(frame[:4], "big") == len(frame) - 4 == question.size_bytes - 4
        header, position = read_request_header(frame[4:], False)
        assert (header.api_key, header.api_version, header.correlation_id) == (1, FETCH_VERSION, correlation_id)
        request = decode(FetchRequest, FETCH_VERSION, frame[4:], position)
        assert (request.max_wait_ms, request.min_bytes, request.max_bytes) == (77, 1, 1 << 20)
        (partition,) = request.topics[0].partitions
        assert request.topics[0].topic == topic
        assert (partition.partition, partition.fetch_offset, partition.partition_max_bytes) == (0, offset, 1 << 20)


def answer(partition: PartitionData, topic: str = "t", correlation_id: int = 9) -> memoryview:
    response = FetchResponse(
        throttle_time_ms=1, session_id=3, responses=[FetchableTopicResponse(topic=topic, partitions=[partition])]
    )
    return memoryview(b"".join(response_frame(correlation_id, False, [encode(response, FETCH_VERSION)])))


@pytest.mark.parametrize("topic", ["t", "fetch-1", "a" * 200])
@pytest.mark.parametrize("aborted", [None, list[AbortedTransaction]()])
def test_the_head_is_read_where_the_codec_wrote_it(topic: str, aborted: list[AbortedTransaction] | None) -> None:
    partition = PartitionData(
        partition_index=0, high_watermark=1 << 40, aborted_transactions=aborted, records=b"records!"
    )
    data = answer(partition, topic)
    reader = FetchAnswer(topic)
    head = reader.read(data, 9)
    assert (head.high_watermark, head.records_bytes) == (1 << 40, 8)
    assert bytes(data[reader.head_bytes :]) == b"records!"
    assert head.size == len(data) - 4


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (answer(PartitionData(partition_index=0, error_code=1, high_watermark=0, records=b"")), "OFFSET_OUT_OF_RANGE"),
        (answer(PartitionData(partition_index=0, high_watermark=0, records=b""), correlation_id=8), "another form"),
        (
            answer(
                PartitionData(
                    partition_index=0,
                    high_watermark=0,
                    aborted_transactions=[AbortedTransaction(producer_id=1, first_offset=0)],
                    records=b"",
                )
            ),
            "another form",
        ),
    ],
)
def test_an_answer_with_an_error_to_another_question_or_of_another_form_ends_the_run(
    data: memoryview, said: str
) -> None:
    with pytest.raises(LoadFailed, match=said):
        FetchAnswer("t").read(data, 9)


def test_an_error_of_the_whole_answer_is_told() -> None:
    response = FetchResponse(
        error_code=ErrorCode.UNKNOWN_SERVER_ERROR.value,
        responses=[
            FetchableTopicResponse(
                topic="t", partitions=[PartitionData(partition_index=0, high_watermark=0, records=b"")]
            )
        ],
    )
    data = b"".join(response_frame(9, False, [encode(response, FETCH_VERSION)]))
    with pytest.raises(LoadFailed, match="UNKNOWN_SERVER_ERROR"):
        FetchAnswer("t").read(memoryview(data), 9)


def test_a_canned_answer_is_read_like_any_other() -> None:
    data = canned_answer("t", b"records")
    assert FetchAnswer("t").read(memoryview(data), 0).records_bytes == 7
