"""The cluster, for who sends to it: metadata that keeps itself fresh, and a connection to each broker on demand.

    cluster = Cluster(config, environment, tasks)
    await cluster.start()
    await cluster.wait_for_topic("orders", deadline_ms)
    node_id, epoch = cluster.metadata.leader_of("orders", 0)
    connection = cluster.connection(node_id)              # None: not yet; a subscriber is told when, or `retry_at_ms`
    response = await cluster.ask(request, node=CONTROLLER)

Every wait has a deadline, at which it ends with what was last heard: of the topic, of the question, of the brokers.
Authentication that failed stands in `fatal_error`, ends all waits at once, and nothing is tried any more.

How connections are opened and closed is written in `nodes`, when metadata is asked for in `metadata` and `refresher`.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

from odradek.client.cluster.link import NEVER
from odradek.client.cluster.metadata import Metadata
from odradek.client.cluster.nodes import Nodes, Opener
from odradek.client.cluster.refresher import Refresher
from odradek.client.cluster.topic_metadata import TopicMetadata
from odradek.client.cluster.waiters import Waiters
from odradek.client.configuration.client_config import ClientConfig
from odradek.client.errors.client_errors import (
    ClientClosed,
    ClientError,
    ConnectionFailed,
    MetadataTimeout,
    RequestTimedOut,
    UnsupportedVersion,
)
from odradek.client.metrics.metrics import METADATA_AGE, Metrics, client_metrics
from odradek.client.network.backoff import Backoff
from odradek.client.network.connection import Connection, open_connection
from odradek.client.network.tls import TlsContexts
from odradek.protocol.codec.schema import Request, Response
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks

__all__ = ["CONTROLLER", "Cluster"]

R = TypeVar("R", bound=Response)

CONTROLLER: Final = -(2**31)
"""In place of a node id: the broker that takes requests for the controller."""
THE_CLUSTER: Final = "the cluster"


class Cluster:
    """See the module. `close` it, also when `start` has failed."""

    def __init__(
        self,
        config: ClientConfig,
        environment: Environment,
        tasks: Tasks,
        *,
        metrics: Metrics | None = None,
        opener: Opener | None = None,
    ) -> None:
        self.metadata = Metadata(
            max_age_ms=config.metadata_max_age_ms,
            max_idle_ms=config.metadata_max_idle_ms,
            retry_backoff_ms=config.retry_backoff_ms,
            retry_backoff_max_ms=config.retry_backoff_max_ms,
            random=environment.random,
        )
        self._config = config
        self._environment = environment
        self._now_ms = environment.monotonic_ms
        self._tasks = tasks
        self._metrics = metrics if metrics is not None else client_metrics(config.metrics, config.client_id)
        self._tls_contexts = TlsContexts(config)
        self._is_closed = False
        self._listeners: dict[object, Callable[[], None]] = {}
        self._news = Waiters(environment)
        self._awaited: dict[str, int] = {}  # topics, by how many wait for them
        self._nodes = Nodes(
            config,
            environment,
            tasks,
            self._open if opener is None else opener,
            metrics=self._metrics,
            on_change=self._changed,
            on_loss=self.metadata.request_update,
        )
        self._refresher = Refresher(
            config,
            environment,
            self.metadata,
            self._nodes,
            awaited=self._awaited.keys(),
            on_news=self._changed,
        )
        self._refreshing: asyncio.Task[None] | None = None
        self._unwatch = self._metrics.watch(METADATA_AGE, lambda: self._now_ms() - self._refresher.refreshed_ms)

    # ---------------------------------------------------------------------------------------------- lifecycle
    async def start(self, timeout_ms: float | None = None) -> None:
        """Makes the first contact, within request_timeout_ms by default.

        Raises AuthenticationFailed, and ConnectionFailed when no bootstrap server has answered in time.
        """
        timeout_ms = self._config.request_timeout_ms if timeout_ms is None else timeout_ms
        deadline_ms = self._now_ms() + timeout_ms
        self._check_usable()
        assert self._refreshing is None, "it is started once"
        self._refreshing = self._tasks.start(self._refresher.run(), f"{self._config.client_id}: metadata")
        self._refreshing.add_done_callback(self._refresher_ended)
        while not self.metadata.nodes():
            if self._now_ms() >= deadline_ms:
                why = f"no bootstrap server has answered within {timeout_ms:.0f} ms"
                raise ConnectionFailed(THE_CLUSTER, self._with_reasons(why))
            await self._news.wait(deadline_ms)
            self._check_usable()

    async def close(self) -> None:
        """Closes all connections, ends all waits, and leaves nothing behind. If it is cancelled, call it again."""
        if not self._is_closed:
            self._is_closed = True
            self._unwatch()
            if self._refreshing is not None:
                self._refreshing.cancel()
            self._news.wake()
        await self._nodes.close()
        if self._refreshing is not None:
            await asyncio.gather(self._refreshing, return_exceptions=True)

    @property
    def fatal_error(self) -> ClientError | None:
        """Nothing can succeed any more, since authentication failed. Raise a `fresh()` one."""
        return self._nodes.fatal_error

    # -------------------------------------------------------------------------------------------- connections
    def connection(self, node_id: int) -> Connection | None:
        """The connection to a broker, if it is open and not throttled. Else begins to connect, unless backing off."""
        self._refresher.take_nodes()
        return self._nodes.get(node_id)

    def retry_at_ms(self, node_id: int) -> float:
        """When to ask for the connection again: after a backoff or throttling. Infinity: subscribers will be told."""
        return self._nodes.retry_at_ms(node_id)

    async def connection_to(self, node: int | None, deadline_ms: float) -> Connection:
        """The connection to a broker, to the CONTROLLER, or (None) to the least loaded broker, as soon as it is open.

        Raises ConnectionFailed at the deadline. A broker that is asked for by its id is given up before that, as soon
        as an attempt to connect to it has failed or a new answer does not list it: who wants it, because it led
        something, may want another one by then. Raises then the error of that attempt, or ConnectionFailed.
        """
        began_ms = self._now_ms()
        failed_before = None if node is None else self._nodes.error_of(node)
        while True:
            self._check_usable()
            connection = self._look_for(node)
            if connection is not None:
                return connection
            now_ms = self._now_ms()
            if now_ms >= deadline_ms:
                why = f"there was no connection within {now_ms - began_ms:.0f} ms"
                raise ConnectionFailed(_name_of(node), self._with_reasons(why))
            if node is not None and node != CONTROLLER:
                error = self._nodes.error_of(node)
                if error is not None and error is not failed_before:
                    raise error.fresh()
                if self.metadata.node(node) is None and self._refresher.refreshed_ms > began_ms:
                    raise ConnectionFailed(_name_of(node), "the cluster does not list it")
            await self._news.wait(min(deadline_ms, self._next_look_ms(node)))

    # -------------------------------------------------------------------------------------------------- asking
    async def ask(
        self,
        request: Request[R],
        *,
        node: int | None = None,
        timeout_ms: float | None = None,
        version: int | None = None,
    ) -> R:
        """Asks a broker, the CONTROLLER, or (None) the least loaded broker, within request_timeout_ms by default.

        Where the connection fails, it asks again after a backoff, `retries` times at most, and asks for metadata
        meanwhile. The request may have been carried out each time. Raises the last error; at once UnsupportedVersion,
        ClientClosed, and what `fatal_error` says.
        """
        timeout_ms = self._config.request_timeout_ms if timeout_ms is None else timeout_ms
        deadline_ms = self._now_ms() + timeout_ms
        backoff = Backoff(self._config.retry_backoff_ms, self._config.retry_backoff_max_ms, self._environment.random)
        failures = 0
        while True:
            try:
                return await self._try(request, node, deadline_ms, timeout_ms, version)
            except ClientError as error:
                retry_at_ms = self._now_ms() + backoff.after_ms(failures)
                failures += 1
                if not error.retriable or retry_at_ms >= deadline_ms or failures > self._config.retries:
                    raise
            self.metadata.request_update()
            while self._now_ms() < retry_at_ms:
                self._check_usable()
                await self._news.wait(retry_at_ms)

    async def ask_once(
        self,
        request: Request[R],
        deadline_ms: float,
        *,
        node: int | None = None,
        at_least: int = 0,
        at_most: int | None = None,
    ) -> R:
        """Asks a broker, the CONTROLLER, or (None) the least loaded broker, and does not ask again.

        `at_least`: the version that the request needs; `at_most`: the last one that carries it.

        Raises ClientError, also for a request that holds what its version cannot carry; after a retriable one the
        request may have been carried out nevertheless.
        """
        began_ms = self._now_ms()
        connection = await self.connection_to(node, deadline_ms)
        kind = type(request)
        name = kind.__name__.removesuffix("Request")
        version = connection.version_of(kind, at_most)
        if version < at_least:
            raise UnsupportedVersion(name, connection.broker, (at_least, kind.max_version), (kind.min_version, version))
        try:
            async with asyncio.timeout_at(deadline_ms / 1000.0):
                # The connection's own timeout would end what others wait for on it, too.
                return await connection.ask(request, version=version, timeout_ms=self._config.request_timeout_ms)
        except TimeoutError:
            raise RequestTimedOut(name, connection.broker, deadline_ms - began_ms) from None
        except ValueError as error:
            hint = "A number or text in it is out of the bounds of Kafka's protocol."
            raise ClientError(f"{name} cannot be sent: {error}", hint=hint) from error

    async def wait_for_topic(self, topic: str, deadline_ms: float, *, partition: int | None = None) -> TopicMetadata:
        """What is known of a topic, as soon as that can be used, and has this partition if one is given.

        Raises MetadataTimeout at the deadline; at once InvalidTopic, AuthorizationError, ClientClosed, and what
        `fatal_error` says. A topic that does not exist is waited for: the broker may be creating it.
        """
        began_ms = self._now_ms()
        self._awaited[topic] = self._awaited.get(topic, 0) + 1
        try:
            while True:
                self._check_usable()
                now_ms = self._now_ms()
                self.metadata.use(topic, now_ms)
                found = self.metadata.topic(topic)
                if found is not None and (partition is None or partition < found.partition_count):
                    return found
                if (error := self.metadata.error_of(topic)) is not None:
                    raise error
                if now_ms >= deadline_ms:
                    raise MetadataTimeout(topic, now_ms - began_ms, self._with_reasons(self._heard(topic, found)))
                if found is not None:
                    self.metadata.request_update(topic)
                await self._news.wait(deadline_ms)
        finally:
            self._awaited[topic] -= 1
            if not self._awaited[topic]:
                del self._awaited[topic]

    # ------------------------------------------------------------------------------------------------- within
    def _refresher_ended(self, task: asyncio.Task[None]) -> None:
        """Without it nothing new is ever learned: who waits hears of it, and not of a timeout again and again."""
        if self._is_closed or self.fatal_error is not None:
            return  # it has to
        error = None if task.cancelled() else task.exception()
        why = "its task was cancelled" if error is None else f"{type(error).__name__}: {error}"
        self._nodes.fatal_error = ClientError(
            f"{self._config.client_id} does not learn of brokers and topics any more: {why}.",
            hint="Close it and make a new one; an error other than a cancellation is a mistake in odradek.",
        )
        self._changed()

    def _check_usable(self) -> None:
        if self._is_closed:
            raise ClientClosed
        if self.fatal_error is not None:
            raise self.fatal_error.fresh()

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], object]:
        """Has `listener` called when a connection was opened or lost or is no longer throttled, and when metadata has
        changed, until what is returned is called."""
        key = object()
        self._listeners[key] = listener
        return partial(self._listeners.pop, key, None)

    def _changed(self) -> None:
        self._refresher.wake()
        self._news.wake()
        for listener in tuple(self._listeners.values()):
            listener()

    async def _open(self, node_id: int, host: str, port: int, setup_timeout_ms: float) -> Connection:
        return await open_connection(
            self._environment,
            self._config,
            node_id,
            host,
            port,
            setup_timeout_ms=setup_timeout_ms,
            contexts=self._tls_contexts,
            metrics=self._metrics,
        )

    def _look_for(self, node: int | None) -> Connection | None:
        if node is None:
            return self._refresher.any_connection()
        node_id = self._node_id(node)
        if self.metadata.node(node_id) is None:
            self.metadata.request_update()
            return None
        return self.connection(node_id)

    def _next_look_ms(self, node: int | None) -> float:
        if node is None:
            return self._nodes.next_chance_ms()
        node_id = self._node_id(node)
        # Where no controller is known, its number is that of the first bootstrap server.
        return NEVER if self.metadata.node(node_id) is None else self._nodes.retry_at_ms(node_id)

    def _node_id(self, node: int) -> int:
        return self.metadata.controller_id if node == CONTROLLER else node

    async def _try(
        self, request: Request[R], node: int | None, deadline_ms: float, timeout_ms: float, version: int | None
    ) -> R:
        connection = await self.connection_to(node, deadline_ms)
        try:
            async with asyncio.timeout_at(deadline_ms / 1000.0):
                # The connection's own timeout is not this one: it would end what others wait for, too.
                return await connection.ask(request, version=version, timeout_ms=self._config.request_timeout_ms)
        except TimeoutError:
            asked = type(request).__name__.removesuffix("Request")
            raise RequestTimedOut(asked, connection.broker, timeout_ms) from None

    def _heard(self, topic: str, found: TopicMetadata | None) -> str:
        if found is not None:
            return f"it has {found.partition_count} partition(s)"
        heard = self.metadata.heard(topic)
        if heard is None:
            return "no broker has answered"
        return f"the last answer was {heard.code.name}: {heard.code.text}"

    def _with_reasons(self, why: str) -> str:
        refresh = "" if self._refresher.error is None else self._refresher.error.message
        return "; ".join(each for each in (why.rstrip("."), refresh, self._nodes.problems()) if each)


def _name_of(node: int | None) -> str:
    if node is None:
        return THE_CLUSTER
    return "the controller" if node == CONTROLLER else f"broker {node}"
