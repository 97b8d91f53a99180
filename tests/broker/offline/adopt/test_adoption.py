"""An adoption as a whole: what it writes, that it writes nothing else, what is refused, and a broker started on it."""

import errno
from pathlib import Path

import pytest

from odradek.broker.cluster.embedded import FILE_NAME, EmbeddedStore
from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.journal import decode_file, encode_file
from odradek.broker.directories.metadata_revision import load_revision
from odradek.broker.disk.disk import Disk
from odradek.broker.disk.file_disk import FileDisk
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.offline.adopt.adoption import adopt
from odradek.broker.offline.adopt.claim import REVISIONS_SKIPPED, DirectoryRefused
from odradek.broker.offline.adopt.metadata_log import DIRECTORY
from tests.broker.offline.adopt.kafka_files import (
    CLUSTER_ID,
    DATA,
    KafkaDirectory,
    batch,
    config,
    id_of,
    marker,
    old_message,
    snapshot,
    topic_records,
    transactional,
)
from tests.broker.servers import broker_on, started
from tests.broker.wire import batch as new_batch
from tests.broker.wire import connected, create_topic, produced, topic_id

METADATA_LOG = f"{DATA}/{FILE_NAME}"
NOTE = f"{DATA}/.odradek-adopted"


def plain(*, is_clean: bool = True) -> KafkaDirectory:
    """Two topics with metadata, one of Kafka's own, and one that cannot be taken."""
    directory = KafkaDirectory(is_clean=is_clean)
    directory.partition("orders-0", batch(0, 3, epoch=7), epochs=[(7, 0)])
    directory.partition("orders-1", snapshots={0: snapshot(40)})
    directory.partition("old-0", old_message(0, 1))
    directory.partition("__consumer_offsets-0", batch(0))
    directory.partition("__share_group_state-0", batch(0))
    directory.metadata(
        *topic_records("orders", 2), *topic_records("old"), config("orders", "retention.ms", "77"),
        *topic_records("__consumer_offsets"), config("__consumer_offsets", "cleanup.policy", "compact"),
        *topic_records("__share_group_state"),
    )  # fmt: skip
    return directory


# -- what is written --------------------------------------------------------------------------------------------------


async def test_the_metadata_is_written_and_nothing_else_is_touched() -> None:
    directory = plain()
    before = directory.files()
    done = adopt(directory.disk, DATA)
    assert [topic.name for topic in done.plan.taken] == ["__consumer_offsets", "orders"]
    assert done.plan.left.keys() == {"old"}
    assert done.kafkas_own == (DIRECTORY, "__share_group_state-0")
    after = directory.files()
    assert {path: after[path] for path in before} == before
    assert after.keys() - before.keys() == {METADATA_LOG, NOTE, f"{DATA}/.lock", f"{DATA}/metadata.revision"}
    assert load_revision(directory.disk, DATA) == 1
    store = EmbeddedStore.open(directory.disk, DATA)
    image = ClusterImage.from_snapshot(await store.read("/"))
    await store.close()
    assert (image.cluster_id, image.revision) == (CLUSTER_ID, 1)
    topic = image.topics["orders"]
    assert (topic.topic_id, topic.configs) == (id_of("orders"), {"retention.ms": "77"})
    assert [(each.leader, each.leader_epoch) for each in topic.partitions] == [(1, 7), (1, 0)]


def test_a_dry_run_tells_the_same_and_changes_nothing() -> None:
    directory = plain()
    before = directory.files()
    dry = adopt(directory.disk, DATA, is_dry_run=True)
    assert directory.files() == before
    assert adopt(directory.disk, DATA) == dry


def test_metadata_in_another_directory_is_read_where_it_is() -> None:
    directory = plain()
    directory.disk.make_dir("elsewhere")
    directory.disk.rename(f"{DATA}/{DIRECTORY}", f"elsewhere/{DIRECTORY}")
    without = adopt(directory.disk, DATA, is_dry_run=True).plan
    assert [topic.configs for topic in without.taken] == [{"cleanup.policy": "compact"}, {"retention.ms": "-1"}]
    assert "the options of the topics are unknown" in without.remarks[0]
    done = adopt(directory.disk, DATA, metadata_dir="elsewhere", node_id=1)
    assert [topic.configs for topic in done.plan.taken] == [{"cleanup.policy": "compact"}, {"retention.ms": "77"}]
    assert done.plan.remarks == []


