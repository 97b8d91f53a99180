"""A partition that this broker follows: what an answer of its leader does to its log.

`FollowerReplica` is what a fetcher asks of a partition, `Following` one partition at one leader. Nothing here waits, so
between the look at the leader epoch and what follows from it nothing can change (follower_state.py decides what that
is).
"""

import logging
from typing import Protocol

from odradek.broker.log.log import Log
from odradek.broker.replication.follower_state import (
    FetchPosition,
    FollowerState,
    Phase,
)
from odradek.broker.replication.leader_session import PartitionId
from odradek.broker.replication.truncation import Restart, after_out_of_range, truncation_offset
from odradek.protocol.errors import ErrorCode, KafkaError, code_of
from odradek.protocol.messages.fetch import PartitionData

logger = logging.getLogger(__name__)


class FollowerReplica(Protocol):
    """A partition, as its fetcher sees it. Only its fetcher appends to its log, and cuts it, while it is followed."""

    @property
    def topic(self) -> str: ...
    @property
    def topic_id(self) -> bytes: ...
    @property
    def index(self) -> int: ...
    @property
    def log(self) -> Log: ...
    @property
    def leader_epoch(self) -> int: ...

    @property
    def is_follower_throttled(self) -> bool:
        """Whether `follower.replication.throttled.replicas` names this replica (quota.py)."""
        ...

    @property
    def durable_end_offset(self) -> int:
        """Everything before it may be claimed towards the leader: it is as durable as the topic wants it."""
        ...

    async def durable(self, end_offset: int) -> None:
        """Returns once that is `end_offset`. Raises KafkaError KAFKA_STORAGE_ERROR, NOT_LEADER_OR_FOLLOWER."""
        ...

    def appended_as_follower(self, size_bytes: int) -> None:
        """The log has grown; by so many bytes, where that is known."""
        ...

    def replicated_up_to(self, leader_high_watermark: int) -> None:
        """What was fetched is in the log, and the leader's high watermark is this."""
        ...

    def follow_log_start(self, log_start_offset: int) -> None:
        """This log will begin there once that is written down, as the leader's does."""
        ...

    def truncated(self) -> None:
        """The log was cut, perhaps not as far as it should, or begins anew somewhere else. High watermark and what is
        settled must not be behind its end, nor the former before its start; checkpoints are to be written."""
        ...


