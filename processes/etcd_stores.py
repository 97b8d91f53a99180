"""Stores on an etcd that runs for tests, opened as a broker opens its own."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from odradek.broker.cluster.etcd.store import EtcdStore, open_etcd
from odradek.broker.cluster.store import Change
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.disk.file_disk import FileDisk
from odradek.runtime.environment import Environment


@asynccontextmanager
async def etcd_store(address: str, options: dict[str, str] | None = None) -> AsyncGenerator[EtcdStore, None]:
    """`options`: of the broker, beside `metadata.store`."""
    config = BrokerConfig({"metadata.store": address, **(options or {})})
    store = await open_etcd(Environment(), config, FileDisk())
    try:
        yield store
    finally:
        await store.close()


async def told(changes: AsyncGenerator[Change, None]) -> Change:
    """The next change of a watch that has events: another one says that the way was lost and found again."""
    while not (change := await anext(changes)).events:
        pass
    return change
