"""`meta.properties`: round trip, Kafka's own form read, and every other directory refused with the cure."""

import pytest

from odradek.broker.directories.meta_properties import FILE_NAME, ForeignDirectory, MetaProperties, check, load, store
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.protocol.codec.schema import uuid_text

DIRECTORY_ID = uuid_text(bytes(range(16)))
OURS = MetaProperties("b2RyYWRlay10ZXN0cy0wMQ", 3, DIRECTORY_ID)


def disk_with(text: str) -> MemoryDisk:
    disk = MemoryDisk()
    disk.make_dir("data")
    disk.write_whole(f"data/{FILE_NAME}", text.encode())
    return disk


def test_what_was_written_is_read_again() -> None:
    disk = disk_with("")
    store(disk, "data", OURS)
    assert load(disk, "data") == OURS
    check(OURS, "data", 3)


def test_a_new_directory_has_none() -> None:
    assert load(MemoryDisk(), "data") is None


def test_the_file_as_kafka_writes_it_is_read() -> None:
    ids = f"cluster.id={OURS.cluster_id}\ndirectory.id={DIRECTORY_ID}\nnode.id=3\n"
    text = f"#\n#Thu May 01 10:00:00 UTC 2025\n{ids}version=1\n"
    assert load(disk_with(text), "data") == OURS


def test_the_directory_of_another_node_is_refused_with_both_ways_out() -> None:
    with pytest.raises(ForeignDirectory) as refused:
        check(OURS, "/var/lib/odradek", 4)
    assert str(refused.value) == (
        "/var/lib/odradek belongs to node 3 and this is node 4: start with --node-id 3, or give another --data-dir"
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it has no version"),
        ("\x00\x00\x00\x00", "it has no version"),
        ("version=2\n", r"has version 2; this broker knows version 1 only"),
        (f"version=1\nnode.id=3\ndirectory.id={DIRECTORY_ID}\n", r"it has no cluster\.id"),
        (f"version=1\ncluster.id=\nnode.id=3\ndirectory.id={DIRECTORY_ID}\n", r"cluster\.id is empty"),
        (f"version=1\ncluster.id=x\ndirectory.id={DIRECTORY_ID}\n", r"it has no node\.id"),
        (f"version=1\ncluster.id=x\nnode.id=three\ndirectory.id={DIRECTORY_ID}\n", "'three'"),
        ("version=1\ncluster.id=x\nnode.id=3\n", r"it has no directory\.id"),
        ("version=1\ncluster.id=x\nnode.id=3\ndirectory.id=short\n", "'short'"),
    ],
)
def test_a_damaged_or_newer_file_is_refused_and_left_as_it_is(text: str, reason: str) -> None:
    disk = disk_with(text)
    with pytest.raises(ForeignDirectory, match=rf"^data/meta\.properties .*{reason}"):
        load(disk, "data")
    assert disk.read_whole(f"data/{FILE_NAME}") == text.encode()
