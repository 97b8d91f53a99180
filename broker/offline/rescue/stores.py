"""Opens a metadata store by its address, as the option `metadata.store` has it, for who is no broker.

embedded:DIR                            `metadata.log` in a data directory, which is locked meanwhile
unix:PATH                               the socket of the process that has the store of a running cluster
etcd://HOST:PORT,HOST:PORT/prefix       an etcd cluster, with the broker's options for it (`metadata.etcd.…`)
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

from odradek.broker.cluster.embedded import EmbeddedStore
from odradek.broker.cluster.open_store import open_shared_store
from odradek.broker.cluster.store import MetadataStore, StoreDamaged
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.option import ConfigError
from odradek.broker.disk.disk import Disk
from odradek.broker.offline.adopt.claim import DirectoryRefused, locked
from odradek.runtime.environment import Environment

NO_OPTIONS: Mapping[str, str] = {}


@asynccontextmanager
async def opened(address: str, disk: Disk, options: Mapping[str, str] = NO_OPTIONS) -> AsyncGenerator[MetadataStore]:
    """The store, until the end of the block. `options`: of a broker that uses it, by name.

    Raises DirectoryRefused (any store that cannot be opened), OSError.
    """
    scheme, _, rest = address.partition(":")
    if scheme in ("etcd", "unix"):
        async with _shared({**options, "metadata.store": address}, disk) as store:
            yield store
        return
    if scheme != "embedded" or not rest:
        raise DirectoryRefused(
            f"{address} is no address of a store that can be opened here: write embedded:DIR, unix:PATH, or "
            "etcd://HOST:PORT,HOST:PORT/prefix"
        )
    disk.make_dir(rest)
    with locked(disk, rest):
        embedded = _embedded(disk, rest)
        try:
            yield embedded
        finally:
            await embedded.close()


@asynccontextmanager
async def _shared(options: Mapping[str, str], disk: Disk) -> AsyncGenerator[MetadataStore]:
    """Raises DirectoryRefused, OSError."""
    try:
        store = await open_shared_store(BrokerConfig(options), Environment(), disk)
    except ConfigError as error:
        raise DirectoryRefused(error.message) from error
    assert store is not None, "the address is one of a store that is shared"
    try:
        yield store
    finally:
        await store.close()


def _embedded(disk: Disk, directory: str) -> EmbeddedStore:
    try:
        return EmbeddedStore.open(disk, directory)
    except StoreDamaged as error:
        raise DirectoryRefused(str(error)) from error
