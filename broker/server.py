"""The composition root: puts a broker together from its parts, starts it, and stops it cleanly.

Start: lock the directory → who are we (`meta.properties`) → does the metadata belong here → the metadata store → listen
(bound, not yet accepting) → register → finish what a crash interrupted → lead again at new epochs → open the logs →
accept.
Stop: no new requests → running ones answered → logs flushed → store closed → lock given back.
"""

import asyncio
import errno
import logging
import os
import posixpath
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from broker import meta_properties
from broker.cluster.embedded import EmbeddedStore
from broker.cluster.image import ClusterImage, Delta
from broker.cluster.journal import Journal
from broker.cluster.keys import (
    CLUSTER_KEY,
    CONTROLLER_KEY,
    BrokerState,
    broker_key,
    decode_cluster,
    encode_cluster,
    encode_controller,
)
from broker.cluster.memory import MemoryStore
from broker.cluster.store import MetadataStore, Txn
from broker.cluster.topics import sweep_leftovers
from broker.config import BrokerConfig
from broker.connection import Connection, ConnectionTable
from broker.context import Context, Endpoint
from broker.controller.elections import lead_again
from broker.disk import Disk, Lock, socket_budget
from broker.fetch_sessions import FetchSessions
from broker.listeners import Listener
from broker.log.checkpoint import CorruptCheckpoint
from broker.loop_lag import LoopLag
from broker.memory_disk import MemoryDisk
from broker.meta_properties import MetaProperties
from broker.metadata import Metadata
from broker.metadata_revision import RecordedRevision, check_metadata
from broker.metrics import Metrics
from broker.metrics_page import Collector, MetricsPage
from broker.partitions import Partitions
from broker.request_memory import RequestMemory
from broker.served import BY_KEY
from broker.txn.producer_ids import ProducerIds
from broker.upkeep import Upkeep
from client.environment import Environment
from client.tasks import Tasks
from protocol.schema import ZERO_UUID, uuid_from_text, uuid_text

logger = logging.getLogger(__name__)

LOCK_FILE = ".lock"
LEASE_MS = 2000
IDLE_CHECK_S = 1.0
STOP_S = 4.0
"""How long running requests may take to end when the broker stops; what is left of the five seconds is for the logs."""


class StartRefused(Exception):
    """The broker cannot start as it was told to; one sentence says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the command line decides. `data_dir` None keeps everything in memory."""

    listeners: list[Listener]
    advertised: dict[str, Listener]
    data_dir: str | None
    node_id: int
    config: BrokerConfig
    metrics: Listener | None = None


@dataclass(slots=True)
class _Listening:
    """A bound listener."""

    listener: Listener
    server: asyncio.AbstractServer
    port: int


