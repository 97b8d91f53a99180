"""The store on a real etcd, in what the contract's suite (tests/contract/test_store.py) does not ask of every store.

Large topics and many keys, keys of others, revisions of others, pages, and how large a commit may be.
"""

import asyncio
import subprocess
import sys
from contextlib import aclosing

import pytest

from odradek.broker.cluster.etcd import store as store_module
from odradek.broker.cluster.etcd.client import EtcdRefusal
from odradek.broker.cluster.etcd.messages import RangeReply
from odradek.broker.cluster.etcd.store import EtcdStore
from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.keys import PartitionState, decode_partition
from odradek.broker.cluster.store import COMMIT_BYTES_MAX, OPERATIONS_MAX, Entry, StoreRefused, StoreWentBack, Txn
from odradek.broker.cluster.topics import create_topic, delete_topic
from odradek.broker.config.store_address import PREFIX_SIZE_MAX
from processes.etcd_server import EtcdServer
from processes.etcd_stores import etcd_store

TOPIC_ID = b"\x07" * 16


def prefix_of(address: str) -> str:
    return "/" + address.removeprefix("etcd://").partition("/")[2]


async def follow(store: EtcdStore, image: ClusterImage, revision: int) -> ClusterImage:
    """The image as it becomes by what the watch tells, up to a revision."""
    async with asyncio.timeout(30), aclosing(store.watch("/", image.revision)) as changes:
        async for change in changes:
            image, _ = image.apply(change)
            if image.revision >= revision:
                break
    return image


async def test_a_topic_of_5000_partitions_comes_and_goes_whole(etcd_server: EtcdServer) -> None:
    """An image that follows by the watch is at the end what a new one reads, at each step."""
    partitions = [PartitionState(TOPIC_ID, (1, 2, 3), (1, 2, 3), 1) for _ in range(5000)]
    async with etcd_store(etcd_server.address()) as store:
        image = ClusterImage.from_snapshot(await store.read("/"))
        created = await create_topic(store, "large", TOPIC_ID, partitions, {"retention.ms": "1"})
        image = await follow(store, image, created)
        read = ClusterImage.from_snapshot(await store.read("/"))
        assert len(image.topics["large"].partitions) == 5000
        assert image.topics == read.topics
        deleted = await delete_topic(store, image.topics["large"])
        left = await store.read("/")
        assert left.entries == {}
        image = await follow(store, image, deleted)
        assert image.topics == {}


@pytest.mark.slow
async def test_a_hundred_thousand_partitions_are_read_at_one_revision(etcd_server: EtcdServer) -> None:
    """While others go on writing: pages of later revisions would show what they wrote."""
    value = PartitionState(TOPIC_ID, (1, 2, 3), (1, 2, 3), 1).encode()
    keys = [f"/partitions/t{number // 1000:03}/{number % 1000}" for number in range(100_000)]
    async with etcd_store(etcd_server.address()) as store:
        chunks = iter([keys[start : start + OPERATIONS_MAX] for start in range(0, len(keys), OPERATIONS_MAX)])

        async def write() -> None:
            for chunk in chunks:
                await store.commit(Txn(put=dict.fromkeys(chunk, value)))

        await asyncio.gather(*(write() for _ in range(4)))

        async def disturb() -> None:
            while True:
                await store.commit(Txn(put={keys[-1]: b"later", "/partitions/zzz/0": b"later"}))

        async with asyncio.timeout(60):
            disturbing = asyncio.ensure_future(disturb())
            await asyncio.sleep(0)
            snapshot = await store.read("/partitions/t")
            disturbing.cancel()
    assert sorted(snapshot.entries) == list(snapshot.entries) == sorted(keys)
    assert max(entry.revision for entry in snapshot.entries.values()) <= snapshot.revision
    states = {decode_partition(entry.value, "t", 0) for entry in snapshot.entries.values() if entry.value == value}
    assert len(states) == 1


