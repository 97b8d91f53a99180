"""Reading a log: by offset at every limit, by timestamp exactly, and through batches whose records are nonsense."""

import os
from pathlib import Path

import pytest

from odradek.broker.disk.file_disk import FileDisk
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.log.config import LogConfig
from odradek.broker.log.log import Log
from odradek.broker.log.lookup import TimestampOffset
from odradek.protocol.batches.batch import HEADER_SIZE
from odradek.protocol.batches.compression import Codec
from odradek.protocol.errors import ErrorCode
from tests.broker.log.logs import (
    T0,
    Model,
    append,
    batch,
    error_of,
    open_log,
    small_log,
    stored,
)

ONE = batch(T0)  # every batch with one record of this kind has the same size
SIZE = len(ONE)


@pytest.fixture
def filled() -> tuple[Log, Model]:
    return small_log()


def test_read_answers_whole_batches_up_to_its_limits(filled: tuple[Log, Model]) -> None:
    """Every offset, every end, every size of interest against the model; a read never goes beyond its segment."""
    log, model = filled
    assert len(log.base_offsets) > 4
    for offset in range(log.log_end_offset + 1):
        segment_end = next((base for base in log.base_offsets if base > offset), log.log_end_offset)
        for end_offset in range(log.log_end_offset + 1):
            for size_bytes_max in (0, 1, SIZE - 1, SIZE, SIZE + 1, 2 * SIZE + 5, 300, 10_000):
                for at_least_one_batch in (True, False):
                    asked = offset, size_bytes_max, end_offset, at_least_one_batch
                    found = log.fetch(*asked)
                    wanted = model.read(offset, size_bytes_max, min(end_offset, segment_end), at_least_one_batch)
                    assert bytes(found.records) == wanted, asked
                    assert found.is_cut == is_cut(model, log, wanted, *asked), asked


def is_cut(
    model: Model, log: Log, data: bytes, offset: int, size_bytes_max: int, end_offset: int, at_least_one_batch: bool
) -> bool:
    """Whether `data` ends with a segment that grows no more, or the next batch may be read, or is too large."""
    if offset >= end_offset:
        return False
    if data:
        offset = max(last for _, last, one in model.batches if one in data) + 1
        if offset in log.base_offsets[1:]:
            return True
    behind = [(last, one) for _, last, one in model.batches if last >= offset]
    if not behind:
        return False
    last, one = behind[0]
    fits = len(data) + len(one) <= size_bytes_max or (at_least_one_batch and not data)
    return last < end_offset or not fits


def test_reads_are_the_same_in_any_order(filled: tuple[Log, Model]) -> None:
    """What is remembered of earlier reads must not change an answer."""
    log, model = filled
    for stride in (7, 11, 13, 1, 3):
        for step in range(log.log_end_offset):
            offset = step * stride % log.log_end_offset
            data = bytes(log.fetch(offset, 130, log.log_end_offset, True).records)
            assert data == model.read(offset, 130, log.log_end_offset, True)[: len(data)]
            assert data


def test_offsets_outside_of_the_log_are_refused(filled: tuple[Log, Model]) -> None:
    log, _ = filled
    end = log.log_end_offset
    assert log.fetch(end, 100, end, True).records == b""
    assert error_of(lambda: log.fetch(end + 1, 100, end, True)) is ErrorCode.OFFSET_OUT_OF_RANGE
    assert error_of(lambda: log.fetch(-1, 100, end, True)) is ErrorCode.OFFSET_OUT_OF_RANGE
    log.advance_log_start(5)
    assert error_of(lambda: log.fetch(4, 100, end, True)) is ErrorCode.OFFSET_OUT_OF_RANGE
    assert log.fetch(5, 100, end, True).records


def test_a_batch_larger_than_any_piece_is_read(tmp_path: Path) -> None:
    log = Log.open(FileDisk(), f"{tmp_path}/orders-0", LogConfig(), 0)
    large = batch(T0, T0, value=bytes(700_000))
    for data in (ONE, large, ONE):
        append(log, data)
    assert bytes(log.fetch(2, 10, 4, True).records) == stored(large, 1)
    assert log.fetch(2, 10, 4, False).records == b""
    assert bytes(log.fetch(0, 1000, 4, True).records) == stored(ONE, 0)
    assert bytes(log.fetch(0, 10_000_000, 4, True).records) == stored(ONE, 0) + stored(large, 1) + stored(ONE, 3)


