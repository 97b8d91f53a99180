"""Gives the topics of coordinators more replicas when there are more brokers, and then a higher `min.insync.replicas`:
a cluster that began with one broker would lose every group, and every transaction, with that broker otherwise.

The controller does, by itself, whenever brokers come or the topic changes. `min.insync.replicas` is raised when the new
replicas are in sync, and never where the topic has a value of its own: with 2 and one replica nothing could be
committed.
"""

import logging
from contextlib import suppress
from typing import Final

from odradek.broker.cluster.image import ClusterImage, Delta
from odradek.broker.cluster.topic_image import TopicImage
from odradek.broker.cluster.topics import write_topic_configs
from odradek.broker.handling.context import Context
from odradek.broker.handling.coordinator_topics import (
    COORDINATOR_TOPICS,
    REPLICAS_WITH_MIN_ISR,
    CoordinatorTopic,
    wanted_topic,
)
from odradek.broker.handling.internal_topics import add_replicas, apply_own_change
from odradek.protocol.errors import KafkaError
from odradek.runtime.signal import Signal

logger = logging.getLogger(__name__)

CHANGE_MS: Final = 10_000.0
RETRY_MS: Final = 5_000.0
MIN_ISR: Final = "min.insync.replicas"


class CoordinatorTopicsUpkeep:
    """That of one broker, which does nothing while another one is the controller."""

    __slots__ = ("_context", "_news")

    def __init__(self, context: Context) -> None:
        self._context = context
        self._news = Signal()

    def follow(self, image: ClusterImage, delta: Delta) -> None:
        del image
        topics = (*delta.created, *delta.changed)
        if delta.brokers or delta.is_controller_changed or any(topic.name in COORDINATOR_TOPICS for topic in topics):
            self._news.give()

    async def run(self) -> None:
        """Looks whenever there is news; does not return."""
        while True:
            seen = self._news.count
            retry_ms: float | None = None
            for topic in COORDINATOR_TOPICS.values():
                try:
                    await self._look(topic)
                except KafkaError as error:
                    logger.warning("%s could not be given more replicas, which is tried again: %s", topic.name, error)
                    retry_ms = RETRY_MS
            with suppress(TimeoutError):
                await self._news.after(seen, retry_ms)

    async def _look(self, of: CoordinatorTopic) -> None:
        context, image = self._context, self._context.metadata.image
        topic = image.topics.get(of.name)
        if topic is None or image.controller_id != context.identity.node_id:
            return
        wanted = wanted_topic(context, of)
        count = await add_replicas(context, wanted, CHANGE_MS)
        if count:
            logger.warning(
                "%s: %d partitions get more replicas, for there are more brokers now; until these are in sync, %s "
                "depend on those that have one",
                *(of.name, count, of.whose),
            )
        elif self._may_raise_min_isr(topic):
            min_isr = str(of.shape(context.config).min_isr)
            configs = {**topic.configs, MIN_ISR: min_isr}
            await apply_own_change(
                context, lambda: write_topic_configs(context.metadata.store, topic, configs), CHANGE_MS
            )
            logger.info("%s: %s is %s from now on: its replicas are in sync", of.name, MIN_ISR, min_isr)

    def _may_raise_min_isr(self, topic: TopicImage) -> bool:
        return MIN_ISR not in topic.configs and all(
            len(state.isr) >= REPLICAS_WITH_MIN_ISR and not state.adding and not state.removing
            for state in topic.partitions
        )
