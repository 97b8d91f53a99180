"""Leases of a store that is served: whom they outlive, when they end, and that they wait for no device."""

import asyncio
import errno
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.cluster.embedded import EmbeddedStore
from odradek.broker.cluster.memory import MemoryStore
from odradek.broker.cluster.socket_store.connection import Connection, ConnectionLost, connect
from odradek.broker.cluster.socket_store.messages import CommandRefused, Kind
from odradek.broker.cluster.socket_store.session import Session
from odradek.broker.cluster.socket_store.wire import Packer, encode_frame
from odradek.broker.cluster.state import Prepared
from odradek.broker.cluster.store import LeaseLost, Txn
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.runtime.tasks import Tasks
from tests.broker.cluster.socket_store.served import served_at, until


async def test_a_lost_connection_ends_no_lease(tmp_path: Path) -> None:
    async with served_at(tmp_path) as served:
        store = served.client()
        lease = await store.lease(2_000)
        await store.commit(Txn(put={"/brokers/1": b""}, lease=lease))
        served.cut_off()
        await served.environment.pass_time(1_900)
        await lease.renew()
        served.cut_off()
        await served.environment.pass_time(1_900)
        assert "/brokers/1" in (await store.read("/")).entries
        await served.environment.pass_time(200)
        assert "/brokers/1" not in (await store.read("/")).entries


async def test_a_process_that_is_gone_loses_its_leases_and_connections_at_once(tmp_path: Path) -> None:
    async with served_at(tmp_path) as served:
        store = served.client()
        lease = await store.lease(60_000)
        await store.commit(Txn(put={"/brokers/1": b""}, lease=lease))
        served.server.process_ended(os.getpid() + 1)
        assert len(served.server.sessions) == 1
        assert "/brokers/1" in (await store.read("/")).entries
        served.server.process_ended(os.getpid())
        assert "/brokers/1" not in (await store.read("/")).entries
        with pytest.raises(LeaseLost):
            await lease.renew()