def test_a_reader_that_goes_on_where_it_stopped_needs_one_pread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Log.open(FileDisk(), f"{tmp_path}/orders-0", LogConfig(), 0)
    data = batch(T0, value=bytes(1000))
    for _ in range(1000):
        append(log, data)
    reads: list[int] = []
    pread = os.pread

    def counted(descriptor: int, size: int, position: int) -> bytes:
        reads.append(size)
        return pread(descriptor, size, position)

    monkeypatch.setattr(os, "pread", counted)
    offset = len(log.fetch(0, 20_000, log.log_end_offset, True).records) // len(data)
    while offset < log.log_end_offset:
        reads.clear()
        got = log.fetch(offset, 20_000, log.log_end_offset, True).records
        assert len(reads) == 1
        offset += len(got) // len(data)
    for _ in range(3):
        append(log, data)
        reads.clear()
        assert bytes(log.fetch(offset, 20_000, log.log_end_offset, True).records) == stored(data, offset)
        assert len(reads) == 1, "at the end of the log, too"
        offset += 1


def test_the_first_record_with_a_timestamp_is_found_exactly(filled: tuple[Log, Model]) -> None:
    log, model = filled
    end = log.log_end_offset
    for log_start in (0, 1, 4, 17, end):
        log.advance_log_start(log_start)
        model.advance_log_start(log_start)
        for timestamp in range(T0 - 5, T0 + 230):
            for end_offset in (end, end // 2, log_start):
                assert log.offset_for_timestamp(timestamp, end_offset) == model.offset_for_timestamp(
                    timestamp, end_offset
                ), (timestamp, end_offset, log_start)


def test_the_record_with_the_largest_timestamp_is_the_first_of_its_kind() -> None:
    log = open_log(MemoryDisk(), LogConfig(segment_bytes=2 * SIZE + 20, index_interval_bytes=0))
    for timestamps in ((T0 + 1,), (T0 + 5, T0 + 9, T0 + 9), (T0 + 9,), (T0 + 3,)):
        append(log, batch(*timestamps), leader_epoch=3)
    assert len(log.base_offsets) > 1
    assert log.offset_of_max_timestamp(6) == TimestampOffset(T0 + 9, 2, 3)
    assert log.offset_of_max_timestamp(3) == TimestampOffset(T0 + 9, 2, 3)
    assert log.offset_of_max_timestamp(2) is None, "as Kafka: not before the end, hence unknown"
    log.advance_log_start(4)
    assert log.offset_of_max_timestamp(6) == TimestampOffset(T0 + 9, 4, 3)
    log.advance_log_start(5)
    assert log.offset_of_max_timestamp(6) == TimestampOffset(T0 + 3, 5, 3)
    log.advance_log_start(6)
    assert log.offset_of_max_timestamp(6) is None


def poisonous(*timestamps: int, codec: Codec = Codec.NONE) -> bytes:
    """A batch whose header is fine and whose records are noise. Its checksum does not matter to readers."""
    data = batch(*timestamps, codec=codec)
    return data[:HEADER_SIZE] + b"\xff" * (len(data) - HEADER_SIZE)


@pytest.mark.parametrize("codec", list(Codec))
def test_readers_survive_a_batch_whose_records_are_nonsense(codec: Codec, caplog: pytest.LogCaptureFixture) -> None:
    log = open_log(MemoryDisk(), LogConfig(index_interval_bytes=0))
    append(log, batch(T0))
    append(log, poisonous(T0 + 5, T0 + 9, codec=codec), leader_epoch=2)
    append(log, batch(T0 + 20), leader_epoch=2)
    # The right record is in that batch, says its header: whoever starts at its first one misses nothing.
    assert log.offset_for_timestamp(T0 + 7, 4) == TimestampOffset(T0 + 9, 1, 2)
    assert "cannot be read" in caplog.text
    assert log.offset_for_timestamp(T0 + 10, 4) == TimestampOffset(T0 + 20, 3, 2)
    log.advance_log_start(2)
    assert log.offset_for_timestamp(T0, 4) == TimestampOffset(T0 + 9, 2, 2)
    log.truncate_to(3)
    assert log.offset_of_max_timestamp(3) == TimestampOffset(T0 + 9, 2, 2)
    assert len(log.fetch(2, 1000, 3, True).records) == len(poisonous(T0 + 5, T0 + 9, codec=codec))


def test_a_header_that_claims_a_larger_timestamp_than_its_records_misleads_nobody() -> None:
    log = open_log(MemoryDisk())
    lying = bytearray(batch(T0))
    lying[35:43] = (T0 + 50).to_bytes(8, "big")
    append(log, bytes(lying))
    append(log, batch(T0 + 30))
    assert log.offset_for_timestamp(T0 + 20, 2) == TimestampOffset(T0 + 30, 1, 0)
    assert log.offset_of_max_timestamp(2) == TimestampOffset(T0 + 50, 0, 0)
