"""The replicas of one partition as its leader sees them: in-sync set and high watermark. Pure.

**Sets.** AR, the assigned replicas. ISR, the in-sync replicas that the metadata store holds. The *maximal* ISR is the
ISR plus the additions that were proposed and not yet stored: until the store has answered, either may be in force, so
whatever must hold for the ISR is asked of the larger set (KIP-497, Kafka's `CommittedPartitionState` and
`PendingExpandIsr`).

**High watermark.** The smallest log end offset over the maximal ISR and over those assigned replicas that have caught
up and are about to join it; it never goes back, and does not move while the stored ISR is smaller than the effective
minimum (KIP-966, `Partition.maybeIncrementLeaderHW`), nor while the stored state names eligible leader replicas: the
log of each of those must hold what is below the high watermark, whatever `min.insync.replicas` has become meanwhile.

**Log starts.** A DeleteRecords that was acknowledged is a promise of whoever leads next, too: no member of the maximal
ISR and no eligible leader replica has a log start on its disk that is lower, and nobody joins with one
(`promised_log_start`). A leader does not know what leaders before it acknowledged. It was one of those sets, so its own
log start is at least that: it promises the one that it begins its epoch with. Retention promises nothing.

**Followers** are known by their fetches alone. One that was restarted fetches with a new broker epoch, and begins
again: how far its former life had come says nothing (KIP-903).

**min.insync.replicas** counts up to the replication factor: one replica with `min.insync.replicas=2` accepts acks=all,
as Kafka does (`Partition.effectiveMinIsr`).
"""

from collections.abc import Callable, Container, Iterable
from math import inf

UNKNOWN_OFFSET = -1
UNKNOWN_EPOCH = -1
NEVER_MS = -inf
"""Long before any clock began: a machine that has just started has a monotonic clock near 0."""

MayJoin = Callable[[int, int], bool]
"""Whether the cluster lets a broker of this id and epoch into in-sync sets: it is there, and not about to stop."""


def anybody(broker_id: int, broker_epoch: int) -> bool:
    """The `MayJoin` of a partition that is in no cluster."""
    return True


class Follower:
    """What the leader knows of one follower (Kafka's `Replica` and `ReplicaState`)."""

    __slots__ = (
        "broker_epoch",
        "last_caught_up_ms",
        "last_fetch_leader_end",
        "last_fetch_ms",
        "log_end_offset",
        "log_start_offset",
    )

    def __init__(self, last_caught_up_ms: float = NEVER_MS) -> None:
        """A member of the in-sync set counts as caught up at the moment at which its leader begins."""
        self.log_end_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        """That is on its disk; it may be behind the leader's, and ahead of it."""
        self.last_fetch_leader_end = 0
        self.last_fetch_ms = NEVER_MS
        self.last_caught_up_ms = last_caught_up_ms
        self.broker_epoch = UNKNOWN_EPOCH
        """That its fetches carried, the newest of them."""

    def identify(self, broker_epoch: int, *, is_in_sync: bool = False) -> bool:
        """Who fetches: False for a former life of the replica, which must not count.

        A later life begins with nothing. A member of the in-sync set has as long to come back as its former life had.
        """
        if broker_epoch < self.broker_epoch:
            return False
        if broker_epoch > self.broker_epoch:
            if self.broker_epoch != UNKNOWN_EPOCH:
                self.log_end_offset = self.log_start_offset = UNKNOWN_OFFSET
                self.last_fetch_leader_end = 0
                self.last_fetch_ms = NEVER_MS
                if not is_in_sync:
                    self.last_caught_up_ms = NEVER_MS
            self.broker_epoch = broker_epoch
        return True

    def fetched(self, fetch_offset: int, now_ms: float, leader_end_offset: int) -> None:
        """A fetch at `fetch_offset` says that all before it is in the follower's log.

        It has caught up now if it asks for the leader's end, or as of its previous fetch if it asks for what was the
        leader's end then (`Replica.updateFetchStateOrThrow`).
        """
        if fetch_offset >= leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif fetch_offset >= self.last_fetch_leader_end:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.log_end_offset = fetch_offset  # the newest word counts, as in Kafka, should its log be shorter than it was
        self.last_fetch_leader_end = leader_end_offset
        self.last_fetch_ms = now_ms

    def was_caught_up(self, at_ms: float) -> None:
        """It had all there was at that time: its session said so without naming the partition."""
        self.last_caught_up_ms = max(self.last_caught_up_ms, at_ms)

    def is_silent(self, leader_end_offset: int, now_ms: float, lag_ms_max: float) -> bool:
        """Whether it lags behind and has not fetched lately: it may not join. With too few in sync the high watermark
        stands still, and even one that was just taken out for its silence has come as far as that."""
        return not self.is_caught_up(leader_end_offset, now_ms, lag_ms_max) and now_ms - self.last_fetch_ms > lag_ms_max

    def is_caught_up(self, leader_end_offset: int, now_ms: float, lag_ms_max: float) -> bool:
        return self.log_end_offset >= leader_end_offset or now_ms - self.last_caught_up_ms <= lag_ms_max


