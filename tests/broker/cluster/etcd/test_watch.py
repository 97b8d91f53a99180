"""Watches of a real etcd: through compactions, restarts and silence, and with changes larger than a reply."""

import asyncio
import logging
from collections.abc import Generator
from contextlib import aclosing, contextmanager

import pytest

from odradek.broker.cluster.etcd.store import EtcdStore
from odradek.broker.cluster.store import Change, Compacted, Event, Snapshot, Txn
from processes.etcd_server import EtcdServer
from processes.etcd_stores import etcd_store, told
from tests.broker.cluster.etcd.relay import relay

pytestmark = pytest.mark.asyncio


def applied(snapshot: Snapshot, events: tuple[Event, ...]) -> dict[str, bytes]:
    state = {key: entry.value for key, entry in snapshot.entries.items()}
    for event in events:
        if event.value is None:
            state.pop(event.key, None)
        else:
            state[event.key] = event.value
    return state


@contextmanager
def saying(text: str) -> Generator[asyncio.Event]:
    """An event that is set when the watch logs a text."""
    event = asyncio.Event()

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if text in record.getMessage():
                event.set()

    listener, logger = Listener(), logging.getLogger("odradek.broker.cluster.etcd.watch")
    logger.addHandler(listener)
    try:
        yield event
    finally:
        logger.removeHandler(listener)


async def state_of(store: EtcdStore) -> dict[str, bytes]:
    return {key: entry.value for key, entry in (await store.read("/")).entries.items()}


async def test_a_watch_from_before_a_compaction_is_told_so_and_reading_again_helps(etcd_server: EtcdServer) -> None:
    async with etcd_store(etcd_server.address()) as store:
        first = await store.commit(Txn(put={"/a": b"1", "/b": b"1"}))
        await store.commit(Txn(put={"/a": b"2"}, delete=("/b",)))
        last = await store.commit(Txn(put={"/c": b"3"}))
        etcd_server.ctl("compact", str(last))
        async with aclosing(store.watch("/", first)) as changes:
            with pytest.raises(Compacted, match="compacted what changed before revision"):
                await anext(changes)
        snapshot = await store.read("/")
        async with aclosing(store.watch("/", snapshot.revision)) as changes:
            await store.commit(Txn(put={"/d": b"4"}))
            change = await anext(changes)
        assert applied(snapshot, change.events) == await state_of(store) == {"/a": b"2", "/c": b"3", "/d": b"4"}


async def test_a_watch_that_is_where_etcd_is_goes_on_through_a_compaction(etcd_server: EtcdServer) -> None:
    async with etcd_store(etcd_server.address()) as store:
        revision = await store.commit(Txn(put={"/a": b"1"}))
        async with aclosing(store.watch("/", revision)) as changes:
            for number in range(3):
                done = await store.commit(Txn(put={"/a": b"%d" % number}))
                assert (await anext(changes)).revision == done
                etcd_server.ctl("compact", str(done))


