"""Failure detection by the controller: who is not there any more is fenced, long before its lease ends.

Each broker sends BrokerHeartbeat every `broker.heartbeat.interval.ms`. When its connection is lost, the controller asks
at once whether anybody listens at its address: refused means that its process is gone, and it is fenced. A process that
is killed loses its sockets one by one, and may take the question as long as it has the one that listens: where that
connection is lost, too, it is asked again. Anything else means nothing; then, as without any loss, silence for
`broker.session.timeout.ms` decides.

A broker that is fenced though it lives finds that out from the metadata, and registers anew
(membership/registration.py).

A controller that hears less than half of the cluster fences nobody for silence: it gives way, for it may be cut off
from the others, who hear one another. Fenced again and again, they could lead nothing for as long as that lasts.
"""

import asyncio
import logging
from contextlib import suppress
from typing import Final

from odradek.broker.cluster.image import ClusterImage, Delta
from odradek.broker.cluster.store import Conflict, LeaseLost, StoreClosed
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.controller.controller import Controller
from odradek.broker.controller.liveness import Liveness
from odradek.broker.membership.image_follower import ImageFollower
from odradek.protocol.errors import KafkaError
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks

logger = logging.getLogger(__name__)

LOOKS_PER_SESSION: Final = 8
"""So often within `broker.session.timeout.ms` it is looked who is silent: often enough to notice before anybody's time
is over that it was this process which stood still."""
LOOK_MS_MIN: Final = 50.0
ASK_AGAIN_MS: Final = 10.0


class Question(asyncio.Protocol):
    """A connection that is there to be refused, or lost."""

    def __init__(self) -> None:
        self.lost = asyncio.Event()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set()


class Fencing:
    """The controller's watch over the other brokers. Idle while another broker is the controller."""

    def __init__(
        self,
        controller: Controller,
        metadata: ImageFollower,
        config: BrokerConfig,
        environment: Environment,
        tasks: Tasks,
        node_id: int,
        listener: str,
    ) -> None:
        """`listener`: by whose addresses brokers reach one another."""
        self._controller = controller
        self._metadata = metadata
        self._config = config
        self._environment = environment
        self._tasks = tasks
        self._listener = listener
        self._liveness = Liveness(node_id)
        self._has_somebody = asyncio.Event()  # to watch
        self._said_of: dict[int, int] = {}  # that they could not be fenced: brokers and their epochs
        controller.on_elected = self.took_over
        metadata.subscribe(self._follow)

    def heard(self, broker_id: int, broker_epoch: int) -> bool:
        """A heartbeat came. False for a broker that is not registered with this epoch."""
        now_ms = self._environment.monotonic_ms()
        return self._liveness.heard(broker_id, broker_epoch, now_ms, self._config.broker_session_timeout_ms)

    def connection_lost(self, broker_id: int, broker_epoch: int) -> None:
        """The connection of a broker's heartbeats ended: is anybody there?"""
        if self._controller.is_active and self._liveness.epoch_of(broker_id) == broker_epoch:
            self._tasks.start(self._probe(broker_id, broker_epoch), f"ask whether broker {broker_id} is there")

    def stop(self) -> None:
        """Nobody is asked after any more."""
        self._liveness.clear()

    async def run(self) -> None:
        """Fences who was silent for too long; for as long as the broker runs."""
        try:
            while True:
                began_ms = self._environment.monotonic_ms()
                deadline_ms = self._liveness.next_deadline_ms
                if deadline_ms is None:
                    self._has_somebody.clear()
                    await self._has_somebody.wait()
                    continue
                session_ms = self._config.broker_session_timeout_ms
                delay_ms = max(LOOK_MS_MIN, min(session_ms / LOOKS_PER_SESSION, deadline_ms - began_ms))
                await self._environment.sleep(delay_ms)
                now_ms = self._environment.monotonic_ms()
                late_ms = now_ms - began_ms - delay_ms
                if late_ms > session_ms / 4:
                    self._liveness.held_up(late_ms)  # we were held up, and heard nobody
                if self._controller.is_active:
                    await self._judge(self._liveness.silent(now_ms), self._liveness.is_minority(now_ms))
        except StoreClosed:
            return

    async def _judge(self, silent: list[tuple[int, int]], is_minority: bool) -> None:
        silence_ms = self._config.broker_session_timeout_ms
        if silent and is_minority:
            await self._give_way()
            return
        for broker_id, broker_epoch in silent:
            await self._fence(broker_id, broker_epoch, f"nothing was heard of it for {silence_ms} ms")

    def _follow(self, image: ClusterImage, delta: Delta) -> None:
        if not self._controller.is_active:
            self._liveness.clear()
        elif delta.brokers:
            self._watch(image)

    def took_over(self) -> None:
        """This broker has become the controller. It asks after everybody: those that died with the last one send
        nothing."""
        for broker_id, broker_epoch in self._watch(self._metadata.image):
            self.connection_lost(broker_id, broker_epoch)

    def _watch(self, image: ClusterImage) -> list[tuple[int, int]]:
        """Takes over who is there; returns id and epoch of those that are new."""
        epochs = {broker_id: broker.epoch for broker_id, broker in image.brokers.items()}
        new = self._liveness.follow(epochs, self._environment.monotonic_ms(), self._config.broker_session_timeout_ms)
        if new:
            self._has_somebody.set()
        return [(broker_id, epochs[broker_id]) for broker_id in new]

    async def _probe(self, broker_id: int, broker_epoch: int) -> None:
        image = self._metadata.image
        endpoint = image.endpoint(broker_id, self._listener)
        if endpoint is None or image.brokers[broker_id].epoch != broker_epoch:
            return
        if await self._is_refused(*endpoint):
            await self._fence(broker_id, broker_epoch, f"nobody listens at {endpoint[0]}:{endpoint[1]}")

    async def _is_refused(self, host: str, port: int) -> bool:
        try:
            async with asyncio.timeout(self._config.broker_session_timeout_ms / 1000.0):
                while True:
                    with suppress(ConnectionResetError):
                        await self._until_lost(host, port)
                    await self._environment.sleep(ASK_AGAIN_MS)
        except ConnectionRefusedError:
            return True
        except OSError:  # TimeoutError is one, too
            return False

    async def _until_lost(self, host: str, port: int) -> None:
        question = Question()
        transport = await self._environment.connect(lambda: question, host, port)
        try:
            await question.lost.wait()
        finally:
            transport.close()

    async def _give_way(self) -> None:
        try:
            await self._controller.resign(
                self._config.broker_session_timeout_ms, "less than half of the cluster is heard"
            )
        except (Conflict, LeaseLost, KafkaError, StoreClosed) as error:
            logger.info("another broker is the controller already: %s", error)
        except OSError as error:
            logger.warning("the controller could not give way, and tries again: %s", error)

    async def _fence(self, broker_id: int, broker_epoch: int, why: str) -> None:
        try:
            await self._controller.fence(broker_id, broker_epoch, why)
        except (Conflict, LeaseLost, KafkaError, StoreClosed) as error:
            logger.info("broker %d was not fenced: %s", broker_id, error)
        except OSError as error:
            # A store whose device is full says so at once, and is asked LOOK_MS_MIN later.
            level = logging.DEBUG if self._said_of.get(broker_id) == broker_epoch else logging.WARNING
            self._said_of[broker_id] = broker_epoch
            logger.log(level, "broker %d could not be fenced, and is asked after again: %s", broker_id, error)
