"""Backup and restore of the metadata in a data directory: with a broker before, during and after."""

import pytest

from odradek.broker.cluster.backup import Backup, decode_backup, encode_backup
from odradek.broker.cluster.embedded import FILE_NAME
from odradek.broker.cluster.journal import decode_file, encode_file
from odradek.broker.cluster.keys import CLUSTER_KEY, encode_cluster
from odradek.broker.directories.meta_properties import ForeignDirectory
from odradek.broker.directories.metadata_revision import load_revision
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.offline.adopt.claim import REVISIONS_SKIPPED, DirectoryRefused
from odradek.broker.offline.rescue.directory import backup_of_directory, restore_directory
from tests.broker.servers import broker_on, started
from tests.broker.wire import batch, connected, create_topic, produced

NOW = "2026-11-22T14:00:00Z"
LOG = f"data/{FILE_NAME}"


async def saved(disk: MemoryDisk) -> Backup:
    """The backup of a running broker with a topic, as its file says it, to which a record was written after that."""
    async with started(broker_on(disk)) as broker, connected(broker) as client:
        await create_topic(client, "orders", 2)
        await produced(client, "orders", batch(b"before"))
        backup = decode_backup(encode_backup(backup_of_directory(disk, "data", NOW)))
        await produced(client, "orders", batch(b"after"))
    return backup


async def test_a_broker_goes_on_with_what_was_restored() -> None:
    disk = MemoryDisk()
    backup = await saved(disk)
    recorded = load_revision(disk, "data")
    assert recorded >= backup.revision
    disk.remove(LOG)
    with pytest.raises(ForeignDirectory, match="no metadata says which topics there are"):
        await broker_on(disk).start()
    revision = restore_directory(disk, "data", backup)
    assert revision == load_revision(disk, "data") == recorded + REVISIONS_SKIPPED
    assert not decode_file(disk.read_whole(LOG)).leased
    async with started(broker_on(disk)) as broker, connected(broker) as client:
        assert (await produced(client, "orders", batch(b"then"))).base_offset == 2
        assert "orders" in broker.context.metadata.image.topics


async def test_leader_epochs_go_on_above_those_that_were_given_out_since_the_backup() -> None:
    disk = MemoryDisk()
    backup = await saved(disk)
    before = -1
    for _ in range(3):  # each start takes a new epoch
        async with started(broker_on(disk)) as broker, connected(broker) as client:
            await produced(client, "orders", batch(b"since"))
            before = broker.context.metadata.image.topics["orders"].partitions[0].leader_epoch
    disk.remove(LOG)
    restore_directory(disk, "data", backup)
    async with started(broker_on(disk)) as broker, connected(broker) as client:
        assert broker.context.metadata.image.topics["orders"].partitions[0].leader_epoch > before
        assert (await produced(client, "orders", batch(b"then"))).base_offset == 5


async def test_what_is_younger_than_the_backup_is_put_aside_by_the_start_and_not_lost() -> None:
    disk = MemoryDisk()
    backup = await saved(disk)
    async with started(broker_on(disk)) as broker, connected(broker) as client:
        await create_topic(client, "younger", 1)
    disk.remove(LOG)
    restore_directory(disk, "data", backup)
    async with started(broker_on(disk)) as broker:
        assert broker.context.metadata.image.topics.keys() == {"orders"}
    assert any(name.startswith("younger-0.") and name.endswith("-stray") for name in disk.list_dir("data"))


async def test_metadata_that_is_there_stays() -> None:
    disk = MemoryDisk()
    backup = await saved(disk)
    before = disk.read_whole(LOG)
    with pytest.raises(DirectoryRefused, match=r"is not empty, it holds .*1 topic key\(s\)"):
        restore_directory(disk, "data", backup)
    assert disk.read_whole(LOG) == before
    disk.write_whole(LOG, b"damaged")
    with pytest.raises(DirectoryRefused, match=f"{LOG} cannot be used"):
        restore_directory(disk, "data", backup)
    disk.write_whole(LOG, encode_file({}, (), 3))
    restore_directory(disk, "data", backup)


async def test_a_directory_of_another_cluster_or_in_use_is_refused() -> None:
    disk = MemoryDisk()
    backup = await saved(disk)
    other = MemoryDisk()
    async with started(broker_on(other)):
        with pytest.raises(DirectoryRefused, match="another running broker holds the lock file"):
            restore_directory(other, "data", backup)
    other.remove(LOG)
    with pytest.raises(DirectoryRefused, match=r"belongs to cluster .*, and the backup to cluster"):
        restore_directory(other, "data", backup)
    assert not other.exists(LOG)
    restore_directory(other, "fresh", backup)
    assert other.exists(f"fresh/{FILE_NAME}")


async def test_a_backup_that_no_broker_could_read_is_refused() -> None:
    values = {CLUSTER_KEY: encode_cluster("c"), "/topics/t": b"{}"}
    disk = MemoryDisk()
    with pytest.raises(DirectoryRefused, match="the backup cannot be used: the metadata of topic t"):
        restore_directory(disk, "data", Backup("c", 1, NOW, values))
    assert not disk.exists(LOG)


def test_a_directory_without_metadata_has_no_backup() -> None:
    disk = MemoryDisk()
    disk.make_dir("data")
    with pytest.raises(DirectoryRefused, match=f"data has no {FILE_NAME}"):
        backup_of_directory(disk, "data", NOW)
    disk.write_whole(LOG, encode_file({}, (), 3))
    with pytest.raises(DirectoryRefused, match="no broker was ever started on it"):
        backup_of_directory(disk, "data", NOW)
