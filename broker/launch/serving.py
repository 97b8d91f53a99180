"""A broker within another program, in its event loop; serving_in_thread.py has one with a loop of its own.

    async with serving(memory=True) as broker:
        producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers)

The process stays the program's: no signal handlers, nothing printed, no event loop policy, nothing changed in the
interpreter. There may be any number of them. When one is closed, its tasks, sockets, threads and files are gone.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from typing import Final

from odradek.broker.cluster.open_store import open_shared_store, wait_for_store
from odradek.broker.config.broker_config import BrokerConfig, ConfigError
from odradek.broker.config.settings import Settings
from odradek.broker.disk.file_disk import FileDisk
from odradek.broker.launch import protection
from odradek.broker.launch.broker_settings import settings_of
from odradek.broker.launch.listen_options import parse_address
from odradek.broker.launch.memory_defaults import with_defaults
from odradek.broker.server import Broker, disk_for
from odradek.broker.startup_errors import BrokerFailed
from odradek.runtime.environment import Environment

__all__ = ["ServedBroker", "running", "serving"]

HELPER_THREADS: Final = 16
"""Half of them for syncs at most (replica/syncs.py), the others for cold reads, compaction and what else waits. Those
that are never needed never begin."""
ANY_PORT: Final = "127.0.0.1:0"


class ServedBroker:
    """A broker that accepts connections."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.bootstrap_servers: Final = str(next(iter(broker.endpoints.values())))
        """HOST:PORT of its first listener, as clients are told it."""
        self.node_id: Final = broker.settings.node_id
        self.metrics_port: Final = broker.metrics_port
        """0: there is no page."""

    @property
    def failure(self) -> str | None:
        """Why it cannot go on, and answers nothing more of use; None for a healthy one."""
        return self._broker.failure


@asynccontextmanager
async def serving(
    data_dir: str | os.PathLike[str] | None = None,
    *,
    memory: bool = False,
    listen: str = ANY_PORT,
    node_id: int = 0,
    metrics: str | None = None,
    config: Mapping[str, str] | None = None,
) -> AsyncGenerator[ServedBroker]:
    """A broker in this event loop, for as long as the block runs.

    `data_dir`: where its logs are kept; or `memory`: nowhere. `listen`: HOST:PORT, of which port 0 is any free one.
    `metrics`: HOST:PORT of the page for Prometheus. `config`: options under Kafka's names, such as
    `{"num.partitions": "3"}`.

    Raises ConfigError, StartRefused and other errors of a broker that cannot start, with a sentence each, OSError; and
    BrokerFailed at the end, if it could not go on.
    """
    settings = _settings(data_dir, memory=memory, listen=listen, node_id=node_id, metrics=metrics, config=config or {})
    environment = Environment()
    environment.allow_helper_threads(HELPER_THREADS)
    try:
        async with running(settings, environment, asyncio.Event()) as broker:
            assert broker is not None, "nobody stops it while it waits for the store"
            yield ServedBroker(broker)
    finally:
        environment.end_helper_threads()


@asynccontextmanager
async def running(
    settings: Settings,
    environment: Environment,
    stop: asyncio.Event,
    starting: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> AsyncGenerator[Broker | None]:
    """A broker with these settings, started and in the end stopped, and its store, if it is a shared one. None if
    `stop` was set before that store answered. `starting`: entered while it starts.

    Raises what `Broker.start` raises, and BrokerFailed at the end, if it could not go on.
    """
    disk = FileDisk()
    store = await open_shared_store(settings.config, environment, disk)
    timeout_ms = settings.config.initial_broker_registration_timeout_ms
    try:
        if store is not None and not await wait_for_store(store, environment, timeout_ms, stop):
            yield None
            return
        broker = Broker(settings, environment, disk_for(settings, disk), store=store)
        with starting():
            await broker.start()
        protection.tell(settings.listeners, settings.config, settings.metrics)
        try:
            yield broker
        finally:
            await broker.stop()
        if broker.failure is not None:
            raise BrokerFailed(broker.failure)
    finally:
        if store is not None:
            await store.close()


def _settings(
    data_dir: str | os.PathLike[str] | None,
    *,
    memory: bool,
    listen: str,
    node_id: int,
    metrics: str | None,
    config: Mapping[str, str],
) -> Settings:
    if memory == (data_dir is not None):
        raise ConfigError("give either data_dir, where the logs are kept, or memory=True")
    static = {**config, "listeners": str(parse_address(listen, "listen")), "node.id": str(node_id)}
    if data_dir is not None:
        static["log.dirs"] = os.fspath(data_dir)
    return settings_of(BrokerConfig(with_defaults(static, memory=memory)), memory, metrics)
