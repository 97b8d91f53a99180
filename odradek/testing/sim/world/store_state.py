"""What a simulated store knows: a state whose history may be cut short, and that can be copied to be put back later."""

from collections import deque
from dataclasses import dataclass

from odradek.broker.cluster.state import State


class SimState(State):
    """A state whose history may be cut short at any time, and that can be copied."""

    __slots__ = ()

    def copied(self) -> "SimState":
        copy = SimState(dict(self.entries), self.revision)
        copy._leased = dict(self._leased)
        copy._leases = {lease_id: dict(keys) for lease_id, keys in self._leases.items()}
        copy._granted = dict(self._granted)
        copy._history = deque(self._history)
        copy._history_bytes = self._history_bytes
        copy._compacted = self._compacted
        return copy

    def begin_behind(self, other: "SimState") -> None:
        """No lease id of the other one is given out again: etcd's are random numbers."""
        self._last_lease_id = max(self._last_lease_id, other._last_lease_id)

    def lease_of(self, key: str) -> int | None:
        """The lease under which the key was put; None without one."""
        return self._leased.get(key)

    def compact(self) -> None:
        """Changes up to now are no longer kept."""
        self._history.clear()
        self._history_bytes = 0
        self._compacted = self.revision


@dataclass(frozen=True, slots=True)
class Saved:
    """What a store held once, its leases too."""

    state: SimState
    ttls_ms: dict[int, int]
