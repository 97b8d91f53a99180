"""The metadata store of brokers in processes of their own: of the process that starts them, or a given etcd."""

import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

from odradek.broker.cluster.open_store import open_shared_store
from odradek.broker.cluster.store import OPERATIONS_MAX, MetadataStore, Txn
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.disk.file_disk import FileDisk
from odradek.broker.launch.cluster_directory import broker_ids, leave_out, registered_ids
from odradek.broker.launch.supervisor.run_supervisor import served_store
from odradek.broker.launch.supervisor.supervisor import BrokersStore
from odradek.runtime.environment import Environment
from odradek.testing.cluster_options import ClusterOptions

PREFIX: Final = "/odradek-test-"


class EtcdAddress:
    """A `BrokersStore` of which this process knows the address alone: it ends no lease, etcd's clock does."""

    def __init__(self, address: str) -> None:
        self.address: Final = address

    def process_ended(self, pid: int) -> None:
        """Nothing: the leases of a broker that was killed end when their time is over."""


@asynccontextmanager
async def opened_store(
    options: ClusterOptions, static: Mapping[str, str], data_dir: str, environment: Environment
) -> AsyncGenerator[tuple[BrokersStore, Sequence[int]]]:
    """The one that is asked for, and the ids of the brokers that are to run on it. Raises StartRefused, StoreDamaged,
    ConfigError, OSError."""
    if options.etcd is None:
        async with served_store(data_dir, environment) as (server, _):
            # A directory may have had a cluster before.
            ids = broker_ids(await registered_ids(server.store), options.brokers)
            await leave_out(server.store, ids, data_dir)
            yield server, ids
    else:
        async with _store_of_etcd(options.etcd, static, environment) as etcd:
            yield etcd, range(1, options.brokers + 1)


@asynccontextmanager
async def _store_of_etcd(
    etcd: str, static: Mapping[str, str], environment: Environment
) -> AsyncGenerator[BrokersStore]:
    """In a given etcd, HOST:PORT of its members. Under a prefix of its own, of which nothing is left; or under the one
    that is given behind them, which is kept. Raises ConfigError, OSError where it does not answer."""
    is_kept = "/" in etcd
    address = f"etcd://{etcd}" if is_kept else f"etcd://{etcd}{PREFIX}{os.urandom(8).hex()}"
    config = BrokerConfig({**static, "metadata.store": address})
    store = await open_shared_store(config, environment, FileDisk())
    assert store is not None, "etcd is one that is shared"
    try:
        await store.read("")  # lest each broker wait for one that is not there
        try:
            yield EtcdAddress(address)
        finally:
            if not is_kept:
                await _forget(store)
    finally:
        await store.close()


async def _forget(store: MetadataStore) -> None:
    keys = list((await store.read("")).entries)
    for begin in range(0, len(keys), OPERATIONS_MAX):
        await store.commit(Txn(delete=tuple(keys[begin : begin + OPERATIONS_MAX])))
