"""A broker's side of failure detection: heartbeats to the controller, and what their failure means.

One connection to the controller carries BrokerHeartbeat every `broker.heartbeat.interval.ms`. When it is lost another
one is opened at once. If that is refused nobody listens at the controller's address: its process is gone, and this
broker takes `/controller` away at the revision that it knows, so that somebody else is elected before the lease ends.
Anything else means nothing: the lease decides. Whoever is elected meanwhile is turned to at once, whatever the last one
still owes an answer to.

Now and then the controller is asked for its time, over the same connection (clock_offset.py).

Nothing is sent by the controller to itself.
"""

import asyncio
import logging
from contextlib import suppress

from odradek.broker.cluster.image import ClusterImage, Delta
from odradek.broker.cluster.keys import CONTROLLER_KEY
from odradek.broker.cluster.store import Conflict, StoreClosed, Txn
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.controller.clock_offset import ClockOffset
from odradek.broker.membership.image_follower import ImageFollower
from odradek.broker.membership.peers import Peer, Peers
from odradek.broker.membership.registration import Registration
from odradek.client.network.connection import Connection
from odradek.protocol.errors import ErrorCode, code_of
from odradek.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from odradek.protocol.messages.describe_quorum import (
    METADATA_TOPIC,
    DescribeQuorumRequest,
    QuorumPartitionData,
    QuorumTopicData,
)
from odradek.runtime.environment import Environment
from odradek.runtime.progress import Progress
from odradek.runtime.signal import Signal

logger = logging.getLogger(__name__)

RETRY_MS = 100.0
CLOCK_INTERVAL_MS = 10_000.0
QUORUM = QuorumTopicData(topic_name=METADATA_TOPIC, partitions=[QuorumPartitionData(partition_index=0)])


class Heartbeats:
    """The heartbeats of one broker."""

    def __init__(
        self,
        metadata: ImageFollower,
        config: BrokerConfig,
        registration: Registration,
        environment: Environment,
        peers: Peers,
    ) -> None:
        self._metadata = metadata
        self._config = config
        self._registration = registration
        self._environment = environment
        self._peers = peers
        self.clock = ClockOffset()
        self._beating: tuple[int, asyncio.Timeout] | None = None
        """The revision of the controller that is being told, and what ends that."""
        self._news = Signal()
        """Given when the next heartbeat is due at once: ACLs have changed, and who changed them waits until all brokers
        have said so; or the connection is lost."""
        metadata.subscribe(self._follow)

    def _follow(self, image: ClusterImage, delta: Delta) -> None:
        if delta.acls_added or delta.acls_removed:
            self._news.give()  # the controller waits for nothing else
        if self._beating is not None and image.controller_revision != self._beating[0]:
            self._beating[1].reschedule(self._environment.loop.time())
            self._beating = None

    async def run(self) -> None:
        """Sends them for as long as the broker runs."""
        try:
            while True:
                image = self._metadata.image
                endpoint = self._endpoint(image)
                self._registration.note_controller(image.controller_id == self._registration.node_id)
                if endpoint is None:
                    self.clock.alone()
                    self._registration.controller_answered()
                    await self._metadata.revision.reach(image.revision + 1)
                    continue
                began_ms = self._environment.monotonic_ms()
                was_refused = await self._beat_until_another(image, Peer(image.controller_id, endpoint))
                if was_refused:
                    await self._depose(image)
                if was_refused or self._environment.monotonic_ms() - began_ms < RETRY_MS:
                    await self._environment.sleep(RETRY_MS)
        except StoreClosed:
            return

    def _endpoint(self, image: ClusterImage) -> tuple[str, int] | None:
        """Where the controller listens for brokers; None where there is none but ourselves."""
        if image.controller_id == self._registration.node_id:
            return None
        return image.endpoint(image.controller_id, self._peers.listener)

    async def _beat_until_another(self, image: ClusterImage, peer: Peer) -> bool:
        """`_beat`, as long as there is no other controller."""
        try:
            async with asyncio.timeout(None) as limit:
                self._beating = image.controller_revision, limit
                return await self._beat(image, peer)
        except TimeoutError:
            return False
        finally:
            self._beating = None

    async def _beat(self, image: ClusterImage, peer: Peer) -> bool:
        """To one controller, until it is another one or the connection is lost. Whether nobody listens there."""
        lost = Progress()

        def was_lost(connection: Connection, error: Exception) -> None:
            lost.advance(1)
            self._news.give()

        try:
            async with self._peers.connection(peer, self._config.broker_session_timeout_ms) as connection:
                connection.on_close = was_lost
                compare_at_ms = self._environment.monotonic_ms()
                while self._metadata.image.controller_revision == image.controller_revision and not lost.value:
                    seen = self._news.count
                    sent_ms, session_ms = self._environment.lease_clock_ms(), self._config.broker_session_timeout_ms
                    response = await connection.ask(
                        BrokerHeartbeatRequest(
                            broker_id=self._registration.node_id,
                            broker_epoch=self._registration.epoch,
                            current_metadata_offset=self._metadata.image.revision,
                        ),
                        timeout_ms=self._config.broker_session_timeout_ms,
                    )
                    if code_of(response.error_code) is ErrorCode.NOT_CONTROLLER:
                        return False
                    self._registration.controller_answered()
                    if not response.error_code:
                        self._registration.heard_by_controller(sent_ms, session_ms)
                    if self._environment.monotonic_ms() >= compare_at_ms:
                        await self._compare_clocks(connection, image.controller_id)
                        compare_at_ms = self._environment.monotonic_ms() + CLOCK_INTERVAL_MS
                    with suppress(TimeoutError):
                        await self._news.after(seen, self._config.broker_heartbeat_interval_ms)
        except ConnectionRefusedError:
            return True
        except OSError as error:
            logger.debug("heartbeats to broker %d: %s", peer.node_id, error)
        return False

    async def _compare_clocks(self, connection: Connection, controller_id: int) -> None:
        """Raises what the connection does."""
        environment = self._environment
        asked_ms, began_ms = environment.now_ms(), environment.monotonic_ms()
        response = await connection.ask(
            DescribeQuorumRequest(topics=[QUORUM]), timeout_ms=self._config.broker_session_timeout_ms
        )
        round_trip_ms = environment.monotonic_ms() - began_ms
        for topic in response.topics:
            for partition in topic.partitions:
                for voter in partition.current_voters:
                    if voter.replica_id == controller_id and voter.last_fetch_timestamp >= 0:
                        self.clock.compared(controller_id, asked_ms, round_trip_ms, voter.last_fetch_timestamp)

    async def _depose(self, image: ClusterImage) -> None:
        has_said_so = image.controller_id in self._metadata.image.stopping
        logger.log(
            logging.INFO if has_said_so else logging.WARNING,
            "the controller, broker %d, %s: nobody listens at its address",
            *(image.controller_id, "has stopped" if has_said_so else "is gone"),
        )
        try:
            await self._metadata.store.commit(
                Txn(expect={CONTROLLER_KEY: image.controller_revision}, delete=(CONTROLLER_KEY,))
            )
        except (Conflict, OSError) as error:
            logger.info("the controller was not taken away: %s", error)
