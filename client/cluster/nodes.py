"""Connections to brokers, one to each, opened on demand in the background and closed when nobody needs them.

    listed: named by metadata, or a bootstrap server while the client bootstraps (these have the ids -1, -2, …)
      idle ── get() ──▶ connecting ──▶ open ── lost, or unused for connections_max_idle_ms ──▶ idle
                            └── failed: `retry_at_ms` is reconnect_backoff_ms away, doubled with each in a row
    unlisted: its connection is closed as soon as nothing is in flight

Rules:
- A broker's address that changed is another broker: its connection is dropped at once, and the backoff forgotten.
- Failures in a row are forgotten when a connection has lived for reconnect_backoff_max_ms, not when it opened (Java):
  a broker that accepts and hangs up would be connected to twenty times a second.
- The time to connect, too, doubles with each failure in a row, up to its maximum (KIP-601).
- Authentication that failed is fatal and stands in `fatal_error`: nothing is connected to from then on. So does any
  error but UNSUPPORTED_VERSION that cannot be cured by trying again.
- Of failures in a row, the first, second, fourth, eighth … is logged as a warning, the others for debugging alone. A
  connection that is lost once is no warning: brokers, too, close those that are idle.

(Source: NetworkClient.java, ClusterConnectionStates.java.)
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Final

from odradek.client.cluster.broker_ranking import least_loaded, standing_changes_ms
from odradek.client.cluster.link import NEVER, Link
from odradek.client.cluster.topic_metadata import Node
from odradek.client.configuration.client_config import ClientConfig
from odradek.client.errors.client_errors import ClientError, ConnectionFailed, UnsupportedVersion
from odradek.client.metrics.metrics import CONNECTION_COUNT, REQUESTS_IN_FLIGHT, Metrics
from odradek.client.network.backoff import Backoff
from odradek.client.network.connection import Connection
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks

__all__ = ["Nodes", "Opener"]

logger = logging.getLogger(__name__)

Opener = Callable[[int, str, int, float], Awaitable[Connection]]
"""Opens a connection to a node id, host and port, within so many milliseconds for each address."""

CLOSE_MS_MAX: Final = 5_000.0
"""A token provider, which is the program's own, may not end when it is cancelled, or hang while it cleans up."""
SWEEP_MS: Final = 250.0
"""What is to be closed, but for something in flight, is looked at so often."""


