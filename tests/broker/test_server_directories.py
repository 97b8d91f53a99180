"""Directories that the metadata does not know: moved aside where it is the one followed last, and refused otherwise."""

import asyncio
import errno
import logging

import pytest

from odradek.broker.cluster.embedded import FILE_NAME, EmbeddedStore
from odradek.broker.cluster.journal import decode_file
from odradek.broker.directories import metadata_revision
from odradek.broker.directories.meta_properties import ForeignDirectory
from odradek.broker.directories.metadata_revision import load_revision
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.protocol.codec.schema import Buffer
from odradek.protocol.errors import ErrorCode
from odradek.testing.sim.world.losing_disk import ALL_IS_LOST, LosingDisk
from tests.broker.servers import broker_on, files, started
from tests.broker.wire import batch, connected, create_topic, produced

HEX = "00ff" * 8


async def with_records(disk: MemoryDisk, *names: str, data_dir: str = "data") -> None:
    """Runs a broker on the disk in which these topics are created, each with a record."""
    async with started(broker_on(disk, data_dir)) as broker, connected(broker) as client:
        for name in names:
            await create_topic(client, name)
            assert (await produced(client, name, batch(b"a"))).error_code == ErrorCode.NONE


async def test_a_directory_of_an_unknown_topic_is_kept_aside_and_one_begun_is_removed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    disk = MemoryDisk()
    await with_records(disk, "orders")
    disk.make_dir("data/foreign-0")
    disk.write_whole("data/foreign-0/file", b"needed?")
    disk.make_dir(f"data/orders-1.{HEX}-delete")
    disk.make_dir("data/orders-00")  # a name that we never give
    for name in ("notes", "notes-delete", f"gone-0.{HEX}-future"):
        disk.make_dir(f"data/{name}")
    async with started(broker_on(disk)):
        pass
    names = [name for name in disk.list_dir("data") if disk.is_dir(f"data/{name}")]
    assert len(names) == 6
    assert {"notes", "notes-delete", f"gone-0.{HEX}-future", "orders-0"} < {*names}
    (stray,) = (name for name in names if name.startswith("foreign-0."))
    assert stray.endswith("-stray")
    assert disk.read_whole(f"data/{stray}/file") == b"needed?"
    assert sum("belongs to no topic known here" in record.getMessage() for record in caplog.records) == 2
    async with started(broker_on(disk)):
        pass
    assert [name for name in disk.list_dir("data") if disk.is_dir(f"data/{name}")] == names


async def test_what_an_adopted_directory_has_of_kafkas_own_topics_stays_where_it_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    disk = MemoryDisk()
    await with_records(disk, "orders")
    own = ["__cluster_metadata-0", "__consumer_offsets-7", "__transaction_state-1"]
    for name in own:
        disk.make_dir(f"data/{name}")
    with caplog.at_level(logging.INFO):
        async with started(broker_on(disk)):
            pass
    assert [name for name in disk.list_dir("data") if disk.is_dir(f"data/{name}")] == [*own, "orders-0"]
    assert f"data: kept for Apache Kafka, and not served: {', '.join(own)}" in caplog.messages


async def test_partitions_whose_metadata_is_lost_are_refused_and_left_as_they_are() -> None:
    """The file is gone, or it is there and empty; both are refused again and again until the right one is restored."""
    disk = MemoryDisk()
    await with_records(disk, "orders")
    whole = disk.read_whole(f"data/{FILE_NAME}")
    disk.remove(f"data/{FILE_NAME}")
    before = files(disk)
    for _ in range(2):
        with pytest.raises(ForeignDirectory, match=r"data has the partition orders-0, and no metadata .*odradek adopt"):
            await broker_on(disk).start()
        assert files(disk) == before, "no file was made that a restored one would have to replace"
    await EmbeddedStore.open(disk, "data").close()
    with pytest.raises(ForeignDirectory, match="odradek adopt data"):
        await broker_on(disk).start()
    disk.write_whole(f"data/{FILE_NAME}", whole)
    async with started(broker_on(disk)) as broker:
        assert broker.context.partitions.find("orders", 0).log.log_end_offset == 1


async def test_metadata_in_another_directory_than_the_first_is_told_with_the_order_to_give() -> None:
    disk = MemoryDisk()
    async with started(broker_on(disk, ["a", "b"])) as broker, connected(broker) as client:
        for name in ("orders", "payments"):
            await create_topic(client, name)
    before = files(disk, "a"), files(disk, "b")
    for order in (["b", "a"], ["new", "a", "b"]):
        with pytest.raises(ForeignDirectory, match=rf"looked for in {order[0]}, .* metadata.log is in a: give a first"):
            await broker_on(disk, order).start()
        assert (files(disk, "a"), files(disk, "b")) == before
    async with started(broker_on(disk, ["a", "b", "new"])) as broker:
        assert broker.context.partitions.find("payments", 0)


