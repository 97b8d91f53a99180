"""One partition on this broker: its log, its role, its high watermark, and those who wait for it.

A Produce appends here and then waits on `high_watermark`; a Fetch subscribes to `watchers` before it reads, so that
no wake-up falls between the two. Both are woken when leadership is lost or the topic is deleted, and then find out
why: `failure` holds the error.

What acks mean (Kafka's `Partition.appendRecordsToLeader` and `checkEnoughReplicasReachOffset`): 0, no answer and no
promise; 1, on the leader's log; -1, on every in-sync replica and on at least `min.insync.replicas` of them, checked
before the append (NOT_ENOUGH_REPLICAS, nothing appended) and after it (NOT_ENOUGH_REPLICAS_AFTER_APPEND, the records
stay). When a record is on the leader's log, the topic's `flush.messages` decides (durability.py).

Readers of committed records stop before the first offset that may still be aborted: the last stable offset (KIP-98).
"""

from collections.abc import Callable

from broker.config import TopicConfig
from broker.file_slice import FileSlice
from broker.log.log import Appended, Log
from broker.progress import Progress
from broker.replication.durability import Durability
from broker.replication.replicas import Replicas
from broker.replication.syncs import Syncs
from client.environment import Environment
from client.tasks import Tasks
from protocol.batch import BatchHeader
from protocol.errors import ErrorCode, KafkaError
from protocol.schema import Buffer

ACKS_ALL = -1
READ_COMMITTED = 1
"""The isolation level of readers who stop before the last stable offset."""


