"""The metadata store that several brokers share, opened by its address: that of another process of this machine, or
etcd, which is an extra of the installation."""

import asyncio
import logging
from typing import Final

from odradek.broker.cluster.keys import CLUSTER_KEY
from odradek.broker.cluster.store import MetadataStore
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.option import ConfigError
from odradek.broker.config.store_address import parse_store_address
from odradek.broker.disk.disk import Disk
from odradek.runtime.environment import Environment

logger = logging.getLogger(__name__)

RETRY_MS: Final = 100.0


async def open_shared_store(config: BrokerConfig, environment: Environment, disk: Disk) -> MetadataStore | None:
    """The store that `metadata.store` names; None where that is one of a single process. Nothing is sent yet.

    Raises ConfigError, with a sentence that says what to do, and OSError for files that cannot be read.
    """
    address = parse_store_address(config.metadata_store)
    if address.kind == "unix":
        from odradek.broker.cluster.socket_store.store import SocketStore

        return SocketStore(environment, address.path, config.metadata_request_timeout_ms)
    if address.kind != "etcd":
        return None
    try:
        from odradek.broker.cluster.etcd.store import open_etcd
    except ImportError as error:
        raise ConfigError(f"etcd needs the extra odradek[etcd]: {error}; pip install 'odradek[etcd]'") from error
    return await open_etcd(environment, config, disk)


async def wait_for_store(
    store: MetadataStore, environment: Environment, timeout_ms: float, stop: asyncio.Event
) -> bool:
    """Returns True when the store has answered: a machine that boots may start it after its brokers. False when `stop`
    was set before. Raises OSError, the store's last one, after `timeout_ms`."""
    deadline_ms = environment.monotonic_ms() + timeout_ms
    is_said = False
    while not stop.is_set():
        try:
            await store.read(CLUSTER_KEY)
            return True
        except OSError as error:
            if environment.monotonic_ms() >= deadline_ms:
                raise
            if not is_said:
                logger.warning("the start waits for the metadata store, %g s at most: %s", timeout_ms / 1000, error)
                is_said = True
        try:
            async with asyncio.timeout(RETRY_MS / 1000):
                await stop.wait()
        except TimeoutError:
            continue
    return False
