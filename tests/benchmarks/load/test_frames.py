"""The load is what it says it is: exact sizes, requests and batches that our strict readers accept, always the same."""

import pytest

from benchmarks.load.frames import (
    CORRELATION_ID_POSITION,
    DISTINCT_BATCHES,
    PRODUCE_VERSION,
    Load,
    Stamp,
    batch_of,
    batches_of,
    frames_of,
    partition_position,
)
from odradek.protocol.batches.batch import check_batch
from odradek.protocol.batches.records import check_records, iterate_records
from odradek.protocol.codec.codec import decode
from odradek.protocol.frames import read_request_header
from odradek.protocol.messages.produce import ProduceRequest

LOAD = Load("produce-1", 1_000_000, timestamp_ms=1_700_000_000_000)


@pytest.mark.parametrize("record_bytes", [100, 108, 200, 1000, 1024, 4096, 8192, 16 * 1024])
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


@pytest.mark.parametrize("kibibytes", [1, 4, 64, 1024])
def test_batches_of_other_sizes_are_filled_as_well(kibibytes: int) -> None:
    batch_bytes = kibibytes * 1024
    batch = batches_of(Load("t", 10**7, timestamp_ms=0, batch_bytes=batch_bytes))[-1]
    assert check_batch(memoryview(batch)).size_bytes == batch_bytes


def test_the_same_load_is_the_same_bytes_in_every_process() -> None:
    assert Load.from_json(LOAD.to_json()) == LOAD
    assert batches_of(Load.from_json(LOAD.to_json())) == batches_of(LOAD)


def test_counts_follow_from_the_bytes() -> None:
    load = Load("t", 1_015_000, timestamp_ms=0)  # 61 whole batches and most of another
    assert load.batch_count == 61
    assert load.produced_bytes == 61 * 16384
    assert load.record_count == 61 * 16


def test_connections_and_partitions_get_equal_shares() -> None:
    eight = Load("t", 61 * 16384, timestamp_ms=0, connections=8, partitions=8)
    assert (eight.batches_per_connection, eight.batch_count, eight.batches_to(7)) == (7, 56, 7)
    shared = Load("t", 61 * 16384, timestamp_ms=0, connections=5, partitions=2)
    assert shared.is_shared
    assert (shared.batches_per_connection, shared.batches_to(0), shared.batches_to(1)) == (12, 36, 24)
    spread = Load("t", 61 * 16384, timestamp_ms=0, partitions=10, spread=10)
    assert not spread.is_shared
    assert (spread.batch_count, spread.batches_to(0), spread.batches_to(9)) == (60, 6, 6)


def test_frames_are_produce_requests_with_replaceable_correlation_id_and_partition() -> None:
    batches = batches_of(LOAD)
    at = partition_position(LOAD)
    for number, (frame, batch) in enumerate(zip(frames_of(LOAD, batches, partition=3), batches, strict=True)):
        frame[CORRELATION_ID_POSITION : CORRELATION_ID_POSITION + 4] = number.to_bytes(4, "big")
        assert int.from_bytes(frame[:4], "big") == len(frame) - 4
        header, position = read_request_header(frame[4:], True)
        assert (header.api_key, header.api_version, header.correlation_id) == (0, PRODUCE_VERSION, number)
        request = decode(ProduceRequest, PRODUCE_VERSION, frame[4:], position)
        assert (request.acks, request.transactional_id) == (1, None)
        (topic,) = request.topic_data
        (partition,) = topic.partition_data
        assert (topic.name, partition.index) == (LOAD.topic, 3)
        assert partition.records == batch == batch_of(frame, LOAD)
        frame[at : at + 4] = (1000).to_bytes(4, "big")
        changed = decode(ProduceRequest, PRODUCE_VERSION, frame[4:], position)
        assert changed.topic_data[0].partition_data[0].index == 1000


def test_a_stamped_batch_is_that_of_an_idempotent_producer_and_nothing_else_changes() -> None:
    load = Load("t", 10**7, timestamp_ms=5, producer_id=1 << 40, producer_epoch=3)
    plain = batches_of(load)[0]
    stamped = bytearray(plain)
    Stamp(load, plain).apply(memoryview(stamped), 7)
    header = check_batch(memoryview(stamped))
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (1 << 40, 3, 7 * 16)
    assert list(iterate_records(bytes(stamped))) == list(iterate_records(plain))


def test_keys_are_taken_in_turn_through_all_batches() -> None:
    load = Load("t", 10**7, timestamp_ms=5, keys=20)
    plain = batches_of(load)[2]
    stamped = bytearray(plain)
    stamp = Stamp(load, plain)
    for number in (1, 2):  # the same room is used again and again
        stamp.apply(memoryview(stamped), number)
    check_batch(memoryview(stamped))
    keys = [int.from_bytes(record.key or b"", "big") for record in iterate_records(bytes(stamped))]
    assert keys == [(2 * 16 + index) % 20 for index in range(16)]


@pytest.mark.parametrize("values", [{"connections": 2}, {"partitions": 2, "spread": 2}])
def test_sequences_and_keys_have_one_writer(values: dict[str, int]) -> None:
    with pytest.raises(AssertionError, match="one writer"):
        Load("t", 10**7, timestamp_ms=0, keys=5, **values)
