"""Several members, of which some are gone, hang, or do not belong together."""

import asyncio
from collections.abc import Iterator
from contextlib import aclosing

import pytest

from odradek.broker.cluster.etcd.store import EtcdStore
from odradek.broker.cluster.store import Conflict, StoreRefused, Txn, Unknown, Unreachable
from processes.etcd_process import Etcd
from processes.etcd_server import EtcdServer
from processes.etcd_stores import etcd_store
from processes.free_ports import free_ports

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]

PATIENT = {"metadata.request.timeout.ms": "4000"}
COMMITTED_S = 0.3
"""Three times as long as etcd takes at most to commit what has been written."""


@pytest.fixture(scope="module")
def three() -> Iterator[EtcdServer]:
    """Three members. A test that takes one down brings it back."""
    with EtcdServer("--heartbeat-interval", "50", "--election-timeout", "500", members=3) as server:
        yield server


async def kill(*members: Etcd) -> None:
    """SIGKILL, when what was written is committed. etcd 3.5.1 notes an entry as applied before it is, so that a member
    that is killed in between goes on without it for good (etcd-io/etcd#13766): every later transaction that depends on
    it does nothing there, and the member stays at its revision. etcd 3.5.3 does not."""
    await asyncio.sleep(COMMITTED_S)  # nobody tells of a commit, and nothing is written meanwhile
    for member in members:
        await asyncio.to_thread(member.kill)


async def increment(store: EtcdStore, times: int) -> None:
    """Counts up by conditional commits. What is unknown is read back before anything else."""
    for _ in range(times):
        entry = (await store.read("/n")).entries["/n"]
        value = b"%d" % (int(entry.value) + 1)
        while True:
            try:
                await store.commit(Txn(expect={"/n": entry.revision}, put={"/n": value}))
                break
            except (Unknown, Unreachable, Conflict):
                if (await store.read("/n")).entries["/n"].value == value:
                    break


async def count_through(server: EtcdServer, member: Etcd, *, hangs: bool) -> None:
    """Counting, renewing and watching go on while a member is down, and the count is right at the end."""
    async with etcd_store(server.address(), PATIENT) as store:
        lease = await store.lease(10_000)
        revision = await store.commit(Txn(put={"/n": b"0"}, lease=lease))
        async with asyncio.timeout(60), aclosing(store.watch("/", revision)) as changes:
            await increment(store, 20)
            if hangs:
                member.pause()
            else:
                await kill(member)
            try:
                await increment(store, 20)
                await lease.renew()
            finally:
                if hangs:
                    member.resume()
                else:
                    await asyncio.to_thread(member.start)
            await increment(store, 20)
            seen = [(await anext(changes)).events for _ in range(60)]
        assert [event.value for (event,) in seen] == [b"%d" % number for number in range(1, 61)]
        await lease.revoke()


@pytest.mark.parametrize("hangs", [False, True], ids=["killed", "hangs"])
async def test_the_leader_may_go(three: EtcdServer, hangs: bool) -> None:
    await count_through(three, three.leader(), hangs=hangs)


@pytest.mark.parametrize("hangs", [False, True], ids=["killed", "hangs"])
async def test_a_follower_may_go(three: EtcdServer, hangs: bool) -> None:
    leader = three.leader()
    await count_through(three, next(member for member in three.members if member is not leader), hangs=hangs)


async def test_the_member_that_is_asked_may_hang(three: EtcdServer) -> None:
    """Its connection stands, so only time tells. What may be repeated is answered by another within the same call."""
    async with etcd_store(three.address(), PATIENT) as store:
        lease = await store.lease(10_000)
        await store.commit(Txn(put={"/n": b"0"}, lease=lease))
        for _ in range(2):
            asked = store._client.members.asked  # pyright: ignore[reportPrivateUsage]
            (member,) = [member for member in three.members if member.port == asked.endpoint.port]
            member.pause()
            try:
                await lease.renew()
                await store.read("/")
                await increment(store, 3)
            finally:
                member.resume()
        assert (await store.read("/n")).entries["/n"].value == b"6"
        await lease.revoke()


async def test_members_that_are_down_from_the_start_are_passed_over(three: EtcdServer) -> None:
    """One that refuses and one that does not exist, whichever is asked first."""
    gone = f"127.0.0.1:{free_ports(1)[0]},no-such-host.invalid"
    for address in (
        f"etcd://{gone},127.0.0.1:{three.members[0].port}/x",
        f"etcd://127.0.0.1:{three.members[0].port},{gone}/x",
    ):
        for _ in range(3):
            async with etcd_store(address) as store:
                await store.read("/")


async def test_without_a_majority_nothing_is_answered_and_the_first_answer_comes_with_it(three: EtcdServer) -> None:
    one, two, _ = three.members
    async with etcd_store(three.address(), {"metadata.request.timeout.ms": "1000"}) as store:
        revision = await store.commit(Txn(put={"/a": b"1"}))
        await kill(one, two)
        with pytest.raises((Unknown, Unreachable)):
            await store.commit(Txn(expect={"/a": revision}, put={"/a": b"2"}))
        with pytest.raises((Unknown, Unreachable)):
            await store.read("/")
        one.launch()
        two.launch()
        await asyncio.to_thread(one.wait_until_ready)
        await asyncio.to_thread(two.wait_until_ready)
        assert (await store.read("/")).entries["/a"].value in (b"1", b"2")


async def test_members_of_different_clusters_are_refused_before_anything_is_written(etcd_server: EtcdServer) -> None:
    with EtcdServer() as other:
        ports = [server.members[0].port for server in (etcd_server, other)]
        async with etcd_store(f"etcd://127.0.0.1:{ports[0]},127.0.0.1:{ports[1]}/both") as store:
            await store.commit(Txn(put={"/a": b"1"}))
            (chosen,) = [server for server in (etcd_server, other) if server.ctl("get", "/both/a")]
            await asyncio.to_thread(chosen.members[0].pause)
            try:
                with pytest.raises(Unknown):
                    await store.commit(Txn(put={"/a": b"2"}))
                with pytest.raises(StoreRefused, match="belongs to another etcd cluster than the others"):
                    await store.commit(Txn(put={"/a": b"3"}))
            finally:
                chosen.members[0].resume()
        (spared,) = [server for server in (etcd_server, other) if server is not chosen]
        assert spared.ctl("get", "/both/a") == ""
    etcd_server.ctl("del", "/both/a")
