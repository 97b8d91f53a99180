"""A broker in this process: directories and ports refused with their reason, what a start writes, how a stop ends."""

import asyncio
import errno
import json
import logging
import socket
import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from ssl import SSLContext
from typing import Any

import pytest

from odradek.broker.cluster.embedded import FILE_NAME, EmbeddedStore
from odradek.broker.cluster.keys import CLUSTER_KEY, encode_cluster
from odradek.broker.cluster.store import StoreDamaged, Txn
from odradek.broker.config.listeners import Listener
from odradek.broker.directories import meta_properties
from odradek.broker.directories.meta_properties import ForeignDirectory
from odradek.broker.disk.file_disk import FileDisk
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.log.checkpoint import LOG_START_OFFSETS
from odradek.broker.replica.watch import Watch
from odradek.broker.server import STOP_S, Broker
from odradek.broker.startup_errors import StartRefused
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.runtime.environment import Environment
from tests.broker.cluster.faulty_store import FaultyStore
from tests.broker.servers import broker_on, files, started
from tests.broker.wire import (
    RawClient,
    batch,
    connected,
    create_topic,
    produce,
    produced,
    running_broker,
    settings,
    topic_id,
)

INSIDE = Listener("INSIDE", "127.0.0.1", 0)
OUTSIDE = Listener("OUTSIDE", "127.0.0.1", 0)


def listening(listeners: list[Listener], advertised: list[Listener] | None = None) -> Broker:
    told = {listener.name: listener for listener in [*listeners, *(advertised or [])]}
    return Broker(replace(settings(), listeners=listeners, advertised=told), Environment(), MemoryDisk())


@asynccontextmanager
async def client_of(host: str, port: int) -> AsyncGenerator[RawClient]:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        yield RawClient(reader, writer)
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def addresses(client: RawClient) -> list[tuple[int, str, int]]:
    answer = await client.ask(MetadataRequest(topics=[]), 9)
    return [(node.node_id, node.host, node.port) for node in answer.brokers]


# -- the data directory -----------------------------------------------------------------------------------------------


async def test_a_second_broker_on_the_same_directory_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    data_dir = str(tmp_path / "data")
    async with started(broker_on(FileDisk(), data_dir)) as first, connected(first) as client:
        with pytest.raises(StartRefused, match=r"data cannot be used: another running broker holds the lock file$"):
            await broker_on(FileDisk(), data_dir).start()
        await create_topic(client, "orders")
        assert (await produced(client, "orders", batch(b"a"))).base_offset == 0
    async with started(broker_on(FileDisk(), data_dir)):
        pass  # the lock was given back


async def test_the_first_start_says_whose_directory_it_is_and_later_ones_keep_it() -> None:
    disk = MemoryDisk()
    async with started(broker_on(disk, node_id=3)) as broker:
        cluster_id = broker.context.identity.cluster_id
    written = disk.read_whole("data/meta.properties")
    assert written.startswith(f"version=1\ncluster.id={cluster_id}\nnode.id=3\ndirectory.id=".encode())
    async with started(broker_on(disk, node_id=3)) as broker:
        assert broker.context.identity.cluster_id == cluster_id
    assert disk.read_whole("data/meta.properties") == written


async def test_the_directory_of_another_node_is_refused_and_nothing_in_it_changes() -> None:
    disk = MemoryDisk()
    async with started(broker_on(disk, node_id=3)):
        pass
    before = {name: disk.read_whole(f"data/{name}") for name in disk.list_dir("data")}
    with pytest.raises(ForeignDirectory, match=r"belongs to node 3 and this is node 4: start with --node-id 3"):
        await broker_on(disk, node_id=4).start()
    assert {name: disk.read_whole(f"data/{name}") for name in disk.list_dir("data")} == before


async def test_a_directory_put_together_from_two_clusters_is_refused() -> None:
    disk = MemoryDisk()
    async with started(broker_on(disk)) as broker:
        ours = broker.context.identity.cluster_id
    store = EmbeddedStore.open(disk, "data")
    await store.commit(Txn(put={CLUSTER_KEY: encode_cluster("another")}))
    await store.close()
    before = files(disk)
    with pytest.raises(ForeignDirectory, match=rf"data belongs to cluster {ours}, and its metadata to cluster another"):
        await broker_on(disk).start()
    assert files(disk) == before


@pytest.mark.parametrize("content", [b"", b"version=1\n", b"version=9\n", b"\x00" * 80])
async def test_a_damaged_meta_properties_is_refused_and_kept(content: bytes) -> None:
    disk = MemoryDisk()
    async with started(broker_on(disk)):
        pass
    disk.write_whole("data/meta.properties", content)
    with pytest.raises(ForeignDirectory, match=r"data/meta\.properties"):
        await broker_on(disk).start()
    assert disk.read_whole("data/meta.properties") == content


