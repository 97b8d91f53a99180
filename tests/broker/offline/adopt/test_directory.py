"""A whole data directory read: which names are partitions, what everything else is, and the checkpoints."""

import pytest

from odradek.broker.log.checkpoint import CorruptCheckpoint
from odradek.broker.offline.adopt.directory import Found, read_directory
from tests.broker.offline.adopt.kafka_files import DATA, KafkaDirectory, batch

HEX = "0123456789abcdef" * 2


def read(directory: KafkaDirectory) -> Found:
    before = directory.files()
    found = read_directory(directory.disk, DATA)
    assert directory.files() == before, "nothing is changed"
    return found


def test_every_directory_is_told_by_its_name() -> None:
    directory = KafkaDirectory()
    for name in ("orders-0", "orders-1", "with-dashes-7"):
        directory.partition(name, batch(0))
    for name in ("__consumer_offsets-49", "__transaction_state-0", "__cluster_metadata-0", "__share_group_state-3"):
        directory.partition(name, batch(0))
    others = ("orders-01", f"gone-0.{HEX}-delete", f"lost-0.{HEX}-stray", f"moved-0.{HEX}-future", "notes")
    for name in (*others, "remote-log-index-cache"):
        directory.disk.make_dir(f"{DATA}/{name}")
    directory.write("file-0", b"")
    directory.write("bootstrap.checkpoint", b"")
    found = read(directory)
    taken = ["__consumer_offsets-49", "__transaction_state-0", "orders-0", "orders-1", "with-dashes-7"]
    assert [partition.name for partition in found.partitions] == taken, "coordinators go on with what is theirs"
    assert found.kafkas_own == ["__cluster_metadata-0", "__share_group_state-3"]
    assert {name: reason.partition(";")[0] for name, reason in found.others.items()} == {
        "orders-01": "no broker gives a partition such a name",
        f"gone-0.{HEX}-delete": "a deleted partition",
        f"lost-0.{HEX}-stray": "a partition that the metadata did not know",
        f"moved-0.{HEX}-future": "a copy of a partition that was on its way to another log directory",
        "notes": "no partition",
        "remote-log-index-cache": "indexes of tiered storage, which is not built: what was moved there cannot be read",
        "file-0": "a file with the name of a partition",
    }


def test_the_marker_of_a_clean_stop_and_the_checkpoints_are_read() -> None:
    directory = KafkaDirectory()
    directory.offsets("log-start-offset-checkpoint", {("orders", 0): 3})
    directory.offsets("cleaner-offset-checkpoint", {("orders", 1): 5})
    found = read(directory)
    assert found.is_clean
    assert found.log_starts == {("orders", 0): 3}
    assert found.compacted == {("orders", 1)}
    assert not read(KafkaDirectory(is_clean=False)).is_clean


def test_what_was_synced_is_not_walked() -> None:
    directory = KafkaDirectory(is_clean=False)
    directory.partition("orders-0", batch(0), b"damage" * 20)
    directory.segment("orders-0", 9, batch(9))
    assert len(read(directory).partitions[0].remarks) == 1
    directory.offsets("recovery-point-offset-checkpoint", {("orders", 0): 9})
    assert read(directory).partitions[0].remarks == []


def test_checkpoints_that_can_be_done_without_are_remarked() -> None:
    directory = KafkaDirectory(is_clean=False)
    directory.write("recovery-point-offset-checkpoint", b"nonsense")
    directory.write("cleaner-offset-checkpoint", b"1\n0\n")
    directory.write("log-start-offset-checkpoint", b"")
    assert [remark.partition(" has ")[0] for remark in read(directory).remarks] == [
        f"{DATA}/recovery-point-offset-checkpoint",
        f"{DATA}/cleaner-offset-checkpoint",
    ]


def test_damaged_log_starts_cannot_be_done_without() -> None:
    directory = KafkaDirectory()
    directory.write("log-start-offset-checkpoint", b"nonsense")
    with pytest.raises(CorruptCheckpoint, match="log-start-offset-checkpoint has version"):
        read(directory)