async def test_keys_of_others_are_neither_seen_nor_touched(etcd_server: EtcdServer) -> None:
    """Beside the prefix, before and behind it, and longer ones that begin like it."""
    address = etcd_server.address("/mine")
    others = ["/min", "/mine", "/mine0/a", "/mine.a", "/minf", "/zzz"]
    for key in others:
        etcd_server.ctl("put", key, "other")
    async with etcd_store(address) as store:
        revision = await store.commit(Txn(put={"/a": b"1"}))
        etcd_server.ctl("put", "/mine0/b", "other")
        await store.commit(Txn(put={"/b": b"1"}))
        async with aclosing(store.watch("", revision)) as changes:
            assert [event.key for event in (await anext(changes)).events] == ["/b"]
        assert list((await store.read("")).entries) == list((await store.read("/")).entries) == ["/a", "/b"]
        await store.commit(Txn(delete=("/a", "/b")))
    for key in others:
        assert etcd_server.ctl("get", key) == f"{key}\nother\n"


async def test_foreign_keys_under_the_prefix_can_be_read_and_deleted(etcd_server: EtcdServer) -> None:
    """They are not ours to understand, but nothing breaks on them, whatever their bytes."""
    address = etcd_server.address()
    async with etcd_store(address) as store:
        etcd_server.ctl("put", "--", f"{prefix_of(address)}/\udcff\udc80", "what")
        entries = (await store.read("/")).entries
        assert [(key, entry.value) for key, entry in entries.items()] == [("/\udcff\udc80", b"what")]
        await store.commit(Txn(expect={key: entry.revision for key, entry in entries.items()}, delete=tuple(entries)))
        assert (await store.read("/")).entries == {}


async def test_a_commit_that_changes_nothing_answers_a_revision_that_watches_come_to(etcd_server: EtcdServer) -> None:
    """etcd's own would be another program's: who waits for it would wait until something of ours happens."""
    async with etcd_store(etcd_server.address()) as store:
        assert await store.commit(Txn(expect={"/a": 0})) == 0  # nothing of this prefix was ever met
        revision = await store.commit(Txn(put={"/a": b"1"}))
        etcd_server.ctl("put", "/of-others", "1")
        assert etcd_server.revision() > revision
        assert await store.commit(Txn(delete=("/absent",))) == revision
        assert await store.commit(Txn(expect={"/a": revision})) == revision
        assert (await store.read("/")).revision > revision


async def test_what_others_of_the_cluster_wrote_counts_as_met(etcd_server: EtcdServer) -> None:
    address = etcd_server.address()
    async with etcd_store(address) as store, etcd_store(address) as other:
        revision = await other.commit(Txn(put={"/a": b"1"}))
        await store.read("/")
        assert await store.commit(Txn(expect={"/a": revision})) == revision
        async with aclosing(store.watch("/", revision)) as changes:
            deleted = await other.commit(Txn(delete=("/a",)))
            assert (await anext(changes)).revision == deleted
        assert await store.commit(Txn(delete=("/a",))) == deleted


async def test_more_than_a_reply_may_hold_by_default_is_read(etcd_server: EtcdServer) -> None:
    """gRPC refuses replies over 4 MiB unless told otherwise; and pages shrink when values are large."""
    put = {f"/{number:02}": bytes([number]) * 900_000 for number in range(12)}
    async with etcd_store(etcd_server.address()) as store:
        revisions = {key: await store.commit(Txn(put={key: value})) for key, value in put.items()}
        entries = (await store.read("/")).entries
        assert entries == {key: Entry(value, revisions[key]) for key, value in put.items()}


async def test_pages_are_as_large_as_the_last_one_suggests(
    etcd_server: EtcdServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "PAGE_KEYS", 40)
    monkeypatch.setattr(store_module, "PAGE_BYTES", 10_000)
    address = etcd_server.address()
    async with etcd_store(address) as store:
        put = {f"/{number:02}": b"v" * 1000 for number in range(90)}
        await store.commit(Txn(put=put))
        limits: list[int] = []
        next_limit = store_module._next_limit  # pyright: ignore[reportPrivateUsage]

        def record(limit: int, page: RangeReply) -> int:
            limits.append(len(page.keys))
            return next_limit(limit, page)

        monkeypatch.setattr(store_module, "_next_limit", record)
        assert list((await store.read("/")).entries) == list(put)
        assert limits == [40, 9, 9, 9, 9, 9]  # and one more, the last