async def test_partitions_of_nobody_are_refused_whoever_made_the_directory() -> None:
    disk = MemoryDisk()
    disk.make_dir("data/orders-0")
    with pytest.raises(ForeignDirectory, match="odradek adopt data"):
        await broker_on(disk).start()
    assert files(disk) == {"data/orders-0": None}


async def test_partitions_without_meta_properties_are_refused() -> None:
    disk = MemoryDisk()
    await with_records(disk, "orders")
    disk.remove("data/meta.properties")
    before = files(disk)
    with pytest.raises(ForeignDirectory, match=r"and no meta\.properties"):
        await broker_on(disk).start()
    assert files(disk) == before


async def test_an_older_copy_of_the_metadata_is_refused_and_nothing_is_moved_aside() -> None:
    """Each copy taken while a broker ran lacks a topic that was created later. One that is behind by a single commit
    is no exception, although opening it would be a commit of its own."""
    disk = MemoryDisk()
    copies: list[bytes] = []
    async with started(broker_on(disk)) as broker, connected(broker) as client:
        for name in ("first", "second", "third"):
            copies.append(disk.read_whole(f"data/{FILE_NAME}"))
            await create_topic(client, name)
    newest = disk.read_whole(f"data/{FILE_NAME}")
    assert load_revision(disk, "data") == decode_file(newest).revision
    assert decode_file(newest).revision == decode_file(copies[-1]).revision + 2, "a topic, and the registration's end"
    for copy in copies:
        disk.write_whole(f"data/{FILE_NAME}", copy)
        before = files(disk)
        with pytest.raises(ForeignDirectory, match=r"that data knows: it is at revision \d+, and was at \d+ before"):
            await broker_on(disk).start()
        assert files(disk) == before
    disk.write_whole(f"data/{FILE_NAME}", newest)
    async with started(broker_on(disk)) as broker:
        assert len(broker.context.partitions) == 3


async def test_the_revision_is_written_before_anything_is_moved_aside_and_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk = MemoryDisk()
    await with_records(disk, "orders")
    found = decode_file(disk.read_whole(f"data/{FILE_NAME}")).revision
    disk.make_dir("data/foreign-0")
    recorded: list[int] = []
    rename = disk.rename

    def watched(source: str, target: str) -> None:
        if target.endswith("-stray"):
            recorded.append(load_revision(disk, "data"))
        rename(source, target)

    monkeypatch.setattr(disk, "rename", watched)
    async with started(broker_on(disk)) as broker, connected(broker) as client:
        assert recorded == [found]
        await create_topic(client, "payments")
        created = broker.context.metadata.image.revision
    assert load_revision(disk, "data") == created + 1, "and the end of its registration"


async def test_the_revision_follows_the_metadata_while_the_broker_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """So a SIGKILL costs a second of it at most."""
    monkeypatch.setattr(metadata_revision, "RENEWAL_MS", 0)
    written = asyncio.Event()

    class Watched(MemoryDisk):
        def write_whole(self, path: str, data: Buffer) -> None:
            super().write_whole(path, data)
            if path.endswith(metadata_revision.FILE_NAME):
                loop.call_soon_threadsafe(written.set)

    loop, disk = asyncio.get_running_loop(), Watched()
    async with started(broker_on(disk)) as broker, connected(broker) as client:
        await create_topic(client, "orders")
        while load_revision(disk, "data") < broker.context.metadata.image.revision:
            written.clear()
            await asyncio.wait_for(written.wait(), 10)


async def test_a_revision_that_cannot_be_written_at_the_end_is_told(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(MemoryDisk):
        is_failing = False

        def write_whole(self, path: str, data: Buffer) -> None:
            if self.is_failing and path.endswith(metadata_revision.FILE_NAME):
                raise OSError(errno.EIO, "the device is gone")
            super().write_whole(path, data)

    disk = Failing()
    async with started(broker_on(disk)) as broker, connected(broker) as client:
        disk.is_failing = True
        await create_topic(client, "orders")
    assert "the revision of the metadata could not be written down: [Errno 5] the device is gone" in caplog.text
    disk.is_failing = False
    async with started(broker_on(disk)) as broker:
        assert len(broker.context.partitions) == 1


async def test_a_data_directory_that_was_just_made_survives_a_loss_of_power() -> None:
    """With every parent that had to be made: else all that was synced in it would be gone with its name."""
    disk = LosingDisk()
    await with_records(disk, "orders", data_dir="srv/kafka/data")
    after = disk.after_power_failure(ALL_IS_LOST)
    assert "orders-0" in after.list_dir("srv/kafka/data")


async def test_a_start_makes_a_data_directory_left_by_an_interrupted_start_durable() -> None:
    disk = LosingDisk()
    disk.make_dir("data")
    await with_records(disk, "orders")
    assert "orders-0" in disk.after_power_failure(ALL_IS_LOST).list_dir("data")