async def test_damaged_metadata_and_log_starts_are_refused_by_name() -> None:
    disk = MemoryDisk()
    async with started(broker_on(disk)):
        pass
    disk.write_whole(f"data/{LOG_START_OFFSETS}", b"nonsense\n")
    with pytest.raises(StartRefused, match=rf"data/{LOG_START_OFFSETS} .* restore the file, or remove it"):
        await broker_on(disk).start()
    disk.remove(f"data/{LOG_START_OFFSETS}")
    disk.write_whole(f"data/{FILE_NAME}", b"nonsense")
    with pytest.raises(StoreDamaged, match=rf"data/{FILE_NAME}"):
        await broker_on(disk).start()


async def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StartRefused, match=r"file/data cannot be used: Not a directory$"):
        await broker_on(FileDisk(), str(tmp_path / "file" / "data")).start()


async def test_a_start_that_failed_leaves_nothing_locked_or_bound() -> None:
    """The disk is full at the very first write; with room the same directory and port serve."""
    disk = MemoryDisk(size_bytes_max=3)
    with pytest.raises(OSError, match="No space left"):
        await broker_on(disk).start()
    disk.size_bytes_max = None
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(StartRefused):
            await Broker(
                replace(settings("data"), listeners=[INSIDE, OUTSIDE._replace(port=port)], advertised=dict.fromkeys(
                    ("INSIDE", "OUTSIDE"), INSIDE)), Environment(), disk
            ).start()  # fmt: skip
    async with started(broker_on(disk)), started(listening([INSIDE._replace(port=port)])):
        pass


async def test_a_port_lost_between_bind_and_listen_refuses_the_start_and_closes_the_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes may bind the same port; the second one to listen on it is told."""
    data_dir = str(tmp_path / "data")
    async with started(broker_on(FileDisk(), data_dir)) as broker, connected(broker) as client:
        await create_topic(client, "orders")
        await produced(client, "orders", batch(b"a"))  # which the next start reads

    async def taken(server: asyncio.Server) -> None:
        raise OSError(errno.EADDRINUSE, "words of the loop's own")

    with monkeypatch.context() as patch:
        patch.setattr(asyncio.Server, "start_serving", taken)
        disk = FileDisk()
        with pytest.raises(StartRefused, match=r"^cannot listen on 127\.0\.0\.1:0: Address already in use$"):
            await broker_on(disk, data_dir).start()
        assert disk.open_descriptors == 0
    async with started(broker_on(FileDisk(), data_dir)) as broker:
        assert len(broker.context.partitions) == 1


# -- listeners --------------------------------------------------------------------------------------------------------


async def test_a_port_in_use_is_refused_in_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(StartRefused) as refused:
            await listening([INSIDE._replace(port=port)]).start()
        assert str(refused.value) == f"cannot listen on 127.0.0.1:{port}: Address already in use"
        with pytest.raises(StartRefused, match=rf"^cannot serve metrics on 127\.0\.0\.1:{port}: Address already"):
            metrics = Listener("METRICS", "127.0.0.1", port)
            await Broker(replace(settings(), metrics=metrics), Environment(), MemoryDisk()).start()


@pytest.mark.parametrize("host", ["192.0.2.1", "no-such-host.invalid"])
async def test_an_address_that_is_not_ours_is_refused(host: str) -> None:
    with pytest.raises(StartRefused, match=rf"^cannot listen on {host}:0: \w.*"):
        await listening([INSIDE._replace(host=host)]).start()


async def test_port_0_is_a_free_one_and_advertised() -> None:
    async with running_broker() as broker, connected(broker) as client:
        (bound,) = broker.bound.values()
        assert bound.port > 0
        assert await addresses(client) == [(0, "127.0.0.1", bound.port)]


async def test_metadata_answers_with_the_addresses_of_the_listener_asked() -> None:
    outside = OUTSIDE._replace(host="broker.example", port=19092)
    async with started(listening([INSIDE, OUTSIDE], [outside])) as broker:
        inside_at, outside_at = broker.bound["INSIDE"], broker.bound["OUTSIDE"]
        assert inside_at.port != outside_at.port
        async with client_of(*inside_at) as client:
            assert await addresses(client) == [(0, "127.0.0.1", inside_at.port)]
        async with client_of(*outside_at) as client:
            assert await addresses(client) == [(0, "broker.example", 19092)]


async def test_no_request_is_answered_before_the_broker_is_in_the_metadata_itself() -> None:
    """One that names no broker leads clients astray: librdkafka then waited for a topic's metadata for a minute."""
    store = FaultyStore()
    store.blind()
    broker = Broker(settings(), Environment(), MemoryDisk(), store=store)
    starting = asyncio.ensure_future(broker.start())
    while not (broker.bound and await accepts(broker)):  # noqa: ASYNC110 - a port tells nobody
        await asyncio.sleep(0.001)
    async with connected(broker) as client:
        asking = asyncio.ensure_future(client.ask(MetadataRequest(topics=[]), 9))
        await asyncio.sleep(0.05)  # longer than an answer takes, where it does not wait
        assert (asking.done(), starting.done()) == (False, False)
        store.see()
        assert [each.node_id for each in (await asking).brokers] == [broker.settings.node_id]
    await starting
    await broker.stop()


