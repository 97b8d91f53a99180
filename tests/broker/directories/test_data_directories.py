"""A broker with several data directories: where partitions go, what a start refuses, and with what it goes on.

Whole brokers on a memory disk; `in_place` tells what they have where. What a directory that dies while the broker runs
does is in `test_offline_replicas.py`, what a start gives up in `test_restart.py`.
"""

import errno
import logging
from collections.abc import Sequence

import pytest

from odradek.broker.cluster.keys import NO_LEADER
from odradek.broker.cluster.topics import delete_topic
from odradek.broker.directories import meta_properties
from odradek.broker.directories.data_directory import LOCK_FILE
from odradek.broker.directories.meta_properties import ForeignDirectory, MetaProperties
from odradek.broker.disk.disk import Disk
from odradek.broker.handling.context import Context
from odradek.broker.server import Broker
from odradek.broker.startup_errors import StartRefused
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.failing_disk import FailingDisk
from tests.broker.log.logs import copied, read_all
from tests.broker.servers import broker_on, files, started
from tests.broker.support import append, batch, make_topic
from tests.broker.wire import batch as wire_batch
from tests.broker.wire import connected, create_topic, produced

ABC = ("a", "b", "c")
AB = ("a", "b")


def logs(disk: Disk, path: str) -> list[str]:
    """The partitions that lie in a directory."""
    return [name for name in disk.list_dir(path) if "-" in name and disk.is_dir(f"{path}/{name}")]


def in_place(context: Context) -> dict[str, list[str]]:
    """Of each directory the partitions that the broker has open there."""
    places: dict[str, list[str]] = {directory.path: [] for directory in context.partitions.directories}
    for partition in context.partitions:
        places[context.partitions.place(partition).path].append(f"{partition.topic}-{partition.index}")
    return {path: sorted(names) for path, names in places.items()}


async def with_topics(disk: Disk, *names: str, data_dirs: Sequence[str] = AB, partition_count: int = 2) -> None:
    """A broker ran, and each partition of these topics has a record of its own."""
    async with started(broker_on(disk, data_dirs)) as broker:
        for name in names:
            await make_topic(broker.context, name, partition_count)
            for index in range(partition_count):
                append(broker.context.partitions.leader(name, index), batch(f"{name}-{index}".encode()))


async def refused(disk: Disk, data_dirs: Sequence[str] = AB) -> str:
    with pytest.raises((StartRefused, ForeignDirectory)) as caught:
        await broker_on(disk, data_dirs).start()
    return str(caught.value)


def all_files(disk: FailingDisk, data_dirs: Sequence[str]) -> dict[str, bytes | None]:
    return {path: data for data_dir in data_dirs for path, data in files(disk, data_dir).items()}


# -- placement --------------------------------------------------------------------------------------------------------


async def test_new_partitions_go_where_there_are_fewest_the_first_of_equals() -> None:
    disk = FailingDisk()
    async with started(broker_on(disk, ABC)) as broker:
        await make_topic(broker.context, "one", 4)
        assert in_place(broker.context) == {"a": ["one-0", "one-3"], "b": ["one-1"], "c": ["one-2"]}
        await make_topic(broker.context, "two", 2)
        assert in_place(broker.context) == {"a": ["one-0", "one-3"], "b": ["one-1", "two-0"], "c": ["one-2", "two-1"]}
        async with connected(broker) as client:
            await create_topic(client, "three")
        assert in_place(broker.context)["a"] == ["one-0", "one-3", "three-0"]


async def test_what_is_deleted_makes_room_and_leaves_nothing() -> None:
    disk = FailingDisk()
    async with started(broker_on(disk, AB)) as broker:
        await make_topic(broker.context, "one", 3)
        await make_topic(broker.context, "two", 1)
        await delete(broker, "one")
        await make_topic(broker.context, "three", 2)
        assert in_place(broker.context) == {"a": ["three-0", "three-1"], "b": ["two-0"]}
    assert (logs(disk, "a"), logs(disk, "b")) == (["three-0", "three-1"], ["two-0"])


async def delete(broker: Broker, name: str) -> None:
    metadata = broker.context.metadata
    await metadata.applied(await delete_topic(metadata.store, metadata.image.topics[name]))


async def test_a_partition_is_found_where_it_is_whatever_the_order_of_the_directories() -> None:
    disk = FailingDisk()
    await with_topics(disk, "one", "two", data_dirs=ABC)
    async with started(broker_on(disk, ("a", "c", "b"))) as broker:
        assert in_place(broker.context) == {"a": ["one-0", "two-1"], "b": ["one-1"], "c": ["two-0"]}
        for partition in broker.context.partitions:
            assert f"{partition.topic}-{partition.index}".encode() in read_all(partition.log)
        await make_topic(broker.context, "three", 2)
        assert in_place(broker.context)["c"] == ["three-0", "two-0"], "the first of equals is another one now"