async def test_a_read_that_is_overtaken_by_a_compaction_begins_again(
    etcd_server: EtcdServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "PAGE_KEYS", 1)
    async with etcd_store(etcd_server.address()) as store:
        await store.commit(Txn(put={"/a": b"1", "/b": b"1", "/c": b"1"}))
        next_limit = store_module._next_limit  # pyright: ignore[reportPrivateUsage]
        pages = 0

        def compact(limit: int, page: RangeReply) -> int:
            nonlocal pages
            pages += 1
            if pages == 1:
                etcd_server.ctl("put", "/of-others", "1")
                etcd_server.ctl("compact", str(etcd_server.revision()))
            return next_limit(limit, page)

        monkeypatch.setattr(store_module, "_next_limit", compact)
        assert list((await store.read("/")).entries) == ["/a", "/b", "/c"]
        assert pages == 3

        def always_compact(limit: int, page: RangeReply) -> int:
            etcd_server.ctl("put", "/of-others", "1")
            etcd_server.ctl("compact", str(etcd_server.revision()))
            return next_limit(limit, page)

        monkeypatch.setattr(store_module, "_next_limit", always_compact)
        with pytest.raises(StoreRefused, match="compacts its history faster than / can be read"):
            await store.read("/")


async def test_the_largest_commit_fits_into_etcd_under_the_longest_prefix(etcd_server: EtcdServer) -> None:
    address = etcd_server.address("/" + "p" * (PREFIX_SIZE_MAX - 1))
    names = [f"/{number:03}" for number in range(2 * OPERATIONS_MAX)]
    put, absent = names[:OPERATIONS_MAX], names[OPERATIONS_MAX:]
    size_bytes = (COMMIT_BYTES_MAX - 8 * OPERATIONS_MAX) // OPERATIONS_MAX
    async with etcd_store(address) as store:
        await store.commit(Txn(expect=dict.fromkeys(absent, 0), put=dict.fromkeys(put, bytes(size_bytes))))
        assert len((await store.read("/")).entries) == OPERATIONS_MAX
    etcd_server.clear(address)


async def test_what_etcd_refuses_is_said_in_its_words(etcd_server: EtcdServer) -> None:
    """Nothing of ours is over its limits, so this one is made small."""
    with EtcdServer("--max-request-bytes", "1000") as small:
        async with etcd_store(small.address()) as store:
            with pytest.raises(EtcdRefusal, match=r"etcd refuses: .*too large") as caught:
                await store.commit(Txn(put={"/a": bytes(2000)}))
            assert isinstance(caught.value, StoreRefused)
            assert (await store.read("/")).entries == {}


@pytest.mark.asyncio
async def test_an_etcd_that_was_emptied_is_noticed_by_whoever_knew_it() -> None:
    """By reading, by writing, and by a watch, which would wait for ever. Who did not know it takes it as it is."""
    with EtcdServer() as server:
        address = server.address("/emptied")
        async with (
            etcd_store(address) as reader,
            etcd_store(address) as writer,
            etcd_store(address) as watcher,
            etcd_store(address) as stranger,
        ):
            for number in range(4):
                await writer.commit(Txn(put={"/a": b"%d" % number}))
            revision = await writer.commit(Txn(put={"/a": b"4"}))
            await reader.read("/")
            async with asyncio.timeout(20), aclosing(watcher.watch("/", revision - 1)) as changes:
                assert (await anext(changes)).revision == revision
                waiting = asyncio.ensure_future(anext(changes))
                await asyncio.to_thread(server.members[0].kill)
                server.members[0].empty()
                await asyncio.to_thread(server.members[0].start)
                sentence = f"etcd is at revision [12], and was at {revision} before: it was restored"
                with pytest.raises(StoreWentBack, match=sentence):
                    await waiting
            with pytest.raises(StoreWentBack, match=sentence):
                await reader.read("/")
            with pytest.raises(StoreWentBack, match=sentence):
                await writer.commit(Txn(expect={"/a": revision}, put={"/a": b"x"}))
            assert (await stranger.read("/")).entries == {}


def test_grpc_is_not_imported_unless_a_store_is_on_etcd() -> None:
    """It takes a tenth of a second, and 15 MB."""
    modules = "odradek.cli, odradek.broker.launch.serve_command, odradek.broker.server"
    program = f"import sys, {modules}; sys.exit('grpc' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
