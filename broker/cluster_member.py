"""A broker as a member of its cluster: the parts that make it one, put together, started and stopped.

Coming: note the leader epochs of the former life → register → follow the metadata → decide, if nobody else does → give
partitions their roles.
Going: say so → the controller gives what this broker leads to others → take the registration back.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from odradek.broker.cluster.image import ClusterImage, Delta
from odradek.broker.cluster.store import Conflict, LeaseLost, StoreClosed, StoreWentBack, Superseded
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.security_protocol import parse_protocol_map, protocol_of
from odradek.broker.controller.controller import Controller
from odradek.broker.controller.fencing import Fencing
from odradek.broker.controller.heartbeats import Heartbeats
from odradek.broker.membership.image_follower import ImageFollower
from odradek.broker.membership.peers import Peer, PeerLost, Peers, plaintext
from odradek.broker.membership.registration import Registration
from odradek.broker.observability.cluster_samples import cluster_samples
from odradek.broker.observability.sample import Sample
from odradek.broker.replication.fetch_requests import Replica
from odradek.broker.replication.fetchers import Fetchers
from odradek.broker.replication.isr_writer import IsrWriter
from odradek.broker.replication.roles import Key, Roles
from odradek.client.network.connection import Connection
from odradek.protocol.errors import KafkaError
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks

if TYPE_CHECKING:
    from odradek.broker.controller.acl_spread import AclSpread
    from odradek.broker.membership.standing import Standing

logger = logging.getLogger(__name__)


class ClusterMember:
    """Everything that one broker is to its cluster."""

    def __init__(
        self,
        metadata: ImageFollower,
        config: BrokerConfig,
        registration: Registration,
        environment: Environment,
        tasks: Tasks,
        listener: str,
        epochs_at_start: Mapping[Key, int],
    ) -> None:
        """`listener`: the one of brokers. `epochs_at_start`: the leader epochs before this broker registered."""
        self.metadata = metadata
        self._config = config
        self.registration = registration
        self.environment = environment
        self._tasks = tasks
        self._works: list[asyncio.Task[None]] = []
        node_id = registration.node_id
        self.peers = Peers(environment, node_id, listener, self._security)
        self.controller = Controller(metadata, config, registration, environment)
        self.fencing = Fencing(self.controller, metadata, config, environment, tasks, node_id, listener)
        self._heartbeats = Heartbeats(metadata, config, registration, environment, self.peers)
        self._isr_writer = IsrWriter(
            metadata.store,
            node_id,
            environment,
            tasks,
            image=lambda: metadata.image,
            broker_epoch=lambda: registration.epoch,
        )
        replica = Replica(node_id, lambda: registration.epoch)
        self.fetchers = Fetchers(replica, self.connect, environment, config)
        self.roles = Roles(node_id, environment, self._isr_writer, self.fetchers, epochs_at_start)
        self.standing: Standing | None = None
        """Whether it may answer by the ACLs that it knows; None without an authorizer, as the next one."""
        self.acl_spread: AclSpread | None = None
        if config.authorizer_class_name:
            self._keep_acls()
        registration.on_renewed = self.controller.wake
        registration.pause_detector.limit_ms = config.broker_session_timeout_ms / 2
        metadata.subscribe(self._follow)

    def _keep_acls(self) -> None:
        """There is an authorizer."""
        from odradek.broker.controller.acl_spread import AclSpread
        from odradek.broker.membership.standing import Standing

        metadata, registration, environment = self.metadata, self.registration, self.environment
        self.standing = Standing(metadata, registration, environment)
        self.acl_spread = AclSpread(self.controller, metadata, registration, environment)

    @asynccontextmanager
    async def connect(self, broker_id: int) -> AsyncGenerator[Connection]:
        """A connection to another broker. Raises OSError."""
        endpoint = self.metadata.image.endpoint(broker_id, self.peers.listener)
        if endpoint is None:
            raise PeerLost(self._why_nowhere(broker_id))
        setup_timeout_ms = self._config.socket_connection_setup_timeout_ms
        async with self.peers.connection(Peer(broker_id, endpoint), setup_timeout_ms) as connection:
            yield connection

    def _security(self) -> Mapping[str, Any]:
        """By what this broker says who it is to others, for the next connection. Raises ConfigError."""
        listener, config = self.peers.listener, self._config
        protocol = protocol_of(listener, parse_protocol_map(config.listener_security_protocol_map))
        if not protocol.needs_authentication:
            return plaintext()
        from odradek.broker.authentication.inter_broker import sasl_settings
        from odradek.broker.disk.file_disk import FileDisk

        return sasl_settings(config, listener, protocol, self.environment, FileDisk())

    def _why_nowhere(self, broker_id: int) -> str:
        listener, registered = self.peers.listener, self.metadata.image.brokers.get(broker_id)
        if registered is None:
            return f"broker {broker_id} is not there"
        return (
            f"broker {broker_id} has no listener {listener}, by which this broker reaches others, but "
            f"{', '.join(sorted(registered.endpoints))}: give both a listener of the same name, and name it in "
            "inter.broker.listener.name"
        )

    def _follow(self, image: ClusterImage, delta: Delta) -> None:
        if delta.brokers:
            self.registration.follow(image)
        if delta.broker_configs:
            self.fetchers.configure()

    async def decide(self) -> None:
        """Becomes the controller where nobody is, and decides what there is to decide. Raises what the store raises."""
        try:
            await self.controller.work()
        except (Conflict, LeaseLost, KafkaError) as error:
            logger.info("controller: %s", error)  # somebody else decides, or we do so in a moment

    def start(self) -> None:
        """From here on everything goes by itself."""
        self._works = [
            self._tasks.start(work, name)
            for work, name in (
                (self.registration.keep(), "stay registered"),
                (self.registration.watch_pauses(), "notice pauses"),
                (self.controller.run(), "control the cluster"),
                (self.controller.rebalance(), "give leadership back"),
                (self.fencing.run(), "watch the other brokers"),
                (self._heartbeats.run(), "send heartbeats"),
            )
        ]
        if self.standing is not None:
            self._works.append(self._tasks.start(self.standing.keep(), "confirm that ACLs are the newest"))

    def samples(self) -> list[Sample]:
        """What the metrics page tells about the cluster."""
        return cluster_samples(
            self.metadata.image,
            is_controller=self.controller.is_active,
            is_store_silent=self.registration.is_silent or self._isr_writer.is_waiting_for_store,
            clock_offset_ms=self._heartbeats.clock.offset_ms,
        )

    def quiesce(self) -> None:
        """Ends all of it, and leaves everything in the store as it is."""
        for work in self._works:
            work.cancel()
        self._isr_writer.stop()
        self.fencing.stop()

    async def give_up_leadership(self, timeout_ms: float) -> None:
        """Returns once this broker leads nothing that another one could lead, or after `timeout_ms`."""
        node_id = self.registration.node_id
        self.controller.may_lead = False
        if not self._others_may_lead:
            return
        deadline_ms = self.environment.monotonic_ms() + timeout_ms
        try:
            await self.registration.announce_stop()
            while self.metadata.image.led_by(node_id) and self.registration.is_known and self._others_may_lead:
                remaining_ms = deadline_ms - self.environment.monotonic_ms()
                await self.metadata.revision.reach(self.metadata.image.revision + 1, max(0.0, remaining_ms))
        except TimeoutError:
            left = self.metadata.image.led_by(node_id)
            logger.warning("%d partitions could not be given to others in time", left)
        except (Conflict, LeaseLost, KafkaError, OSError, StoreClosed, StoreWentBack, Superseded) as error:
            logger.warning("leadership could not be given up in order: %s", error)

    @property
    def _others_may_lead(self) -> bool:
        """Any other broker is there, and not about to stop."""
        image = self.metadata.image
        return any(broker_id != self.registration.node_id and image.is_usable(broker_id) for broker_id in image.brokers)


def leader_epochs(image: ClusterImage) -> dict[Key, int]:
    """The leader epoch of each partition."""
    return {
        (topic.topic_id, index): state.leader_epoch
        for topic in image.topics.values()
        for index, state in enumerate(topic.partitions)
    }