class Nodes:
    """See the module.

    `on_change`: a connection was opened or lost, could not be opened, or is no longer throttled. `on_loss`: before
    that, where it was lost or not opened for no reason of ours; metadata may be out of date.
    """

    def __init__(
        self,
        config: ClientConfig,
        environment: Environment,
        tasks: Tasks,
        opener: Opener,
        *,
        metrics: Metrics,
        on_change: Callable[[], None],
        on_loss: Callable[[], None],
    ) -> None:
        self.fatal_error: ClientError | None = None
        self._name = config.client_id
        self._environment = environment
        self._now_ms = environment.monotonic_ms
        self._tasks = tasks
        self._opener = opener
        self._on_change = on_change
        self._on_loss = on_loss
        self._max_idle_ms = config.connections_max_idle_ms if config.connections_max_idle_ms >= 0 else NEVER
        self._patience_ms = float(config.reconnect_backoff_max_ms)
        self._backoff = Backoff(config.reconnect_backoff_ms, config.reconnect_backoff_max_ms, environment.random)
        self._setup_timeout = Backoff(
            config.socket_connection_setup_timeout_ms,
            config.socket_connection_setup_timeout_max_ms,
            environment.random,
        )
        self._links: dict[int, Link] = {}
        self._bootstrap = [
            Link(-1 - index, each.host, each.port) for index, each in enumerate(config.bootstrap_addresses)
        ]
        self._is_closed = False
        self._sweeper: asyncio.TimerHandle | None = None
        self._sweep_ms = NEVER
        self._ending: dict[asyncio.Task[None], None] = {}  # of attempts that were given up, and connections closed
        self._unwatch = (
            metrics.watch(CONNECTION_COUNT, self._open_count),
            metrics.watch(REQUESTS_IN_FLIGHT, self._in_flight_count),
        )

    # -------------------------------------------------------------------------------------------- connections
    def get(self, node_id: int) -> Connection | None:
        """The connection to a broker, if it is open and not throttled. Else begins to connect, where that is due."""
        link = self._links.get(node_id)
        if link is None:
            return None
        connection = link.connection
        if connection is None:
            self.connect(link)
            return None
        if connection.throttled_until_ms > self._now_ms():
            self._wake_when_unthrottled(link, connection.throttled_until_ms)
            return None
        return connection if connection.is_open else None  # else it is about to be reported as lost

    def retry_at_ms(self, node_id: int) -> float:
        """When to ask `get` again; NEVER: `on_change` will tell."""
        link = self._links.get(node_id)
        if link is None or link.connecting is not None or not self._may_connect(link):
            return NEVER
        if link.connection is not None:
            return link.connection.throttled_until_ms if link.connection.is_open else NEVER
        return link.retry_at_ms

    def least_loaded(self) -> Link | None:
        """The broker to ask something that any can answer; None: there is none from which one can be hoped for."""
        listed = [each for each in self._links.values() if each.is_listed]
        if not listed or self.fatal_error is not None:
            return None
        first = self._environment.random_below(len(listed))
        return least_loaded(listed[first:] + listed[:first], self._now_ms(), self._patience_ms)

    def next_chance_ms(self) -> float:
        """When `least_loaded` may find another broker than now, without an event before."""
        now_ms = self._now_ms()
        moments = (standing_changes_ms(each, self._patience_ms) for each in self._links.values() if each.is_listed)
        return min((each for each in moments if each > now_ms), default=NEVER)

    def connect(self, link: Link) -> None:
        """Begins to connect to a broker, unless that is under way, or not due yet."""
        now_ms = self._now_ms()
        if link.connecting is None and self._may_connect(link) and link.retry_at_ms <= now_ms:
            link.tried_ms = now_ms
            link.connecting = self._tasks.start(self._open(link), f"{self._name}: connect to {link}")

    def error_of(self, node_id: int) -> ClientError | None:
        """Why there is no connection to a broker, if one failed or was lost: another object each time."""
        link = self._links.get(node_id)
        return None if link is None else link.error

    def problems(self) -> str:
        """Why brokers cannot be connected to, for the texts of errors."""
        now_ms = self._now_ms()
        found: list[str] = []
        for link in self._links.values():
            if link.connecting is not None:
                found.append(f"{link} has not been reached for {now_ms - link.tried_ms:.0f} ms")
            elif link.error is not None and link.is_listed:
                found.append(link.error.message)
        return "; ".join(found)

    # ------------------------------------------------------------------------------------------------ brokers
    def bootstrap(self) -> bool:
        """Lists the bootstrap servers beside what is known, until the next `update`. False: they are listed already."""
        is_new = False
        for link in self._bootstrap:
            self._links[link.node_id] = link
            is_new |= not link.is_listed
            link.is_listed = True
        return is_new

    def update(self, nodes: Iterable[Node]) -> None:
        """Lists these brokers and no others. Others are left as soon as nothing is in flight to them."""
        named = {each.node_id: each for each in nodes}
        for link in list(self._links.values()):
            node = named.get(link.node_id)
            if node is None:
                link.is_listed = False
                self._stop_connecting(link)
            elif (node.host, node.port) != (link.host, link.port):
                now_at = f"it is at {node.host}:{node.port} now"
                logger.info("%s: the connection to %s is dropped: %s", self._name, link, now_at)
                self._drop(link, ConnectionFailed(str(link), now_at))
                del self._links[link.node_id]
        for node_id, node in named.items():
            self._links.setdefault(node_id, Link(node_id, node.host, node.port)).is_listed = True
        self._sweep()

    def drop_all(self, why: str) -> None:
        """Closes all connections; what is in flight fails."""
        for link in self._links.values():
            self._drop(link, ConnectionFailed(str(link), why))

    async def close(self) -> None:
        """Closes everything and returns when nothing is left, or after CLOSE_MS_MAX: what does not end is logged.

        Can be called again, also when it was cancelled.
        """
        if not self._is_closed:
            self._is_closed = True
            for unwatch in self._unwatch:
                unwatch()
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        self.drop_all("the client is closed")
        while self._ending:
            ending = list(self._ending)
            await self._tasks.ended(ending, CLOSE_MS_MAX)
            for task in ending:
                self._ending.pop(task, None)

    # ------------------------------------------------------------------------------------------------- within
    def _may_connect(self, link: Link) -> bool:
        return link.is_listed and not self._is_closed and self.fatal_error is None

    # These may be read in another thread, while this one changes what they look at: hence the copies.
    def _open_count(self) -> float:
        return sum(each.connection is not None for each in list(self._links.values()))

    def _in_flight_count(self) -> float:
        connections = [each.connection for each in list(self._links.values())]
        return sum(each.in_flight for each in connections if each is not None)

    async def _open(self, link: Link) -> None:
        timeout_ms = self._setup_timeout.after_ms(link.setup_failures)
        error: ClientError = ConnectionFailed(str(link), "the attempt broke off")
        try:
            connection = await self._opener(link.node_id, link.host, link.port, timeout_ms)
            if connection.is_open:
                self._opened(link, connection)
            else:  # it was opened, and lost before this task went on
                error = ConnectionFailed(str(link), "it was closed as soon as it was open")
        except ClientError as why:
            error = why
        finally:
            # Where the attempt was given up, `connecting` is another one, or none.
            if link.connecting is asyncio.current_task(self._environment.loop):
                link.connecting = None
                link.setup_failures += 1
                self._back_off(link, error, logging.WARNING)

    def _opened(self, link: Link, connection: Connection) -> None:
        logger.debug("%s: connected to %s", self._name, link)
        link.connection = connection
        link.connecting = None
        link.error = None
        link.setup_failures = 0
        link.opened_ms = self._now_ms()
        connection.on_close = lambda lost, why: self._lost(link, lost, why)
        self._sweep_at(link.opened_ms + self._max_idle_ms)
        self._on_change()

    def _lost(self, link: Link, connection: Connection, error: ClientError) -> None:
        if link.connection is not connection:
            return  # we closed it
        link.connection = None
        self._cancel_unthrottled(link)
        self._see_off(connection, link)
        if self._now_ms() - link.opened_ms >= self._patience_ms:
            link.failures = 0
        self._back_off(link, error, logging.WARNING if link.failures else logging.INFO)

    def _back_off(self, link: Link, error: ClientError, level: int) -> None:
        link.retry_at_ms = self._now_ms() + self._backoff.after_ms(link.failures)
        link.failures += 1
        link.error = error
        is_power_of_two = not link.failures & (link.failures - 1)
        logger.log(
            level if is_power_of_two else logging.DEBUG,
            "%s: %s (failure %d in a row)",
            self._name,
            error,
            link.failures,
        )
        if not error.retriable and not isinstance(error, UnsupportedVersion) and self.fatal_error is None:
            logger.error("%s: no broker is connected to any more: %s", self._name, error)
            self.fatal_error = error
        self._on_loss()
        self._on_change()

    def _drop(self, link: Link, error: ClientError) -> None:
        """Closes a connection for reasons of our own. That is no failure of the broker."""
        self._stop_connecting(link)
        self._cancel_unthrottled(link)
        connection, link.connection = link.connection, None
        if connection is not None:
            connection.close(error)
            self._see_off(connection, link)

    def _stop_connecting(self, link: Link) -> None:
        task, link.connecting = link.connecting, None
        if task is not None:
            task.cancel()
            self._wait_for_end(task)

    def _see_off(self, connection: Connection, link: Link) -> None:
        closed: Coroutine[None, None, None] = connection.closed()
        self._wait_for_end(self._tasks.start(closed, f"{self._name}: end of the connection to {link}"))

    def _wait_for_end(self, task: asyncio.Task[None]) -> None:
        self._ending[task] = None
        task.add_done_callback(lambda ended: self._ending.pop(ended, None))

    def _wake_when_unthrottled(self, link: Link, at_ms: float) -> None:
        self._cancel_unthrottled(link)
        link.unthrottled = self._environment.loop.call_at(at_ms / 1000.0, self._on_change)

    def _cancel_unthrottled(self, link: Link) -> None:
        if link.unthrottled is not None:
            link.unthrottled.cancel()
            link.unthrottled = None

    # ------------------------------------------------------------------------------------ what nobody needs
    def _sweep_at(self, at_ms: float) -> None:
        if at_ms < self._sweep_ms:
            if self._sweeper is not None:
                self._sweeper.cancel()
            self._sweep_ms = at_ms
            self._sweeper = self._environment.loop.call_at(at_ms / 1000.0, self._sweep)

    def _sweep(self) -> None:
        """Closes connections that are out of use, and forgets brokers that are gone."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        self._sweep_ms = next_ms = NEVER
        now_ms = self._now_ms()
        for link in list(self._links.values()):
            max_idle_ms = self._max_idle_ms if link.is_listed else 0.0
            if link.idle_since_ms() + max_idle_ms <= now_ms:
                why = f"it was not used for {max_idle_ms:.0f} ms" if link.is_listed else "the cluster has it no more"
                logger.debug("%s: the connection to %s is closed: %s", self._name, link, why)
                self._drop(link, ConnectionFailed(str(link), why))
            if link.connection is not None:
                due_ms = link.connection.last_used_ms + max_idle_ms
                next_ms = min(next_ms, due_ms if due_ms > now_ms else now_ms + SWEEP_MS)
            elif not link.is_listed and link.retry_at_ms <= now_ms:
                del self._links[link.node_id]
        self._sweep_at(next_ms)
