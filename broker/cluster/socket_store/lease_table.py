"""How long each lease of a store lasts, when its server may have stood still itself. Pure.

A lease ends when it was not renewed for as long as was granted. A renewal that waits in the socket of a server that
stands still (SIGSTOP, a machine that sleeps or swaps) was sent in time, and is not to blame. So the server looks at
the clock at least every BEAT_MS. Where the last look is longer ago than STANDSTILL_MS, every lease gets its full time
again before any ends.

The clock runs on while the machine sleeps, as the one by which brokers judge their own leases.
"""

from dataclasses import dataclass
from typing import Final

BEAT_MS: Final = 200.0
STANDSTILL_MS: Final = 500.0
"""A busy machine delays a beat by less, and a lease has a second at least."""


@dataclass(slots=True)
class _Term:
    ttl_ms: int
    ends_ms: float


class LeaseTable:
    """The leases that have not ended, by their ids."""

    __slots__ = ("_looked_ms", "_terms")

    def __init__(self, now_ms: float) -> None:
        self._looked_ms = now_ms
        self._terms: dict[int, _Term] = {}

    def look(self, now_ms: float) -> bool:
        """The server runs now. Whether it had stood still, in which case each lease has its full time from now on. To
        be called before anything else that is done at this moment."""
        stood_still = now_ms - self._looked_ms > STANDSTILL_MS
        self._looked_ms = now_ms
        if stood_still:
            for term in self._terms.values():
                term.ends_ms = now_ms + term.ttl_ms
        return stood_still

    def grant(self, lease_id: int, ttl_ms: int, now_ms: float) -> None:
        self._terms[lease_id] = _Term(ttl_ms, now_ms + ttl_ms)

    def renew(self, lease_id: int, now_ms: float) -> bool:
        """Whether it is there to be renewed."""
        term = self._terms.get(lease_id)
        if term is None:
            return False
        term.ends_ms = now_ms + term.ttl_ms
        return True

    def end(self, lease_id: int) -> bool:
        """Whether it had not ended before."""
        return self._terms.pop(lease_id, None) is not None

    def take_ended(self, now_ms: float) -> list[int]:
        """The leases whose time is over, which are no longer here."""
        ended = [lease_id for lease_id, term in self._terms.items() if term.ends_ms <= now_ms]
        for lease_id in ended:
            del self._terms[lease_id]
        return ended
