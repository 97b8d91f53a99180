"""How many connections there may be, and how fast they may come: by broker, by listener, by address (KIP-402, KIP-612;
ConnectionQuotas in SocketServer.scala).

| limit | over it, a connection |
|---|---|
| `max.connections` of the broker, or of the listener | waits until there is room |
| `max.connection.creation.rate` of the broker, or of the listener | waits until the rate is down, a window at most |
| `connection_creation_rate` of its address (AlterClientQuotas) | waits so long, and is closed then |
| `max.connections.per.ip`, or its override for the address | is closed at once |

Where there are several listeners, the limits of the broker leave that of brokers out: clients cannot keep brokers from
one another. What waits, waits in the order in which it came to its listener (network/connection_table.py).
"""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from odradek.broker.cluster.quotas import IP, NO_QUOTAS, EntityQuotas, QuotaEntity
from odradek.broker.config.quota_options import canonical, parse_overrides
from odradek.broker.quotas.alteration import CONNECTION_CREATION_RATE
from odradek.broker.quotas.limits import Owner
from odradek.broker.quotas.meters import Meters
from odradek.broker.quotas.rate import INT_MAX, Rate, Windows

BY_IP_LIMIT: Final = "max.connections.per.ip"


class ListenerLimits(NamedTuple):
    """What may be set for one listener; for the broker where it is not."""

    connections: int = INT_MAX
    """`max.connections`."""
    creation_rate: int = INT_MAX
    """`max.connection.creation.rate`."""


class ConnectionLimits(NamedTuple):
    """What is set for the broker."""

    connections: int = INT_MAX
    creation_rate: int = INT_MAX
    by_ip: int = INT_MAX
    """`max.connections.per.ip`, and the overrides of that."""
    by_ip_overrides: str = ""


class _Listener:
    """What is counted of one listener."""

    __slots__ = ("count", "ip_throttled_ms", "rate", "throttled_ms")

    def __init__(self, rate: Rate) -> None:
        self.count = 0
        self.rate = rate
        self.throttled_ms = 0
        self.ip_throttled_ms = 0


class ConnectionQuotas:
    """Counts and rates of one broker."""

    def __init__(
        self,
        limits: Callable[[], ConnectionLimits],
        limits_of: Callable[[str], ListenerLimits],
        protected: str | None,
        windows: Windows,
    ) -> None:
        """`limits`: as they are now; `limits_of`: those of a listener, by its name. `protected`: the listener of
        brokers, where it is not the only one."""
        self._limits = limits
        self._limits_of = limits_of
        self._protected = protected
        self._windows = windows
        self._rate = Rate(windows, 0)
        self._count = 0
        self.listeners: dict[str, _Listener] = {}
        self._by_ip: dict[str, int] = {}
        self._ip_rates = Meters[Rate](lambda now_ms: Rate(windows, now_ms), windows.span_ms)
        self._quotas = NO_QUOTAS
        self._ip_limits: dict[str | None, float] = {}
        self._overrides_text = ""
        self._overrides: Mapping[str, int] = {}

    # -- rates ------------------------------------------------------------------------------------------------------

    def creation_delay_ms(self, listener: str, now_ms: int) -> int:
        """Counts a connection that comes, and says for how long it has to wait."""
        of_listener = self._listener(listener)
        delay_ms = 0
        if listener != self._protected:
            delay_ms = self._delay_ms(self._rate, self._limits().creation_rate, now_ms)
        limit = self._limits_of(listener).creation_rate
        delay_ms = max(delay_ms, self._delay_ms(of_listener.rate, limit, now_ms))
        of_listener.throttled_ms += delay_ms
        return delay_ms

    def ip_delay_ms(self, listener: str, ip: str, quotas: Mapping[QuotaEntity, EntityQuotas], now_ms: int) -> int:
        """Counts it for its address, and says after how long it is to be closed; 0: it may stay. One that may not was
        none for the other rates."""
        if quotas is not self._quotas:
            self._quotas, self._ip_limits = quotas, _ip_limits(quotas)
        if not self._ip_limits:
            return 0
        address = _canonical(ip)
        limit = self._ip_limits.get(address, self._ip_limits.get(None))
        if limit is None:
            return 0
        rate = self._ip_rates.of(Owner("", address), limit, now_ms).stat
        rate.record(1, now_ms)
        delay_ms = min(rate.silence_ms(limit, now_ms), self._windows.size_ms)
        if delay_ms > 0:
            of_listener = self._listener(listener)
            of_listener.ip_throttled_ms += delay_ms
            rate.record(-1, now_ms)
            of_listener.rate.record(-1, now_ms)
            if listener != self._protected:
                self._rate.record(-1, now_ms)
        return delay_ms

    def _delay_ms(self, rate: Rate, limit: int, now_ms: int) -> int:
        rate.record(1, now_ms)
        return 0 if limit == INT_MAX else min(rate.silence_ms(limit, now_ms), self._windows.size_ms)

    # -- counts -----------------------------------------------------------------------------------------------------

    def has_room(self, listener: str) -> bool:
        """Whether there may be one more on the listener."""
        if self._listener(listener).count >= self._limits_of(listener).connections:
            return False
        return listener == self._protected or self._count < self._limits().connections

    def refusal(self, ip: str) -> str | None:
        """Why there may be no more from this address; None: there may."""
        present = self._by_ip.get(ip, 0)
        limits = self._limits()
        limit = limits.by_ip
        if (text := limits.by_ip_overrides) != self._overrides_text:
            self._overrides_text, self._overrides = text, parse_overrides(text)
        if self._overrides:
            limit = self._overrides.get(_canonical(ip), limit)
        if present < limit:
            return None
        return f"there are {present} connections from its address already ({BY_IP_LIMIT})"

    @property
    def has_too_many(self) -> bool:
        """Whether brokers have come beyond the limit of the broker: a client has to go."""
        return self._count > self._limits().connections

    def is_protected(self, listener: str) -> bool:
        """Whether limits of the broker leave the listener out."""
        return listener == self._protected

    def came(self, listener: str, ip: str) -> None:
        """A connection was taken in."""
        self._listener(listener).count += 1
        self._by_ip[ip] = self._by_ip.get(ip, 0) + 1
        self._count += 1

    def went(self, listener: str, ip: str) -> None:
        """One that was taken in has ended."""
        self._listener(listener).count -= 1
        self._count -= 1
        if (left := self._by_ip[ip] - 1) > 0:
            self._by_ip[ip] = left
        else:
            del self._by_ip[ip]
        assert self._count >= 0

    def _listener(self, name: str) -> _Listener:
        if (found := self.listeners.get(name)) is None:
            found = self.listeners[name] = _Listener(Rate(self._windows, 0))
        return found


def _canonical(ip: str) -> str:
    """What is no address, as that of a caller without a connection, is left as it is."""
    try:
        return canonical(ip)
    except ValueError:
        return ip


def _ip_limits(quotas: Mapping[QuotaEntity, EntityQuotas]) -> dict[str | None, float]:
    """By address; None: of any without a limit of its own."""
    limits: dict[str | None, float] = {}
    for entity, set_for in quotas.items():
        kind, name = entity[0]
        if kind == IP and (limit := set_for.limits.get(CONNECTION_CREATION_RATE)) is not None:
            limits[None if name is None else _canonical(name)] = limit
    return limits
