"""How much replication may move in a second (KIP-73, ReplicationQuotaManager.scala). Pure.

Only throttled replicas count, those that a topic names, or all of it: `PARTITION:BROKER,…` or `*`. An answer's size is
known when it is there, so nothing is refused beforehand: what was too much is a debt, and the throttled partitions stay
out of the requests (or answers) until it is paid. What is not throttled never waits.

    room grows by `rate` bytes in a second, up to what one second gives; an answer takes its size off

Kafka measures over the last eleven seconds; its average is the same, its bursts may be larger.
"""

from collections.abc import Collection

SECONDS_SAVED = 1.0
"""So much of what was not used may be used later."""
WAIT_MS_MAX = 1000.0
ALL = "*"


class ReplicationQuota:
    """One direction: what a broker fetches as a follower, or what it sends as a leader."""

    __slots__ = ("_at_ms", "_rate", "_room_bytes")

    def __init__(self, bytes_per_second: int, now_ms: float) -> None:
        self._rate = bytes_per_second
        self._room_bytes = bytes_per_second * SECONDS_SAVED
        self._at_ms = now_ms

    def configure(self, bytes_per_second: int, now_ms: float) -> None:
        """`bytes_per_second` counts from now on. A debt stays, and is paid at the new rate."""
        self._grow(now_ms)
        self._rate = bytes_per_second
        self._grow(now_ms)

    def record(self, size_bytes: int, now_ms: float) -> None:
        """So much of throttled replicas has come, or gone."""
        self._grow(now_ms)
        self._room_bytes -= size_bytes

    def wait_ms(self, now_ms: float) -> float:
        """How long until there is room; 0.0 when there is some. At most WAIT_MS_MAX: the rate may change."""
        self._grow(now_ms)
        if self._room_bytes > 0:
            return 0.0
        missing_bytes = 1.0 - self._room_bytes
        return WAIT_MS_MAX if self._rate == 0 else min(missing_bytes * 1000.0 / self._rate, WAIT_MS_MAX)

    def _grow(self, now_ms: float) -> None:
        grown_bytes = self._room_bytes + (now_ms - self._at_ms) * self._rate / 1000.0
        self._at_ms = now_ms
        self._room_bytes = min(grown_bytes, self._rate * SECONDS_SAVED)


def is_throttled(throttled_replicas: Collection[str], index: int, broker_id: int) -> bool:
    """Whether a topic's `leader.` or `follower.replication.throttled.replicas` names this replica."""
    if not throttled_replicas:
        return False
    named = f"{index}:{broker_id}"
    return any(value == ALL or value.replace(" ", "") == named for value in throttled_replicas)