async def test_after_a_standstill_leases_have_their_full_time(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with served_at(tmp_path) as served:
        store = served.client()
        lease = await store.lease(2_000)
        await store.commit(Txn(put={"/brokers/1": b""}, lease=lease))
        await served.environment.jump(3_600_000)
        await served.environment.pass_time(1_900)
        await lease.renew()
        await served.environment.pass_time(1_900)
        assert "/brokers/1" in (await store.read("/")).entries
        assert caplog.text.count("has stood still") == 1
        await served.environment.pass_time(200)
        with pytest.raises(LeaseLost):
            await lease.renew()


async def test_a_sync_of_ten_seconds_costs_no_lease_and_holds_no_read_up(tmp_path: Path) -> None:
    synced, tasks = asyncio.Event(), Tasks(asyncio.get_running_loop())

    async def sync(function: Callable[..., Any], *args: Any) -> None:
        await synced.wait()
        function(*args)

    embedded = EmbeddedStore.open(MemoryDisk(), "", run_blocking=sync, tasks=tasks)
    async with served_at(tmp_path, embedded) as served:
        store, other = served.client(60_000), served.client(60_000)
        lease = await other.lease(2_000)
        commits = [asyncio.ensure_future(store.commit(Txn(put={f"/{number}": b""}))) for number in range(3)]
        for _ in range(10):
            await served.environment.pass_time(1_000)
            async with asyncio.timeout(1):
                await lease.renew()
                assert (await other.read("/")).entries == {}
                assert (await store.read("/")).entries == {}
        assert not any(commit.done() for commit in commits)
        synced.set()
        assert await asyncio.gather(*commits) == [1, 2, 3]
        await lease.renew()
    await tasks.close()


class Full(MemoryStore):
    """A store whose device is full, for as long as one likes."""

    is_full = False

    async def _change(self, prepare: Callable[[], Prepared | None]) -> int:
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return await super()._change(prepare)


async def test_a_lease_that_cannot_be_deleted_is_deleted_when_there_is_room(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    full = Full()
    async with served_at(tmp_path, full) as served:
        store = served.client()
        ended, revoked = await store.lease(60_000), await store.lease(2_000)
        await store.commit(Txn(put={"/brokers/1": b""}, lease=ended))
        await store.commit(Txn(put={"/brokers/2": b""}, lease=revoked))
        full.is_full = True
        with pytest.raises(OSError, match="No space left") as caught:
            await revoked.revoke()
        assert caught.value.errno == errno.ENOSPC
        served.server.process_ended(os.getpid())
        await served.environment.pass_time(5_000)
        assert list((await store.read("/")).entries) == ["/brokers/1", "/brokers/2"]
        full.is_full = False
        await served.environment.pass_time(500)
        assert (await store.read("/")).entries == {}
        assert caplog.text.count("cannot be deleted") == 2


async def test_leases_of_one_server_mean_nothing_to_the_next(tmp_path: Path) -> None:
    async with served_at(tmp_path) as served:
        store = served.client()
        lease = await store.lease(2_000)
        await served.server.close()
        await served.serve(MemoryStore())
        for _ in range(10):
            assert (await served.client().lease(2_000)).lease_id != lease.lease_id
        with pytest.raises(LeaseLost):
            await lease.renew()


async def test_another_user_is_told_whom_the_store_serves(tmp_path: Path) -> None:
    async with served_at(tmp_path) as served:
        await served.server.close()
        await served.serve(MemoryStore(), user_id=os.geteuid() + 1)
        with pytest.raises(OSError, match=f"serves processes of user {os.geteuid() + 1} alone.*run it as that user"):
            await served.client().read("/")
        assert served.server.sessions == {}


@pytest.mark.parametrize(
    "said",
    [
        b"GET /metrics HTTP/1.1\r\n\r\n" + bytes(40),
        encode_frame(Kind.READ, 1, Packer().text("/").body()),
        encode_frame(Kind.HELLO, 1, Packer().text("odradek store").body()),
        encode_frame(Kind.HELLO, 1, Packer().text("odradek store").u32(1).body()) + encode_frame(99, 2),
    ],
)
async def test_what_cannot_be_read_is_cut_off(tmp_path: Path, said: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async with served_at(tmp_path) as served:
        reader, writer = await asyncio.open_unix_connection(served.path)
        writer.write(said)
        async with asyncio.timeout(5):
            with suppress(ConnectionError):  # an abort may be seen as a reset
                await reader.read()
        writer.close()
        assert "is cut off" in caplog.text


async def test_another_release_is_told_that_the_two_do_not_fit(tmp_path: Path) -> None:
    async with served_at(tmp_path) as served:
        reader, writer = await asyncio.open_unix_connection(served.path)
        writer.write(encode_frame(Kind.HELLO, 1, Packer().text("odradek store").u32(2).body()))
        said = await reader.read()
        assert said[4] == Kind.REFUSED
        assert b"start the whole cluster again" in said
        writer.close()


async def test_a_command_is_the_owners_to_do(tmp_path: Path) -> None:
    async def lines(connection: Connection, command: str) -> list[str]:
        return [line async for line in connection.command(command)]

    async with served_at(tmp_path) as served:
        connection = await connect(served.path, asyncio.get_running_loop())
        with pytest.raises(CommandRefused, match="nobody here does roll"):
            await lines(connection, "roll")

        async def on_command(command: str) -> AsyncGenerator[str]:
            yield command
            yield "and on"
            if command == "fail":
                raise CommandRefused("not now")

        served.server.on_command = on_command
        assert await lines(connection, "roll") == ["roll", "and on"]
        with pytest.raises(CommandRefused, match="not now"):
            await lines(connection, "fail")
        connection.close()
        with pytest.raises(ConnectionLost):
            await lines(connection, "roll")


async def test_a_session_that_is_over_holds_nothing(tmp_path: Path) -> None:
    async with served_at(tmp_path) as served:
        store = served.client()
        watching = asyncio.ensure_future(anext(store.watch("/", 0), None))
        await store.read("/")
        sessions: list[Session] = list(served.server.sessions)
        assert len(served.server.tasks) == 2  # the beat, and the watch
        await store.close()
        assert await watching is None
        await until(lambda: not served.server.sessions and len(served.server.tasks) == 1)
        assert len(sessions) == 1
