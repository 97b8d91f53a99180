"""Keeps metadata fresh: decides which broker is asked, and when the bootstrap servers are.

`run` sleeps until a question is due, a connection changes or somebody wishes for news, and asks the least loaded
broker; never is more than one question under way. With all brokers down it does nothing but wait for their backoffs.

Bootstrap servers. Where no known broker is connected to, or may be, they are asked as well, if
metadata_recovery_strategy is "rebootstrap" (KIP-899); what is known of topics and leaders stays meanwhile. Where
metadata could not be had for metadata_recovery_rebootstrap_trigger_ms, a second at least, or a broker answers
REBOOTSTRAP_REQUIRED, all connections are closed, leaders are forgotten, and the client begins anew (KIP-1102).

(Source: NetworkClient.DefaultMetadataUpdater.)
"""

import logging
from collections.abc import Callable, Collection
from typing import Final

from odradek.client.cluster.link import NEVER
from odradek.client.cluster.metadata import Metadata
from odradek.client.cluster.nodes import Nodes
from odradek.client.cluster.waiters import Waiters
from odradek.client.configuration.client_config import ClientConfig
from odradek.client.errors.client_errors import ClientError, ConnectionFailed
from odradek.client.network.connection import Connection
from odradek.protocol.errors import ErrorCode, code_of
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.runtime.environment import Environment

__all__ = ["Refresher"]

logger = logging.getLogger(__name__)

TRIGGER_MS_MIN: Final = 1_000.0
"""So much time any question has: beginning anew ends all connections, the one that it needs included."""


class Refresher:
    """See the module. `awaited`: topics that somebody waits for. `on_news`: metadata has changed."""

    def __init__(
        self,
        config: ClientConfig,
        environment: Environment,
        metadata: Metadata,
        nodes: Nodes,
        *,
        awaited: Collection[str],
        on_news: Callable[[], None],
    ) -> None:
        self.error: ClientError | None = None
        """Why the last question was not answered."""
        self.refreshed_ms = environment.monotonic_ms()
        """When the last one was."""
        self._config = config
        self._name = config.client_id
        self._now_ms = environment.monotonic_ms
        self._metadata = metadata
        self._nodes = nodes
        self._nodes_version = -1
        self._awaited = awaited
        self._on_news = on_news
        self._sleep = Waiters(environment)
        self.wake = self._sleep.wake
        """To be called when a question may be due, and when connections have changed."""
        self._trigger_ms = max(config.metadata_recovery_rebootstrap_trigger_ms, TRIGGER_MS_MIN)
        self._may_rebootstrap = config.metadata_recovery_strategy == "rebootstrap"
        metadata.on_request = self.wake
        nodes.bootstrap()

    async def run(self) -> None:
        """Refreshes until nothing can succeed any more."""
        metadata = self._metadata
        while self._nodes.fatal_error is None:
            now_ms = self._now_ms()
            due_ms = metadata.next_refresh_ms(now_ms)
            if due_ms > now_ms:
                await self._sleep.wait(due_ms)
                continue
            metadata.begin_try(now_ms)
            if self._overdue_at_ms() <= now_ms:
                self._begin_anew(f"metadata could not be had for {self._trigger_ms:.0f} ms")
            connection = self.any_connection()
            if connection is None:
                await self._sleep.wait(min(self._nodes.next_chance_ms(), self._overdue_at_ms()))
            else:
                await self._ask(connection)

    def any_connection(self) -> Connection | None:
        """The connection to the least loaded broker, if one is open. Else begins to connect, where that is due."""
        link = self._nodes.least_loaded()
        if link is None and self._may_rebootstrap and self._nodes.bootstrap():
            logger.info("%s: no known broker can be connected to; asking bootstrap_servers", self._name)
            link = self._nodes.least_loaded()
        return None if link is None else self._nodes.get(link.node_id)

    def take_nodes(self) -> None:
        """Tells `nodes` which brokers metadata names, if that may have changed."""
        if self._nodes_version != self._metadata.version:
            self._nodes_version = self._metadata.version
            self._nodes.update(self._metadata.nodes())

    # ------------------------------------------------------------------------------------------------- within
    def _overdue_at_ms(self) -> float:
        """When to begin anew, if there is no answer before."""
        if not self._may_rebootstrap:
            return NEVER
        return self._metadata.overdue_at_ms(self._trigger_ms)

    async def _ask(self, connection: Connection) -> None:
        question = self._metadata.next_question(self._now_ms())
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in question.topics],
            allow_auto_topic_creation=self._config.allow_auto_create_topics,
        )
        try:
            version = connection.version_of(MetadataRequest)
            response = await connection.ask(request, version=version, timeout_ms=self._config.request_timeout_ms)
        except ClientError as error:
            self._failed(error)
            return
        if code_of(response.error_code) is ErrorCode.REBOOTSTRAP_REQUIRED and self._may_rebootstrap:
            self._failed(ConnectionFailed(connection.broker, ErrorCode.REBOOTSTRAP_REQUIRED.text))
            self._begin_anew(f"{connection.broker} asks for it")
            return
        now_ms = self._now_ms()
        for topic in self._awaited:
            self._metadata.use(topic, now_ms)
        if not self._metadata.apply(
            response, question.version, now_ms, is_partial=question.is_partial, api_version=version
        ):
            self.error = ConnectionFailed(connection.broker, "it names no broker to connect to; it may be starting up")
            return
        self.error = None
        self.refreshed_ms = now_ms
        self.take_nodes()
        self._on_news()

    def _failed(self, error: ClientError) -> None:
        logger.debug("%s: metadata was not learned: %s", self._name, error)
        self.error = error
        self._metadata.fail(self._now_ms())

    def _begin_anew(self, why: str) -> None:
        logger.warning("%s: beginning anew with bootstrap_servers: %s", self._name, why)
        self._nodes.drop_all(f"the client begins anew with bootstrap_servers: {why}")
        self._metadata.rebootstrap(self._now_ms())
        self.take_nodes()
        self._on_news()
