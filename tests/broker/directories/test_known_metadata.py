"""What data directories know of their metadata: whole brokers whose `metadata.log` is exchanged for another one."""

import logging

import pytest

from odradek.broker.cluster.backup import take_backup
from odradek.broker.cluster.embedded import FILE_NAME
from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.journal import decode_file, encode_file
from odradek.broker.cluster.keys import KeyKind, parse_key
from odradek.broker.cluster.lineage import Commit, KnownHistory
from odradek.broker.cluster.memory import MemoryStore
from odradek.broker.cluster.store import Snapshot
from odradek.broker.directories.data_directories import DataDirectories
from odradek.broker.directories.known_metadata import KnownMetadata
from odradek.broker.directories.meta_properties import ForeignDirectory
from odradek.broker.directories.metadata_revision import FILE_NAME as RECORD
from odradek.broker.directories.metadata_revision import load_followed
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.offline.rescue import restoring
from odradek.broker.offline.rescue.directory import backup_of_directory, restore_directory
from odradek.broker.offline.rescue.rebuilding import rebuild
from odradek.broker.offline.rescue.restoring import restore
from odradek.broker.server import Broker
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks
from tests.broker.log.logs import copied
from tests.broker.servers import broker_on, files, started
from tests.broker.wire import connected, create_topic, settings

LOG = f"data/{FILE_NAME}"
LACKS = "does not follow the one that data knows: it lacks what broker 0 wrote at revision"


async def run(disk: MemoryDisk, *topics: str, data_dirs: tuple[str, ...] = ("data",)) -> None:
    """A broker from start to stop, in which these topics are created."""
    async with started(broker_on(disk, data_dirs)) as broker, connected(broker) as client:
        for name in topics:
            await create_topic(client, name)


async def refused(disk: MemoryDisk, why: str, data_dirs: tuple[str, ...] = ("data",)) -> None:
    before = files(disk)
    with pytest.raises(ForeignDirectory, match=why):
        await broker_on(disk, data_dirs).start()
    assert files(disk) == before


def image_in(disk: MemoryDisk) -> ClusterImage:
    journal = decode_file(disk.read_whole(LOG))
    return ClusterImage.from_snapshot(Snapshot(journal.revision, journal.entries))


async def test_a_copy_that_went_on_elsewhere_is_refused_although_its_revision_is_higher() -> None:
    disk = MemoryDisk()
    await run(disk, "orders")
    elsewhere = copied(disk, MemoryDisk())
    await run(disk, "later")
    await run(elsewhere, "other", "others", "and-others")
    disk.write_whole(LOG, elsewhere.read_whole(LOG))
    assert image_in(disk).revision > load_followed(disk, "data").revision
    await refused(
        disk, f"{LACKS} .*: the process that did so ended at revision|{LACKS} .*, and the process that did so"
    )


async def test_one_of_several_directories_that_knows_more_is_enough() -> None:
    """All but the second one came from a backup of the device."""
    both = ("data", "more")
    disk = MemoryDisk()
    await run(disk, "orders", data_dirs=both)
    before = copied(disk, MemoryDisk())
    await run(disk, "later", data_dirs=both)
    for name in (FILE_NAME, RECORD):
        disk.write_whole(f"data/{name}", before.read_whole(f"data/{name}"))
    await refused(disk, "does not follow the one that more knows", both)


async def test_a_directory_that_was_replaced_knows_nothing_and_hinders_nobody() -> None:
    both = ("data", "more")
    disk = MemoryDisk()
    await run(disk, "orders", "payments", data_dirs=both)
    disk.remove_tree("more")
    await run(disk, "later", data_dirs=both)
    assert load_followed(disk, "more") == load_followed(disk, "data") == image_in(disk).followed


async def test_a_directory_of_a_former_version_begins_a_lineage() -> None:
    """There is a revision, and nothing else, in the directory, and no lineage in its metadata."""
    disk = MemoryDisk()
    await run(disk, "orders")
    journal = decode_file(disk.read_whole(LOG))
    former = {
        key: entry
        for key, entry in journal.entries.items()
        if parse_key(key)[0] not in (KeyKind.COMMIT, KeyKind.INCARNATION)
    }
    disk.write_whole(LOG, encode_file(former, (), journal.revision))
    disk.write_whole(f"data/{RECORD}", f"version=1\nrevision={journal.revision}\n".encode())
    await run(disk, "later")
    known = load_followed(disk, "data")
    assert list(known.commits) == [0]
    assert not image_in(disk).lineage.incarnations[0].past
    disk.write_whole(LOG, encode_file(former, (), known.revision + 5))
    await refused(disk, f"{LACKS} .*, and anything else of that broker")


