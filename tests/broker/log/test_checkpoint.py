"""Kafka's checkpoint files as text, byte by byte, and every way in which one can be wrong."""

import pytest

from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.log.checkpoint import (
    CorruptCheckpoint,
    encode_checkpoint,
    encode_offsets,
    read_checkpoint,
    read_offsets,
    read_partition_metadata,
    write_partition_metadata,
)

TOPIC_ID = bytes(range(16))


def test_an_offset_checkpoint_is_version_count_and_lines() -> None:
    disk = MemoryDisk()
    offsets = {("orders", 1): 12, ("orders", 0): 4711, ("a.b-c_d", 10): 9_000_000_000_000}
    disk.write_whole("checkpoint", encode_offsets(offsets))
    assert disk.read_whole("checkpoint") == b"0\n3\na.b-c_d 10 9000000000000\norders 0 4711\norders 1 12\n"
    assert read_offsets(disk, "checkpoint") == offsets
    disk.write_whole("checkpoint", encode_offsets({}))
    assert disk.read_whole("checkpoint") == b"0\n0\n"
    assert read_offsets(disk, "checkpoint") == {}


def test_a_missing_or_empty_file_has_no_entries() -> None:
    disk = MemoryDisk()
    assert read_offsets(disk, "missing") == {}
    disk.write_whole("empty", b"")
    assert read_offsets(disk, "empty") == {}


def test_what_kafka_wrote_is_read() -> None:
    """Java splits at any white space and writes the platform's line ends."""
    disk = MemoryDisk()
    disk.write_whole("windows", b"0\r\n1\r\norders  0\t7\r\n")
    assert read_offsets(disk, "windows") == {("orders", 0): 7}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"1\n0\n", "version '1'"),
        (b"0\n", "line 2 that 0 entries"),
        (b"0\n2\norders 0 1\n", "line 2 that 1 entries"),
        (b"0\nx\norders 0 1\n", "line 2 that 1 entries"),
        (b"0\n1\norders 0\n", "line 3: 2 words instead of 3"),
        (b"0\n1\norders 0 1 2\n", "line 3: 4 words instead of 3"),
        (b"0\n1\norders zero 1\n", "line 3: 'zero' is no number from 0 to 2147483647"),
        (b"\xff\xfe\x00", "is not text"),
        (bytes(100), "version"),
    ],
)
def test_a_corrupt_checkpoint_says_what_is_wrong(content: bytes, reason: str) -> None:
    disk = MemoryDisk()
    disk.write_whole("bad", content)
    with pytest.raises(CorruptCheckpoint, match=reason) as caught:
        read_offsets(disk, "bad")
    assert "bad" in str(caught.value)


def test_entries_may_be_anything_without_blanks() -> None:
    disk = MemoryDisk()
    disk.write_whole("c", encode_checkpoint([(1, "x"), (2, "y")]))
    assert read_checkpoint(disk, "c", 2) == [["1", "x"], ["2", "y"]]


def test_partition_metadata_is_version_and_topic_id() -> None:
    disk = MemoryDisk()
    disk.make_dir("d")
    assert read_partition_metadata(disk, "d") is None
    write_partition_metadata(disk, "d", TOPIC_ID)
    assert disk.read_whole("d/partition.metadata") == b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    assert read_partition_metadata(disk, "d") == TOPIC_ID


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"version: 0\n",
        b"topic_id: AAECAwQFBgcICQoLDA0ODw",
        b"version: 1\ntopic_id: AAECAwQFBgcICQoLDA0ODw",
        b"version: 0\ntopic_id: short",
        b"version: 0\ntopic_id",
        b"\xff",
    ],
)
def test_corrupt_partition_metadata_is_refused(content: bytes) -> None:
    disk = MemoryDisk()
    disk.make_dir("d")
    disk.write_whole("d/partition.metadata", content)
    with pytest.raises(CorruptCheckpoint, match=r"d/partition\.metadata"):
        read_partition_metadata(disk, "d")
