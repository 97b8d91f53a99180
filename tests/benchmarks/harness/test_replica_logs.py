"""What DumpLogSegments prints is read, lines that mean damage are not passed over, and batches are those that were
sent."""

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.harness import replica_logs
from benchmarks.harness.readback import LogDiffers
from benchmarks.harness.replica_logs import SeenBatch, compare_replicas, expected_batches, read_dump
from benchmarks.load.frames import Load

LOAD = Load("t", 8 * 4096, timestamp_ms=0, batch_bytes=4096, record_bytes=1024, connections=2, partitions=2, acks=-1)


def line(base_offset: int, size_bytes: int, crc: int, *, count: int = 4, is_valid: str = "true") -> str:
    return (
        f"baseOffset: {base_offset} lastOffset: {base_offset + 3} count: {count} baseSequence: -1 lastSequence: -1 "
        "producerId: -1 producerEpoch: -1 partitionLeaderEpoch: 0 isTransactional: false isControl: false "
        f"deleteHorizonMs: OptionalLong.empty position: 0 CreateTime: 0 size: {size_bytes} magic: 2 "
        f"compresscodec: none crc: {crc} isvalid: {is_valid}"
    )


def dump(directory: Path, load: Load = LOAD, batches: int = 4) -> str:
    """As the tool prints it when all is well, of `batches` batches in each partition."""
    lines: list[str] = []
    for partition in range(load.partitions):
        lines += [f"Dumping {directory}/{load.topic}-{partition}/{0:020}.log", "Log starting offset: 0"]
        lines += [line(4 * number, *expected_batches(load)[number]) for number in range(batches)]
    return "\n".join(lines)


def test_batches_are_read_by_the_directory_of_their_partition() -> None:
    text = f"Dumping /data/t-0/{0:020}.log\nLog starting offset: 0\n{line(0, 100, 7)}\n{line(4, 90, 8)}"
    text += f"\nDumping /data/t-1/{0:020}.log\nLog starting offset: 0\n{line(0, 100, 9)}\n"
    assert read_dump(text) == {
        "t-0": [SeenBatch(0, 3, 100, 7), SeenBatch(4, 7, 90, 8)],
        "t-1": [SeenBatch(0, 3, 100, 9)],
    }


@pytest.mark.parametrize(
    "bad",
    [
        line(0, 100, 7, is_valid="false"),
        line(0, 100, 7, count=3),
        "Found 12 invalid bytes at the end of 00000000000000000000.log",
        "Exception in thread main",
    ],
)
def test_what_is_not_known_to_be_harmless_is_a_difference(bad: str) -> None:
    with pytest.raises(LogDiffers):
        read_dump(f"Dumping /data/t-0/{0:020}.log\n{bad}")


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """What the tool prints next; the files that it is asked for are there."""
    for partition in range(LOAD.partitions):
        (tmp_path / f"t-{partition}").mkdir()
        (tmp_path / f"t-{partition}" / f"{0:020}.log").touch()
    printed: list[str] = []

    def run_tool(*_arguments: str, check: bool) -> str:
        assert not check, "its code says nothing"
        return printed.pop(0)

    monkeypatch.setattr(replica_logs, "run_tool", run_tool)
    return printed


def test_directories_that_hold_what_was_sent_are_equal(tool: list[str], tmp_path: Path) -> None:
    tool += [dump(tmp_path), dump(tmp_path)]
    compare_replicas([tmp_path, tmp_path], LOAD)
    assert tool == []


def test_batches_that_are_missing_too_many_or_others_are_noticed(tool: list[str], tmp_path: Path) -> None:
    tool += [dump(tmp_path, batches=3), dump(tmp_path, batches=5), dump(tmp_path, replace(LOAD, timestamp_ms=1))]
    for said in ("holds 3 batches of 4", "holds 5 batches of 4", "is not batch 0 that was sent"):
        with pytest.raises(LogDiffers, match=said):
            compare_replicas([tmp_path], LOAD)


def test_a_directory_without_the_topic_and_one_with_more_segments_are_noticed(tmp_path: Path) -> None:
    with pytest.raises(LogDiffers, match="t-0 has 0 segments"):
        compare_replicas([tmp_path], LOAD)
    (tmp_path / "t-0").mkdir()
    for name in ("1.log", "2.log"):
        (tmp_path / "t-0" / name).touch()
    with pytest.raises(LogDiffers, match="t-0 has 2 segments"):
        compare_replicas([tmp_path], LOAD)


def test_behind_what_was_sent_there_may_be_zeros_alone(tool: list[str], tmp_path: Path) -> None:
    tool += [dump(tmp_path)]
    segment = tmp_path / "t-1" / f"{0:020}.log"
    segment.write_bytes(bytes(4 * 4096 + 100))
    compare_replicas([tmp_path], LOAD)
    segment.write_bytes(bytes(4 * 4096 + 99) + b"x")
    with pytest.raises(LogDiffers, match="holds more than was sent"):
        compare_replicas([tmp_path], LOAD)
