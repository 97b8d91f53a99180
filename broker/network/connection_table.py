"""All connections of this broker: how many there may be, which are idle for too long, and how they end with it.

One that comes while there are too many, or while they come too fast (quotas/connection_quotas.py), is *held*: it is not
read from, as if it had not been accepted, and taken in when its turn has come. Kafka leaves such connections to the
system's queue, which takes as many.

Those of which it is not known yet whose they are have limits of their own (strangers.py), and memory of their own: what
they send is in no budget of those who are served.
"""

import asyncio
import logging
from collections import deque
from typing import Final, Protocol

from odradek.broker.handling.context import Caller, Context
from odradek.broker.network.limited_log import LimitedLog
from odradek.broker.network.request_budget import RequestBudget
from odradek.broker.network.strangers import Strangers
from odradek.broker.quotas.connection_quotas import ConnectionLimits, ConnectionQuotas, ListenerLimits
from odradek.broker.quotas.rate import MS_PER_S, Windows
from odradek.protocol.frames import CAPACITY_MIN

logger = logging.getLogger(__name__)

QUIET_MS = 10_000.0
"""So long a connection keeps its buffer after its last request: a client that goes on finds it."""
HELD_MAX: Final = 1024
"""Connections that wait on one listener; those beyond are closed."""
STRANGERS_BYTES = 16 * 1024 * 1024
"""What all of them may have sent of requests that are not answered. Over it they wait for one another
(request_budget.py), and for nobody else."""


class Listed(Protocol):
    """A connection, as the table sees it."""

    last_active_ms: float

    @property
    def caller(self) -> Caller:
        """Who is at its other end, and on which listener."""
        ...

    @property
    def is_authenticated(self) -> bool:
        """Whether it is known who the client is, or nobody asks."""
        ...

    def admitted(self) -> None:
        """It is known now."""
        ...

    @property
    def is_busy(self) -> bool:
        """Whether a request is being answered, waits for its turn, or its reply is still being sent."""
        ...

    @property
    def is_followers(self) -> bool:
        """Whether a follower fetches by it: it is served until no client waits any more."""
        ...

    @property
    def has_left(self) -> bool:
        """Whether the client of one that is not read from has closed its end."""
        ...

    def hold(self) -> None:
        """Reads nothing before it is taken in."""
        ...

    def begin(self) -> None:
        """It is taken in."""
        ...

    def refuse(self, reason: str) -> None:
        """It is not taken in, and closed."""
        ...

    def give_back(self) -> None:
        """Gives back what it holds for receiving."""
        ...

    def finish(self) -> asyncio.Task[None] | None:
        """Starts no further request; the task that ends with the request under way."""
        ...

    def close(self, reason: str) -> None:
        """Replies already queued are still sent."""
        ...


class _Gate:
    """The way in of one listener."""

    __slots__ = ("held", "ready_ms", "timer")

    def __init__(self) -> None:
        self.held: deque[Listed] = deque()
        """In the order in which they came."""
        self.ready_ms: float | None = None
        """From when on the first of them may be taken in; None: nobody has asked yet."""
        self.timer: asyncio.TimerHandle | None = None


