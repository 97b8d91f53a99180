"""Authenticates an open connection again before its session ends, as KIP-368 has it.

A broker that limits sessions says for how long; afterwards it takes nothing but a new authentication, and closes the
connection for anything else. So at 85 to 95 % of that time, by chance, lest all clients come at once, the exchange
is repeated on the same connection, by the same mechanism. Requests that are in flight are answered before; those that
come meanwhile wait, and follow it in their order. (Source: SaslClientAuthenticator.java.)

A token that cannot be had at the moment is asked for again while the old session lasts: nothing has been said to the
broker by then. What fails in the exchange itself ends the connection.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, Protocol

from odradek.client.errors.client_errors import ClientError, ConnectionFailed
from odradek.client.network.authentication import Ask, Authenticator, Mechanism
from odradek.client.network.backoff import Backoff
from odradek.client.network.negotiation import Versions
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks

__all__ = ["Reauthentication"]

logger = logging.getLogger(__name__)

PART_MIN: Final = 0.85
PART_JITTER: Final = 0.10
NEVER: Final = float("inf")
DELAY_MS_MIN: Final = 1_001.0
"""A broker refuses another authentication within a second of the last one (KafkaChannel.java)."""


class Holding(Protocol):
    """What a connection does for this: it keeps requests back meanwhile, but for those of `ask_now`."""

    @property
    def ask_now(self) -> Ask: ...

    def hold(self) -> None: ...

    def release(self) -> None: ...

    async def unthrottled(self) -> None: ...

    def close(self, why: ClientError | None = None) -> None: ...


class Reauthentication:
    """The sessions of one connection, from its first authentication on. `backoff`: between tries to get a token."""

    def __init__(
        self,
        connection: Holding,
        authenticator: Authenticator,
        versions: Versions,
        environment: Environment,
        backoff: Backoff,
    ) -> None:
        self._connection = connection
        self._authenticator = authenticator
        self._versions = versions
        self._environment = environment
        self._backoff = backoff
        self._ends_ms = NEVER
        self._tasks = Tasks(environment.loop)
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self.on_success: Callable[[], None] = _nothing
        self.on_failure: Callable[[], None] = _nothing
        """Called before the connection is closed for it."""

    def schedule(self, lifetime_ms: float) -> None:
        """A session of this length begins now; 0: it has no end."""
        if lifetime_ms > 0:
            delay_ms = lifetime_ms * (PART_MIN + PART_JITTER * self._environment.random())
            delay_ms = max(DELAY_MS_MIN, delay_ms)
            self._ends_ms = self._environment.monotonic_ms() + lifetime_ms
            self._timer = self._environment.loop.call_later(delay_ms / 1000.0, self._start)

    def cancel(self) -> None:
        """The connection is closed."""
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    async def ended(self) -> None:
        """Returns when nothing of it runs any more, the caller's own cleaning up after a token included."""
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    def _start(self) -> None:
        name = f"authenticate again at {self._authenticator.broker}"
        self._task = self._tasks.start(self._run(), name)

    async def _run(self) -> None:
        connection = self._connection
        try:
            lifetime_ms = await self._authenticate()
        except ClientError as error:
            logger.warning("re-authentication failed: %s", error)
            self.on_failure()
            connection.close(error)
        except Exception as error:
            self.on_failure()
            connection.close(ConnectionFailed(self._authenticator.broker, f"re-authentication failed: {error!r}"))
            raise
        else:
            logger.debug("authenticated again at %s", self._authenticator.broker)
            self.on_success()
            self.schedule(lifetime_ms)

    async def _authenticate(self) -> int:
        connection, authenticator = self._connection, self._authenticator
        mechanism = await self._prepare()
        await connection.unthrottled()
        connection.hold()
        lifetime_ms = await authenticator.authenticate(connection.ask_now, self._versions, mechanism)
        connection.release()  # only now: after a failure, what is held fails unsent
        return lifetime_ms

    async def _prepare(self) -> Mechanism:
        """May ask elsewhere for a token, while requests go on. Raises the error of the last try within the session."""
        failures = 0
        while True:
            try:
                return await self._authenticator.prepare()
            except ClientError as error:
                wait_ms = self._backoff.after_ms(failures)
                failures += 1
                left_ms = self._ends_ms - self._environment.monotonic_ms()
                if not error.retriable or left_ms <= wait_ms:
                    raise
                logger.log(
                    logging.DEBUG if failures & (failures - 1) else logging.WARNING,
                    "%s: the session is not renewed yet, since %s; this is tried again until it ends, in %.0f ms",
                    self._authenticator.broker,
                    error.message.partition(" failed: ")[2] or error.message,
                    left_ms,
                )
            await self._environment.sleep(wait_ms)


def _nothing() -> None: ...
