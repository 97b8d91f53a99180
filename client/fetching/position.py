"""One partition that is read: how far it has come, and what keeps it from going on. Pure.

Beside it stand the errors that end one, and the codes that do not.
"""

from typing import Final

from odradek.client.errors.base import ClientError
from odradek.client.errors.client_errors import BrokerError
from odradek.client.fetching.fetch_settings import Start
from odradek.client.fetching.session import SESSION_ERRORS
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.errors import ErrorCode

__all__ = ["NEVER", "OUT_OF_RANGE", "PASSING", "STALE_METADATA", "LogTruncated", "OffsetOutOfRange", "Position"]

NEVER: Final = float("inf")
REPLICA_SHUNNED_MS: Final = 10_000.0
"""After a replica has failed, the leader is read from for so long."""
OUT_OF_RANGE: Final = int(ErrorCode.OFFSET_OUT_OF_RANGE)

# The leader, or what is known of the topic, has changed: metadata is asked for (FetchCollector.java).
STALE_METADATA: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.LISTENER_NOT_FOUND,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)
PASSING: Final = STALE_METADATA | {
    ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    *SESSION_ERRORS,  # which say nothing of the partition
}


class OffsetOutOfRange(BrokerError):
    """The partition has no such offset, any more or yet, and `auto_offset_reset` is "none"."""

    def __init__(self, partition: TopicPartition, offset: int) -> None:
        super().__init__(ErrorCode.OFFSET_OUT_OF_RANGE, what=f"reading {partition} from offset {offset}")
        self.partition = partition
        self.offset = offset


class LogTruncated(OffsetOutOfRange):
    """Records before the position are others now, from `diverging_offset` on, and `auto_offset_reset` is "none".

    (Source: LogTruncationException.java, KIP-320.)
    """

    def __init__(self, partition: TopicPartition, offset: int, diverging_offset: int) -> None:
        super().__init__(partition, offset)
        self.diverging_offset = diverging_offset
        self.hint = f"Its log was truncated and goes on with other records from offset {diverging_offset} on."


class Position:
    """One partition that is read. It is replaced when it is assigned anew, so that late answers are told."""

    __slots__ = (
        "end_offset",
        "error",
        "failing_since_ms",
        "failures",
        "fetch_offset",
        "is_asked",
        "is_paused",
        "is_stopped",
        "last_fetched_epoch",
        "partition",
        "position",
        "replica_id",
        "replica_until_ms",
        "retry_at_ms",
        "start",
        "topic_id",
        "waiting_count",
    )

    def __init__(self, partition: TopicPartition, start: Start, end_offset: int | None) -> None:
        self.partition = partition
        self.start = start
        self.end_offset = end_offset
        """Where reading ends; None: nowhere."""
        self.fetch_offset = self.position = -1 if start.offset is None else start.offset
        """-1: not known yet, ListOffsets has to say."""
        self.waiting_count = 0
        """The chunks that `take` has not finished."""
        self.is_asked = False
        """A request for it is under way."""
        self.is_paused = False
        """Neither is anything asked for nor is anything handed out."""
        self.is_stopped = False
        """It ended by an error."""
        self.last_fetched_epoch = start.leader_epoch
        """The leader epoch of the record before `fetch_offset`; -1: not known."""
        self.replica_id = -1
        """Who is read from in place of the leader, until `replica_until_ms`; -1: nobody is, until then."""
        self.replica_until_ms = 0.0
        self.topic_id = b""
        """Of the topic that is read; empty: not known."""
        self.retry_at_ms = 0.0
        self.failures = 0
        self.failing_since_ms = NEVER
        self.error: ClientError | None = None
        """Why nothing comes, since `failing_since_ms`; tried again until it has lasted for too long."""

    @property
    def has_ended(self) -> bool:
        """Nothing more will be asked for."""
        return self.is_stopped or (self.end_offset is not None and self.fetch_offset >= self.end_offset)

    @property
    def is_finished(self) -> bool:
        """Nothing more will be handed out."""
        return self.has_ended and not self.waiting_count

    def is_due(self, now_ms: float) -> bool:
        return not self.is_asked and not self.has_ended and now_ms >= self.retry_at_ms

    def leave_replica(self, now_ms: float) -> None:
        """The leader is read from, for a while."""
        self.replica_id = -1
        self.replica_until_ms = now_ms + REPLICA_SHUNNED_MS

    def shuns_replicas(self, now_ms: float) -> bool:
        """Whether the leader shall answer itself, and name no replica: one has just failed."""
        return self.replica_id < 0 and now_ms < self.replica_until_ms

    def succeeded(self) -> None:
        self.is_asked = False
        self.failures = 0
        self.failing_since_ms = NEVER
        self.error = None
        self.retry_at_ms = 0.0
