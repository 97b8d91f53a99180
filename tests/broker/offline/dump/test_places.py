"""What a path leads to is told by what stands there, and its files come in order; anything else is refused."""

import pytest

from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.offline.dump.names import Kind, Name
from odradek.broker.offline.dump.places import NothingToDump, Place, files_of, place_of
from tests.broker.offline.dump.damages import FIRST
from tests.broker.offline.dump.laid_down import DATA_DIR, ORDERS, sample_disk


def test_a_directory_is_told_by_what_stands_in_it() -> None:
    disk = sample_disk()
    assert place_of(disk, DATA_DIR) is Place.DATA_DIRECTORY
    assert place_of(disk, f"{DATA_DIR}/") is Place.DATA_DIRECTORY
    assert place_of(disk, ORDERS) is Place.PARTITION
    disk.rename(ORDERS, "data/anything")
    assert place_of(disk, "data/anything") is Place.PARTITION
    disk.remove("data/meta.properties")
    assert place_of(disk, DATA_DIR) is Place.DATA_DIRECTORY, "for its checkpoints"
    for name in disk.sizes(DATA_DIR):
        disk.remove(f"{DATA_DIR}/{name}")
    assert place_of(disk, DATA_DIR) is Place.DATA_DIRECTORY, "for its partitions"
    disk.remove_tree("data/others-1")
    disk.rename("data/anything", "anything")
    with pytest.raises(NothingToDump, match=r"data is neither a data directory nor a partition's: there is no meta"):
        place_of(disk, DATA_DIR)


def test_a_segment_does_not_make_a_partition_of_a_data_directory() -> None:
    disk = sample_disk()
    disk.write_whole(f"{DATA_DIR}/{0:020d}.log", b"")
    assert place_of(disk, DATA_DIR) is Place.DATA_DIRECTORY


def test_a_file_is_told_by_its_name() -> None:
    disk = sample_disk()
    assert place_of(disk, f"{FIRST}.timeindex") == Name(Kind.TIME_INDEX, 0)
    disk.write_whole("data/metadata.json", b"")
    with pytest.raises(NothingToDump, match=r"data/metadata.json is not a file of a log"):
        place_of(disk, "data/metadata.json")


def test_the_files_come_in_order() -> None:
    disk = sample_disk()
    disk.write_whole(f"{FIRST}.log.deleted", b"")
    disk.write_whole("data/metadata.log", b"")
    disk.write_whole("data/file-7", b"")
    disk.make_dir("data/orders-0.00000000000000000000000000000000-delete")
    found = [path.removeprefix(f"{DATA_DIR}/") for path, _ in files_of(disk, DATA_DIR)]
    orders = [path.removeprefix("orders-0/") for path in found if path.startswith("orders-0/")]
    assert found == [
        "meta.properties",
        ".kafka_cleanshutdown",
        "metadata.log",
        "recovery-point-offset-checkpoint",
        "replication-offset-checkpoint",
        *(f"orders-0/{name}" for name in orders),
        "others-1/partition.metadata",
        "others-1/leader-epoch-checkpoint",
        f"others-1/{0:020d}.snapshot",
        f"others-1/{0:020d}.log",
        f"others-1/{0:020d}.index",
        f"others-1/{0:020d}.timeindex",
    ]
    assert orders == [
        "partition.metadata",
        "leader-epoch-checkpoint",
        *(f"{0:020d}.{suffix}" for suffix in ("log", "index", "timeindex")),
        *(f"{8:020d}.{suffix}" for suffix in ("snapshot", "log", "index", "timeindex", "txnindex")),
        *(f"{15:020d}.{suffix}" for suffix in ("snapshot", "log", "index", "timeindex")),
        f"{18:020d}.snapshot",
    ]
    assert [path for path, _ in files_of(disk, ORDERS)] == [f"{ORDERS}/{name}" for name in orders]
    assert list(files_of(disk, f"{FIRST}.log")) == [(f"{FIRST}.log", Name(Kind.LOG, 0))]


def test_nothing_is_made_by_looking() -> None:
    disk = MemoryDisk()
    disk.make_dir("empty")
    with pytest.raises(NothingToDump):
        list(files_of(disk, "empty"))
    with pytest.raises(NothingToDump):
        list(files_of(disk, "missing/other"))
    assert disk.list_dir(".") == ["empty"]
