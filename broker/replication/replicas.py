"""The replicas of one partition as its leader sees them: in-sync set and high watermark. Pure.

**Sets.** AR, the assigned replicas. ISR, the in-sync replicas that the metadata store holds. The *maximal* ISR is the
ISR plus the additions that were proposed and not yet stored: until the store has answered, either may be in force, so
whatever must hold for the ISR is asked of the larger set (KIP-497, Kafka's `CommittedPartitionState` and
`PendingExpandIsr`).

**High watermark.** The smallest log end offset over the maximal ISR and over those assigned replicas that have caught
up and are about to join it; it never goes back, and does not move while the stored ISR is smaller than the effective
minimum (KIP-966, `Partition.maybeIncrementLeaderHW`).

**min.insync.replicas** counts up to the replication factor: one replica with `min.insync.replicas=2` accepts acks=all,
as Kafka does (`Partition.effectiveMinIsr`).
"""

from collections.abc import Iterable

UNKNOWN_OFFSET = -1


class Follower:
    """What the leader knows of one follower (Kafka's `Replica` and `ReplicaState`)."""

    __slots__ = ("eligible", "last_caught_up_ms", "last_fetch_leader_end", "last_fetch_ms", "log_end_offset")

    def __init__(self) -> None:
        self.log_end_offset = UNKNOWN_OFFSET
        self.last_fetch_leader_end = 0
        self.last_fetch_ms = 0.0
        self.last_caught_up_ms = 0.0
        self.eligible = True
        """Unfenced and not shutting down, so allowed into the ISR."""

    def fetched(self, fetch_offset: int, now_ms: float, leader_end_offset: int) -> None:
        """A fetch at `fetch_offset` says that all before it is in the follower's log.

        It has caught up now if it asks for the leader's end, or as of its previous fetch if it asks for what was the
        leader's end then (`Replica.updateFetchStateOrThrow`).
        """
        if fetch_offset >= leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif fetch_offset >= self.last_fetch_leader_end:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.log_end_offset = max(self.log_end_offset, fetch_offset)
        self.last_fetch_leader_end = leader_end_offset
        self.last_fetch_ms = now_ms

    def is_caught_up(self, leader_end_offset: int, now_ms: float, lag_ms_max: float) -> bool:
        return self.log_end_offset == leader_end_offset or now_ms - self.last_caught_up_ms <= lag_ms_max


class Replicas:
    """In-sync set and follower positions of a partition, at the broker `leader_id` that leads it."""

    __slots__ = ("assigned", "followers", "isr", "leader_id", "pending_isr")

    def __init__(self, leader_id: int, assigned: Iterable[int], isr: Iterable[int]) -> None:
        self.leader_id = leader_id
        self.assigned: tuple[int, ...] = tuple(assigned)
        self.isr: tuple[int, ...] = tuple(isr)
        self.pending_isr: tuple[int, ...] = ()
        """Additions proposed to the store and not yet answered."""
        self.followers = {broker_id: Follower() for broker_id in self.assigned if broker_id != leader_id}

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        return self.isr + tuple(broker_id for broker_id in self.pending_isr if broker_id not in self.isr)

    def effective_min_insync(self, min_insync_replicas: int) -> int:
        return min(min_insync_replicas, len(self.assigned))

    def has_enough_before_append(self, min_insync_replicas: int) -> bool:
        """Whether acks=all may append at all; judged by the stored ISR, the smaller set."""
        return len(self.isr) >= self.effective_min_insync(min_insync_replicas)

    def has_enough_after_append(self, min_insync_replicas: int) -> bool:
        """Whether what the high watermark has passed is on enough replicas; judged by the maximal ISR, which the
        high watermark had to wait for."""
        return len(self.maximal_isr) >= self.effective_min_insync(min_insync_replicas)

    def high_watermark(
        self, leader_end_offset: int, current: int, min_insync_replicas: int, now_ms: float, lag_ms_max: float
    ) -> int:
        """The offset below which every record is on all the replicas that count; never below `current`."""
        if not self.has_enough_before_append(min_insync_replicas):
            return current
        lowest = leader_end_offset
        counting = self.maximal_isr
        for broker_id, follower in self.followers.items():
            about_to_join = follower.eligible and follower.is_caught_up(leader_end_offset, now_ms, lag_ms_max)
            if broker_id in counting or about_to_join:
                lowest = min(lowest, follower.log_end_offset)
        return max(current, lowest)
