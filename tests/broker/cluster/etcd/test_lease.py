"""Leases of a real etcd: their time, their end, and keeping them through the loss of a connection.

That keys vanish with their lease is in the contract's suite.
"""

import asyncio
from contextlib import aclosing

import pytest

from odradek.broker.cluster.store import LeaseLost, Txn, Unknown
from processes.etcd_server import EtcdServer
from processes.etcd_stores import etcd_store
from tests.broker.cluster.etcd.relay import relay

pytestmark = pytest.mark.asyncio


async def test_time_is_granted_in_whole_seconds_and_two_at_least(etcd_server: EtcdServer) -> None:
    async with etcd_store(etcd_server.address()) as store:
        for asked_ms, granted_ms in ((1000, 2000), (2000, 2000), (2001, 3000), (60_000, 60_000)):
            lease = await store.lease(asked_ms)
            assert lease.ttl_ms == granted_ms
            assert lease.lapses
            await lease.revoke()


async def test_a_lease_that_is_renewed_outlives_its_time(etcd_server: EtcdServer) -> None:
    """Two leases: one is renewed until the other one's key has vanished, and keeps its own."""
    async with etcd_store(etcd_server.address()) as store:
        kept, lost = await store.lease(1000), await store.lease(1000)
        await store.commit(Txn(put={"/kept": b""}, lease=kept))
        revision = await store.commit(Txn(put={"/lost": b""}, lease=lost))
        async with aclosing(store.watch("/", revision)) as changes:
            vanished = asyncio.ensure_future(anext(changes))
            while not vanished.done():
                await kept.renew()
                await asyncio.wait([vanished], timeout=0.3)
            assert [(event.key, event.value) for event in (await vanished).events] == [("/lost", None)]
        await kept.renew()
        assert list((await store.read("/")).entries) == ["/kept"]
        with pytest.raises(LeaseLost, match="has ended"):
            await lost.renew()
        await lost.revoke()
        await kept.revoke()


async def test_renewing_survives_a_connection_that_is_reset(etcd_server: EtcdServer) -> None:
    async with relay(etcd_server.members[0].port) as wire, etcd_store(f"etcd://127.0.0.1:{wire.port}/x") as store:
        lease = await store.lease(60_000)
        for _ in range(3):
            await lease.renew()
            wire.cut()
        await lease.renew()
        await lease.revoke()


@pytest.mark.parametrize(("request_ms", "lease_ms"), [(20_000, 2000), (1000, 60_000)])
async def test_a_renewal_without_an_answer_ends_while_there_is_time_for_another(
    etcd_server: EtcdServer, request_ms: int, lease_ms: int
) -> None:
    """After a quarter of the lease's time, if a request may take longer; then after half of it, for a slow etcd."""
    options = {"metadata.request.timeout.ms": str(request_ms)}
    async with (
        relay(etcd_server.members[0].port) as wire,
        etcd_store(f"etcd://127.0.0.1:{wire.port}/x", options) as store,
    ):
        lease = await store.lease(lease_ms)
        wire.drops_answers = True
        for limit_ms in (min(request_ms, lease_ms // 4), min(request_ms, lease_ms // 2)):
            before = asyncio.get_running_loop().time()
            with pytest.raises(Unknown, match=f"within {limit_ms} ms"):
                await lease.renew()
            assert asyncio.get_running_loop().time() - before < 1.8 * limit_ms / 1000
        wire.drops_answers = False
        wire.cut()
        await lease.renew()
        await lease.revoke()
