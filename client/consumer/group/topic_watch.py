"""Keeps an eye on the topics of a group: which ones a pattern matches, and how the subscribed ones are laid out.

Layouts come from the metadata of the cluster, which is refreshed every `metadata_max_age_ms`, at errors, and as long as
a topic is not there. A pattern is compared with all topics as often. Where racks count, each change is described once
more, since the cluster's metadata has none. A topic that does not exist is named once in a warning.
(Source: ConsumerMetadata.java, ConsumerCoordinator.updatePatternSubscription.)
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Final

from odradek.client.cluster.cluster import Cluster
from odradek.client.consumer.assignment.assignor import TopicLayout
from odradek.client.consumer.config import ConsumerConfig
from odradek.client.consumer.group.group_messages import described, layouts_of, topics_request
from odradek.client.consumer.group.subscription import Subscription
from odradek.client.consumer.membership.requests import DescribeTopics
from odradek.client.errors.base import printable
from odradek.client.errors.client_errors import ClientError
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.metadata import MetadataResponse
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks

__all__ = ["TopicWatch"]

logger = logging.getLogger(__name__)

Layouts = dict[str, TopicLayout]

USE_EVERY_MS: Final = 1_000.0
"""A topic that is watched stays in use by the cluster's metadata; that often is it told so."""


class TopicWatch:
    """`on_topics`: these are subscribed to. `on_layouts`: how watched topics are laid out. `on_error`: for the user."""

    def __init__(
        self,
        config: ConsumerConfig,
        cluster: Cluster,
        environment: Environment,
        tasks: Tasks,
        *,
        on_topics: Callable[[frozenset[str]], None],
        on_layouts: Callable[[Mapping[str, TopicLayout]], None],
        on_error: Callable[[ClientError], None],
    ) -> None:
        self.subscription = Subscription()
        self.topics: frozenset[str] = frozenset()
        """Those that are subscribed to, by name or as far as the pattern matches."""
        self._config = config
        self._cluster = cluster
        self._environment = environment
        self._tasks = tasks
        self._on_topics = on_topics
        self._on_layouts = on_layouts
        self._on_error = on_error
        self._watched: frozenset[str] = frozenset()
        self._told: Layouts | None = None
        self._seen: Layouts = {}
        self._used_ms = float("-inf")
        self._awaited: set[str] = set()
        """Topics that do not exist, and of which that was said."""
        self._refused: set[str] = set()
        self._matching: asyncio.Task[None] | None = None
        self._describing: asyncio.Task[None] | None = None

    def subscribe(self, subscription: Subscription) -> None:
        self.subscription = subscription
        self._used_ms = float("-inf")
        self._refused.clear()
        if self._matching is not None:
            self._matching.cancel()
            self._matching = None
        self.topics = subscription.names
        if subscription.pattern is not None:
            self._matching = self._tasks.start(self._match(), f"{self._config.client_id}: match topics")
        else:
            self._on_topics(self.topics)

    def close(self) -> None:
        for task in (self._matching, self._describing):
            if task is not None:
                task.cancel()

    def look(self, watched: frozenset[str], now_ms: float) -> None:
        """To be called at news of the cluster, and now and then. `watched`: whose layout the membership goes by."""
        watched |= self.topics
        metadata = self._cluster.metadata
        if now_ms - self._used_ms >= USE_EVERY_MS or watched != self._watched:
            self._used_ms = now_ms
            self._watched = watched
            for topic in watched:
                metadata.use(topic, now_ms)
        layouts = {topic: layout for topic in watched if (layout := self._layout(topic)) is not None}
        self._seen = layouts
        if layouts != self._told:
            if not self._config.client_rack:
                self._told = layouts
                self._on_layouts(layouts)
            elif self._describing is None or self._describing.done():
                self._describing = self._tasks.start(self._describe(), f"{self._config.client_id}: describe topics")

    # --------------------------------------------------------------------------------------------------------- within
    def _layout(self, topic: str) -> TopicLayout | None:
        metadata = self._cluster.metadata
        if (known := metadata.topic(topic)) is not None:
            self._awaited.discard(topic)
            return TopicLayout(known.partition_count, (), known.topic_id)
        if (error := metadata.error_of(topic)) is not None:
            if topic in self.topics and topic not in self._refused:
                self._refused.add(topic)
                self._on_error(error)
            return None
        heard = metadata.heard(topic)
        if heard is not None and heard.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            if topic in self.topics and topic not in self._awaited:
                self._awaited.add(topic)
                logger.warning(
                    "%s: topic %s does not exist; it is read as soon as there is one",
                    self._config.client_id,
                    printable(topic),
                )
            return None
        return self._seen.get(topic)  # nothing was said of it, or something that passes

    async def _describe(self) -> None:
        """With racks."""
        seen = self._seen
        try:
            response = await self._cluster.ask(described(DescribeTopics(names=frozenset(seen))).request)
        except ClientError as error:
            logger.debug("%s: topics were not described: %s", self._config.client_id, error)
            await self._environment.sleep(self._config.retry_backoff_max_ms)
            return
        assert isinstance(response, MetadataResponse)
        self._told = seen
        self._on_layouts(dict(layouts_of(response).topics))

    async def _match(self) -> None:
        """Compares the pattern with all topics, again and again."""
        excludes_internal = self._config.exclude_internal_topics
        is_first = True
        while True:
            try:
                response = await self._cluster.ask(topics_request())
            except ClientError as error:
                if not error.retriable:
                    self._on_error(error)
                    return
                await self._environment.sleep(self._config.retry_backoff_max_ms)
                continue
            found = self.subscription.matching(response, excludes_internal=excludes_internal)
            if found != self.topics or is_first:
                is_first = False
                self.topics = found
                self._on_topics(found)
            await self._environment.sleep(self._config.metadata_max_age_ms)
