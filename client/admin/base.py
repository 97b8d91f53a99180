"""What every call of Admin stands on: the cluster, the deadline, and a beginning and an end."""

import asyncio
from collections.abc import Awaitable, Collection, Iterable, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar, overload

from odradek.client.admin.calls import Calls, Deadline
from odradek.client.admin.config import AdminConfig
from odradek.client.admin.coordinators import GROUPS, TRANSACTIONS, Coordinators
from odradek.client.admin.errors import ItemsFailed
from odradek.client.arguments import require_iterable, require_kind, require_timeout
from odradek.client.cluster.cluster import Cluster
from odradek.client.configuration.signatures import config_of, configured_by
from odradek.client.errors.client_errors import ClientClosed, ClientNotStarted, WrongLoop
from odradek.client.metrics.metrics import client_metrics
from odradek.client.network.backoff import Backoff
from odradek.client.taking import taken
from odradek.runtime.tasks import Tasks

__all__ = ["AdminBase", "items_of", "keys_of", "only", "require_group"]

K = TypeVar("K")
V = TypeVar("V")


class AdminBase:
    """A client that is started, asks, and is closed. `odradek.client.admin.admin` says what it can ask."""

    @overload
    @configured_by(AdminConfig)
    def __init__(self, config: AdminConfig) -> None: ...
    @overload
    def __init__(self, *, config: AdminConfig) -> None: ...
    def __init__(self, *values: Any, **settings: Any) -> None:
        self.config = config_of(AdminConfig, values, settings)
        self._open_calls: Calls | None = None
        self._is_closed = False
        self._closing: asyncio.Task[None] | None = None

    async def start(self) -> Self:
        """Connects to the cluster. Raises ConnectionFailed or AuthenticationFailed; nothing is left behind then."""
        if self._open_calls is not None or self._is_closed:
            raise ClientClosed("admin client", "this admin client was started before; make a new one")
        config = self.config
        self._environment = config.environment()
        self._tasks = Tasks(self._environment.loop)
        metrics = client_metrics(config.metrics, config.client_id)
        self.cluster = Cluster(config, self._environment, self._tasks, metrics=metrics)
        """Its connections and what it knows of brokers; a Fetcher can read over them."""
        self._open_calls = Calls(
            self.cluster,
            self._environment,
            request_timeout_ms=config.request_timeout_ms,
            backoff=Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms, self._environment.random),
            retries=config.retries,
        )
        self._coordinators = Coordinators(self._open_calls, GROUPS)
        self._transaction_coordinators = Coordinators(self._open_calls, TRANSACTIONS)
        try:
            await self.cluster.start(config.default_api_timeout_ms)
        except BaseException:
            await self.close()
            raise
        return self

    async def close(self) -> None:
        """Closes the connections, and returns when nothing is left.

        It may be called again. Cancelled, it waits no longer, and the connections are closed nevertheless.
        """
        if self._open_calls is None:
            self._is_closed = True
            return  # it was never started
        if asyncio.get_running_loop() is not self._environment.loop:
            raise WrongLoop("admin client")
        self._is_closed = True
        if self._closing is None:
            self._closing = self._tasks.start(self._close(), f"{self.config.client_id}: close")
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        """In a task of its own, so that a `close` that is cancelled does not leave half of it undone."""
        await self.cluster.close()
        await self._tasks.close()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def _calls(self) -> Calls:
        if self._is_closed:
            raise ClientClosed("admin client")
        if self._open_calls is None:
            raise ClientNotStarted("admin client")
        if asyncio.get_running_loop() is not self._environment.loop:
            raise WrongLoop("admin client")
        return self._open_calls

    def _deadline(self, timeout_ms: float | None) -> Deadline:
        if timeout_ms is not None:
            require_timeout("timeout_ms", timeout_ms)
        return self._calls.deadline(self.config.default_api_timeout_ms if timeout_ms is None else timeout_ms)

    def _timeout_ms(self, deadline: Deadline) -> int:
        """What a broker is told: how long it may take."""
        return max(1, int(self._calls.remaining_ms(deadline)))


async def items_of(name: str, iterable: Iterable[K], wanted: str) -> list[K]:
    """All that the caller's iterable has. Raises TypeError for what is none, and for a text.

    `wanted`: what it should be of, in words.
    """
    require_iterable(name, iterable, f"an iterable of {wanted}")
    return await taken(iterable)


def keys_of(name: str, mapping: Mapping[Any, Any], wanted: str) -> Collection[Any]:
    """Raises TypeError for what is no mapping."""
    require_kind(name, mapping, Mapping, f"a mapping by {wanted}")
    return mapping.keys()


def require_group(group_id: object) -> None:
    """Raises TypeError."""
    require_kind("group_id", group_id, str, "a group's id (str)")


async def only(item: K, call: Awaitable[Mapping[K, V]]) -> V:
    """The result of a call about one item, or the item's own error."""
    try:
        return (await call)[item]
    except ItemsFailed as failed:
        raise failed.errors[item] from None
