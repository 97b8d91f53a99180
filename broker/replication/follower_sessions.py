"""The sessions of followers: what each of them fetches from this broker, and what it has not been told yet. No I/O.

An answer costs what has happened, not what there is: a session hears of each append to a partition (`log_watchers`),
and of what else changes there (`watchers`). A follower has one session, until it begins another one; it is never
evicted.
"""

import asyncio
from collections.abc import Callable

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.fetching.consumer_sessions import next_epoch
from odradek.broker.replica.partition import Partition
from odradek.broker.replica.quota import ReplicationQuota
from odradek.broker.replication.closest_replica import RACK_AWARE
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.fetch import FetchPartition
from odradek.runtime.tasks import breathe

Key = tuple[bytes, int]
"""Topic id and partition index."""

GATHERING_TURNS_MAX = 16
"""So many turns of the loop an answer waits at most, however much they bring."""
IDLE_TURNS_MAX = 4
"""And so many that bring nothing, if there is that much to answer."""

NEWS_DELAY_MS = 100.0
"""How long a high watermark waits for records to travel with, where consumers may read from followers. Else nobody
needs it before the follower's next request, half a second later at most: one that comes to lead learns from the others'
fetches what is on all of them."""


class FollowedByPeer:
    """A partition of a session: what the follower asked for, and what it was told last."""

    __slots__ = ("high_watermark", "log_start_offset", "partition", "request")

    def __init__(self, partition: Partition, request: FetchPartition) -> None:
        self.partition = partition
        self.request = request
        self.high_watermark = -1
        self.log_start_offset = -1

    @property
    def was_told(self) -> bool:
        """Whether it was answered at all: the first answer names every partition."""
        return self.high_watermark >= 0

    @property
    def is_news(self) -> bool:
        return (
            self.partition.high_watermark.value != self.high_watermark
            or self.partition.log.log_start_offset != self.log_start_offset
        )

    @property
    def must_hear(self) -> bool:
        """Whether a DeleteRecords moved the log start, and the follower was not told: the answer waits for it. What
        retention moved has time."""
        partition = self.partition
        asked_offset = partition.acknowledgements.deletions.asked_offset
        return self.log_start_offset < min(asked_offset, partition.log.log_start_offset)


class FollowerSession:
    """Everything that one follower fetches from this broker."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        session_id: int,
        broker_id: int,
        broker_epoch: int,
        config: BrokerConfig,
    ) -> None:
        self._loop = loop
        self._config = config
        self.session_id = session_id
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.epoch = 1
        """That the next request must have."""
        self.is_closed = False
        self.last_fetch_ms = 0.0
        self.followed: dict[Key, FollowedByPeer] = {}
        self.to_read: dict[Key, None] = {}
        self.appends = 0
        """To what it follows, since it began."""
        self._gathered = 0  # of these, up to the last answer
        self.to_tell: dict[Key, None] = {}
        """Of which nothing is new but the high watermark or the log start."""
        self.is_urgent = False
        """Whether a DeleteRecords waits for the follower to hear of a log start."""
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def add(self, partition: Partition, request: FetchPartition) -> None:
        key = partition.topic_id, partition.index
        known = self.followed.get(key)
        if known is not None and known.partition is partition:
            known.request = request
        else:
            self.forget(key)
            self.followed[key] = FollowedByPeer(partition, request)
            partition.reader.log_watchers[self._appended] = None
            partition.reader.watchers[self._changed] = None
        self.to_read[key] = None

    def forget(self, key: Key) -> None:
        self.to_read.pop(key, None)
        self.to_tell.pop(key, None)
        if (followed := self.followed.pop(key, None)) is not None:
            followed.partition.reader.log_watchers.pop(self._appended, None)
            followed.partition.reader.watchers.pop(self._changed, None)

    @property
    def is_waiting(self) -> bool:
        """Whether a request of it waits for something to answer."""
        return self._waiter is not None

    def close(self) -> None:
        self.is_closed = True
        for key in list(self.followed):
            self.forget(key)
        self.interrupt()

    def _appended(self, partition: Partition) -> None:
        key = partition.topic_id, partition.index
        self.appends += 1
        if key not in self.to_read:
            self.to_read[key] = None
            if (follower := partition.replicas.followers.get(self.broker_id)) is not None:
                follower.was_caught_up(self.last_fetch_ms)
        self.interrupt()

    def _changed(self, partition: Partition) -> None:
        key = partition.topic_id, partition.index
        if not partition.is_leader:
            self.to_read[key] = None
            self.interrupt()
        else:
            self.to_tell[key] = None
            if self.followed[key].must_hear:
                self.is_urgent = True
                self.interrupt()
            elif self._waiter is not None and self._timer is None and self._tells_soon:
                self._timer = self._loop.call_later(NEWS_DELAY_MS / 1000, self.interrupt)

    @property
    def _tells_soon(self) -> bool:
        return self._config.replica_selector_class == RACK_AWARE

    def interrupt(self) -> None:
        """Ends the wait: there is something to answer, or nobody to answer to."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def gather(self) -> None:
        """Returns when the turns of the loop bring nothing more to be read, so that one answer takes along what lies in
        the sockets. Each costs both ends far more than a turn.

        The more has come since the last answer, the more is on its way, and the longer it is waited for: one turn that
        brings nothing is enough for a single append, which nobody is to wait for.
        """
        if not self.to_read:
            return
        idle_turns = 0
        for _ in range(GATHERING_TURNS_MAX):
            before = self.appends
            await breathe()
            idle_turns = idle_turns + 1 if self.appends == before else 0
            if idle_turns >= min(self.appends - self._gathered, IDLE_TURNS_MAX):
                break
        self._gathered = self.appends

    async def wait(self, timeout_ms: float) -> None:
        """Returns when something may be worth answering, or after `timeout_ms`."""
        self._waiter = waiter = self._loop.create_future()
        deadline = self._loop.call_later(timeout_ms / 1000, self.interrupt)
        if self.to_tell and self._tells_soon:
            self._timer = self._loop.call_later(NEWS_DELAY_MS / 1000, self.interrupt)
        try:
            await waiter
        finally:
            deadline.cancel()
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            if self._waiter is waiter:
                self._waiter = None


class FollowerSessions:
    """The sessions of all followers, one a broker."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        new_id: Callable[[], int],
        config: BrokerConfig,
        quota: ReplicationQuota,
    ) -> None:
        """`quota`: what all followers together may be sent of throttled replicas."""
        self._loop = loop
        self._config = config
        self._new_id = new_id
        self.quota = quota
        self._sessions: dict[int, FollowerSession] = {}

    def resolve(self, session_id: int, epoch: int, broker_id: int, broker_epoch: int) -> FollowerSession:
        """The session that a request belongs to, moved on by one epoch, or a new one for epoch 0.

        Raises KafkaError: FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH.
        """
        session = self._sessions.get(broker_id)
        if epoch <= 0:
            if session is not None:
                session.close()
            session = FollowerSession(self._loop, self._new_id() or 1, broker_id, broker_epoch, self._config)
            self._sessions[broker_id] = session
            return session
        if session is None or session.session_id != session_id or session.broker_epoch != broker_epoch:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, f"broker {broker_id} has no session {session_id}")
        if session.epoch != epoch or session.is_waiting:
            # The next one follows upon an answer: whoever lost that begins another session.
            raise KafkaError(
                ErrorCode.INVALID_FETCH_SESSION_EPOCH,
                f"session {session_id} expects epoch {session.epoch}, not {epoch}",
            )
        session.epoch = next_epoch(epoch)
        return session
