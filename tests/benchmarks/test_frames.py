"""The load is what it says it is: exact sizes, requests and batches that our strict readers accept, always the same."""

import pytest

from benchmarks.frames import (
    CORRELATION_ID_POSITION,
    DISTINCT_BATCHES,
    PRODUCE_VERSION,
    Load,
    ReplyShape,
    batches_of,
    canned_reply,
    frames_of,
)
from protocol.batch import check_batch
from protocol.codec import decode
from protocol.frames import read_request_header, read_response_header
from protocol.messages.produce import ProduceRequest, ProduceResponse
from protocol.records import check_records, iterate_records

LOAD = Load("produce-1", 1_000_000, timestamp_ms=1_700_000_000_000)


@pytest.mark.parametrize("record_bytes", [100, 200, 1000, 1024, 4096, 16 * 1024])
def test_batches_are_exactly_as_large_as_wanted_and_valid_record_by_record(record_bytes: int) -> None:
    load = Load("t", 1_000_000, timestamp_ms=1_700_000_000_000, record_bytes=record_bytes)
    batches = batches_of(load)
    assert len(batches) == DISTINCT_BATCHES
    assert len(set(batches)) == DISTINCT_BATCHES
    for batch in batches:
        assert len(batch) == 16 * 1024
        header = check_batch(memoryview(batch))
        check_records(memoryview(batch), header)
        assert header.record_count == load.records_per_batch
        assert {record.timestamp_ms for record in iterate_records(batch)} == {load.timestamp_ms}


def test_a_batch_that_cannot_be_filled_is_refused() -> None:
    with pytest.raises(ValueError, match="do not fill"):
        batches_of(Load("t", 1_000_000, timestamp_ms=0, batch_bytes=62, record_bytes=62))


def test_the_same_load_is_the_same_bytes_in_every_process() -> None:
    assert Load.from_json(LOAD.to_json()) == LOAD
    assert batches_of(Load.from_json(LOAD.to_json())) == batches_of(LOAD)


def test_counts_follow_from_the_bytes() -> None:
    load = Load("t", 1_015_000, timestamp_ms=0)  # 61 whole batches and most of another
    assert load.batch_count == 61
    assert load.produced_bytes == 61 * 16384
    assert load.record_count == 61 * 16


def test_frames_are_produce_requests_with_a_correlation_id_that_can_be_replaced() -> None:
    batches = batches_of(LOAD)
    for number, (frame, batch) in enumerate(zip(frames_of(LOAD, batches), batches, strict=True)):
        frame[CORRELATION_ID_POSITION : CORRELATION_ID_POSITION + 4] = number.to_bytes(4, "big")
        assert int.from_bytes(frame[:4], "big") == len(frame) - 4
        header, position = read_request_header(frame[4:], True)
        assert (header.api_key, header.api_version, header.correlation_id) == (0, PRODUCE_VERSION, number)
        request = decode(ProduceRequest, PRODUCE_VERSION, frame[4:], position)
        assert (request.acks, request.transactional_id) == (1, None)
        (topic,) = request.topic_data
        (partition,) = topic.partition_data
        assert (topic.name, partition.index) == (LOAD.topic, 0)
        assert partition.records == batch


@pytest.mark.parametrize("topic", ["t", "produce-1", "a" * 100])
def test_a_reply_is_read_where_the_codec_wrote_it(topic: str) -> None:
    shape = ReplyShape(topic)
    data = b"before" + canned_reply(topic, 7, 1 << 40)
    reply = shape.read(memoryview(data), 6)
    assert reply == (shape.size_bytes - 4, 7, 0, 1 << 40)
    assert shape.size_bytes == len(data) - 6
    correlation_id, position = read_response_header(data[10:], True)
    assert correlation_id == 7
    response = decode(ProduceResponse, PRODUCE_VERSION, data[10:], position)
    assert response.responses[0].partition_responses[0].base_offset == 1 << 40