class Broker:
    """One broker of this process."""

    def __init__(self, settings: Settings, environment: Environment, disk: Disk) -> None:
        self.settings = settings
        self.environment = environment
        self.disk = disk
        self.context: Context  # from here on set by `start()`
        self.memory: RequestMemory
        self.connections: ConnectionTable
        self._revision: RecordedRevision
        self.metrics_port = 0
        self._directory_id = ZERO_UUID
        self._is_composed = False
        self._tasks = Tasks(environment.loop)
        self._upkeep = Tasks(environment.loop)
        self._listening: list[_Listening] = []
        self._metrics_server: asyncio.AbstractServer | None = None
        self._loop_lag: LoopLag | None = None
        self._lock: Lock | None = None
        self._store: MetadataStore | None = None
        self._idle_timer: asyncio.TimerHandle | None = None

    # -- start --------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Returns once connections are accepted. Raises StartRefused, ForeignDirectory, StoreDamaged,
        MalformedMetadata, OSError; what was opened until then is closed again."""
        try:
            await self._start()
        except BaseException:
            await self._abandon()
            raise

    async def _start(self) -> None:
        data_dir = self._open_data_dir()
        known = meta_properties.load(self.disk, data_dir)
        if known is not None:
            meta_properties.check(known, data_dir, self.settings.node_id)
        store = self._store = self._open_store(data_dir, known)
        cluster_id = await self._identify(store, data_dir, known)
        await self._bind()
        await self._register(store)
        await sweep_leftovers(store)
        await lead_again(store, self.settings.node_id)
        image = ClusterImage.from_snapshot(await store.read("/"))
        self._compose(store, image, data_dir, cluster_id)
        self._revision = RecordedRevision(self.disk, data_dir)
        self._revision.write(image.revision)
        self._load(image)
        self._tasks.start(self.context.metadata.follow(), "follow the metadata")
        following = self._revision.follow(self.context.metadata.revision, self.environment)
        self._tasks.start(following, "write down the metadata's revision")
        context = self.context
        Upkeep(self.disk, self.environment, self._upkeep, context.config, context.partitions).start()
        if self._metrics_server is not None:
            self._loop_lag = LoopLag(self.environment, context.metrics)
        await self._accept()
        self._check_idle()

    def _open_data_dir(self) -> str:
        data_dir = self.settings.data_dir if self.settings.data_dir is not None else "memory"
        try:
            self.disk.make_dir(data_dir)
            self._lock = self.disk.lock(posixpath.join(data_dir, LOCK_FILE))
        except OSError as error:
            reason = error.strerror or str(error)
            raise StartRefused(f"the data directory {data_dir} cannot be used: {reason}") from error
        return data_dir

    def _open_store(self, data_dir: str, known: MetaProperties | None) -> MetadataStore:
        if self.settings.data_dir is None:
            return MemoryStore()

        def check(journal: Journal) -> None:
            entry = journal.entries.get(CLUSTER_KEY)
            cluster_id = None if entry is None else decode_cluster(entry.value)
            check_metadata(self.disk, data_dir, known, cluster_id, journal.revision)

        return EmbeddedStore.open(
            self.disk, data_dir, run_blocking=self.environment.run_blocking, tasks=self._tasks, check=check
        )

    async def _identify(self, store: MetadataStore, data_dir: str, known: MetaProperties | None) -> str:
        """The cluster's id: given at the very first start, and the same in store and directory ever after."""
        entry = (await store.read(CLUSTER_KEY)).entries.get(CLUSTER_KEY)
        if entry is not None:
            cluster_id = decode_cluster(entry.value)
        else:
            cluster_id = known.cluster_id if known is not None else uuid_text(self.environment.random_uuid())
            await store.commit(Txn(expect={CLUSTER_KEY: 0}, put={CLUSTER_KEY: encode_cluster(cluster_id)}))
        if known is None:
            directory_id = uuid_text(self.environment.random_uuid())
            known = MetaProperties(cluster_id, self.settings.node_id, directory_id)
            meta_properties.store(self.disk, data_dir, known)
        assert known.cluster_id == cluster_id, "the metadata was checked"
        self._directory_id = uuid_from_text(known.directory_id)
        return cluster_id

    async def _bind(self) -> None:
        for listener in self.settings.listeners:
            with _refusing(listener, "listen"):
                server, port = await self._listen(partial(self._connection, listener), listener)
            self._listening.append(_Listening(listener, server, port))
        if (metrics := self.settings.metrics) is not None:
            with _refusing(metrics, "serve metrics"):
                self._metrics_server, self.metrics_port = await self._listen(self._metrics_page, metrics)

    async def _listen(
        self, factory: Callable[[], asyncio.BaseProtocol], address: Listener
    ) -> tuple[asyncio.AbstractServer, int]:
        """Binds to one port on all addresses that the host stands for. Raises OSError."""
        host = "" if address.host == "*" else address.host
        server, addresses = await self.environment.listen(factory, host, address.port)
        port = addresses[0][1]
        if any(other != port for _, other in addresses):
            # Port 0 on `localhost` or a wildcard got IPv4 and IPv6 a port each, and only one can be advertised.
            server.close()
            server, _ = await self.environment.listen(factory, host, port)
        return server, port

    async def _accept(self) -> None:
        for listening in self._listening:
            with _refusing(listening.listener, "listen"):
                await listening.server.start_serving()
        if self._metrics_server is not None and self.settings.metrics is not None:
            with _refusing(self.settings.metrics, "serve metrics"):
                await self._metrics_server.start_serving()

    def _load(self, image: ClusterImage) -> None:
        try:
            self.context.partitions.load(image)
        except CorruptCheckpoint as error:
            raise StartRefused(
                f"{error}; restore the file, or remove it, and what DeleteRecords removed may come back"
            ) from error

    def _connection(self, listener: Listener) -> Connection:
        return Connection(self.context, self.memory, listener.name, self.connections)

    def _metrics_page(self) -> MetricsPage:
        return MetricsPage(self.environment, Collector(self.context.metrics, self.context.partitions))

    @property
    def endpoints(self) -> dict[str, Endpoint]:
        """The advertised address of each listener; port 0 stands for the port really bound."""
        endpoints: dict[str, Endpoint] = {}
        for listening in self._listening:
            advertised = self.settings.advertised[listening.listener.name]
            endpoints[listening.listener.name] = Endpoint(advertised.host, advertised.port or listening.port)
        return endpoints

    @property
    def bound(self) -> dict[str, Endpoint]:
        """Where each listener really listens."""
        return {
            listening.listener.name: Endpoint(listening.listener.host, listening.port) for listening in self._listening
        }

    async def _register(self, store: MetadataStore) -> None:
        lease = await store.lease(LEASE_MS)
        state = BrokerState(
            self.settings.node_id,
            {name: (endpoint.host, endpoint.port) for name, endpoint in self.endpoints.items()},
            rack=self.settings.config.broker_rack,
            directory_id=self._directory_id,
        )
        put = {
            broker_key(self.settings.node_id): state.encode(),
            CONTROLLER_KEY: encode_controller(self.settings.node_id),
        }
        await store.commit(Txn(put=put, lease=lease))

    def _compose(self, store: MetadataStore, image: ClusterImage, data_dir: str, cluster_id: str) -> None:
        config = self.settings.config
        metadata = Metadata(store, image)
        config.update(image.configs_of_broker(None), image.configs_of_broker(self.settings.node_id))
        partitions = Partitions(self.disk, data_dir, self.settings.node_id, self.environment, self._tasks, config)
        self.context = Context(
            environment=self.environment,
            tasks=self._tasks,
            config=config,
            disk=self.disk,
            data_dir=data_dir,
            node_id=self.settings.node_id,
            cluster_id=cluster_id,
            metadata=metadata,
            partitions=partitions,
            fetch_sessions=FetchSessions(
                config.max_incremental_fetch_session_cache_slots,
                lambda: int.from_bytes(self.environment.random_bytes(4), "big") & 0x7FFFFFFF,
            ),
            producer_ids=ProducerIds(store),
            metrics=Metrics(),
            served=BY_KEY,
        )
        self._is_composed = True
        metadata.subscribe(self._apply)
        self.memory = RequestMemory(config.queued_max_request_bytes, self.environment.loop)
        self.connections = ConnectionTable(self.context, socket_budget())

    def _apply(self, image: ClusterImage, delta: Delta) -> None:
        if delta.broker_configs:
            config = self.context.config
            config.update(image.configs_of_broker(None), image.configs_of_broker(self.settings.node_id))
        self.context.partitions.apply(image, delta)

    def _check_idle(self) -> None:
        self.connections.close_idle()
        self._idle_timer = self.environment.loop.call_later(IDLE_CHECK_S, self._check_idle)

    # -- stop ---------------------------------------------------------------------------------------------------

    async def stop(self) -> None:
        """No new requests, running ones answered, logs flushed. Safe to call once, after `start()` returned."""
        self._close_servers()
        self.context.stop()
        await self.connections.drain(STOP_S)
        await self._end_tasks()
        self.context.partitions.close()
        await self._record_revision()
        await self._release()

    async def _record_revision(self) -> None:
        store = self.context.metadata.store
        try:
            self._revision.write((await store.read(CLUSTER_KEY)).revision)
        except OSError as error:
            logger.warning("the revision of the metadata could not be written down: %s", error)

    def _close_servers(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        if self._loop_lag is not None:
            self._loop_lag.stop()
        for listening in self._listening:
            listening.server.close()
        if self._metrics_server is not None:
            self._metrics_server.close()

    async def _release(self) -> None:
        if self._store is not None:
            await self._store.close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    async def _end_tasks(self) -> None:
        """Ends what runs, except syncs: how they end decides what the logs may still do."""
        await self._upkeep.close()
        if self._is_composed:
            await self.context.partitions.landed()
        await self._tasks.close()

    async def _abandon(self) -> None:
        self._close_servers()
        await self._end_tasks()
        if self._is_composed:
            self.context.partitions.close()
        await self._release()


@contextmanager
def _refusing(address: Listener, what: str) -> Generator[None]:
    """An address that is taken, not ours, or unknown, as the sentence that the user reads."""
    try:
        yield
    except OSError as error:
        # asyncio words its own text around an errno; a name that cannot be resolved has a number of another kind.
        number = error.errno or 0
        reason = os.strerror(number) if number in errno.errorcode else error.strerror or str(error)
        raise StartRefused(f"cannot {what} on {Endpoint(address.host, address.port)}: {reason}") from error


def disk_for(settings: Settings, file_disk: Disk) -> Disk:
    """Memory or files: the only place where `--memory` makes a difference to storage."""
    return MemoryDisk() if settings.data_dir is None else file_disk
