"""A rebuild as a whole, on directories of three brokers on one memory disk, and a broker started on what it wrote."""

import pytest

from odradek.broker.cluster.backup import EPOCHS_SKIPPED
from odradek.broker.cluster.embedded import FILE_NAME, EmbeddedStore
from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.journal import encode_file
from odradek.broker.cluster.keys import NODES_PREFIX, node_key
from odradek.broker.cluster.lineage import KnownHistory
from odradek.broker.cluster.store import Entry
from odradek.broker.directories.metadata_revision import RecordedRevision, load_revision
from odradek.broker.disk.disk import LockHeld
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.log.checkpoint import LOG_START_OFFSETS
from odradek.broker.offline.adopt.claim import REVISIONS_SKIPPED, DirectoryRefused
from odradek.broker.offline.rescue.plan import RebuildPlan
from odradek.broker.offline.rescue.rebuilding import rebuild, rebuild_with
from tests.broker.offline.adopt.kafka_files import KafkaDirectory, batch, id_of
from tests.broker.servers import broker_on, started
from tests.broker.wire import batch as new_batch
from tests.broker.wire import connected, produced, topic_id

DIRECTORIES = ["d1", "d2", "d3"]


def directory(disk: MemoryDisk, node_id: int, *, is_clean: bool = True) -> KafkaDirectory:
    return KafkaDirectory(
        is_clean=is_clean, node_id=node_id, disk=disk, path=f"d{node_id}", directory_id=bytes([node_id] * 16)
    )


def cluster() -> MemoryDisk:
    """Broker 1 was behind when all ended; 2 and 3 were in sync, and 3 was killed while it wrote."""
    disk = MemoryDisk()
    one, two, three = directory(disk, 1), directory(disk, 2), directory(disk, 3, is_clean=False)
    begin = batch(0, 3, epoch=4)
    one.partition("orders-0", begin, epochs=[(4, 0)])
    two.partition("orders-0", begin, batch(3, 2, epoch=6), epochs=[(4, 0), (6, 3)])
    three.partition("orders-0", begin, batch(3, 2, epoch=6), batch(5, 9, epoch=6)[:-5], epochs=[(4, 0), (6, 3)])
    RecordedRevision(disk, "d2").write(KnownHistory(4711))
    return disk


def everything(disk: MemoryDisk) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for node_id in (1, 2, 3):
        one = object.__new__(KafkaDirectory)
        one.disk, one.path = disk, f"d{node_id}"
        found |= {name: content for name, content in one.files().items() if not name.endswith("/.lock")}
    return found


async def image_in(disk: MemoryDisk, data_dir: str) -> ClusterImage:
    store = EmbeddedStore.open(disk, data_dir)
    image = ClusterImage.from_snapshot(await store.read("/"))
    await store.close()
    return image


async def test_the_metadata_is_found_again_and_nothing_else_is_touched() -> None:
    disk = cluster()
    before = everything(disk)
    plan = rebuild(disk, DIRECTORIES, "d1")
    after = everything(disk)
    assert after.keys() - before.keys() == {f"d1/{FILE_NAME}", "d1/metadata.revision"}
    assert {name: after[name] for name in before} == before
    image = await image_in(disk, "d1")
    partition = image.topics["orders"].partitions[0]
    assert (partition.leader, partition.isr, partition.replicas) == (2, (2, 3), (2, 3, 1))
    assert partition.leader_epoch == 6 + EPOCHS_SKIPPED + 4711
    assert image.topics["orders"].topic_id == id_of("orders")
    assert image.revision == load_revision(disk, "d1") == 4711 + REVISIONS_SKIPPED
    assert [key for key in plan.values if key.startswith(NODES_PREFIX)] == [node_key(node_id) for node_id in (1, 2, 3)]
    assert [topic.name for topic in plan.topics] == ["orders"]


async def test_another_directory_may_have_it_as_where_several_brokers_share_a_process() -> None:
    disk = cluster()
    before = everything(disk)
    rebuild(disk, DIRECTORIES, "metadata", is_dry_run=True)
    assert not disk.exists("metadata")
    rebuild(disk, DIRECTORIES, "metadata")
    assert everything(disk) == before
    assert (await image_in(disk, "metadata")).topics.keys() == {"orders"}
    for is_dry_run in (True, False):
        with pytest.raises(DirectoryRefused, match=r"metadata has a metadata\.log that can be used"):
            rebuild(disk, DIRECTORIES, "metadata", is_dry_run=is_dry_run)
    disk.remove(f"metadata/{FILE_NAME}")
    lock = disk.lock("metadata/.lock")
    with pytest.raises(DirectoryRefused, match="another running broker holds the lock file"):
        rebuild(disk, DIRECTORIES, "metadata")
    lock.release()
    rebuild(disk, DIRECTORIES, "metadata")


