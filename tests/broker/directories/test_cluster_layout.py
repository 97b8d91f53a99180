"""What is found in a cluster's directory, and the note of a take that keeps a start away."""

import pytest

from odradek.broker.directories.cluster_layout import (
    FIRST_ID,
    NOTE_FILE,
    TakeNote,
    broker_directory,
    broker_ids,
    check_whole,
    first_broker_id,
    load_note,
    metadata_directory,
)
from odradek.broker.directories.meta_properties import ForeignDirectory, MetaProperties
from odradek.broker.disk.memory_disk import MemoryDisk

KNOWN = MetaProperties("Rk9P4m2xT0eXK1m0Vb7n1w", 0, "x1cP0mQnTq6vVtJzW8h3lQ")


def test_brokers_are_found_by_the_names_of_their_directories() -> None:
    disk = MemoryDisk()
    assert broker_ids(disk, "dir") == []
    assert first_broker_id(disk, "dir") == FIRST_ID
    for name in ("broker-10", "broker-9", "broker-", "broker-01", "broker-x", "metadata"):
        disk.make_dir(f"dir/{name}")
    disk.write_whole("dir/broker-3", b"no directory")
    assert broker_ids(disk, "dir") == [9, 10]
    assert first_broker_id(disk, "dir") == 9
    disk.make_dir("dir/broker-0")
    assert first_broker_id(disk, "dir") == 0
    assert (broker_directory("dir", 0), metadata_directory("dir")) == ("dir/broker-0", "dir/metadata")


@pytest.mark.parametrize("path", ["/var/lib/odradek", "a b = c", "line\nend", "über\udcff"])
def test_a_note_is_read_as_it_was_written(path: str) -> None:
    disk = MemoryDisk()
    disk.make_dir("dir")
    assert load_note(disk, "dir") is None
    note = TakeNote(path, KNOWN)
    disk.write_whole(f"dir/{NOTE_FILE}", note.encode())
    assert load_note(disk, "dir") == note


def test_no_cluster_starts_while_the_note_is_there() -> None:
    disk = MemoryDisk()
    disk.make_dir("dir")
    check_whole(disk, "dir")
    disk.write_whole(f"dir/{NOTE_FILE}", TakeNote("/serve", KNOWN).encode())
    with pytest.raises(ForeignDirectory, match="give `odradek cluster take /serve --data-dir dir` again, with --back"):
        check_whole(disk, "dir")
    disk.write_whole(f"dir/{NOTE_FILE}", b"version=1\nserve.dir=not json\n")
    with pytest.raises(ForeignDirectory, match="is damaged"):
        check_whole(disk, "dir")
