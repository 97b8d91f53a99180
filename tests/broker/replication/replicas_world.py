"""What the tests of following share: a leader's answer out of a real log, and a partition that follows.

The leader's rules are those of KIP-595 in few lines: epochs are compared before anything is read. And a past that is
no more, so that epochs do not tell, counts for nothing (divergence.py).
"""

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.log.log import Log
from odradek.broker.replica.durability import Durability
from odradek.broker.replica.syncs import Syncs
from odradek.broker.replication.follower_state import FetchPosition
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.fetch import EpochEndOffset, PartitionData
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks

FLUSH_EACH = {"flush.messages": "1"}


class Led:
    """A partition at its leader."""

    def __init__(self, log: Log, leader_epoch: int, topic: str = "orders", topic_id: bytes = b"o" * 16) -> None:
        self.log = log
        self.leader_epoch = leader_epoch
        self.topic = topic
        self.topic_id = topic_id
        self.high_watermark = 0

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """The largest epoch up to this one, and its end; epochs in which nothing was appended end at the log's end."""
        epochs, end = self.log.epochs, self.log.log_end_offset
        if epoch == self.leader_epoch:
            return epoch, end
        if epochs.latest < epoch < self.leader_epoch:
            return (epoch if epochs.latest < 0 else epochs.latest), end
        return epochs.end_offset_for(epoch, end)

    def check_epoch(self, epoch: int) -> None:
        """Raises KafkaError FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH."""
        if epoch != self.leader_epoch:
            is_old = epoch < self.leader_epoch
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH if is_old else ErrorCode.UNKNOWN_LEADER_EPOCH)

    def read(self, index: int, asked: FetchPosition, size_bytes_max: int = 1 << 20) -> PartitionData:
        """What the leader answers."""
        log = self.log
        try:
            self.check_epoch(asked.leader_epoch)
            answer = PartitionData(
                partition_index=index,
                high_watermark=self.high_watermark,
                log_start_offset=log.log_start_offset,
                records=b"",
            )
            if asked.last_fetched_epoch >= 0:
                epoch, end = self.end_offset_for_epoch(asked.last_fetched_epoch)
                if epoch < 0:
                    raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
                if epoch < asked.last_fetched_epoch or end < asked.fetch_offset:
                    answer.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end)
                    return answer
                first = log.epochs.entries[0].epoch if log.epochs.entries else self.leader_epoch
                has_records = asked.log_start_offset < asked.fetch_offset
                if has_records and asked.fetch_offset == log.log_start_offset and asked.last_fetched_epoch < first:
                    raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
            answer.records = log.fetch(asked.fetch_offset, size_bytes_max, log.log_end_offset, True).records
        except KafkaError as error:
            return PartitionData(
                partition_index=index, error_code=error.code, high_watermark=-1, log_start_offset=-1, records=b""
            )
        return answer


class FollowingReplica:
    """A partition at a follower, as a fetcher sees it. `durability`: where its topic waits for syncs."""

    def __init__(self, log: Log, leader_epoch: int, index: int = 0, topic: str = "orders") -> None:
        self.topic = topic
        self.topic_id = topic[:1].encode() * 16
        self.index = index
        self.log = log
        self.leader_epoch = leader_epoch
        self.is_follower_throttled = False
        self.high_watermark = 0
        self.appended_bytes = 0
        self.truncations: list[int] = []
        self.durability: Durability | None = None
        self._slow: tuple[Environment, float] | None = None
        self._settled = 0
        self.is_device_slow = False
        """Whether a log start is not on the disk before `device_is_done`."""
        self.log_starts_wanted: list[int] = []

    def sync_each(self, environment: Environment, tasks: Tasks) -> None:
        """From now on a fetch may claim only what is on the device."""
        self.durability = Durability(self.log, environment, tasks, Syncs(environment, tasks), lambda: None)
        self.durability.configure(BrokerConfig({}).topic(FLUSH_EACH))

    def settle_slowly(self, environment: Environment, delay_ms: float) -> None:
        """From now on a fetch may claim what was appended after so much time."""
        self._slow = environment, delay_ms
        self._settled = self.log.log_end_offset

    @property
    def durable_end_offset(self) -> int:
        if self._slow is not None:
            return min(self._settled, self.log.log_end_offset)
        return self.log.log_end_offset if self.durability is None else self.durability.end_offset

    async def durable(self, end_offset: int) -> None:
        if self._slow is not None:
            environment, delay_ms = self._slow
            await environment.sleep(delay_ms)
            self._settled = end_offset
            return
        assert self.durability is not None
        self.durability.want(end_offset)
        await self.durability.durable.reach(end_offset)

    def appended_as_follower(self, size_bytes: int) -> None:
        self.appended_bytes += size_bytes
        self.log.has_rolled = False
        if self.durability is not None:
            self.durability.appended()

    def replicated_up_to(self, leader_high_watermark: int) -> None:
        self.high_watermark = max(self.high_watermark, min(leader_high_watermark, self.log.log_end_offset))

    def follow_log_start(self, log_start_offset: int) -> None:
        self.log_starts_wanted.append(log_start_offset)
        if not self.is_device_slow:
            self.device_is_done()

    def device_is_done(self) -> None:
        """What was wanted of the log start is on the disk."""
        self.log.durable_log_start_offset = max(self.log.durable_log_start_offset, *self.log_starts_wanted)
        self.log.advance_log_start(self.log.durable_log_start_offset)

    def truncated(self) -> None:
        end = self.log.log_end_offset
        self.truncations.append(end)
        self.high_watermark = max(min(self.high_watermark, end), self.log.log_start_offset)
        if self.durability is not None:
            self.durability.truncated(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
