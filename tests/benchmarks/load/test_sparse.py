"""Full segments that take no room are valid to the last batch, hold the same offsets as before, and have holes."""

from pathlib import Path

import pytest

from benchmarks.load.sparse import BATCH_BYTES, SparseSegment, fill_out
from odradek.protocol.batches.batch import check_batch, crc_matches, iterate_batches
from odradek.protocol.batches.record_encoding import build_batch
from odradek.protocol.batches.records import Record, check_records


def segment_of(records: int, directory: Path, base_offset: int = 0) -> Path:
    made = [Record(base_offset + number, 1_700_000_000_000, None, b"") for number in range(records)]
    log = directory / f"{base_offset:020d}.log"
    log.write_bytes(build_batch(made, base_offset=base_offset, leader_epoch=5))
    log.with_suffix(".index").write_bytes(b"")
    return log


def test_a_batch_is_as_large_as_it_should_be_and_valid_record_by_record() -> None:
    batch = SparseSegment(0, 3, 1_700_000_000_000, leader_epoch=0).batch()
    assert len(batch) == BATCH_BYTES
    check_records(memoryview(batch), check_batch(memoryview(batch)))


@pytest.mark.parametrize("base_offset", [0, 1000])
def test_a_segment_is_filled_out_with_as_many_batches_as_it_had_records(tmp_path: Path, base_offset: int) -> None:
    log = segment_of(40, tmp_path, base_offset)
    assert fill_out(log, tmp_path / f"{base_offset + 40:020d}.log") == 40 * BATCH_BYTES == log.stat().st_size
    data = log.read_bytes()
    headers = list(iterate_batches(data))
    assert [(position, header.base_offset) for position, header in headers] == [
        (number * BATCH_BYTES, base_offset + number) for number in range(40)
    ]
    for position, header in headers:
        assert crc_matches(data[position : position + BATCH_BYTES])
        assert (header.partition_leader_epoch, header.max_timestamp, header.record_count) == (5, 1_700_000_000_000, 1)


def test_the_index_leads_to_each_batch(tmp_path: Path) -> None:
    log = segment_of(5, tmp_path)
    fill_out(log, tmp_path / f"{5:020d}.log")
    entries = log.with_suffix(".index").read_bytes()
    rows = [
        (int.from_bytes(entries[at : at + 4], "big"), int.from_bytes(entries[at + 4 : at + 8], "big"))
        for at in range(0, len(entries), 8)
    ]
    assert rows == [(number, number * BATCH_BYTES) for number in range(1, 5)]


def test_it_takes_little_room(tmp_path: Path) -> None:
    log = segment_of(100, tmp_path)
    fill_out(log, tmp_path / f"{100:020d}.log")
    assert log.stat().st_blocks * 512 <= log.stat().st_size // 2


@pytest.mark.parametrize("next_offset", [39, 41])
def test_a_segment_with_other_offsets_is_left_alone(tmp_path: Path, next_offset: int) -> None:
    log = segment_of(40, tmp_path)
    before = log.read_bytes()
    with pytest.raises(ValueError, match="is not one batch"):
        fill_out(log, tmp_path / f"{next_offset:020d}.log")
    assert log.read_bytes() == before


def test_a_segment_of_two_batches_is_left_alone(tmp_path: Path) -> None:
    log = segment_of(40, tmp_path)
    log.write_bytes(log.read_bytes() + segment_of(1, tmp_path, 40).read_bytes())
    for next_offset in (40, 41):
        with pytest.raises(ValueError, match="is not one batch"):
            fill_out(log, tmp_path / f"{next_offset:020d}.log")
