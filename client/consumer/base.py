"""`ConsumerBase`: what all calls of a consumer stand on: its parts, its beginning and end, and its state."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from threading import get_ident
from types import TracebackType
from typing import Final, Literal, NoReturn, Self

from odradek.client.arguments import require_timeout
from odradek.client.cluster.cluster import Cluster
from odradek.client.consumer.config import ConsumerConfig
from odradek.client.consumer.core import ConsumerCore
from odradek.client.consumer.deserialization import Deserialization
from odradek.client.consumer.errors import ConsumerClosed, ConsumerNotStarted, NoGroup
from odradek.client.consumer.group.group_session import GroupSession
from odradek.client.consumer.group.subscription import Subscription
from odradek.client.consumer.offset_lookup import OffsetLookup
from odradek.client.consumer.records import ConsumerRecord
from odradek.client.consumer.transaction_binding import TransactionBinding
from odradek.client.errors.client_errors import ClientError, WrongLoop
from odradek.client.fetching.fetcher import Fetcher
from odradek.client.metrics.metrics import client_metrics
from odradek.client.network.backoff import Backoff
from odradek.runtime.environment import tell_when_forked
from odradek.runtime.tasks import Tasks

__all__ = ["ConsumerBase"]

logger = logging.getLogger(__name__)

NOWHERE: Final = 0
"""No thread's id."""
CONNECTIONS_MS: Final = 1_000.0
"""So much of `close_timeout_ms` is kept for the connections, if there is that much."""


class ConsumerBase:
    """See `odradek.client.consumer.consumer`."""

    def __init__(self, config: ConsumerConfig) -> None:
        self.config: ConsumerConfig = config
        self._thread_id = NOWHERE
        self._state: Literal["new", "open", "closing", "closed", "forked"] = "new"
        self._closing: asyncio.Task[None] | None = None
        self._binding: TransactionBinding | None = None
        """To the transactions that commit for it."""
        self._iteration: AsyncGenerator[ConsumerRecord] | None = None
        """What `async for` walks. It outlives a `break`, and goes on when the program asks again."""

    # --------------------------------------------------------------------------------------------- lifecycle
    async def start(self) -> Self:
        """Connects to the cluster. Raises ConnectionFailed or AuthenticationFailed; nothing is left behind then."""
        if self._state != "new":
            raise ConsumerClosed("this consumer was started before; make a new one")
        self._state = "closed"  # should anything go wrong
        config = self.config
        environment = self._environment = config.environment()
        self._tasks = Tasks(environment.loop)
        metrics = client_metrics(config.metrics, config.client_id)
        self._cluster = Cluster(config, environment, self._tasks, metrics=metrics)
        try:
            await self._cluster.start()
        except BaseException:
            await self._cluster.close()
            await self._tasks.close()
            raise
        settings = config.fetch_settings()
        self._fetcher = Fetcher(self._cluster, environment, settings)
        deserialization = Deserialization(
            config.key_deserializer, config.value_deserializer, skips=config.skip_bad_records, name=config.client_id
        )
        self._core = ConsumerCore(self._fetcher, deserialization, manual_done=config.manual_done)
        self._group: GroupSession | None = None
        if config.group_id is not None:
            self._group = GroupSession(config, environment, self._cluster, self._tasks, self._core, metrics)
        backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms, environment.random)
        self._lookup = OffsetLookup(self._cluster, environment, backoff, read_committed=settings.read_committed)
        self._is_running = environment.loop.is_running
        self._thread_id = get_ident()
        self._state = "open"
        tell_when_forked(self)
        if config.topics:
            self._session().subscribe(Subscription.to_names(config.topics))
        return self

    async def close(self) -> None:
        """Ends all reading, commits what is done, leaves the group and closes the connections, in `close_timeout_ms`.

        Records in hand do not become done. It may be called again. Who waits in `async for` comes to its end; who waits
        in another call gets a ConsumerClosed. Cancelled, or in a rebalance callback, it waits for nothing more.
        """
        if self._state == "new":
            self._state = "closed"
        if self._closing is None:
            if self._state == "closed":
                return  # it never came to anything
            self._check()
            self._state = "closing"
            self._core.close()
            self._fetcher.close()
            self._closing = self._tasks.start(self._close(), f"{self.config.client_id}: close")
        elif asyncio.get_running_loop() is not self._environment.loop:
            raise WrongLoop("consumer")
        if self._group is None or not self._group.runs_in_callback():
            await asyncio.shield(self._closing)

    async def _close(self) -> None:
        """In a task of its own, so that a `close` that is cancelled does not leave half of it undone."""
        began_ms = self._environment.monotonic_ms()
        timeout_ms = self.config.close_timeout_ms
        try:
            async with asyncio.timeout(timeout_ms / 1000.0):
                if self._group is not None:
                    await self._group.close(began_ms + max(timeout_ms - CONNECTIONS_MS, timeout_ms / 2))
                self._ended()
                iteration = self._iteration
                if iteration is not None and not getattr(iteration, "ag_running", False):
                    await iteration.aclose()
                await self._cluster.close()
        except TimeoutError:
            logger.warning("%s: closing took longer than close_timeout_ms", self.config.client_id)
        finally:
            self._ended()
        await self._tasks.close()

    def _ended(self) -> None:
        if self._group is not None:
            self._group.end()
        self._thread_id = NOWHERE
        self._state = "closed"

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # --------------------------------------------------------------------------------------------------- within
    def _deadline_ms(self, timeout_ms: float | None) -> float:
        self._check(may_be_closing=True)
        if timeout_ms is not None:
            require_timeout("timeout_ms", timeout_ms)
        given_ms = self.config.default_api_timeout_ms if timeout_ms is None else timeout_ms
        return self._environment.monotonic_ms() + given_ms

    def _session(self) -> GroupSession:
        """Raises NoGroup."""
        if self._group is None:
            raise NoGroup
        return self._group

    def _is_open(self) -> bool:
        return self._state == "open"

    def _check(self, *, may_be_closing: bool = False) -> None:
        """Raises if the consumer cannot be used here and now. `may_be_closing`: a callback may still ask for this."""
        if self._state != "open" and not (may_be_closing and self._state == "closing"):
            raise self._wrong_state()
        if get_ident() != self._thread_id:
            raise WrongLoop("consumer", "in another thread than its event loop")
        if not self._is_running():
            raise WrongLoop("consumer", "outside of its event loop")

    def _wrong_state(self) -> ClientError:
        if self._state == "forked":
            return WrongLoop("consumer", "in a forked child")
        return ConsumerNotStarted() if self._state == "new" else ConsumerClosed()

    def was_forked(self) -> None:
        """In a child, which has this consumer's connections and not its event loop."""
        if self._state in ("open", "closing"):
            self._thread_id = NOWHERE
            self._state = "forked"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Consumer holds connections and cannot be pickled; make one where it is used")