def test_an_adoption_that_fails_can_be_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no room for the metadata; and then none for the revision behind it."""
    for failing in (FILE_NAME, "metadata.revision"):
        directory = plain()
        before = directory.files()
        write_whole = directory.disk.write_whole

        def fail(path: str, data: bytes, failing: str = failing, write: object = write_whole) -> None:
            if path.endswith(failing):
                raise OSError(errno.ENOSPC, "No space left on device", path)
            assert callable(write)
            write(path, data)

        with monkeypatch.context() as patch:
            patch.setattr(directory.disk, "write_whole", fail)
            with pytest.raises(OSError, match="No space left"):
                adopt(directory.disk, DATA)
        assert {path: data for path, data in directory.files().items() if path in before} == before
        if failing == FILE_NAME:
            adopt(directory.disk, DATA)  # and the lock was given back
        else:
            assert load_revision(directory.disk, DATA) == 0, "whatever comes is newer"


def test_an_own_directory_without_its_metadata_gets_a_revision_above_the_lost_ones() -> None:
    directory = plain()
    directory.write("metadata.revision", b"version=1\nrevision=4711\n")
    directory.write(FILE_NAME, encode_file({}, (), 0))
    adopt(directory.disk, DATA)
    assert load_revision(directory.disk, DATA) == 4711 + REVISIONS_SKIPPED
    assert decode_file(directory.read(FILE_NAME)).revision == 4711 + REVISIONS_SKIPPED


# -- what is refused --------------------------------------------------------------------------------------------------


def refused(disk: Disk, path: str = DATA, **options: object) -> str:
    with pytest.raises(DirectoryRefused) as error:
        adopt(disk, path, **options)  # type: ignore[arg-type]
    return str(error.value)


def test_what_is_no_data_directory_is_refused() -> None:
    disk = MemoryDisk()
    assert refused(disk) == "data is no directory: give the one that log.dirs of the broker names"
    disk.make_dir(DATA)
    assert refused(disk).startswith("data has no meta.properties, as the data directory of a broker has")
    assert disk.list_dir(DATA) == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("version=0\nbroker.id=1\n", "meta.properties has version 0; this broker knows version 1 only"),
        ("version=1\ncluster.id=x\n", "meta.properties is damaged: it has no directory.id"),
    ],
)
def test_meta_properties_of_another_version_are_refused(text: str, reason: str) -> None:
    directory = plain()
    directory.write("meta.properties", text.encode())
    before = directory.files()
    assert reason in refused(directory.disk)
    assert directory.files() == before


def test_the_directory_of_another_node_is_refused() -> None:
    directory = plain()
    assert refused(directory.disk, node_id=2) == (
        "data belongs to node 1 and not to node 2: give its own directory, or leave --node-id out"
    )
    adopt(directory.disk, DATA, node_id=1)


@pytest.mark.parametrize("is_dry_run", [False, True])
def test_a_directory_in_use_is_refused(is_dry_run: bool) -> None:
    directory = plain()
    lock = directory.disk.lock(f"{DATA}/.lock")
    before = directory.files()
    assert refused(directory.disk, is_dry_run=is_dry_run) == (
        "data cannot be used: another running broker holds the lock file; stop the broker that runs on it, and try "
        "again"
    )
    assert directory.files() == before
    lock.release()
    adopt(directory.disk, DATA, is_dry_run=is_dry_run)


@pytest.mark.parametrize("is_dry_run", [False, True])
def test_metadata_that_is_there_is_never_replaced(is_dry_run: bool) -> None:
    directory = plain()
    adopt(directory.disk, DATA)
    directory.disk.remove(NOTE)  # as the first start does
    before = directory.files()
    assert "data/metadata.log is there, so this directory is ours already" in refused(
        directory.disk, is_dry_run=is_dry_run
    )
    directory.write(FILE_NAME, b"damaged")
    assert "metadata.log is there and can not be used: it does not begin" in refused(directory.disk)
    directory.write(FILE_NAME, before[METADATA_LOG])
    assert directory.files() == before


def test_damage_that_would_cost_records_or_options_is_refused() -> None:
    directory = plain()
    directory.write("log-start-offset-checkpoint", b"nonsense")
    assert "restore the file, or remove it, and what DeleteRecords removed may come back" in refused(directory.disk)
    directory = plain()
    directory.write(f"{DIRECTORY}/{0:020d}.log", b"x" * 500)
    sentence = refused(directory.disk)
    assert sentence.startswith(f"{DATA}/{DIRECTORY}/{0:020d}.log is damaged at position 0")
    assert sentence.endswith(f"with default options for every topic, rename {DATA}/{DIRECTORY}")
    directory = plain()
    directory.write("metadata.revision", b"version=1\nrevision=many\n")
    assert "metadata.revision is damaged: its revision is 'many'" in refused(directory.disk)
    assert not directory.disk.exists(METADATA_LOG)


def test_a_metadata_directory_without_metadata_is_refused() -> None:
    directory = plain()
    directory.disk.make_dir("elsewhere")
    assert refused(directory.disk, metadata_dir="elsewhere").startswith(
        f"elsewhere has no {DIRECTORY}: give what metada"
    )


# -- a broker on it ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_clean", [False, True])
async def test_a_broker_serves_what_was_adopted_at_newer_epochs(is_clean: bool) -> None:
    directory = plain(is_clean=is_clean)
    own = directory.read("__consumer_offsets-0/00000000000000000000.log")
    adopt(directory.disk, DATA)
    async with started(broker_on(directory.disk, node_id=1)) as broker, connected(broker) as client:
        assert await topic_id(client, "orders") == id_of("orders")
        partition = broker.context.partitions.leader("orders", 0)
        assert (partition.leader_epoch, partition.log.log_end_offset) == (8, 3)
        assert (await produced(client, "orders", new_batch(b"new"))).base_offset == 3
        assert await broker.context.transactions.producer_ids.allocate() >= 41
    names = [name for name in directory.disk.list_dir(DATA) if directory.disk.is_dir(f"{DATA}/{name}")]
    (stray,) = (name for name in names if name.endswith("-stray"))
    assert stray.startswith("old-0.")
    internal = ["__consumer_offsets-0", "__share_group_state-0"]
    assert sorted(names) == [DIRECTORY, *internal, stray, "orders-0", "orders-1"]
    assert directory.read("__consumer_offsets-0/00000000000000000000.log") == own


async def test_a_transaction_that_had_ended_when_kafka_was_killed_can_be_read() -> None:
    """Its marker stands below the high watermark that Kafka wrote down, so no append has to come first."""
    directory = KafkaDirectory(is_clean=False)
    directory.partition("orders-0", transactional(0, producer_id=4), marker(1, producer_id=4))
    directory.offsets("replication-offset-checkpoint", {("orders", 0): 2})
    adopt(directory.disk, DATA)
    async with started(broker_on(directory.disk, node_id=1)) as broker:
        assert broker.context.partitions.leader("orders", 0).reader.last_stable_offset == 2


async def test_creating_a_topic_of_a_kafka_internal_name_keeps_the_log_of_the_adopted_one() -> None:
    directory = plain()
    own = directory.read("__share_group_state-0/00000000000000000000.log")
    adopt(directory.disk, DATA)
    async with started(broker_on(directory.disk, node_id=1)) as broker, connected(broker) as client:
        await create_topic(client, "__share_group_state")
    (kept,) = (name for name in directory.disk.list_dir(DATA) if name.startswith("__share_group_state-0."))
    assert kept.endswith("-stray")
    assert directory.read(f"{kept}/00000000000000000000.log") == own


async def test_our_own_directory_is_adopted_when_its_metadata_is_lost(tmp_path: Path) -> None:
    path = str(tmp_path / "data")
    disk = FileDisk()
    async with started(broker_on(disk, path)) as broker, connected(broker) as client:
        await create_topic(client, "orders", 2)
        before = await topic_id(client, "orders")
        await produced(client, "orders", new_batch(b"a", b"b"))
    (tmp_path / "data" / FILE_NAME).unlink()
    adopt(disk, path)
    async with started(broker_on(disk, path)) as broker, connected(broker) as client:
        assert await topic_id(client, "orders") == before
        assert (await produced(client, "orders", new_batch(b"c"))).base_offset == 2
