"""The composition root: puts a broker together from its parts, starts it, and stops it cleanly.

Start: lock the directories → who are we (`meta.properties`) → does the metadata belong here → the metadata store →
listen (bound, not yet accepting) → is our id free → give up what was lost → open the logs → register → accept → decide
who leads at which epoch, if nobody else does (`cluster_member.py`). Who is registered is elected, and whoever does not
accept connections is taken for dead: so the logs are open by then.

Stop: give up what others can lead → no new requests → running ones answered → logs flushed → store closed → lock
given back.
"""

import asyncio
import logging
import posixpath
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from odradek.broker.access.principal import ANONYMOUS, Principal
from odradek.broker.authentication.starting import authentication_of
from odradek.broker.cluster.embedded import FILE_NAME, EmbeddedStore
from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.keys import CLUSTER_KEY, MalformedMetadata, decode_cluster, encode_cluster
from odradek.broker.cluster.memory import MemoryStore
from odradek.broker.cluster.stamped_store import StampedStore
from odradek.broker.cluster.store import Conflict, MetadataStore, Snapshot, StoreClosed, StoreWentBack, Superseded, Txn
from odradek.broker.cluster_member import leader_epochs
from odradek.broker.composition import Parts, compose, metric_sources, take_options
from odradek.broker.config.security_protocol import SecurityProtocol
from odradek.broker.config.settings import Settings
from odradek.broker.config.store_address import parse_store_address
from odradek.broker.directories import adoption_note
from odradek.broker.directories.data_directories import DataDirectories, DirectoriesUnusable
from odradek.broker.directories.data_directory import DataDirectory
from odradek.broker.directories.known_metadata import KnownMetadata
from odradek.broker.directories.metadata_revision import check_place
from odradek.broker.disk.descriptor_limits import socket_budget
from odradek.broker.disk.disk import Disk
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.handling.context import Api, BrokerIdentity, Caller, Context, Endpoint
from odradek.broker.handling.coordinator_topics_upkeep import CoordinatorTopicsUpkeep
from odradek.broker.handling.interceptors import Interceptors
from odradek.broker.log.checkpoint import CorruptCheckpoint
from odradek.broker.membership.offline_replicas import OfflineReplicas
from odradek.broker.membership.registration import Identity, Registration
from odradek.broker.membership.startup_losses import Findings, give_up_in_sync_places, look_at_all, note_boot
from odradek.broker.network.connection import Connection
from odradek.broker.network.connection_table import ConnectionTable
from odradek.broker.network.listening import Accept, Listening, bind
from odradek.broker.network.request_budget import RequestBudget
from odradek.broker.observability.loop_lag import LoopLag
from odradek.broker.observability.prometheus_page import Collector, MetricsPage
from odradek.broker.partitions.maintenance import Maintenance
from odradek.broker.served import BY_KEY, served_with
from odradek.broker.startup_errors import BrokerFailed, StartRefused, explained, refusing_address, refusing_id
from odradek.broker.txn.late_warnings import LateWarnings
from odradek.protocol.codec.schema import uuid_text
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks

if TYPE_CHECKING:
    from odradek.broker.network.tls_listeners import TlsListeners

logger = logging.getLogger(__name__)

GIVE_UP_MS = 3000.0
"""How long a broker that stops waits until others lead what it led."""
IDLE_CHECK_S = 1.0
STOP_S = 4.0
"""How long running requests may take to end when the broker stops; what is left of the five seconds is for the logs."""


