"""The in-memory log takes and refuses batches as a leader does, and notices what a leader cannot."""

import pytest

from odradek.protocol.batches.batch import pack_batch
from odradek.protocol.batches.record_encoding import encode_records
from odradek.protocol.batches.records import Record
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.wire import batch
from tests.client.broker_log import Appended, PartitionLog

MAX = 2**31 - 1


def numbered(sequence: int, *values: bytes, epoch: int = 0, producer_id: int = 7) -> bytes:
    return batch(*values, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)


@pytest.fixture
def log() -> PartitionLog:
    return PartitionLog("orders-0", [])


def refusal(log: PartitionLog, data: bytes, size_bytes_max: int = 1 << 20) -> ErrorCode:
    end_offset = log.end_offset
    with pytest.raises(KafkaError) as caught:
        log.append(data, 0, size_bytes_max)
    assert log.end_offset == end_offset
    return caught.value.code


def test_batches_get_offsets_and_can_be_read_back(log: PartitionLog) -> None:
    assert log.append(batch(b"a", b"b"), 3) == Appended(0, False)
    assert log.append(numbered(0, b"c"), 4) == Appended(2, False)
    first, second = log.batches
    assert (first.producer_id, first.producer_epoch, first.base_sequence) == (-1, -1, -1)
    assert (second.producer_id, second.producer_epoch, second.base_sequence) == (7, 0, 0)
    assert [record.offset for record in (*first.records, *second.records)] == [0, 1, 2]
    assert (first.values, first.next_offset, first.leader_epoch) == ([b"a", b"b"], 2, 3)
    assert second.header.base_offset == 2
    assert second.header.partition_leader_epoch == 4
    assert (log.start_offset, log.end_offset) == (0, 3)


def test_bytes_that_are_no_good_batch_are_refused(log: PartitionLog) -> None:
    good = batch(b"value")
    assert refusal(log, good, len(good) - 1) is ErrorCode.MESSAGE_TOO_LARGE
    assert refusal(log, b"") is ErrorCode.INVALID_RECORD
    assert refusal(log, good + good) is ErrorCode.INVALID_RECORD
    assert refusal(log, good[:-1] + b"\1") is ErrorCode.CORRUPT_MESSAGE
    log.append(good, 0, len(good))
    assert log.violations == []


@pytest.mark.parametrize("max_timestamp", [1_999, 2_001])
def test_a_header_with_another_latest_timestamp_than_the_records_is_noticed(
    log: PartitionLog, max_timestamp: int
) -> None:
    payload = encode_records([Record(0, 2_000, None, b"value", ())], 0, 1_000)
    data = pack_batch(payload, record_count=1, last_offset_delta=0, base_timestamp=1_000, max_timestamp=max_timestamp)
    log.append(data, 0)
    assert log.violations == [f"orders-0: a max_timestamp of {max_timestamp}, the latest is 2000"]


def test_a_duplicate_batch_among_the_last_five_is_answered_with_its_first_offset(log: PartitionLog) -> None:
    for sequence in range(6):
        log.append(numbered(sequence, b"%d" % sequence), 0)
    for sequence in range(1, 6):
        assert log.append(numbered(sequence, b"%d" % sequence), 0) == Appended(sequence, True)
    assert refusal(log, numbered(0, b"0")) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.end_offset == 6
    assert log.violations == []


def test_the_same_sequence_with_other_records_is_a_violation(log: PartitionLog) -> None:
    log.append(numbered(0, b"acknowledged"), 0)
    assert log.append(numbered(0, b"and lost"), 0).is_duplicate
    [violation] = log.violations
    assert "orders-0: producer 7 epoch 0 sent sequence 0 twice" in violation


def test_sequences_and_epochs_follow_the_rules(log: PartitionLog) -> None:
    log.append(numbered(MAX, b"a", b"b"), 0)  # a producer without state begins anywhere; the batch wraps
    assert refusal(log, numbered(2, b"c")) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    log.append(numbered(1, b"c"), 0)
    assert refusal(log, numbered(1, b"d", epoch=1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    log.append(numbered(0, b"d", epoch=1), 0)
    assert refusal(log, numbered(2, b"e")) is ErrorCode.INVALID_PRODUCER_EPOCH
    log.append(numbered(0, b"another's", producer_id=8), 0)


def test_data_lost_is_lost_with_what_was_known_of_its_producer(log: PartitionLog) -> None:
    for sequence in range(4):
        log.append(numbered(sequence, b"%d" % sequence), 0)
    log.truncate(2)
    assert log.end_offset == 2
    assert [value for each in log.batches for value in each.values] == [b"0", b"1"]
    assert refusal(log, numbered(4, b"4")) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.append(numbered(1, b"1"), 0) == Appended(1, True)
    assert log.append(numbered(2, b"2"), 0) == Appended(2, False)
    log.truncate(0)
    assert log.append(numbered(9, b"9"), 0) == Appended(0, False)


def test_a_moved_start_makes_only_old_brokers_forget_a_producer(log: PartitionLog) -> None:
    for sequence in range(2):
        log.append(numbered(sequence, b"%d" % sequence), 0)
    log.delete_before(2)
    assert log.start_offset == 2
    assert refusal(log, numbered(9, b"9")) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    log.append(numbered(2, b"2"), 0)
    log.knows_kip_360 = False
    log.delete_before(3)
    assert refusal(log, numbered(3, b"3")) is ErrorCode.UNKNOWN_PRODUCER_ID
    log.append(numbered(0, b"3", epoch=1), 0)


def test_an_old_broker_keeps_a_producer_with_a_batch_left(log: PartitionLog) -> None:
    log.knows_kip_360 = False
    for sequence in range(2):
        log.append(numbered(sequence, b"%d" % sequence), 0)
    log.delete_before(1)
    log.append(numbered(2, b"2"), 0)
    log.forget_producers()
    assert refusal(log, numbered(3, b"3")) is ErrorCode.UNKNOWN_PRODUCER_ID
