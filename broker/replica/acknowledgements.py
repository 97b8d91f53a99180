"""When what a leader appended counts, and those who wait for that.

What acks mean (Kafka's `Partition.appendRecordsToLeader` and `checkEnoughReplicasReachOffset`): 0, no answer and no
promise; 1, on the leader's log; -1, on every in-sync replica and on at least `min.insync.replicas` of them, checked
before the append (NOT_ENOUGH_REPLICAS, nothing appended) and after it (NOT_ENOUGH_REPLICAS_AFTER_APPEND, the records
stay). When a record is on the leader's log, the topic's `flush.messages` decides (durability.py).

A follower has these, too: its high watermark follows its leader's, and what it claims to have is durable.
"""

from collections.abc import Callable

from odradek.broker.cluster.keys import NO_LEADER
from odradek.broker.config.broker_config import TopicConfig
from odradek.broker.log.log import Log
from odradek.broker.replica.deletions import Deletions
from odradek.broker.replica.durability import Durability
from odradek.broker.replica.partition_host import PartitionHost
from odradek.broker.replica.replicas import MayJoin, Replicas
from odradek.broker.replica.role import Role
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.runtime.progress import Progress

ACKS_ALL = -1


class Acknowledgements:
    """Those of one partition."""

    __slots__ = (
        "_host",
        "_log",
        "_may_join",
        "_moved",
        "_name",
        "_role",
        "deletions",
        "durability",
        "high_watermark",
        "min_insync_replicas",
        "replicas",
    )

    def __init__(
        self,
        name: str,
        log: Log,
        role: Role,
        host: PartitionHost,
        may_join: MayJoin,
        *,
        high_watermark: int,
        moved: Callable[[], None],
    ) -> None:
        """`high_watermark` is what the checkpoint says; `moved` is called whenever it has moved."""
        self._name = name
        self._log = log
        self._role = role
        self._host = host
        self._may_join = may_join
        self._moved = moved
        self.min_insync_replicas = 1
        self.replicas = Replicas(NO_LEADER, (), ())
        self.high_watermark = Progress(min(max(high_watermark, log.log_start_offset), log.log_end_offset))
        self.durability = Durability(log, host.environment, host.tasks, host.syncs, self.update)
        self.deletions = Deletions(log, host.environment)

    def configure(self, config: TopicConfig) -> None:
        self.min_insync_replicas = config.min_insync_replicas
        self.durability.configure(config)

    # -- terms --------------------------------------------------------------------------------------------------

    def begin(self, replicas: Replicas) -> None:
        """This broker leads from here on. With followers the high watermark starts where it was; alone, everything in
        the log counts."""
        self.replicas = replicas
        self.deletions.begin(replicas)
        self.high_watermark.restart(max(self.high_watermark.value, self._log.log_start_offset))
        self._log.producers.high_watermark_moved(self.high_watermark.value)
        self.update()

    def end(self, error: KafkaError) -> None:
        """It leads no more: whoever waits gets `error`."""
        self.high_watermark.fail(error)
        self.deletions.fail(error)

    def update(self) -> None:
        """Moves the high watermark as far as the replicas allow, and wakes whom that concerns. Only a leader knows."""
        if not self._role.is_leader:
            return
        replicas, end_offset = self.replicas, self.durability.end_offset
        if replicas.followers:
            end_offset = replicas.high_watermark(
                end_offset,
                self.high_watermark.value,
                self.min_insync_replicas,
                self._host.environment.monotonic_ms(),
                self._host.replica_lag_ms_max,
                self._may_join,
            )
        self._advance(end_offset)
        self.deletions.replicas_changed()

    def follow(self, leader_high_watermark: int) -> None:
        """As a follower: everything that was fetched is in the log, and the leader's high watermark is this."""
        self._advance(min(leader_high_watermark, self._log.log_end_offset))

    def _advance(self, offset: int) -> None:
        if self.high_watermark.advance(offset):
            self._log.end.producers.high_watermark_moved(offset)
            self._moved()

    def truncated(self) -> None:
        """The log was cut: what counted behind its end counts no more."""
        log = self._log
        self.durability.truncated(self._role.not_leader())
        self.high_watermark.lower(log.log_end_offset)
        self.high_watermark.advance(log.log_start_offset)
        log.producers.high_watermark_moved(self.high_watermark.value)

    # -- what acks ask for --------------------------------------------------------------------------------------

    @property
    def has_enough_replicas(self) -> bool:
        """Whether acks=all may append at all."""
        return self.replicas.has_enough_before_append(self.min_insync_replicas)

    def require_replicas(self) -> None:
        """Raises KafkaError NOT_ENOUGH_REPLICAS when acks=all could not be kept; nothing is to be appended then."""
        if not self.replicas.has_enough_before_append(self.min_insync_replicas):
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{self._name} has {len(self.replicas.isr)} replicas in sync, "
                f"min.insync.replicas is {self.min_insync_replicas}",
            )

    def is_reached(self, last_offset: int, acks: int) -> bool:
        """Whether what was appended up to `last_offset` counts. Raises KafkaError NOT_ENOUGH_REPLICAS_AFTER_APPEND;
        KAFKA_STORAGE_ERROR where the device did not take it, and will not be asked again."""
        if self.durability.waits and self.durability.durable.value <= last_offset:
            if self._log.condition.is_given_up:
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self._name}: the log is not used any more")
            return False
        if acks != ACKS_ALL:
            return True
        if self.high_watermark.value <= last_offset:
            return False
        self._require_enough_after(last_offset)
        return True

    async def reach(self, last_offset: int, acks: int, timeout_ms: float) -> None:
        """Returns once it counts. That no term has ended since the append is for the caller to see.

        Raises KafkaError: REQUEST_TIMED_OUT, NOT_ENOUGH_REPLICAS_AFTER_APPEND, NOT_LEADER_OR_FOLLOWER,
        KAFKA_STORAGE_ERROR when the device did not take it.
        """
        environment = self._host.environment
        deadline_ms = environment.monotonic_ms() + timeout_ms
        await self.synced(last_offset, timeout_ms)
        if acks == ACKS_ALL:
            await self.replicated(last_offset, max(0.0, deadline_ms - environment.monotonic_ms()))

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
                f"offset {last_offset} of {self._name} was not synced within {timeout_ms:.0f} ms",
            ) from None

    async def replicated(self, last_offset: int, timeout_ms: float) -> None:
        """Returns once `last_offset` is on every in-sync replica and on enough of them. Raises as `reach`."""
        try:
            await self.high_watermark.reach(last_offset + 1, timeout_ms)
        except TimeoutError:
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT,
                f"offset {last_offset} of {self._name} was not replicated within {timeout_ms:.0f} ms",
            ) from None
        self._require_enough_after(last_offset)

    def _require_enough_after(self, last_offset: int) -> None:
        if not self.replicas.has_enough_after_append(self.min_insync_replicas):
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
                f"offset {last_offset} of {self._name} was appended, but only "
                f"{len(self.replicas.maximal_isr)} replicas are in sync",
            )