async def accepts(broker: Broker) -> bool:
    endpoint = next(iter(broker.bound.values()))
    try:
        _, writer = await asyncio.open_connection(endpoint.host, endpoint.port)
    except ConnectionRefusedError:
        return False
    writer.close()
    return True


async def test_an_ipv6_literal_is_bound_advertised_and_connected_to() -> None:
    async with started(listening([Listener("PLAINTEXT", "::1", 0)])) as broker:
        bound = broker.bound["PLAINTEXT"]
        assert str(bound) == f"[::1]:{bound.port}"
        async with client_of("::1", bound.port) as client:
            assert await addresses(client) == [(0, "::1", bound.port)]


@pytest.mark.parametrize("host", ["", "*", "localhost"])
async def test_a_host_with_two_addresses_has_the_same_port_on_both(host: str) -> None:
    """Port 0 would be another port on IPv4 than on IPv6, and only one of them can be advertised."""
    asked: list[tuple[str, int]] = []

    class TwoAddresses(Environment):
        async def listen(
            self,
            factory: Callable[[], asyncio.BaseProtocol],
            host: str,
            port: int,
            *,
            ssl: SSLContext | None = None,
        ) -> tuple[asyncio.AbstractServer, Sequence[tuple[str, int]]]:
            assert ssl is None
            asked.append((host, port))
            server, ((_, bound),) = await super().listen(factory, "127.0.0.1", port)
            return server, [("127.0.0.1", bound), ("::1", port or bound + 1)]

    listener = INSIDE._replace(host=host)
    told = {"INSIDE": INSIDE}
    wanted = replace(settings(), listeners=[listener], advertised=told)
    async with started(Broker(wanted, TwoAddresses(), MemoryDisk())) as broker:
        port = broker.bound["INSIDE"].port
        assert asked == [(host.replace("*", ""), 0), (host.replace("*", ""), port)]
        async with client_of("127.0.0.1", port) as client:
            assert await addresses(client) == [(0, "127.0.0.1", port)]


# -- a restart --------------------------------------------------------------------------------------------------------


async def test_the_leader_epoch_is_bumped_and_stored_before_the_first_append_after_a_start() -> None:
    disk = MemoryDisk()
    stored: list[int] = []
    for start in range(3):
        async with started(broker_on(disk)) as broker, connected(broker) as client:
            if start == 0:
                await create_topic(client, "orders")
            snapshot = await broker.context.metadata.store.read("/partitions/")
            (entry,) = snapshot.entries.values()
            stored.append(json.loads(entry.value)["leader_epoch"])
            assert (await produced(client, "orders", batch(b"a"))).base_offset == start
            data = bytes(
                broker.context.partitions.leader("orders", 0).log.fetch(start, 1 << 20, start + 1, True).records
            )
            assert int.from_bytes(data[12:16], "big") == stored[-1]
    assert stored == [0, 1, 2]


# -- stopping ---------------------------------------------------------------------------------------------------------


def fetch(of_topic: bytes, max_wait_ms: int) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=1 << 20,
        topics=[FetchTopic(topic_id=of_topic, partitions=[partition])],
    )


async def test_a_stop_answers_the_long_poll_and_starts_no_request_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = asyncio.Event()
    wait = Watch.wait

    async def watched(self: Watch, missing_bytes: int, timeout_ms: float) -> bool:
        waits.set()
        return await wait(self, missing_bytes, timeout_ms)

    monkeypatch.setattr(Watch, "wait", watched)
    broker = broker_on(MemoryDisk())
    await broker.start()
    async with connected(broker) as client:
        await create_topic(client, "orders")
        request = fetch(await topic_id(client, "orders"), max_wait_ms=60_000)
        client.send(request, 13)
        client.send(produce("orders", batch(b"late")), 9)
        await asyncio.wait_for(waits.wait(), 10)
        partition = broker.context.partitions.leader("orders", 0)
        before_ms = broker.environment.monotonic_ms()
        await broker.stop()
        assert broker.environment.monotonic_ms() - before_ms < 1000 * STOP_S / 2
        _, answer = await client.receive(request, 13)
        assert answer.error_code == 0
        assert await client.is_closed()
        assert partition.log.log_end_offset == 0, "the Produce behind it was not begun"