async def test_each_directory_has_its_own_papers() -> None:
    disk = FailingDisk()
    await with_topics(disk, "one")
    found = [meta_properties.load(disk, path) for path in AB]
    assert found[0] is not None
    assert found[1] is not None
    assert (found[0].cluster_id, found[0].node_id) == (found[1].cluster_id, found[1].node_id)
    assert found[0].directory_id != found[1].directory_id
    for path, name in (("a", "one-0"), ("b", "one-1")):
        assert {".kafka_cleanshutdown", "boot.id", "metadata.revision", LOCK_FILE} <= set(disk.list_dir(path))
        for checkpoint in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
            lines = disk.read_whole(f"{path}/{checkpoint}").decode().split("\n")
            assert lines[2:-1] == [f"one {name[-1]} 1"], "of its own partitions, and of no others"
    assert "metadata.log" in disk.list_dir("a")
    assert "metadata.log" not in disk.list_dir("b")


async def test_a_clean_stop_of_one_directory_is_not_that_of_another() -> None:
    """What could not be flushed in one leaves the marker out there, and there alone."""
    disk = FailingDisk()
    broker = broker_on(disk, AB)
    await broker.start()
    await make_topic(broker.context, "one", 2)
    append(broker.context.partitions.leader("one", 1), batch(b"not synced"))
    disk.fail("b/one-1")
    await broker.stop()
    disk.mend("b/one-1")
    assert disk.exists("a/.kafka_cleanshutdown")
    assert not disk.exists("b/.kafka_cleanshutdown")


async def test_a_directory_that_is_added_is_filled_and_nothing_is_lost() -> None:
    disk = FailingDisk()
    await with_topics(disk, "one", data_dirs=("a",))
    async with started(broker_on(disk, AB)) as broker:
        assert in_place(broker.context) == {"a": ["one-0", "one-1"], "b": []}
        assert broker.context.partitions.leader("one", 0).log.log_end_offset == 1
        await make_topic(broker.context, "two", 2)
        assert in_place(broker.context)["b"] == ["two-0", "two-1"]


async def test_what_somebody_moved_to_another_directory_is_served_from_there() -> None:
    disk = FailingDisk()
    await with_topics(disk, "one")
    disk.rename("a/one-0", "b/one-0")
    for _ in range(2):
        async with started(broker_on(disk, AB)) as broker:
            assert in_place(broker.context) == {"a": [], "b": ["one-0", "one-1"]}
            assert broker.context.partitions.leader("one", 0).log.log_end_offset == 1
    assert b"one 0" not in disk.read_whole("a/recovery-point-offset-checkpoint")


# -- refused ----------------------------------------------------------------------------------------------------------


async def test_a_partition_in_two_directories_is_refused_and_nothing_is_touched() -> None:
    disk = FailingDisk()
    await with_topics(disk, "one")
    disk.make_dir("b/one-0")
    for name in disk.list_dir("a/one-0"):
        disk.write_whole(f"b/one-0/{name}", disk.read_whole(f"a/one-0/{name}"))
    before = all_files(disk, AB)
    for _ in range(2):
        said = await refused(disk)
        assert said == (
            "the partition one-0 is in two data directories, a and b: move it away from one of them. "
            "Nothing was changed"
        )
    assert all_files(disk, AB) == before


