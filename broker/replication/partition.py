"""One partition on this broker: its log, its role, its high watermark, and those who wait for it.

A Produce appends here and then waits on `high_watermark`; a Fetch subscribes to `watchers` before it reads, so that
no wake-up falls between the two. Both are woken when leadership is lost or the topic is deleted, and then find out
why: `failure` holds the error.

What acks mean (Kafka's `Partition.appendRecordsToLeader` and `checkEnoughReplicasReachOffset`): 0, no answer and no
promise; 1, on the leader's log; -1, on every in-sync replica and on at least `min.insync.replicas` of them, checked
before the append (NOT_ENOUGH_REPLICAS, nothing appended) and after it (NOT_ENOUGH_REPLICAS_AFTER_APPEND, the records
stay). When a record is on the leader's log, the topic's `flush.messages` decides (durability.py).

Readers of committed records stop before the first offset that may still be aborted: the last stable offset (KIP-98).

A follower's log grows by what its fetcher appends (fetcher.py), and its high watermark follows its leader's. Which role
a partition has, and in which epoch, comes from the metadata image; `state` is what this broker knows of it,
by the image or by its own writes (isr_writer.py).
"""

from collections.abc import Callable

from odradek.broker.cluster.keys import NO_LEADER, PartitionState
from odradek.broker.config.broker_config import TopicConfig
from odradek.broker.disk.file_slice import FileSlice
from odradek.broker.log.log import Log
from odradek.broker.log.log_end import Appended
from odradek.broker.log.segment_reader import NOTHING, FetchData
from odradek.broker.replication.deletions import Deletions
from odradek.broker.replication.durability import Durability
from odradek.broker.replication.isolation import Isolation
from odradek.broker.replication.quota import is_throttled
from odradek.broker.replication.replicas import MayJoin, Replicas, anybody
from odradek.broker.replication.syncs import Syncs
from odradek.protocol.batches.batch import BatchHeader
from odradek.protocol.codec.schema import Buffer
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.runtime.environment import Environment
from odradek.runtime.progress import Progress
from odradek.runtime.tasks import Tasks

ACKS_ALL = -1