class Broker:
    """One broker of this process."""

    def __init__(
        self,
        settings: Settings,
        environment: Environment,
        disk: Disk,
        *,
        store: MetadataStore | None = None,
        served: Mapping[int, Api] = BY_KEY,
        interceptors: Interceptors | None = None,
    ) -> None:
        """`store`: the metadata of a cluster, which the caller opens and closes; without, the broker has one of its
        own in its first data directory. `served`: which APIs, in which versions. `interceptors`: what stands before
        its handlers, from its first request on."""
        self.settings = settings
        self._interceptors = Interceptors() if interceptors is None else interceptors
        self._served = served_with(settings.config, served)
        self.environment = environment
        self.disk = disk
        self.context: Context  # from here on set by `start()`
        self.maintenance: Maintenance
        self.memory: RequestBudget
        self.connections: ConnectionTable
        self._offline_replicas: OfflineReplicas
        self.on_failure: Callable[[], None] = _nothing
        """Called when the broker cannot go on and is to be stopped; `failure` says why."""
        self.failure: str | None = None
        self.metrics_port = 0
        self._is_composed = False
        self._is_store_lost = False  # it is not the one any more that this broker followed, or not this broker's
        self._tasks = Tasks(environment.loop)
        self._upkeep = Tasks(environment.loop)
        self._commits = Tasks(environment.loop)  # of our own store: one that is under way is never cut short
        assert not isinstance(settings.data_dirs, str), "a list of them"
        paths = ("memory",) if settings.data_dirs is None else settings.data_dirs
        self.directories = DataDirectories(disk, paths, environment, self._tasks)
        self._listening: list[Listening] = []
        self._metrics_server: asyncio.AbstractServer | None = None
        self.tls: TlsListeners | None = None
        self._loop_lag: LoopLag | None = None
        self._known = KnownMetadata(disk, self.directories)
        self._store: MetadataStore | None = None
        self._shared_store = store
        self._idle_timer: asyncio.TimerHandle | None = None

    # -- start --------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Returns once connections are accepted. Raises StartRefused, BrokerFailed, ForeignDirectory, StoreDamaged,
        StoreWentBack, MalformedMetadata, OSError; what was opened until then is closed again."""
        try:
            await self._start()
        except BaseException as error:
            await self._abandon()
            if self.failure is not None and isinstance(error, Exception):
                raise BrokerFailed(self.failure) from error
            raise

    async def _start(self) -> None:
        self._take_directories()
        bare = await self._open_store()
        cluster_id = await self._identify(bare)
        incarnation = uuid_text(self.environment.random_uuid())
        store = StampedStore(bare, self.settings.node_id, incarnation)
        await self._bind()
        image = await self._read_image(store)
        boot_id = self.environment.boot_id()
        findings = look_at_all(self.disk, self.directories, boot_id, image, self.settings.node_id)
        registration = self._registration(store, findings.missing_ids)
        store.begin(image.lineage)
        self._known.use(incarnation, image.lineage.current(self.settings.node_id))
        self._known.write(image.followed)
        await self._come_back(registration, store, image, findings)
        note_boot(self.disk, (one.path for one in self.directories.online if not one.lacks_the_newest), boot_id)
        if (await store.read(CLUSTER_KEY)).revision != image.revision:
            image = await self._read_image(store)
        self._compose(store, image, registration, cluster_id)
        if self.tls is not None:
            self.tls.start(self.context, self._upkeep)
        context, metadata = self.context, self.context.metadata
        context.authentication = await authentication_of(
            self.settings, self.environment, self._tasks, store, lambda: metadata.image.scram
        )
        if context.enforcement is not None:
            context.enforcement.refuse_unable_brokers(self._own_principal())
        self._known.write(image.followed)
        adoption_note.use(self.disk, [one.path for one in self.directories.online])
        self._load(image)
        metadata.subscribe(self.context.partitions.apply)
        self._tasks.failed = self._task_failed
        self._tasks.start(metadata.follow(self.environment), "follow the metadata")
        await self._register(registration)
        with context.starting_up():
            await self._accept()  # at once: who refuses connections is taken for dead
            await metadata.applied(registration.epoch)
            if context.enforcement is not None:
                await context.enforcement.begin(self._tasks)
        await self.context.member.decide()
        self.context.member.start()
        self._known.follow(self._tasks, metadata.revision, lambda: metadata.image.followed, self.environment)
        self._offline_replicas.look_at_all()
        self._tasks.start(self._offline_replicas.run(), "tell of offline replicas")
        upkeep = CoordinatorTopicsUpkeep(self.context)
        metadata.subscribe(upkeep.follow)
        self._tasks.start(upkeep.run(), "raise the replicas of internal topics")
        self.maintenance = Maintenance(self.disk, self.environment, self._upkeep, context.config, context.partitions)
        self.maintenance.start()
        late = LateWarnings(context.partitions, context.transactions.shards, context.config, self.environment)
        self._upkeep.start(late.run(), "warn of late transactions")
        if self._metrics_server is not None:
            self._loop_lag = LoopLag(self.environment, context.metrics.loop_lag)
        self._check_idle()

    def _take_directories(self) -> None:
        try:
            self.directories.take(self.settings.node_id, needs_first=self._has_own_store)
        except DirectoriesUnusable as error:
            raise StartRefused(str(error)) from error
        adoption_note.check_unchanged(self.disk, [one.path for one in self.directories.online])

    @property
    def _has_own_store(self) -> bool:
        """Whether the metadata is in the first data directory, without which nothing goes."""
        return self._shared_store is None

    async def _open_store(self) -> MetadataStore:
        if self._shared_store is not None:
            return self._shared_store
        if self.settings.data_dirs is None or parse_store_address(self.settings.config.metadata_store).kind == "memory":
            self._store = MemoryStore()
        else:
            first = self.directories.first
            check_place(self.disk, FILE_NAME, [directory.path for directory in self.directories.online])
            self._store = store = EmbeddedStore.open(
                self.disk,
                first.path,
                run_blocking=self.environment.run_blocking,
                tasks=self._commits,
                check=lambda journal: self._known.check(
                    Snapshot(journal.revision, journal.entries), posixpath.join(first.path, FILE_NAME)
                ),
            )
            store.on_disk_error = first.suspect
        return self._store

    async def _identify(self, store: MetadataStore) -> str:
        """The cluster's id: given at the very first start, and the same in store and directories ever after. Raises
        ForeignDirectory for a store that does not belong to the directories, MalformedMetadata, OSError."""
        snapshot = await store.read(CLUSTER_KEY)
        if not self._has_own_store:
            self._known.check(snapshot)
        entry = snapshot.entries.get(CLUSTER_KEY)
        if entry is not None:
            cluster_id = decode_cluster(entry.value)
        else:
            known = [one.properties.cluster_id for one in self.directories if one.properties is not None]
            cluster_id = known[0] if known else uuid_text(self.environment.random_uuid())
            try:
                await store.commit(Txn(expect={CLUSTER_KEY: 0}, put={CLUSTER_KEY: encode_cluster(cluster_id)}))
            except Conflict:
                return await self._identify(store)  # another broker of the cluster was faster
        self.directories.identify(cluster_id, self.settings.node_id, needs_first=self._has_own_store)
        return cluster_id

    async def _bind(self) -> None:
        if any(self.settings.protocol(listener).is_encrypted for listener in self.settings.listeners):
            from odradek.broker.network.tls_listeners import open_listeners

            self.tls = await open_listeners(self.settings, self.environment)
        for listener in self.settings.listeners:
            connection, tls = partial(self._connection, listener.name, self.settings.protocol(listener)), self.tls
            accept: Accept = connection if tls is None else tls.accept(listener, connection)
            with refusing_address(listener, "listen"):
                self._listening.append(await bind(self.environment, accept, listener))
        if (metrics := self.settings.metrics) is not None:
            with refusing_address(metrics, "serve metrics"):
                page = await bind(self.environment, self._metrics_page, metrics)
            self._metrics_server, self.metrics_port = page.server, page.port

    async def _accept(self) -> None:
        for listening in self._listening:
            with refusing_address(listening.listener, "listen"):
                await listening.server.start_serving()
        if self._metrics_server is not None and self.settings.metrics is not None:
            with refusing_address(self.settings.metrics, "serve metrics"):
                await self._metrics_server.start_serving()

    def _load(self, image: ClusterImage) -> None:
        try:
            self.context.partitions.load(image)
            gone_back = self.context.partitions.gone_back()
            self._known.came_back(gone_back)
            note_boot(self.disk, gone_back, self.environment.boot_id())
        except CorruptCheckpoint as error:
            raise StartRefused(
                f"{error}; restore the file, or remove it, and what DeleteRecords removed may come back"
            ) from error

    def _connection(self, listener: str, protocol: SecurityProtocol) -> Connection:
        return Connection(self.context, self.memory, Caller(listener, protocol=protocol), self.connections)

    def _own_principal(self) -> Principal | None:
        """Whom other brokers take this one for; None where only a token says. Raises ConfigError."""
        name = self.settings.broker_listener
        protocol = next(self.settings.protocol(each) for each in self.settings.listeners if each.name == name)
        if protocol is SecurityProtocol.PLAINTEXT:
            return ANONYMOUS
        if not protocol.needs_authentication:
            return None if self.tls is None else self.tls.broker_principal
        from odradek.broker.authentication.inter_broker import inter_broker_principal

        return inter_broker_principal(self.settings.config, name, protocol)

    def _metrics_page(self) -> MetricsPage:
        others = () if self.tls is None else (self.tls.samples,)
        sources = metric_sources(self.context, self.connections.quotas, others)
        return MetricsPage(self.environment, Collector(sources))

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

    async def _come_back(
        self, registration: Registration, store: MetadataStore, image: ClusterImage, findings: Findings
    ) -> None:
        """Gives up what this broker promised and may not have any more: its own in-sync places, and nobody else's with
        the same id. Raises StartRefused, OSError."""
        node_id = self.settings.node_id
        is_marked = any(node_id in state.offline for topic in image.topics.values() for state in topic.partitions)
        with refusing_id():
            await registration.wait_until_free()
            await give_up_in_sync_places(
                store, registration.identity, findings, self.settings.config, is_marked=is_marked
            )

    def _registration(self, store: MetadataStore, missing_ids: tuple[bytes, ...]) -> Registration:
        config = self.settings.config
        endpoints = {name: (endpoint.host, endpoint.port) for name, endpoint in self.endpoints.items()}
        directory_ids = *(directory.directory_id for directory in self.directories.online), *missing_ids
        identity = Identity(self.settings.node_id, endpoints, directory_ids, config.broker_rack)
        return Registration(store, self.environment, identity, config.metadata_lease_ms)

    async def _register(self, registration: Registration) -> None:
        """Raises StartRefused, OSError."""
        with refusing_id():
            await registration.register()

    def _compose(self, store: MetadataStore, image: ClusterImage, registration: Registration, cluster_id: str) -> None:
        config = self.settings.config
        self.context = compose(
            Parts(
                BrokerIdentity(self.settings.node_id, cluster_id),
                self.environment,
                self._tasks,
                config,
                self.disk,
                self.directories,
                store,
                image,
                registration,
                self.settings.broker_listener,
                self._served,
                leader_epochs(image),
                interceptors=self._interceptors,
            )
        )
        partitions = self.context.partitions
        partitions.on_offline = self._directory_failed
        self._offline_replicas = OfflineReplicas(
            self.context.metadata, config, registration, self.environment, partitions
        )
        partitions.on_given_up = self._offline_replicas.look_at_all
        self._is_composed = True
        self.memory = RequestBudget(config.queued_max_request_bytes, self.environment.loop)
        self.connections = ConnectionTable(self.context, socket_budget(), len(self._listening))

    async def _read_image(self, store: MetadataStore) -> ClusterImage:
        """What the metadata says now; the cluster's options count from here on. Raises ForeignDirectory,
        MalformedMetadata, OSError."""
        snapshot = await store.read("/")
        if not self._has_own_store:
            self._known.check(snapshot)
        image = ClusterImage.from_snapshot(snapshot)
        take_options(self.settings.config, image, self.settings.node_id)
        return image

    def _directory_failed(self, directory: DataDirectory) -> None:
        """Its partitions are offline now. The broker goes on with the others, if there are any."""
        logger.error(
            "the data directory %s has failed, and what it holds is offline: %s", directory.path, directory.failure
        )
        if not self.directories.online:
            self._fail(f"the last data directory has failed: {directory.path}: {directory.failure}")
        elif self._has_own_store and directory is self.directories.first:
            self._fail(f"the data directory with the metadata has failed: {directory.path}: {directory.failure}")
        else:
            self._offline_replicas.look_at_all()

    def _fail(self, why: str) -> None:
        if self.failure is None:
            self.failure = why
            self.on_failure()

    def _task_failed(self, error: BaseException) -> bool:
        """What no broker goes on with; whether that explains it."""
        if (why := explained(error)) is None:
            return self.failure is not None and isinstance(error, StoreClosed)  # who waited for the metadata below
        if isinstance(error, StoreWentBack | Superseded):
            self._is_store_lost = True
            self.context.member.registration.term.end()
        self._fail(why)
        self.context.metadata.revision.fail(StoreClosed(why))  # whoever waits for it waits no longer
        return True

    def _check_idle(self) -> None:
        self.connections.close_idle()
        self._idle_timer = self.environment.loop.call_later(IDLE_CHECK_S, self._check_idle)

    # -- stop ---------------------------------------------------------------------------------------------------

    async def stop(self, *, all_stop: bool = False) -> None:
        """No new requests, running ones answered, logs flushed. Safe to call once, after `start()` returned.

        `all_stop`: the whole cluster does, so there is nobody to take anything over, and in-sync sets stay as they are.
        Its brokers should all be drained before one of them stops, for they replicate from one another.
        """
        tells_others = not all_stop and not self._is_store_lost
        if tells_others:
            await self.context.member.give_up_leadership(GIVE_UP_MS)
        await self.drain()
        self.connections.close()
        await self._end_tasks()
        self.context.partitions.close()
        if tells_others:
            await self.context.member.registration.leave()
        if not self._is_store_lost:
            await self._record_revision()
        await self._release()

    async def drain(self) -> None:
        """No new requests of clients, running ones answered. Followers go on fetching, and so does this broker. It may
        be called again."""
        self._close_servers()
        self.context.stop()
        await self.connections.drain(STOP_S)

    def quiesce(self) -> None:
        """This broker decides nothing any more, and writes no in-sync sets: its whole cluster stops."""
        self.context.member.quiesce()

    async def _record_revision(self) -> None:
        """What the store is at now. What is written down already will do where it would have to be waited for."""
        if self.context.member.registration.is_silent:
            return
        metadata = self.context.metadata
        try:
            self._known.close(metadata.image.followed, await metadata.store.read(CLUSTER_KEY))
        except (OSError, StoreClosed, StoreWentBack, MalformedMetadata) as error:
            logger.warning("the revision of the metadata is not known, and not written down: %s", error)

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
        await self._commits.close()
        self.directories.release()

    async def _end_tasks(self) -> None:
        """Ends what runs, except syncs: how they end decides what the logs may still do. The logs are synced while the
        broker's lease is still renewed."""
        await self._upkeep.close()
        if self._is_composed:
            await self.context.member.fetchers.close()
            await self.context.partitions.settle()
        await self._tasks.close()

    async def _abandon(self) -> None:
        self._close_servers()
        await self._end_tasks()
        if self._is_composed:
            self.context.partitions.close()
        await self._release()


def _nothing() -> None: ...


def disk_for(settings: Settings, file_disk: Disk) -> Disk:
    """Memory or files: the only place where `--memory` makes a difference to storage."""
    return MemoryDisk() if settings.data_dirs is None else file_disk