async def test_a_deleted_topic_of_the_same_name_in_another_directory_is_nobodys_rival(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A directory was away while its topic was deleted and created anew."""
    disk = FailingDisk()
    await with_topics(disk, "one", partition_count=2)
    disk.fail("b")
    async with started(broker_on(disk, AB)) as broker:
        await delete(broker, "one")
        await make_topic(broker.context, "one", 2)
        assert in_place(broker.context) == {"a": ["one-0", "one-1"], "b": []}
    disk.mend("b")
    async with started(broker_on(disk, AB)) as broker:
        assert in_place(broker.context) == {"a": ["one-0", "one-1"], "b": []}
    (stray,) = logs(disk, "b")
    assert stray.startswith("one-1.")
    assert stray.endswith("-stray")
    assert "directory b/one-1 belongs to no topic known here" in caplog.text


async def test_directories_of_two_clusters_are_refused_and_nothing_is_touched() -> None:
    disk = FailingDisk()
    await with_topics(disk, "one")
    await with_topics(disk, "other", data_dirs=("z",))
    before = all_files(disk, ("a", "b", "z"))
    said = await refused(disk, ("a", "b", "z"))
    assert "b belongs to cluster" in said
    assert "and z to cluster" in said
    assert all_files(disk, ("a", "b", "z")) == before


async def test_a_directory_of_another_node_is_refused_and_nothing_is_touched() -> None:
    disk = FailingDisk()
    await with_topics(disk, "one")
    known = meta_properties.load(disk, "b")
    assert known is not None
    meta_properties.store(disk, "b", MetaProperties(known.cluster_id, 7, known.directory_id))
    before = all_files(disk, AB)
    assert (await refused(disk)).startswith("b belongs to node 7 and this is node 0")
    assert all_files(disk, AB) == before


async def test_a_directory_and_its_copy_are_refused() -> None:
    disk = FailingDisk()
    await with_topics(disk, "one")
    disk.remove("b/meta.properties")
    disk.write_whole("b/meta.properties", disk.read_whole("a/meta.properties"))
    assert (await refused(disk)).startswith("b and a have the same directory id, so one is a copy of the other")


async def test_a_directory_that_another_broker_holds_is_refused_although_there_is_another() -> None:
    disk = FailingDisk()
    disk.make_dir("b")
    lock = disk.lock(f"b/{LOCK_FILE}")
    said = await refused(disk)
    assert said == "the data directory b cannot be used: another running broker holds the lock file"
    lock.release()
    async with started(broker_on(disk, AB)):
        pass


# -- without one of them ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "reads"), [(errno.EIO, True), (errno.EROFS, False), (errno.EACCES, True)])
async def test_a_start_without_one_of_them_says_so_once_and_goes_on(
    caplog: pytest.LogCaptureFixture, number: int, reads: bool
) -> None:
    """What lies in it has no leader meanwhile, is not begun anew elsewhere, and comes back with it."""
    disk = FailingDisk()
    await with_topics(disk, "one", "two")
    disk.fail("b", number, reads=reads)
    for _ in range(2):
        caplog.clear()
        async with started(broker_on(disk, AB)) as broker:
            partitions = broker.context.partitions
            assert in_place(broker.context) == {"a": ["one-0", "two-0"], "b": []}
            with pytest.raises(KafkaError) as caught:
                partitions.find("one", 1)
            assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
            assert caught.value.message == "one-1 was in a data directory that cannot be used: b"
            state = broker.context.metadata.image.topics["one"].partitions[1]
            assert (state.leader, state.offline) == (NO_LEADER, (0,))
            assert 0 in (*state.isr, *state.elr), "it is the last one, and may come back"
            async with connected(broker) as client:
                assert (await produced(client, "one", wire_batch(b"x"))).error_code == ErrorCode.NONE
        said = [each for each in caplog.messages if "the data directory b cannot be used" in each]
        assert len(said) == 1
    disk.mend("b")
    async with started(broker_on(disk, AB)) as broker:
        assert in_place(broker.context) == {"a": ["one-0", "two-0"], "b": ["one-1", "two-1"]}
        assert b"one-1" in read_all(broker.context.partitions.leader("one", 1).log)
        state = broker.context.metadata.image.topics["one"].partitions[1]
        assert (state.leader, state.isr, state.offline) == (0, (0,), ())


async def test_new_topics_go_to_those_that_are_left() -> None:
    disk = FailingDisk()
    await with_topics(disk, "one")
    disk.fail("b")
    async with started(broker_on(disk, AB)) as broker:
        await make_topic(broker.context, "new", 3)
        assert in_place(broker.context)["a"] == ["new-0", "new-1", "new-2", "one-0"]
    disk.mend("b")
    async with started(broker_on(disk, AB)) as broker:
        assert in_place(broker.context) == {"a": ["new-0", "new-1", "new-2", "one-0"], "b": ["one-1"]}


async def test_without_the_first_one_which_has_the_metadata_nothing_goes() -> None:
    disk = FailingDisk()
    await with_topics(disk, "one")
    disk.fail("a")
    before = files(disk, "b")
    assert await refused(disk) == "the data directory a cannot be used: Input/output error"
    assert files(disk, "b") == before


async def test_with_none_of_them_nothing_goes() -> None:
    disk = FailingDisk()
    disk.fail("a")
    disk.fail("b")
    assert await refused(disk) == "the data directory a cannot be used: Input/output error"
    assert await refused(disk, ("a",)) == "the data directory a cannot be used: Input/output error"


async def test_one_that_was_replaced_takes_its_partitions_with_it_and_no_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Nobody else has them, so they wait until somebody decides: an empty log must not pass for theirs."""
    disk = FailingDisk()
    await with_topics(disk, "one", "two")
    disk.unmount("b")
    with caplog.at_level(logging.WARNING):
        async with started(broker_on(disk, AB)) as broker:
            image = broker.context.metadata.image
            for name in ("one", "two"):
                here, lost = image.topics[name].partitions
                assert (here.leader, here.isr) == (0, (0,))
                assert (lost.leader, lost.isr, lost.elr, lost.last_known_leader) == (NO_LEADER, (), (), 0)
            assert b"one-0" in read_all(broker.context.partitions.leader("one", 0).log)
    assert "2 partitions were in sync on broker 0 only, whose data directory is a new one" in caplog.text


async def test_a_broker_that_is_killed_finds_all_of_both() -> None:
    disk = FailingDisk()
    async with started(broker_on(disk, AB)) as broker:
        await make_topic(broker.context, "one", 4)
        for index in range(4):
            append(broker.context.partitions.leader("one", index), batch(b"acknowledged"))
        after = copied(disk, FailingDisk())
    async with started(broker_on(after, AB)) as broker:
        assert in_place(broker.context) == {"a": ["one-0", "one-2"], "b": ["one-1", "one-3"]}
        for index in range(4):
            assert broker.context.partitions.leader("one", index).log.log_end_offset == 1