async def test_who_is_started_again_and_again_is_never_refused() -> None:
    disk = MemoryDisk()
    for number in range(5):
        await run(disk, f"topic-{number}")
    assert len(image_in(disk).lineage.incarnations[0].past) == 4


async def test_what_an_operator_restored_is_taken_once_and_nothing_older_is_after_it() -> None:
    disk = MemoryDisk()
    await run(disk, "orders")
    backup = backup_of_directory(disk, "data", "now")
    lost = disk.read_whole(LOG)
    await run(disk, "later")
    newest = disk.read_whole(LOG)
    disk.remove(LOG)
    restore_directory(disk, "data", backup)
    restored = disk.read_whole(LOG)
    await run(disk, "then")
    for older in (lost, newest):
        disk.write_whole(LOG, older)
        await refused(disk, "knows: it is from before the last restore or rebuild of the metadata")
    disk.write_whole(LOG, restored)
    await refused(disk, f"knows: it is at revision|{LACKS}")


async def test_what_an_operator_rebuilt_is_taken_by_the_other_directories_too() -> None:
    both = ("data", "more")
    disk = MemoryDisk()
    await run(disk, "orders", "payments", data_dirs=both)
    disk.remove(LOG)
    rebuild(disk, both, "data")
    await run(disk, "then", data_dirs=both)
    assert image_in(disk).topics.keys() == {"orders", "payments", "then"}
    assert load_followed(disk, "more").origin_id == image_in(disk).lineage.origin_id != ""


async def test_a_restore_below_the_known_revision_is_refused_and_says_which_option_helps() -> None:
    disk, other = MemoryDisk(), MemoryDisk()
    await run(disk, "orders")
    backup = backup_of_directory(disk, "data", "now")
    restore_directory(other, "data", backup)
    disk.write_whole(LOG, other.read_whole(LOG))
    known = load_followed(disk, "data")
    disk.write_whole(f"data/{RECORD}", f"version=1\nrevision={known.revision + 2_000_000}\n".encode())
    await refused(
        disk, r"in place of what came no farther than revision \d+, and .* came to \d+ \(--revision-at-least\)"
    )


async def test_brokers_on_a_shared_store_take_what_an_operator_restored_into_an_empty_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And not the store that was lost, when it is found again."""
    monkeypatch.setattr(restoring, "REVISIONS_SKIPPED", 20)
    disk, lost = MemoryDisk(), MemoryStore()

    async def start_on(store: MemoryStore) -> None:
        broker = Broker(settings("data", node_id=1), Environment(), disk, store=store)
        async with started(broker), connected(broker) as client:
            await create_topic(client, f"topic-{(await store.read('/')).revision}")

    await start_on(lost)
    backup = take_backup(await lost.read("/"), "now")
    for _ in range(5):
        await start_on(lost)
    newest = load_followed(disk, "data").revision
    small, found = MemoryStore(), MemoryStore()
    await restore(small, backup)
    with pytest.raises(ForeignDirectory, match=rf"and this one came to {newest} \(--revision-at-least\)"):
        await start_on(small)
    await restore(found, backup, revision_at_least=newest)
    await start_on(found)
    await start_on(found)
    with pytest.raises(ForeignDirectory, match="it is from before the last restore or rebuild"):
        await start_on(lost)


async def test_close_writes_down_no_revision_of_a_store_that_was_not_the_followed_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    environment = Environment()
    tasks = Tasks(environment.loop)
    disk = MemoryDisk()
    disk.make_dir("data")
    known = KnownMetadata(disk, DataDirectories(disk, ["data"], environment, tasks))
    followed = KnownHistory(5, "", {1: Commit("a", 1, 5)})
    known.use("a", None)
    known.write(followed)
    with caplog.at_level(logging.WARNING):
        known.close(followed, Snapshot(9, {}))
    assert load_followed(disk, "data") == followed
    assert "not the one that was followed, and its revision not written down: it lacks what" in caplog.text
    await tasks.close()