class ConnectionTable:
    """See the module."""

    def __init__(self, context: Context, descriptors: int, listeners: int) -> None:
        """`descriptors`: how many connections the limit of open files allows; more would be dropped without a word.
        `listeners`: how many the broker has."""
        self._context = context
        self._descriptors = descriptors
        config = context.config
        protected = context.member.peers.listener if listeners > 1 else None
        windows = Windows.of_seconds(config.quota_window_num, config.quota_window_size_seconds)
        self.quotas = ConnectionQuotas(self._limits, self._limits_of, protected, windows)
        self.connections: dict[Listed, None] = {}
        self.strangers = Strangers[Listed]()
        self.strangers_memory = RequestBudget(STRANGERS_BYTES, context.environment.loop)
        """What those have sent."""
        self.log_of_strangers = LimitedLog(logger, context.environment)
        self._gates: dict[str, _Gate] = {}
        self._leaving: dict[Listed, asyncio.TimerHandle] = {}
        """Those whose address has had too many, until they are closed."""
        self.landing = memoryview(bytearray(CAPACITY_MIN))
        """Where connections without a buffer receive; all are on one event loop."""

    def _limits(self) -> ConnectionLimits:
        config = self._context.config
        return ConnectionLimits(
            config.max_connections,
            config.max_connection_creation_rate,
            config.max_connections_per_ip,
            config.max_connections_per_ip_overrides,
        )

    def _limits_of(self, listener: str) -> ListenerLimits:
        del listener  # no option can be set for one listener yet: each has what the broker has
        config = self._context.config
        return ListenerLimits(config.max_connections, config.max_connection_creation_rate)

    # -- coming -----------------------------------------------------------------------------------------------------

    def arrive(self, connection: Listed) -> None:
        """Has the connection begin, at once or when its turn has come, or refuses it."""
        held = sum(len(gate.held) for gate in self._gates.values())
        count = len(self.connections) + held + len(self._leaving)
        if count >= self._descriptors:
            why = "raise the limit of open files, ulimit -n"
            self._refuse(connection, f"there are {count} connections already ({why})")
            return
        gate = self._gates.setdefault(connection.caller.listener, _Gate())
        if len(gate.held) >= HELD_MAX:
            self._refuse(connection, f"{len(gate.held)} connections wait to be taken in already")
            return
        gate.held.append(connection)
        if len(gate.held) == 1:
            self._let_in(gate)
        if gate.held:  # else it was the only one
            connection.hold()

    def _let_in(self, gate: _Gate) -> None:
        """Takes those in whose turn has come."""
        now_ms = self._context.environment.monotonic_ms()
        while gate.held:
            connection = gate.held[0]
            listener = connection.caller.listener
            if gate.ready_ms is None:
                gate.ready_ms = now_ms + self.quotas.creation_delay_ms(listener, int(now_ms))
            if gate.ready_ms > now_ms:
                if gate.timer is None:
                    delay_s = (gate.ready_ms - now_ms) / MS_PER_S
                    gate.timer = self._context.environment.loop.call_later(delay_s, self._rung, gate)
                return
            if not self.quotas.has_room(listener):
                return  # until another one ends
            gate.held.popleft()
            gate.ready_ms = None
            self._take(connection)

    def _rung(self, gate: _Gate) -> None:
        gate.timer = None
        self._let_in(gate)

    def _take(self, connection: Listed) -> None:
        caller, environment = connection.caller, self._context.environment
        quotas = self._context.metadata.image.quotas
        delay_ms = self.quotas.ip_delay_ms(caller.listener, caller.host, quotas, int(environment.monotonic_ms()))
        if delay_ms > 0:
            connection.hold()
            self._leaving[connection] = environment.loop.call_later(delay_ms / MS_PER_S, self._turn_away, connection)
        elif (refusal := self.quotas.refusal(caller.host) or self._admit_stranger(connection)) is not None:
            self._refuse(connection, refusal)
        else:
            self.connections[connection] = None
            self._context.metrics.connections = len(self.connections)
            self.quotas.came(caller.listener, caller.host)
            connection.begin()
            if self.quotas.has_too_many:
                self._make_room()

    def _turn_away(self, connection: Listed) -> None:
        del self._leaving[connection]
        self._refuse(connection, "its address has opened connections faster than its connection_creation_rate")

    def _refuse(self, connection: Listed, reason: str) -> None:
        self._context.metrics.connections_refused += 1
        connection.refuse(reason)

    def _make_room(self) -> None:
        """A broker has come although there were enough connections: the client's goes that was quiet for longest."""
        clients = [each for each in self.connections if not self.quotas.is_protected(each.caller.listener)]
        if clients:
            oldest = min(clients, key=lambda each: (each.is_busy, each.last_active_ms))
            oldest.close("another broker has connected, and there are max.connections")

    # -- going ------------------------------------------------------------------------------------------------------

    def _admit_stranger(self, connection: Listed) -> str | None:
        """Why there is no room for it; None for a connection that is no stranger's."""
        if connection.is_authenticated:
            return None
        config, strangers = self._context.config, self.strangers
        if (count := strangers.of(connection.caller.host)) >= config.max_unauthenticated_connections_per_ip:
            return f"its address has {count} that are not authenticated (max.unauthenticated.connections.per.ip)"
        while len(strangers) >= config.max_unauthenticated_connections:
            oldest = strangers.oldest()
            self._no_stranger(oldest)
            oldest.refuse("another one took its place before it was authenticated (max.unauthenticated.connections)")
        strangers.add(connection, connection.caller.host, self._context.environment.monotonic_ms())
        self._context.metrics.connections_unauthenticated = len(strangers)
        return None

    def authenticated(self, connection: Listed) -> None:
        """It is known now who the client is."""
        self._no_stranger(connection)
        connection.admitted()

    def _no_stranger(self, connection: Listed) -> None:
        self.strangers.remove(connection)
        self._context.metrics.connections_unauthenticated = len(self.strangers)

    def forget(self, connection: Listed) -> None:
        """It has ended, whether it was taken in or not."""
        self._no_stranger(connection)
        caller = connection.caller
        if connection in self.connections:
            del self.connections[connection]
            self.quotas.went(caller.listener, caller.host)
            self._context.metrics.connections = len(self.connections)
            for gate in self._gates.values():
                if gate.held:
                    self._let_in(gate)
        elif (timer := self._leaving.pop(connection, None)) is not None:
            timer.cancel()
        elif (own := self._gates.get(caller.listener)) is not None and connection in own.held:
            own.held.remove(connection)
            self._let_in(own)  # the next one waits no longer than it would have

    def close_idle(self) -> None:
        """Closes what has neither sent nor awaited anything for `connections.max.idle.ms`; what has been quiet for
        `QUIET_MS` gives its buffer back. Called once a second: so options that have changed count soon."""
        idle_ms = self._context.config.connections_max_idle_ms
        self._close_late()
        now_ms = self._context.environment.monotonic_ms()
        for connection in list(self.connections):
            quiet_ms = 0.0 if connection.is_busy else now_ms - connection.last_active_ms
            if quiet_ms > QUIET_MS:
                connection.give_back()
            if quiet_ms > idle_ms >= 0:
                connection.close(f"idle for more than {idle_ms} ms (connections.max.idle.ms)")
        for gate in self._gates.values():
            for connection in list(gate.held):
                if connection.has_left:
                    connection.close("its client has left before it was taken in")
            self._let_in(gate)

    def _close_late(self) -> None:
        """Closes those that take too long to say who they are (`connection.authentication.timeout.ms`)."""
        timeout_ms = self._context.config.connection_authentication_timeout_ms
        for connection in self.strangers.late(self._context.environment.monotonic_ms(), timeout_ms):
            self._no_stranger(connection)
            connection.refuse(f"not authenticated within {timeout_ms} ms (connection.authentication.timeout.ms)")
        self.log_of_strangers.tick()

    async def drain(self, timeout_s: float) -> None:
        """Lets every request under way end, for at most `timeout_s`, while followers go on fetching what these have
        written. Closes all connections of clients then, and returns without waiting for followers."""
        self._close_held()
        connections = [connection for connection in self.connections if not connection.is_followers]
        workers = [worker for connection in connections if (worker := connection.finish()) is not None]
        try:
            await asyncio.wait_for(asyncio.gather(*workers, return_exceptions=True), timeout_s)
        except TimeoutError:
            logger.warning("some requests were still running after %.1f s and are given up", timeout_s)
        for connection in connections:
            connection.close("the broker stops")

    def close(self) -> None:
        """Closes those that are left."""
        self._close_held()
        for connection in list(self.connections):
            connection.close("the broker stops")

    def _close_held(self) -> None:
        for timer in self._leaving.values():
            timer.cancel()
        held = [*self._leaving, *(connection for gate in self._gates.values() for connection in gate.held)]
        self._leaving.clear()
        for gate in self._gates.values():
            gate.held.clear()
            if gate.timer is not None:
                gate.timer.cancel()
                gate.timer = None
        for connection in held:
            connection.close("the broker stops")