class Partition:
    """A partition of which this broker has a replica: its leader's, or a follower's."""

    __slots__ = (
        "appended_bytes",
        "changes",
        "config",
        "deletions",
        "durability",
        "environment",
        "epoch_start_offset",
        "failure",
        "high_watermark",
        "index",
        "leader_epoch",
        "leader_id",
        "leadership_ends",
        "log",
        "log_watchers",
        "may_join",
        "move_log_start",
        "node_id",
        "on_isr_outdated",
        "on_truncated",
        "replica_lag_ms_max",
        "replicas",
        "state",
        "tasks",
        "topic",
        "topic_id",
        "watchers",
    )

    def __init__(
        self,
        topic: str,
        topic_id: bytes,
        index: int,
        log: Log,
        config: TopicConfig,
        environment: Environment,
        tasks: Tasks,
        syncs: Syncs,
        replica_lag_ms_max: float,
        high_watermark: int = 0,
        node_id: int = 0,
    ) -> None:
        """`high_watermark` is what the checkpoint says."""
        self.node_id = node_id
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.log = log
        self.config = config
        self.environment = environment
        self.tasks = tasks
        self.durability = Durability(log, environment, tasks, syncs, self.update_high_watermark)
        self.durability.configure(config)
        self.deletions = Deletions(log, environment)
        self.replica_lag_ms_max = replica_lag_ms_max
        self.leader_id = NO_LEADER
        self.leader_epoch = -1
        self.epoch_start_offset = 0
        """Where the log ended when this broker became leader."""
        self.state: PartitionState | None = None
        self.on_truncated: Callable[[Partition], None] = _ignore
        """Called when the log was cut: its recovery point is to be written down before anything is appended."""
        self.move_log_start: Callable[[Partition, int], None] = _move_at_once
        """Has the log start of a follower moved, once that is written down."""
        self.on_isr_outdated: Callable[[Partition], None] = _ignore
        """Called when the in-sync set had better be another one (`wanted_isr`)."""
        self.may_join: MayJoin = anybody
        """Whether the cluster lets a broker into the in-sync set."""
        self.replicas = Replicas(NO_LEADER, (), ())
        self.high_watermark = Progress(min(max(high_watermark, log.log_start_offset), log.log_end_offset))
        self.appended_bytes = 0
        """How many bytes were appended since the start: what a waiting Fetch measures growth by."""
        self.changes = 0
        """How often something else changed that readers must hear of at once."""
        self.watchers: dict[Callable[[Partition], None], None] = {}
        self.log_watchers: dict[Callable[[Partition], None], None] = {}
        """Called at each append: followers read further than the high watermark."""
        self.failure: KafkaError | None = self._not_leader()
        self.leadership_ends = 0
        """How often this broker has stopped leading: something else may stand now where it appended before."""

    def __repr__(self) -> str:
        return f"<Partition {self.topic}-{self.index} epoch {self.leader_epoch}>"

    # -- role ---------------------------------------------------------------------------------------------------

    def become_leader(self, leader_epoch: int, replicas: Replicas) -> None:
        """Takes leadership at `leader_epoch`, which the metadata store holds already.

        With followers the high watermark starts where it was; alone, everything in the log counts.
        """
        assert leader_epoch > self.leader_epoch, (leader_epoch, self.leader_epoch)
        if self.log.is_half_cut:  # a truncation failed half-way while it followed
            self.log.truncate_to(self.log.log_end_offset)
            self.truncated()
        self.leader_id = replicas.leader_id
        self.leader_epoch = leader_epoch
        self.epoch_start_offset = self.log.log_end_offset
        self.log.begin_epoch(leader_epoch)
        self.replicas = replicas
        self.failure = None
        self.deletions.begin(replicas)
        self.high_watermark.restart(max(self.high_watermark.value, self.log.log_start_offset))
        self.log.producers.high_watermark_moved(self.high_watermark.value)
        self.update_high_watermark()

    def become_follower(self, leader_id: int, leader_epoch: int) -> None:
        """Follows another broker, or nobody (NO_LEADER), at `leader_epoch`: whoever waits here for a leader is told."""
        assert leader_epoch >= self.leader_epoch, (leader_epoch, self.leader_epoch)
        self.leader_epoch = leader_epoch
        self.replicas = Replicas(leader_id, (), ())
        self.resign()
        self.leader_id = leader_id

    @property
    def is_leader(self) -> bool:
        return self.failure is None

    @property
    def is_under_replicated(self) -> bool:
        """Whether a replica of what this broker leads is not in sync."""
        return self.is_leader and len(self.replicas.isr) < len(self.replicas.assigned)

    @property
    def is_in_step(self) -> bool:
        """Whether, of what this broker leads, all replicas are in sync, have everything, and it counts."""
        end_offset = self.durability.end_offset
        return self.high_watermark.value == end_offset and self.replicas.is_in_step(end_offset)

    @property
    def is_under_min_isr(self) -> bool:
        """Whether acks=all is refused for what this broker leads."""
        return self.is_leader and not self.replicas.has_enough_before_append(self.config.min_insync_replicas)

    def learn(self, state: PartitionState) -> None:
        """The stored state is this one now, under the present leader epoch, whoever wrote it."""
        if self.state is not None and state.revision <= self.state.revision:
            return  # our own write is known before the image has it
        self.state = state
        if self.is_leader and state.leader_epoch == self.leader_epoch:
            self.replicas.update(state.replicas, state.isr, state.elr, self.environment.monotonic_ms())
            self._look_at_eligible()
            self.update_high_watermark()

    def configure(self, config: TopicConfig) -> None:
        """Takes over what counts for the topic from now on; the log's part is the caller's."""
        self.config = config
        self.durability.configure(config)
        self._look_at_eligible()
        self.update_high_watermark()

    def _look_at_eligible(self) -> None:
        """Eligible replicas that are not needed any more hold the high watermark until that is stored."""
        if self.is_leader and self.replicas.elr and self.wanted_isr() is not None:
            self.on_isr_outdated(self)

    def close(self, error: KafkaError | None = None) -> None:
        """The partition goes: whoever waits for anything is told, with `error` if it goes for that."""
        self.resign(error)
        assert self.failure is not None, "who resigns says why"
        self.durability.close(self.failure)

    def resign(self, error: KafkaError | None = None) -> None:
        """Stops leading: every parked request gets `error` (NOT_LEADER_OR_FOLLOWER unless told otherwise)."""
        self.leader_id = NO_LEADER
        self.leadership_ends += 1
        self.failure = error or self._not_leader()
        self.high_watermark.fail(self.failure)
        self.deletions.fail(self.failure)
        self.notify()

    def require_leader(self, current_leader_epoch: int = -1) -> None:
        """As `require_replica`, and raises NOT_LEADER_OR_FOLLOWER after that, as Kafka's `Partition.getLocalLog`."""
        self.require_replica(current_leader_epoch)
        if self.failure is not None:
            raise self.failure

    def require_replica(self, current_leader_epoch: int = -1) -> None:
        """For those who may read from a follower, too. Raises KafkaError NOT_LEADER_OR_FOLLOWER, or by the client's
        epoch (-1: not given, KIP-320) FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH."""
        if self.failure is not None and self.leader_id == NO_LEADER:
            raise self.failure
        self._require_epoch(current_leader_epoch)

    def _require_epoch(self, current_leader_epoch: int) -> None:
        if current_leader_epoch in (-1, self.leader_epoch):
            return
        is_old = current_leader_epoch < self.leader_epoch
        code = ErrorCode.FENCED_LEADER_EPOCH if is_old else ErrorCode.UNKNOWN_LEADER_EPOCH
        raise KafkaError(code, f"{self.topic}-{self.index} has epoch {self.leader_epoch}, not {current_leader_epoch}")

    # -- appending ----------------------------------------------------------------------------------------------

    def require_replicas(self, acks: int) -> None:
        """Raises KafkaError NOT_ENOUGH_REPLICAS when acks=-1 could not be kept; nothing is appended then."""
        if acks == ACKS_ALL and not self.replicas.has_enough_before_append(self.config.min_insync_replicas):
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{self.topic}-{self.index} has {len(self.replicas.isr)} replicas in sync, "
                f"min.insync.replicas is {self.config.min_insync_replicas}",
            )

    def append(self, batch: memoryview, header: BatchHeader, now_ms: int) -> Appended:
        """Appends one checked batch as leader, after `require_replicas`. With acks=-1 the caller then awaits
        `replicated()`, otherwise `stored()`. Raises KafkaError: NOT_LEADER_OR_FOLLOWER, and what `Log.append` raises.
        """
        if self.failure is not None:
            raise self.failure
        log = self.log
        appended = log.append(batch, header, self.leader_epoch, now_ms)
        if not appended.is_duplicate:
            self.appended_bytes += len(batch)
            if self.durability.waits:
                self.durability.appended()
            self.sync_if_rolled()
            for wake in self.log_watchers:
                wake(self)
            self.update_high_watermark()
        return appended

    def sync_if_rolled(self) -> None:
        if self.log.has_rolled:
            self.log.has_rolled = False
            self.tasks.start(self.durability.sync_closed_segments(), f"sync segments of {self.log.directory}")

    async def synced(self, last_offset: int, timeout_ms: float) -> None:
        """Returns once `last_offset` counts as written here, which with acks=1 is the promise.

        Raises KafkaError: REQUEST_TIMED_OUT, KAFKA_STORAGE_ERROR when the device did not take it.
        """
        durability = self.durability
        if not durability.waits:
            return
        durability.want(last_offset + 1)
        try:
            await durability.durable.reach(last_offset + 1, timeout_ms)
        except TimeoutError:
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT,
                f"offset {last_offset} of {self.topic}-{self.index} was not synced within {timeout_ms:.0f} ms",
            ) from None

    def require_term(self, leadership_ends: int) -> None:
        """Raises KafkaError NOT_LEADER_OR_FOLLOWER if another term has ended since, even if this broker leads again."""
        if self.leadership_ends != leadership_ends:
            raise self.failure or self._not_leader()

    async def replicated(self, last_offset: int, timeout_ms: float) -> None:
        """Returns once `last_offset` is on every in-sync replica and on enough of them.

        That no term has ended since the append is for the caller to see (`require_term`). Raises KafkaError:
        REQUEST_TIMED_OUT, NOT_ENOUGH_REPLICAS_AFTER_APPEND, NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR.
        """
        if self.durability.waits:
            deadline_ms = self.environment.monotonic_ms() + timeout_ms
            await self.synced(last_offset, timeout_ms)
            timeout_ms = max(0.0, deadline_ms - self.environment.monotonic_ms())
        try:
            await self.high_watermark.reach(last_offset + 1, timeout_ms)
        except TimeoutError:
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT,
                f"offset {last_offset} of {self.topic}-{self.index} was not replicated within {timeout_ms:.0f} ms",
            ) from None
        if not self.replicas.has_enough_after_append(self.config.min_insync_replicas):
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
                f"offset {last_offset} of {self.topic}-{self.index} was appended, but only "
                f"{len(self.replicas.maximal_isr)} replicas are in sync",
            )

    def update_high_watermark(self) -> None:
        """Moves the high watermark as far as the replicas allow, and wakes whom that concerns. Only a leader knows."""
        if self.failure is not None:
            return
        replicas, end_offset = self.replicas, self.durability.end_offset
        if replicas.followers:
            end_offset = replicas.high_watermark(
                end_offset,
                self.high_watermark.value,
                self.config.min_insync_replicas,
                self.environment.monotonic_ms(),
                self.replica_lag_ms_max,
                self.may_join,
            )
        if self.high_watermark.advance(end_offset):
            self.log.producers.high_watermark_moved(self.high_watermark.value)
            self.notify(changes=0)
        self.deletions.replicas_changed()

    # -- followers ----------------------------------------------------------------------------------------------

    def follower_fetched(self, broker_id: int, broker_epoch: int, fetch_offset: int, log_start_offset: int = 0) -> None:
        """A follower has everything from `log_start_offset` to `fetch_offset`, and is where its log and ours are equal.
        That log start is on its disk. Raises KafkaError NOT_LEADER_OR_FOLLOWER for who is no replica, or a former life
        of one."""
        follower = self.replicas.followers.get(broker_id)
        if follower is None or not follower.identify(broker_epoch, is_in_sync=broker_id in self.replicas.isr):
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"broker {broker_id} with epoch {broker_epoch} is no replica of {self.topic}-{self.index}",
            )
        follower.fetched(fetch_offset, self.environment.monotonic_ms(), self.log.log_end_offset)
        follower.log_start_offset = log_start_offset
        self.update_high_watermark()
        if self.replicas.is_misplaced(broker_id, self.high_watermark.value, self.epoch_start_offset):
            self.on_isr_outdated(self)

    def wanted_isr(self) -> tuple[int, ...] | None:
        """The in-sync set that there should be; None if it is the stored one. For a leader.
        Also asked for when nothing but the eligible leader replicas would change: they hold the high watermark.
        """
        replicas, stored = self.replicas, self.state
        if not self.is_leader or stored is None or stored.leader_epoch != self.leader_epoch:
            return None
        now = self.durability.end_offset, self.environment.monotonic_ms(), self.replica_lag_ms_max
        lagging = replicas.lagging(*now, self.high_watermark.value)
        joining = [
            broker_id
            for broker_id, follower in replicas.followers.items()
            if broker_id not in (*replicas.isr, *stored.offline)  # these fetched before they lost it
            and self.may_join(broker_id, follower.broker_epoch)
            and not follower.is_silent(*now)
            and replicas.may_join(broker_id, self.high_watermark.value, self.epoch_start_offset)
        ]
        wanted = tuple(
            broker_id
            for broker_id in replicas.assigned
            if broker_id in joining or (broker_id in replicas.isr and broker_id not in lagging)
        )
        is_elr_stale = replicas.elr and replicas.has_enough_before_append(self.config.min_insync_replicas)
        return wanted if set(wanted) != set(replicas.isr) or is_elr_stale else None

    @property
    def is_leader_throttled(self) -> bool:
        """Whether `leader.replication.throttled.replicas` names this replica."""
        return is_throttled(self.config.leader_replication_throttled_replicas, self.index, self.node_id)

    # -- following ----------------------------------------------------------------------------------------------

    @property
    def is_follower_throttled(self) -> bool:
        """Whether `follower.replication.throttled.replicas` names this replica."""
        return is_throttled(self.config.follower_replication_throttled_replicas, self.index, self.node_id)

    @property
    def durable_end_offset(self) -> int:
        """Everything before it may be claimed towards the leader: it is as durable as the topic wants it."""
        return self.durability.end_offset

    async def durable(self, end_offset: int) -> None:
        """Returns once that is `end_offset`. Raises KafkaError KAFKA_STORAGE_ERROR, NOT_LEADER_OR_FOLLOWER."""
        self.durability.want(end_offset)
        await self.durability.durable.reach(end_offset)

    def appended_as_follower(self, size_bytes: int) -> None:
        """The log has grown by what the leader sent; by so many bytes, where that is known."""
        self.appended_bytes += size_bytes
        if self.durability.waits:
            self.durability.appended()
        self.sync_if_rolled()

    def follow_log_start(self, log_start_offset: int) -> None:
        """This log will begin there once that is written down, as the leader's does."""
        self.move_log_start(self, log_start_offset)

    def truncated(self) -> None:
        """The log was cut: what counted behind its end counts no more."""
        log = self.log
        self.durability.truncated(self._not_leader())
        self.high_watermark.lower(log.log_end_offset)
        self.high_watermark.advance(log.log_start_offset)
        log.producers.high_watermark_moved(self.high_watermark.value)
        self.on_truncated(self)
        self.notify()  # whoever waits to read on from where it was cut is out of range (Kafka's DelayedFetch, case F)

    def replicated_up_to(self, leader_high_watermark: int) -> None:
        """As a follower: everything that was fetched is in the log, and the leader's high watermark is this."""
        if self.high_watermark.advance(min(leader_high_watermark, self.log.log_end_offset)):
            self.log.producers.high_watermark_moved(self.high_watermark.value)
            self.notify(changes=0)

    # -- reading ------------------------------------------------------------------------------------------------

    @property
    def last_stable_offset(self) -> int:
        """Nothing before it can be aborted any more, or be lost with its marker."""
        first_unstable = self.log.producers.first_unstable_offset
        high_watermark = self.high_watermark.value
        return high_watermark if first_unstable is None else min(first_unstable, high_watermark)

    def fetch(
        self,
        offset: int,
        size_bytes_max: int,
        *,
        at_least_one_batch: bool,
        isolation: Isolation = Isolation.HIGH_WATERMARK,
    ) -> FetchData[Buffer]:
        """Whole batches from the one that holds `offset`, as far as `isolation` allows, with aborted records
        (`Log.aborted_transactions`); empty when there is none.

        Raises KafkaError: OFFSET_OUT_OF_RANGE below the log start or above the log end.
        """
        self.require_offset(offset)
        end_offset = self.readable_end(isolation)
        if offset >= end_offset:
            return NOTHING
        return self.log.fetch(offset, size_bytes_max, end_offset, at_least_one_batch)

    def require_offset(self, offset: int) -> None:
        """Raises KafkaError OFFSET_OUT_OF_RANGE below the log start or above the log end."""
        log = self.log
        if not log.log_start_offset <= offset <= log.log_end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} of {self.topic}-{self.index} is not between {log.log_start_offset} and "
                f"{log.log_end_offset}",
            )

    def slice(
        self, offset: int, size_bytes_max: int, isolation: Isolation = Isolation.HIGH_WATERMARK
    ) -> FetchData[FileSlice] | None:
        """What `fetch` answers, as a slice of a file; None where it had better be read, and where it would raise."""
        end_offset = self.readable_end(isolation)
        if not self.log.log_start_offset <= offset < end_offset:
            return None
        return self.log.segments.slice(offset, size_bytes_max, end_offset)

    def readable_end(self, isolation: Isolation) -> int:
        if isolation is Isolation.HIGH_WATERMARK:
            return self.high_watermark.value
        return self.last_stable_offset if isolation is Isolation.TXN_COMMITTED else self.log.log_end_offset

    def notify(self, *, changes: int = 1) -> None:
        """Has the fetches that watch this partition look at it again, whatever they wait for; with 0 `changes` they
        look at the high watermark alone, which may not have moved far enough."""
        self.changes += changes
        for wake in tuple(self.watchers):
            wake(self)

    def _not_leader(self) -> KafkaError:
        return KafkaError(
            ErrorCode.NOT_LEADER_OR_FOLLOWER, f"this broker does not lead {self.topic}-{self.index}; refresh metadata"
        )


def _ignore(partition: Partition) -> None: ...


def _move_at_once(partition: Partition, log_start_offset: int) -> None:
    partition.log.durable_log_start_offset = log_start_offset
    partition.log.advance_log_start(log_start_offset)