def test_a_dry_run_writes_nothing_and_finds_the_same() -> None:
    disk = cluster()
    before = everything(disk)
    plan = rebuild(disk, DIRECTORIES, "d1", is_dry_run=True)
    assert everything(disk) == before
    assert not disk.exists("d1/.lock")
    assert plan.values == rebuild(disk, DIRECTORIES, "d1").values


def test_a_directory_in_use_is_refused_and_the_others_are_given_back() -> None:
    disk = cluster()
    held = disk.lock("d2/.lock")
    for is_dry_run in (True, False):
        with pytest.raises(DirectoryRefused, match="d2 cannot be used: another running broker holds the lock file"):
            rebuild(disk, DIRECTORIES, "d1", is_dry_run=is_dry_run)
    held.release()
    rebuild(disk, DIRECTORIES, "d1")
    disk.lock("d1/.lock").release()


def test_no_broker_can_start_on_a_directory_until_all_is_written() -> None:
    disk = cluster()
    written: list[RebuildPlan] = []

    def write(plan: RebuildPlan) -> None:
        for path in DIRECTORIES:
            with pytest.raises(LockHeld):
                disk.lock(f"{path}/.lock")
        written.append(plan)

    assert rebuild_with(disk, DIRECTORIES, write) is written[0]


def test_metadata_that_is_there_is_not_written_over() -> None:
    disk = cluster()
    disk.write_whole(f"d3/{FILE_NAME}", encode_file({"/topics/t": Entry(b"{}", 1)}, (), 1))
    with pytest.raises(DirectoryRefused, match=r"d3 has a metadata\.log that can be used"):
        rebuild(disk, DIRECTORIES, "d1")
    disk.write_whole(f"d3/{FILE_NAME}", b"damaged")
    with pytest.raises(DirectoryRefused, match=f"d3/{FILE_NAME} cannot be used"):
        rebuild(disk, DIRECTORIES, "d1")
    assert not disk.exists(f"d1/{FILE_NAME}")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("d2/meta.properties", b"version=1\n", "is damaged: it has no cluster.id"),
        ("d2/metadata.revision", b"version=1\nrevision=x\n", "is damaged: its revision is 'x'"),
        (f"d2/{LOG_START_OFFSETS}", b"0\n7\n", "DeleteRecords removed may come back"),
    ],
)
def test_a_file_that_it_needs_and_is_damaged_is_named(name: str, content: bytes, said: str) -> None:
    disk = cluster()
    disk.write_whole(name, content)
    with pytest.raises(DirectoryRefused, match=said):
        rebuild(disk, DIRECTORIES, "d1")
    assert not disk.exists(f"d1/{FILE_NAME}")


def test_what_is_no_directory_of_a_broker_is_refused() -> None:
    disk = cluster()
    disk.make_dir("empty")
    for given, said in ((["d1", "nowhere"], "no directory"), (["d1", "empty"], "has no meta.properties")):
        with pytest.raises(DirectoryRefused, match=said):
            rebuild(disk, given, "d1")


async def test_a_broker_starts_on_it_and_goes_on_where_the_log_ended() -> None:
    disk = MemoryDisk()
    directory(disk, 1).partition("orders-0", batch(0, 3, epoch=4), epochs=[(4, 0)])
    rebuild(disk, ["d1"], "d1")
    async with started(broker_on(disk, "d1", node_id=1)) as broker, connected(broker) as client:
        assert await topic_id(client, "orders") == id_of("orders")
        assert (await produced(client, "orders", new_batch(b"new"))).base_offset == 3


async def test_what_an_empty_segment_follows_counts_with_its_epoch() -> None:
    """A log whose last segment was just begun, and holds nothing."""
    disk = MemoryDisk()
    both = [directory(disk, node_id) for node_id in (1, 2)]
    for one in both:
        one.partition("orders-0", batch(0, 3, epoch=4), epochs=[(4, 0)])
    both[1].segment("orders-0", 3)
    rebuild(disk, ["d1", "d2"], "d1")
    image = await image_in(disk, "d1")
    assert image.topics["orders"].partitions[0].isr == (1, 2)
