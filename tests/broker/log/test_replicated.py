"""What a follower takes from its leader: each rule is broken once, in batches that are right otherwise."""

import pytest

from odradek.broker.log.replicated import LogBounds, check_replicated
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.log.logs import T0, batch, stored
from tests.broker.log.transactions import marker_of

END = LogBounds(0, 10, 2)
CORRUPT, OUT_OF_RANGE = ErrorCode.CORRUPT_MESSAGE, ErrorCode.OFFSET_OUT_OF_RANGE


def at(base_offset: int, leader_epoch: int = 2, count: int = 1) -> bytes:
    return stored(batch(*[T0] * count), base_offset, leader_epoch)


def offsets(data: bytes, end: LogBounds = END, leader_epoch: int = 5) -> list[tuple[int, int]]:
    return [
        (one.header.base_offset, one.header.last_offset)
        for one in check_replicated(memoryview(data), end, leader_epoch)
    ]


def code_of(data: bytes, end: LogBounds = END, leader_epoch: int = 5) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        check_replicated(memoryview(data), end, leader_epoch)
    return caught.value.code


def test_batches_that_go_on_where_the_log_ends_are_taken() -> None:
    assert offsets(at(10) + at(11, 3, 4) + at(15, 5)) == [(10, 10), (11, 14), (15, 15)]
    assert offsets(b"") == []


def test_offsets_may_be_missing_where_compaction_took_batches() -> None:
    assert offsets(at(12) + at(40)) == [(12, 12), (40, 40)]


@pytest.mark.parametrize("data", [at(9), at(0, count=10), at(9, count=2)])
def test_a_beginning_before_the_log_end_is_out_of_range(data: bytes) -> None:
    assert code_of(data) is OUT_OF_RANGE


@pytest.mark.parametrize("data", [at(10) + at(10), at(10, count=3) + at(12), at(20) + at(10)])
def test_offsets_never_go_back(data: bytes) -> None:
    assert code_of(data) is CORRUPT


def test_an_empty_log_may_begin_within_a_batch() -> None:
    """At the leader, records before the log start were deleted, in the middle of a batch (DeleteRecords)."""
    empty = LogBounds(10, 10, -1)
    assert offsets(at(8, count=5) + at(13), empty) == [(8, 12), (13, 13)]
    assert code_of(at(8, count=2), empty) is OUT_OF_RANGE
    assert code_of(at(8, count=5), LogBounds(9, 10, -1)) is OUT_OF_RANGE


def test_leader_epochs_never_go_back() -> None:
    assert code_of(at(10, 1)) is CORRUPT
    assert code_of(at(10, 3) + at(11, 2)) is CORRUPT


def test_batches_of_old_messages_without_an_epoch_are_taken() -> None:
    assert offsets(at(10, -1) + at(11, 2)) == [(10, 10), (11, 11)]


def test_what_stands_behind_a_later_epoch_is_left_out() -> None:
    """A leader that was deposed sends what its file holds by then (KAFKA-18723)."""
    assert offsets(at(10, 5) + at(11, 6) + at(12, 5)) == [(10, 10)]
    assert offsets(at(10, 6)) == []


def test_a_batch_that_is_cut_at_the_end_is_left_out() -> None:
    whole, cut = at(10), at(11)[:-1]
    assert offsets(whole + cut) == [(10, 10)]
    assert offsets(whole + cut[:30]) == [(10, 10)]


@pytest.mark.parametrize("size_bytes", [1, 30, 61, len(at(10)) - 1])
def test_less_than_a_batch_is_corrupt(size_bytes: int) -> None:
    assert code_of(at(10)[:size_bytes]) is CORRUPT


def test_each_flipped_bit_is_found_or_lies_before_the_checksum() -> None:
    """The offset, size, epoch and magic stand before it, and have rules of their own; only an epoch that may be is
    believed."""
    data = at(10, 2)
    for position in range(len(data)):
        for bit in range(8):
            flipped = bytearray(data)
            flipped[position] ^= 1 << bit
            try:
                taken = check_replicated(memoryview(bytes(flipped)), END, 5)
            except KafkaError as error:
                assert error.code in (CORRUPT, OUT_OF_RANGE)
            else:
                is_offset, is_epoch = position < 8, 12 <= position < 16
                assert not taken or is_offset or is_epoch, (position, bit)


def test_markers_are_read_and_must_be_readable() -> None:
    marker = marker_of(7, is_abort=True)
    (taken,) = check_replicated(memoryview(stored(marker, 10, 2)), END, 5)
    assert taken.marker is not None
    assert taken.marker.is_abort
