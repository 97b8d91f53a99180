"""A client that a quota silences (KIP-219): nothing of it is read, and no request of its begins, until its time is up.

The answer that tells it so has left. Requests under way are answered; what it has sent before is set aside in the
budget of all requests, so that those who are silenced stop nobody else. Whether it has left is looked at meanwhile: a
transport that is not read from does not say so.
"""

import asyncio
from typing import Final, Protocol

from odradek.runtime.environment import Environment

READ_AHEAD_BYTES: Final = 1 << 20
MUTED_READ_AHEAD_BYTES: Final = 1 << 16
"""Of a client that a quota has silenced once: what it sends next may have to be kept for long."""
LOOK_MS: Final = 1000.0
"""So often is looked whether a client that is silenced has left."""


class Mutable(Protocol):
    """A connection, as its silence sees it."""

    @property
    def may_be_muted(self) -> bool:
        """Whether it is open, and not a follower's."""
        ...

    @property
    def has_left(self) -> bool:
        """Whether the client has closed its end."""
        ...

    def pause_muted(self) -> bool:
        """Stops reading, and sets aside what was received; whether there is room for that."""
        ...

    def overfull(self) -> None:
        """There was no room: closes it."""
        ...

    def resume_muted(self) -> None:
        """Its time is up: goes on."""
        ...

    def left_while_muted(self) -> None:
        """Closes it: nobody waits for it any more."""
        ...


class Muting:
    """The silence of one connection."""

    __slots__ = ("_connection", "_environment", "_timer", "read_ahead_bytes", "until_ms")

    def __init__(self, connection: Mutable, environment: Environment) -> None:
        self._connection: Mutable | None = connection
        self._environment = environment
        self._timer: asyncio.TimerHandle | None = None
        self.until_ms = 0.0
        """0: it is not silenced. Looked at for each request."""
        self.read_ahead_bytes = READ_AHEAD_BYTES

    def begin(self, until_ms: float) -> None:
        """It is silent until then, or for as long as it is already, whichever is longer."""
        connection = self._connection
        if connection is None or not connection.may_be_muted or until_ms <= self.until_ms:
            return
        is_new, self.until_ms = not self.until_ms, until_ms
        if is_new:
            self.read_ahead_bytes = MUTED_READ_AHEAD_BYTES
            if connection.pause_muted():
                self._stay()
            else:
                connection.overfull()

    def _stay(self) -> None:
        left_ms = self.until_ms - self._environment.monotonic_ms()
        if left_ms > 0:
            self._timer = self._environment.loop.call_later(min(left_ms, LOOK_MS) / 1000.0, self._look)
            return
        self.until_ms = 0.0
        if self._connection is not None:
            self._connection.resume_muted()

    def _look(self) -> None:
        self._timer = None
        connection = self._connection
        if connection is not None and self.until_ms > self._environment.monotonic_ms() and connection.has_left:
            connection.left_while_muted()
        else:
            self._stay()

    def end(self) -> None:
        """The connection has ended, and is not held by its silence."""
        self._connection = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