class Following:
    """One partition, at one leader and in one leader epoch."""

    __slots__ = ("_backoff_ms", "_log_start_wanted", "key", "partition", "state")

    def __init__(self, partition: FollowerReplica, backoff_ms: float) -> None:
        self.partition = partition
        self.key: PartitionId = partition.topic_id, partition.index
        self.state = FollowerState(partition.leader_epoch)
        self._backoff_ms = backoff_ms
        self._log_start_wanted = 0

    def __repr__(self) -> str:
        return f"<Following {self.partition.topic}-{self.partition.index} epoch {self.state.leader_epoch}>"

    @property
    def position(self) -> FetchPosition:
        """Where the next fetch begins. It says a log start that is on the disk: a DeleteRecords is answered for it."""
        log = self.partition.log
        log_start_offset = min(log.log_start_offset, log.durable_log_start_offset)
        return FetchPosition(self.state.leader_epoch, log.log_end_offset, log.epochs.latest, log_start_offset)

    @property
    def has_news_soon(self) -> bool:
        """Whether a log start is being written down, of which the leader is to hear."""
        return self.partition.log.durable_log_start_offset < self._log_start_wanted

    @property
    def is_fetching(self) -> bool:
        """Whether it wants something of its leader. In another epoch than the partition's, it waits to be replaced."""
        return self.state.phase is Phase.FETCHING and self.state.leader_epoch == self.partition.leader_epoch

    @property
    def may_claim(self) -> bool:
        """Whether the next fetch, which says that all before its offset is here, may say so."""
        return self.partition.durable_end_offset >= self.partition.log.log_end_offset

    def complete_truncation(self, now_ms: float) -> None:
        """After one that failed half-way, before anything else: no appends are taken until then."""
        try:
            self._truncate(self.partition.log.log_end_offset, "a truncation that failed half-way is completed")
        except KafkaError as error:
            self.failed(error, now_ms)

    def is_answered_by(self, asked: FetchPosition) -> bool:
        """Whether an answer to what was asked then still fits: same epoch, same end of the log."""
        log = self.partition.log
        return (
            self.is_fetching
            and asked.leader_epoch == self.state.leader_epoch
            and asked.fetch_offset == log.log_end_offset
            and asked.last_fetched_epoch == log.epochs.latest
        )

    def take(self, answer: PartitionData, asked: FetchPosition, now_ms: float, wall_ms: int) -> int:
        """Does what the answer to `asked`, which still fits (`is_answered_by`), says; returns how many bytes were
        appended. Errors make the partition wait."""
        try:
            code = code_of(answer.error_code)
            if code is ErrorCode.OFFSET_OUT_OF_RANGE:
                self.state.out_of_range()
                return 0
            if code is not ErrorCode.NONE:
                raise KafkaError(code, "the leader answers so")
            if (leader_end := parted_at(answer)) is not None:
                log = self.partition.log
                offset = truncation_offset(
                    leader_end, asked, lambda epoch: log.epochs.end_offset_for(epoch, log.log_end_offset)
                )
                self._truncate(offset, f"the leader's epoch {leader_end[0]} ends at {leader_end[1]}")
                return 0
            return self._append(answer, wall_ms)
        except KafkaError as error:
            self.failed(error, now_ms)
            return 0

    def _append(self, answer: PartitionData, wall_ms: int) -> int:
        partition, log, size_bytes = self.partition, self.partition.log, 0
        if answer.records:
            before = log.log_end_offset
            try:
                size_bytes = log.append_replicated(answer.records, self.state.leader_epoch, wall_ms)
            finally:
                if log.log_end_offset != before:  # even where the disk took only some of it
                    partition.appended_as_follower(size_bytes)
            if not size_bytes:
                raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH, "the leader sent batches of a later epoch")
        partition.replicated_up_to(answer.high_watermark)
        self._follow_log_start(answer.log_start_offset)
        self.state.appended(answer.high_watermark, log.log_end_offset)
        return size_bytes

    def _follow_log_start(self, leader_log_start_offset: int) -> None:
        """Also where this log starts later than its checkpoint says: retention did that while it led, or it began
        anew."""
        log = self.partition.log
        wanted = max(log.log_start_offset, min(leader_log_start_offset, log.log_end_offset))
        if wanted > min(log.log_start_offset, log.durable_log_start_offset):
            self._log_start_wanted = wanted
            self.partition.follow_log_start(wanted)

    def compare(self, leader_offsets: tuple[int, int] | None, asked: FetchPosition, now_ms: float) -> None:
        """After OFFSET_OUT_OF_RANGE: the leader's log start and log end, None where it did not tell."""
        assert self.state.phase is Phase.COMPARING
        try:
            if leader_offsets is None:
                raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, "the leader did not tell which offsets it has")
            if self.partition.leader_epoch != asked.leader_epoch:
                raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH, "another leader epoch has begun meanwhile")
            decided = after_out_of_range(asked, *leader_offsets)
            if isinstance(decided, Restart):
                log = self.partition.log
                logger.log(
                    logging.WARNING if log.size_bytes else logging.INFO,  # a new replica has nothing to lose
                    "%s: the log is emptied and restarts at offset %d, the leader's log start: the leader has deleted "
                    "what is before; the log held offsets %d to %d in %d bytes",
                    *(log.directory, decided.offset, log.log_start_offset, log.log_end_offset, log.size_bytes),
                )
                try:
                    log.truncate_fully_and_start_at(decided.offset)
                finally:
                    self.partition.truncated()
                self.state.truncated()
            else:
                self._truncate(decided.offset, "the leader's log ends there, and no epochs are known here")
        except KafkaError as error:
            self.failed(error, now_ms)

    def _truncate(self, offset: int, why: str) -> None:
        log = self.partition.log
        before = log.log_end_offset
        try:
            log.truncate_to(offset)
        finally:
            self._log_start_wanted = 0
            self.partition.truncated()
        logger.info("%s: cut from offset %d to %d: %s", log.directory, before, log.log_end_offset, why)
        self.state.truncated()

    def failed(self, error: KafkaError, now_ms: float) -> None:
        """Something is wrong with this partition: it waits, and the others do not."""
        if self.state.failed(error.code, now_ms, self._backoff_ms):
            logger.warning("%r waits at offset %d: %s", self, self.partition.log.log_end_offset, error)


def parted_at(answer: PartitionData) -> tuple[int, int] | None:
    """Where the leader's log and ours part, if the answer says that and nothing else: the leader's largest epoch up to
    our last one, and its end there."""
    diverging = answer.diverging_epoch
    return None if diverging is None or diverging.epoch < 0 else (diverging.epoch, diverging.end_offset)