class Replicas:
    """In-sync set and follower positions of a partition, at the broker `leader_id` that leads it."""

    __slots__ = ("assigned", "elr", "followers", "isr", "leader_id", "pending_isr", "promised_log_start")

    def __init__(
        self,
        leader_id: int,
        assigned: Iterable[int],
        isr: Iterable[int],
        elr: Iterable[int] = (),
        *,
        now_ms: float = 0.0,
    ) -> None:
        self.leader_id = leader_id
        self.assigned: tuple[int, ...] = ()
        self.isr: tuple[int, ...] = ()
        self.elr: tuple[int, ...] = ()
        """Eligible leader replicas, as stored (cluster/partition_changes.py)."""
        self.pending_isr: tuple[int, ...] = ()
        """Additions proposed to the store and not yet answered."""
        self.promised_log_start = 0
        """What DeleteRecords was acknowledged with, or may have been before this leader's epoch: see the module."""
        self.followers: dict[int, Follower] = {}
        self.update(assigned, isr, elr, now_ms)

    def update(self, assigned: Iterable[int], isr: Iterable[int], elr: Iterable[int], now_ms: float) -> None:
        """What is stored now. What is known of followers that stay is kept."""
        self.assigned, self.isr, self.elr = tuple(assigned), tuple(isr), tuple(elr)
        self.followers = {
            broker_id: self.followers.get(broker_id) or Follower(now_ms if broker_id in self.isr else NEVER_MS)
            for broker_id in self.assigned
            if broker_id != self.leader_id
        }

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        if not self.pending_isr:
            return self.isr
        return self.isr + tuple(broker_id for broker_id in self.pending_isr if broker_id not in self.isr)

    def effective_min_insync(self, min_insync_replicas: int) -> int:
        return min(min_insync_replicas, len(self.assigned))

    def has_enough_before_append(self, min_insync_replicas: int) -> bool:
        """Whether acks=all may append at all; judged by the stored ISR, the smaller set."""
        return len(self.isr) >= self.effective_min_insync(min_insync_replicas)

    def has_enough_after_append(self, min_insync_replicas: int) -> bool:
        """Whether what the high watermark has passed is on enough replicas; judged by the maximal ISR, which the
        high watermark had to wait for."""
        in_sync = self.maximal_isr if self.pending_isr else self.isr
        return len(in_sync) >= self.effective_min_insync(min_insync_replicas)

    def high_watermark(
        self,
        leader_end_offset: int,
        current: int,
        min_insync_replicas: int,
        now_ms: float,
        lag_ms_max: float,
        may_join: MayJoin,
    ) -> int:
        """The offset below which every record is on all the replicas that count; never below `current`.

        Who has caught up counts before it is in sync, lest it never gets there; not who `may_join` no in-sync set.
        """
        if self.elr or not self.has_enough_before_append(min_insync_replicas):
            return current
        lowest = leader_end_offset
        counting = self.maximal_isr
        for broker_id, follower in self.followers.items():
            if broker_id in counting or (
                follower.is_caught_up(leader_end_offset, now_ms, lag_ms_max)
                and may_join(broker_id, follower.broker_epoch)
            ):
                lowest = min(lowest, follower.log_end_offset)
        return max(current, lowest)

    def low_watermark(self, leader_log_start_offset: int, live: Container[int]) -> int:
        """The lowest log start of all that a DeleteRecords waits for: the leader's, those of replicas on `live` brokers
        (`Partition.lowWatermarkIfLeader`), and those of the maximal ISR and of eligible leader replicas, live or not,
        for each of these may lead next. UNKNOWN_OFFSET while one of them has not said its own."""
        may_lead = (*self.maximal_isr, *self.elr)
        lowest = leader_log_start_offset
        for broker_id, follower in self.followers.items():
            if broker_id in may_lead or broker_id in live:
                lowest = min(lowest, follower.log_start_offset)
        return lowest

    def is_in_step(self, leader_end_offset: int) -> bool:
        """Whether all assigned replicas are in sync and have all there is: then no time that passes changes anything.
        That is what most partitions are most of the time, so it is asked before all else."""
        if len(self.isr) < len(self.assigned) or self.elr:
            return False
        return all(follower.log_end_offset == leader_end_offset for follower in self.followers.values())

    def lagging(
        self, leader_end_offset: int, now_ms: float, lag_ms_max: float, high_watermark: int = 0
    ) -> tuple[int, ...]:
        """Members of the in-sync set that should leave it: they have not caught up for longer than allowed, or have
        lost what they once had."""
        return tuple(
            broker_id
            for broker_id in self.isr
            if broker_id != self.leader_id
            and (
                not self.followers[broker_id].is_caught_up(leader_end_offset, now_ms, lag_ms_max)
                or self.has_lost(broker_id, high_watermark)
            )
        )

    def has_lost(self, broker_id: int, high_watermark: int) -> bool:
        """Whether a member of the in-sync set asks for what it has had before: a device has lied, or a copy of its data
        directory was put back. Whoever leads next must not be that one."""
        follower = self.followers.get(broker_id)
        return follower is not None and broker_id in self.isr and 0 <= follower.log_end_offset < high_watermark

    def is_misplaced(self, broker_id: int, high_watermark: int, epoch_start_offset: int) -> bool:
        """Whether its fetch says that a broker should be in sync and is not, or the other way round."""
        return self.has_lost(broker_id, high_watermark) or self.may_join(broker_id, high_watermark, epoch_start_offset)

    def may_join(self, broker_id: int, high_watermark: int, epoch_start_offset: int) -> bool:
        """Whether a follower has come far enough for the in-sync set: up to the high watermark, and up to where this
        leader's epoch began, below which the high watermark may still be behind (`Partition.isFollowerInSync`); and
        whether it has deleted what was promised to be gone."""
        follower = self.followers.get(broker_id)
        return (
            follower is not None
            and broker_id not in self.maximal_isr
            and follower.log_end_offset >= max(high_watermark, epoch_start_offset)
            and max(0, follower.log_start_offset) >= self.promised_log_start
        )