async def test_a_stop_refuses_new_connections_and_closes_idle_ones() -> None:
    broker = broker_on(MemoryDisk())
    await broker.start()
    (bound,) = broker.bound.values()
    async with connected(broker) as client:
        await addresses(client)
        await broker.stop()
        assert await client.is_closed()
    with pytest.raises(OSError, match=r"refused|Connect call failed"):
        await asyncio.open_connection(bound.host, bound.port)


async def test_a_log_that_cannot_be_flushed_does_not_keep_the_others_from_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broker = broker_on(MemoryDisk())
    await broker.start()
    async with connected(broker) as client:
        await create_topic(client, "orders", 3)
    logs = [broker.context.partitions.find("orders", index).log for index in range(3)]
    flushed: list[str] = []

    def fail(path: str) -> None:
        if path.startswith("data/orders-1"):
            raise OSError(errno.EIO, "the device is gone")
        flushed.append(path)

    monkeypatch.setattr(broker.disk, "sync_dir", fail)
    with caplog.at_level(logging.ERROR):
        await broker.stop()
    assert [log.directory in flushed for log in logs] == [True, False, True]
    assert "orders-1 could not be flushed" in caplog.text
    async with started(broker_on(broker.disk)) as again:
        assert len(again.context.partitions) == 3


async def test_a_stop_syncs_logs_side_by_side_and_the_loop_goes_on_meanwhile() -> None:
    """One after the other, in the loop, the stop of a broker with a thousand partitions took ten seconds where a sync
    takes two milliseconds: its lease lapsed, and who waited for its end killed it."""

    class PairedDisk(MemoryDisk):
        """Each sync of a partition's directory waits for a second one."""

        def __init__(self) -> None:
            super().__init__()
            self.pairs = threading.Barrier(2, timeout=10)
            self.threads: set[int] = set()

        def sync_dir(self, path: str) -> None:
            if path.startswith("data/orders-") and not path.endswith(".."):
                self.threads.add(threading.get_ident())
                self.pairs.wait()
            super().sync_dir(path)

    disk = PairedDisk()
    broker = broker_on(disk)
    await broker.start()
    async with connected(broker) as client:
        await create_topic(client, "orders", 10)
    await broker.stop()
    assert len(disk.threads) > 1
    assert threading.get_ident() not in disk.threads


async def test_what_is_stopped_cleanly_is_there_after_the_next_start(tmp_path: Path) -> None:
    data_dir = str(tmp_path / "data")
    async with started(broker_on(FileDisk(), data_dir)) as broker, connected(broker) as client:
        await create_topic(client, "orders", 2)
        before = await topic_id(client, "orders")
        for index in range(2):
            assert (await produced(client, "orders", batch(b"a", b"b"), index=index)).error_code == ErrorCode.NONE
    async with started(broker_on(FileDisk(), data_dir)) as broker, connected(broker) as client:
        answer = await client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="orders")]), 12)
        assert (answer.topics[0].topic_id, len(answer.topics[0].partitions)) == (before, 2)
        assert [partition.high_watermark.value for partition in broker.context.partitions] == [2, 2]
    assert meta_properties.load(FileDisk(), data_dir) is not None


async def test_a_stop_does_not_cut_a_commit_short() -> None:
    """Cut short it would stand in the file without counting, and the next one have its revision: no start could read
    that. The device is slow until the broker has nothing else to do than to take its registration back."""

    class SlowDevice(Environment):
        is_slow = False
        answers = asyncio.Event()

        async def run_blocking(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            if self.is_slow:
                await self.answers.wait()
            return await super().run_blocking(function, *args, **kwargs)

    disk, environment = MemoryDisk(), SlowDevice()
    broker = Broker(settings("data"), environment, disk)
    await broker.start()
    registration = broker.context.member.registration
    leave = registration.leave

    async def leave_at_last() -> None:
        environment.is_slow = False
        environment.answers.set()
        await leave()

    registration.leave = leave_at_last  # type: ignore[method-assign]
    environment.is_slow = True
    store = broker.context.metadata.store
    commit = asyncio.ensure_future(store.commit(Txn(put={"/configs/topics/orders": b'{"v":1,"configs":{}}'})))
    for _ in range(3):
        await asyncio.sleep(0)  # it is on its way to the device
    await broker.stop()
    with suppress(asyncio.CancelledError, Exception):
        await commit
    async with started(Broker(settings("data"), Environment(), disk)) as again:
        assert again.context.metadata.image.revision > 0
