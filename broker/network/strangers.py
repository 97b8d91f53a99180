"""The connections of which it is not known yet whose they are: how many there may be, and for how long. Pure.

A stranger may hold a connection, 64 KiB of a handshake, and what it has sent of a request. So there are

- `max.unauthenticated.connections` of them: another one takes the place of the oldest, since a client that is served
  needs milliseconds, and who waits for that to end is no client;
- of one address `max.unauthenticated.connections.per.ip`: another one is refused, and takes nobody's place;
- `connection.authentication.timeout.ms` from the moment when it was accepted, whatever it sends meanwhile.
"""

from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class Accepted(NamedTuple):
    """A stranger's address, and when it came."""

    host: str
    accepted_ms: float


class Strangers(Generic[T]):
    """All of one broker, the oldest first."""

    def __init__(self) -> None:
        self._accepted: dict[T, Accepted] = {}
        self._by_host: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._accepted)

    def __contains__(self, stranger: object) -> bool:
        return stranger in self._accepted

    def of(self, host: str) -> int:
        """How many have this address."""
        return self._by_host.get(host, 0)

    def add(self, stranger: T, host: str, now_ms: float) -> None:
        self._accepted[stranger] = Accepted(host, now_ms)
        self._by_host[host] = self.of(host) + 1

    def remove(self, stranger: T) -> None:
        """It is known now who it is, or it is gone. One that is not there is nobody's mistake."""
        if (accepted := self._accepted.pop(stranger, None)) is None:
            return
        left = self._by_host[accepted.host] - 1
        if left:
            self._by_host[accepted.host] = left
        else:
            del self._by_host[accepted.host]

    def oldest(self) -> T:
        """The first to go."""
        return next(iter(self._accepted))

    def late(self, now_ms: float, timeout_ms: float) -> list[T]:
        """Those whose time is up."""
        late: list[T] = []
        for stranger, accepted in self._accepted.items():
            if now_ms - accepted.accepted_ms < timeout_ms:
                break
            late.append(stranger)
        return late
