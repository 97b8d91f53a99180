"""All partitions that are followed at one leader: which of them the next request has to look at, and which ones wait.

What is looked at is what has changed, `dirty`; so quiet partitions cost nothing, however many there are. Errors and the
quota make a partition wait until a moment of its own, and the others go on. Nothing here waits itself.
"""

import logging
from collections.abc import Iterator

from odradek.broker.replica.quota import ReplicationQuota
from odradek.broker.replication.follower_state import FetchPosition, Phase
from odradek.broker.replication.following import FollowerReplica, Following, parted_at
from odradek.broker.replication.leader_session import PartitionId
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.fetch import PartitionData

logger = logging.getLogger(__name__)


class FollowedSet:
    """See the module. Times are those of the monotonic clock, but for `wall_ms`."""

    __slots__ = ("_dirty", "_following", "_quota", "_waiting", "_with_news_soon")

    def __init__(self, quota: ReplicationQuota) -> None:
        self._quota = quota
        self._following: dict[PartitionId, Following] = {}
        self._dirty: dict[PartitionId, None] = {}
        self._waiting: dict[PartitionId, None] = {}
        self._with_news_soon: dict[PartitionId, None] = {}

    def __len__(self) -> int:
        return len(self._following)

    def get(self, key: PartitionId) -> Following | None:
        return self._following.get(key)

    def add(self, partition: FollowerReplica, backoff_ms: float) -> bool:
        """Whether that is news: one that is there in this leader epoch goes on, else it begins (anew)."""
        following = Following(partition, backoff_ms)
        known = self._following.get(following.key)
        if known is not None and known.partition is partition and known.state.leader_epoch == partition.leader_epoch:
            return False
        self._following[following.key] = following
        self._waiting.pop(following.key, None)
        self._dirty[following.key] = None
        return True

    def remove(self, key: PartitionId) -> None:
        if self._following.pop(key, None) is not None:
            self._waiting.pop(key, None)
            self._dirty[key] = None

    def touch(self, key: PartitionId) -> None:
        """It has to be looked at."""
        self._dirty[key] = None

    def touch_all(self) -> None:
        """A new session has to be told of all."""
        self._dirty = dict.fromkeys(self._following)

    # -- for the next request -------------------------------------------------------------------------------------

    def looked_at(self) -> Iterator[Following]:
        """Those that may have changed."""
        for key in self._dirty:
            if (following := self._following.get(key)) is not None:
                yield following

    def unsettled(self) -> Following | None:
        """One that may not claim yet what it has, if there is any."""
        return next((one for one in self.looked_at() if one.is_fetching and not one.may_claim), None)

    def release(self, now_ms: float) -> None:
        """Those that have waited long enough go on."""
        for key in [key for key in self._waiting if self._following[key].state.deadline_ms <= now_ms]:
            del self._waiting[key]
            self._following[key].state.resume()
            self._dirty[key] = None

    def positions(self, now_ms: float) -> dict[PartitionId, FetchPosition | None]:
        """Of what may have changed: where to fetch, and None for what is not to be fetched now."""
        wait_ms = self._quota.wait_ms(now_ms)
        if wait_ms:  # whoever is throttled leaves the session, also who has nothing new to say
            self._dirty.update((key, None) for key, one in self._following.items() if _is_throttled(one))
        dirty, self._dirty = self._dirty, {}
        return {key: self._position(key, now_ms, wait_ms) for key in dirty}

    def _position(self, key: PartitionId, now_ms: float, wait_ms: float) -> FetchPosition | None:
        following = self._following.get(key)
        if following is None or not following.is_fetching:
            return None
        if following.partition.log.condition.is_half_cut:
            following.complete_truncation(now_ms)
            self._note_phase(following)
            if not following.is_fetching:
                return None
        if wait_ms and _is_throttled(following):
            following.state.throttled(now_ms, wait_ms)
            self._waiting[key] = None
            return None
        return following.position

    def next_deadline_ms(self) -> float | None:
        """When somebody has waited long enough; None where nobody waits."""
        return min((self._following[key].state.deadline_ms for key in self._waiting), default=None)

    @property
    def has_news_soon(self) -> bool:
        """Whether a log start is being written down somewhere, of which the leader is to hear."""
        for key in list(self._with_news_soon):
            following = self._following.get(key)
            if following is None or not following.has_news_soon:
                del self._with_news_soon[key]
        return bool(self._with_news_soon)

    # -- with an answer -------------------------------------------------------------------------------------------

    def take(
        self, key: PartitionId, answer: PartitionData, asked: FetchPosition, now_ms: float, wall_ms: int
    ) -> int | None:
        """How many bytes were appended; None where the answer was not applied, or there was nothing in it to apply but
        an error, or where the logs part. Whatever is wrong with one partition is no matter of the others."""
        following = self._following.get(key)
        if following is None:
            return None
        self._dirty[key] = None
        if not following.is_answered_by(asked):
            return None
        size_bytes = 0
        try:
            size_bytes = following.take(answer, asked, now_ms, wall_ms)
        except Exception as error:
            logger.exception("%r: a mistake of ours", following)
            why = f"{type(error).__name__}: {error}"
            following.failed(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, why), now_ms)
        self._note_phase(following)
        if following.has_news_soon:
            self._with_news_soon[key] = None
        if size_bytes and following.partition.is_follower_throttled:
            self._quota.record(size_bytes, now_ms)
        return size_bytes if following.state.phase is Phase.FETCHING and parted_at(answer) is None else None

    def compare(
        self, key: PartitionId, leader_offsets: tuple[int, int] | None, asked: FetchPosition, now_ms: float
    ) -> None:
        """What the leader said where its log begins and ends, or None."""
        following = self._following.get(key)
        if following is not None and following.state.phase is Phase.COMPARING:
            following.compare(leader_offsets, asked, now_ms)
            self._note_phase(following)

    def failed(self, following: Following, error: KafkaError, now_ms: float) -> None:
        """It waits, if it is still followed."""
        if self._following.get(following.key) is following:
            following.failed(error, now_ms)
            self._note_phase(following)

    def _note_phase(self, following: Following) -> None:
        if following.state.phase is Phase.WAITING:
            self._waiting[following.key] = None


def _is_throttled(following: Following) -> bool:
    """Whether it may have to wait for room: never what is in sync, as in Kafka."""
    return following.is_fetching and not following.state.is_in_sync and following.partition.is_follower_throttled
