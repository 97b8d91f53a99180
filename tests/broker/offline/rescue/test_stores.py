"""Stores by their addresses: what can be opened is locked meanwhile, and what cannot is told."""

import pytest

from odradek.broker.cluster.embedded import FILE_NAME
from odradek.broker.cluster.store import StoreClosed, Txn
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.offline.adopt.claim import DirectoryRefused
from odradek.broker.offline.rescue.stores import opened
from processes.etcd_server import EtcdServer


async def test_an_embedded_store_is_opened_locked_and_closed() -> None:
    disk = MemoryDisk()
    async with opened("embedded:data", disk) as store:
        await store.commit(Txn(put={"/topics/t": b"{}"}))
        with pytest.raises(DirectoryRefused, match="another running broker holds the lock file"):
            async with opened("embedded:data", disk):
                raise AssertionError
    with pytest.raises(StoreClosed):
        await store.read("/")
    async with opened("embedded:data", disk) as store:
        assert list((await store.read("/")).entries) == ["/topics/t"]


async def test_what_cannot_be_opened_is_told_and_nothing_stays_locked() -> None:
    disk = MemoryDisk()
    for address in ("memory:", "embedded:", "data"):
        with pytest.raises(DirectoryRefused, match="is no address of a store that can be opened here"):
            async with opened(address, disk):
                raise AssertionError
    disk.make_dir("data")
    disk.write_whole(f"data/{FILE_NAME}", b"damaged")
    with pytest.raises(DirectoryRefused, match="can not be used"):
        async with opened("embedded:data", disk):
            raise AssertionError
    disk.lock("data/.lock").release()


async def test_a_store_on_etcd_is_opened_with_the_options_of_a_broker(etcd_server: EtcdServer) -> None:
    disk, address = MemoryDisk(), etcd_server.address()
    async with opened(address, disk) as store:
        await store.commit(Txn(put={"/topics/t": b"{}"}))
    with pytest.raises(StoreClosed):
        await store.read("/")
    async with opened(address, disk, {"metadata.request.timeout.ms": "5000"}) as store:
        assert list((await store.read("/")).entries) == ["/topics/t"]


@pytest.mark.parametrize(
    ("address", "options", "said"),
    [
        ("etcd://h:1", {}, "behind etcd's addresses there must be /prefix"),
        ("etcd://h:1/x", {"metadata.etcd.key.location": "k"}, "metadata.etcd.key.location come together"),
        ("etcd://h:1/x", {"no.such.option": "1"}, "no.such.option"),
    ],
)
async def test_what_is_wrong_with_an_address_or_an_option_is_told(
    address: str, options: dict[str, str], said: str
) -> None:
    with pytest.raises(DirectoryRefused, match=said):
        async with opened(address, MemoryDisk(), options):
            raise AssertionError


async def test_an_etcd_that_cannot_be_reached_is_an_error_of_the_system() -> None:
    async with opened("etcd://127.0.0.1:9/x", MemoryDisk(), {"metadata.request.timeout.ms": "1000"}) as store:
        with pytest.raises(OSError, match=r"no member of etcd \(127.0.0.1:9\) could be reached in time"):
            await store.read("/")