@pytest.mark.slow
async def test_a_watch_goes_on_where_it_was_when_etcd_was_restarted(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is lost or told twice, though changes were made while it could not be told."""
    caplog.set_level(logging.INFO)
    with EtcdServer() as server:
        async with etcd_store(server.address()) as store, etcd_store(server.address("/test-1")) as writer:
            revision = await store.commit(Txn(put={"/n": b"0"}))
            async with asyncio.timeout(30), aclosing(store.watch("/", revision)) as changes:
                revision = await write(writer, 1)
                assert (await anext(changes)).revision == revision
                waiting = asyncio.ensure_future(anext(changes))
                for kill in (server.members[0].kill, server.members[0].stop):
                    await asyncio.to_thread(kill)
                    await asyncio.to_thread(server.members[0].start)
                    server.ctl("put", "/test-1/n", "2")
                    server.ctl("put", "/test-1/n", "3")
                    assert await waiting == Change(revision, ()), "it says first that it was lost"
                    assert [event.value for event in (await anext(changes)).events] == [b"2"]
                    assert [event.value for event in (await anext(changes)).events] == [b"3"]
                    revision += 2
                    waiting = asyncio.ensure_future(anext(changes))
                waiting.cancel()
    said = [record.getMessage() for record in caplog.records if record.name.startswith("odradek.broker.cluster.etcd")]
    assert len([text for text in said if "do not come, and are asked for again" in text]) == 2
    assert len([text for text in said if "come again" in text]) == 2


async def write(store: EtcdStore, number: int) -> int:
    return await store.commit(Txn(put={"/n": b"%d" % number}))


async def test_a_change_larger_than_a_reply_comes_whole(etcd_server: EtcdServer) -> None:
    """Many changes of 0.9 MB, each of 90 keys: behind, so that etcd sends them together and in fragments."""
    async with etcd_store(etcd_server.address()) as store:
        revision = (await store.read("/")).revision
        names = [f"/{number:02}" for number in range(90)]
        done = [await store.commit(Txn(put={name: bytes([round_]) * 10_000 for name in names})) for round_ in range(8)]
        async with asyncio.timeout(30), aclosing(store.watch("/", revision)) as changes:
            for round_, expected in enumerate(done):
                change = await anext(changes)
                assert change.revision == expected
                assert [event.key for event in change.events] == names
                assert {event.value for event in change.events} == {bytes([round_]) * 10_000}


async def test_a_silent_stream_is_replaced(etcd_server: EtcdServer) -> None:
    """What comes back vanishes, and the connection stands: it is noticed all the same."""
    address = etcd_server.address()
    prefix = address.rpartition("/")[2]
    options = {"metadata.request.timeout.ms": "300"}
    async with (
        relay(etcd_server.members[0].port) as wire,
        etcd_store(address) as writer,
        etcd_store(f"etcd://127.0.0.1:{wire.port}/{prefix}", options) as store,
    ):
        revision = await write(writer, 0)
        async with asyncio.timeout(20), aclosing(store.watch("/", revision)) as changes:
            await write(writer, 1)
            await anext(changes)
            with saying("nothing was heard for 600 ms") as said:
                wire.drops_answers = True
                waiting = asyncio.ensure_future(told(changes))
                await write(writer, 2)
                await said.wait()
            wire.drops_answers = False
            wire.cut()
            assert [event.value for event in (await waiting).events] == [b"2"]


async def test_a_connection_that_nobody_answers_is_given_up(etcd_server: EtcdServer) -> None:
    """Another one would do, as after a firewall has lost its table: gRPC's pings tell, after eight seconds at most."""
    address = etcd_server.address()
    prefix = address.rpartition("/")[2]
    async with (
        relay(etcd_server.members[0].port) as wire,
        etcd_store(address) as writer,
        etcd_store(f"etcd://127.0.0.1:{wire.port}/{prefix}", {"metadata.request.timeout.ms": "300"}) as store,
    ):
        revision = await write(writer, 0)
        async with asyncio.timeout(60), aclosing(store.watch("/", revision)) as changes:
            await write(writer, 1)
            await anext(changes)
            wire.leave()
            await write(writer, 2)
            assert [event.value for event in (await told(changes)).events] == [b"2"]


async def test_signs_of_life_keep_a_quiet_stream(etcd_server: EtcdServer, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing changes for many times the silence that is allowed, and nobody complains."""
    async with etcd_store(etcd_server.address(), {"metadata.request.timeout.ms": "400"}) as store:
        revision = await write(store, 0)
        async with aclosing(store.watch("/", revision)) as changes:
            waiting = asyncio.ensure_future(anext(changes))
            await asyncio.wait([waiting], timeout=2.0)
            await write(store, 1)
            assert [event.value for event in (await waiting).events] == [b"1"]
    assert "do not come" not in caplog.text


async def test_a_slow_watcher_is_waited_for(etcd_server: EtcdServer) -> None:
    """What it has not taken yet is not read ahead without bound, and a full store of it is no silence."""
    async with etcd_store(etcd_server.address(), {"metadata.request.timeout.ms": "100"}) as store:
        revision = await write(store, 0)
        async with aclosing(store.watch("/", revision)) as changes:
            await write(store, 1)
            seen = [(await anext(changes)).events[0].value]
            for number in range(2, 60):
                await write(store, number)
            await asyncio.sleep(0.5)  # five times as long as a silence may be
            seen += [(await anext(changes)).events[0].value for _ in range(2, 60)]
        assert seen == [b"%d" % number for number in range(1, 60)]