class Partition:
    """A partition that this broker leads (followers join with the cluster)."""

    __slots__ = (
        "appended_bytes",
        "config",
        "durability",
        "environment",
        "failure",
        "high_watermark",
        "index",
        "leader_epoch",
        "log",
        "replica_lag_ms_max",
        "replicas",
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
    ) -> None:
        """`high_watermark` is what the checkpoint says."""
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.log = log
        self.config = config
        self.environment = environment
        self.tasks = tasks
        self.durability = Durability(log, environment, tasks, syncs, self.update_high_watermark)
        self.durability.configure(config)
        self.replica_lag_ms_max = replica_lag_ms_max
        self.leader_epoch = -1
        self.replicas = Replicas(-1, (), ())
        self.high_watermark = Progress(min(max(high_watermark, log.log_start_offset), log.log_end_offset))
        self.appended_bytes = 0
        """How many bytes were appended since the start: what a waiting Fetch measures growth by."""
        self.watchers: dict[Callable[[Partition], None], None] = {}
        self.failure: KafkaError | None = self._not_leader()

    def __repr__(self) -> str:
        return f"<Partition {self.topic}-{self.index} epoch {self.leader_epoch}>"

    # -- role ---------------------------------------------------------------------------------------------------

    def become_leader(self, leader_epoch: int, replicas: Replicas) -> None:
        """Takes leadership at `leader_epoch`, which the metadata store holds already.

        With followers the high watermark starts where it was; alone, everything in the log counts.
        """
        assert leader_epoch > self.leader_epoch, (leader_epoch, self.leader_epoch)
        self.leader_epoch = leader_epoch
        self.log.begin_epoch(leader_epoch)
        self.replicas = replicas
        self.failure = None
        self.high_watermark.restart(max(self.high_watermark.value, self.log.log_start_offset))
        self.log.producers.high_watermark_moved(self.high_watermark.value)
        self.update_high_watermark()

    def configure(self, config: TopicConfig) -> None:
        """Takes over what counts for the topic from now on; the log's part is the caller's."""
        self.config = config
        self.durability.configure(config)
        self.update_high_watermark()

    def close(self) -> None:
        """The partition goes: whoever waits for anything is told."""
        self.resign()
        assert self.failure is not None
        self.durability.close(self.failure)

    def resign(self, error: KafkaError | None = None) -> None:
        """Stops leading: every parked request gets `error` (NOT_LEADER_OR_FOLLOWER unless told otherwise)."""
        self.failure = error or self._not_leader()
        self.high_watermark.fail(self.failure)
        self.notify()

    def require_leader(self, current_leader_epoch: int = -1) -> None:
        """Raises KafkaError NOT_LEADER_OR_FOLLOWER, or by the client's epoch (-1: not given, KIP-320)
        FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH."""
        if self.failure is not None:
            raise self.failure
        if current_leader_epoch == -1 or current_leader_epoch == self.leader_epoch:
            return
        if current_leader_epoch < self.leader_epoch:
            raise KafkaError(
                ErrorCode.FENCED_LEADER_EPOCH,
                f"{self.topic}-{self.index} has leader epoch {self.leader_epoch}, newer than {current_leader_epoch}",
            )
        raise KafkaError(
            ErrorCode.UNKNOWN_LEADER_EPOCH,
            f"{self.topic}-{self.index} has leader epoch {self.leader_epoch}, older than {current_leader_epoch}",
        )

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
        `replicated()`, otherwise `stored()`.

        Raises KafkaError: NOT_LEADER_OR_FOLLOWER, and what `Log.append` raises.
        """
        if self.failure is not None:
            raise self.failure
        log = self.log
        appended = log.append(batch, header, self.leader_epoch, now_ms)
        if not appended.is_duplicate:
            self.appended_bytes += len(batch)
            if self.durability.waits:
                self.durability.appended()
            if log.has_rolled:
                log.has_rolled = False
                self.tasks.start(self.durability.sync_closed_segments(), f"sync segments of {log.directory}")
            self.update_high_watermark()
        return appended

    async def stored(self, last_offset: int, timeout_ms: float) -> None:
        """Returns once `last_offset` counts as written here, which with acks=1 is the promise.

        Raises KafkaError: REQUEST_TIMED_OUT, KAFKA_STORAGE_ERROR when the device did not take it.
        """
        durability = self.durability
        if not durability.waits:
            return
        durability.want(last_offset + 1)
        try:
            await durability.settled.reach(last_offset + 1, timeout_ms)
        except TimeoutError:
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT,
                f"offset {last_offset} of {self.topic}-{self.index} was not synced within {timeout_ms:.0f} ms",
            ) from None

    async def replicated(self, last_offset: int, timeout_ms: float) -> None:
        """Returns once `last_offset` is on every in-sync replica and on enough of them.

        Raises KafkaError: REQUEST_TIMED_OUT, NOT_ENOUGH_REPLICAS_AFTER_APPEND, NOT_LEADER_OR_FOLLOWER,
        KAFKA_STORAGE_ERROR.
        """
        if self.durability.waits:
            deadline_ms = self.environment.monotonic_ms() + timeout_ms
            await self.stored(last_offset, timeout_ms)
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
            )
        if self.high_watermark.advance(end_offset):
            self.log.producers.high_watermark_moved(self.high_watermark.value)
            self.notify()

    # -- reading ------------------------------------------------------------------------------------------------

    @property
    def last_stable_offset(self) -> int:
        """Nothing before it can be aborted any more, or be lost with its marker."""
        first_unstable = self.log.producers.first_unstable_offset
        high_watermark = self.high_watermark.value
        return high_watermark if first_unstable is None else min(first_unstable, high_watermark)

    def read(
        self, offset: int, size_bytes_max: int, *, at_least_one_batch: bool, only_committed: bool = False
    ) -> Buffer:
        """Whole batches from the one that holds `offset`, up to the high watermark, or up to the last stable offset
        if `only_committed`; empty when there is none. Aborted records are among them (`Log.aborted_transactions`).

        Raises KafkaError: OFFSET_OUT_OF_RANGE below the log start or above the log end.
        """
        log = self.log
        if not log.log_start_offset <= offset <= log.log_end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} of {self.topic}-{self.index} is not between {log.log_start_offset} and "
                f"{log.log_end_offset}",
            )
        end_offset = self._readable_end(only_committed)
        if offset >= end_offset:
            return b""
        return log.read(offset, size_bytes_max, end_offset, at_least_one_batch)

    def slice(self, offset: int, size_bytes_max: int, *, only_committed: bool = False) -> FileSlice | None:
        """What `read` answers, as a slice of a file; None where it had better be read, and where it would raise."""
        end_offset = self._readable_end(only_committed)
        if not self.log.log_start_offset <= offset < end_offset:
            return None
        return self.log.segments.slice(offset, size_bytes_max, end_offset)

    def _readable_end(self, only_committed: bool) -> int:
        return self.last_stable_offset if only_committed else self.high_watermark.value

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """The largest epoch that is at most `leader_epoch`, and the offset at which it ended; (-1, -1) when unknown.

        The log knows the epochs in which something was appended. Those behind its latest one, up to ours, were begun
        and nothing was appended in them: they end at the log's end, as the current one does (KIP-101, KIP-279).
        """
        epochs, log_end_offset = self.log.epochs, self.log.log_end_offset
        if leader_epoch == self.leader_epoch:
            return leader_epoch, log_end_offset
        if epochs.latest < leader_epoch < self.leader_epoch:
            return (leader_epoch if epochs.latest < 0 else epochs.latest), log_end_offset
        return epochs.end_offset_for(leader_epoch, log_end_offset)

    def notify(self) -> None:
        """Wakes the fetches that watch this partition."""
        for wake in tuple(self.watchers):
            wake(self)

    def _not_leader(self) -> KafkaError:
        return KafkaError(
            ErrorCode.NOT_LEADER_OR_FOLLOWER, f"this broker does not lead {self.topic}-{self.index}; refresh metadata"
        )
