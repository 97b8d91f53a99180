"""Incremental fetch sessions (KIP-227, Kafka's `FetchSession.scala`). Pure.

A consumer that polls a thousand quiet partitions should not name them all in each request and read them all in each
answer. With a session it names the changes only, and the broker answers only the partitions of which something is new.

| request says | meaning |
|---|---|
| session id 0, epoch -1 | no session, a full fetch (librdkafka, aiokafka, sarama, kafkajs: always) |
| epoch 0 | a full fetch that would like a session; a session id given with it is closed |
| epoch -1, session id | a full fetch that closes the session |
| epoch n > 0 | the n-th incremental fetch of that session |

A partition is answered when it has records, an error, another replica to read from, an epoch in which the logs part, or
when its high watermark or log start differs from what the session last told the client; an error makes it answered
again next time. What ends the wait of a Fetch is always told: else the client would ask the same again at once.
Partitions with records move to the end, so that all get their turn. The cache holds
`max.incremental.fetch.session.cache.slots` sessions; a full cache evicts the least recently used one that was idle for
`EVICTION_MS`, and otherwise answers session id 0, which every client accepts.
"""

from collections.abc import Callable

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.fetch import FetchPartition, PartitionData

NO_SESSION = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
EVICTION_MS = 120_000.0
EPOCH_MAX = 2**31 - 1

PartitionKey = tuple[str, bytes, int]
"""Topic name (empty when fetched by id), topic id (zeros when fetched by name), partition index."""


def next_epoch(epoch: int) -> int:
    """That the next request of a session has."""
    return 1 if epoch == EPOCH_MAX else epoch + 1


class CachedPartition:
    """What the client asked for in one partition, and what it was last told about it."""

    __slots__ = ("high_watermark", "log_start_offset", "request")

    def __init__(self, request: FetchPartition) -> None:
        self.request = request
        self.high_watermark: int = -1
        self.log_start_offset: int = -1

    def take_news(self, answer: PartitionData) -> bool:
        """Whether `answer` tells the client anything new; remembers what it tells."""
        news = (
            bool(answer.records)
            or answer.error_code != 0
            or answer.preferred_read_replica >= 0
            or answer.diverging_epoch is not None
            or answer.high_watermark != self.high_watermark
            or answer.log_start_offset != self.log_start_offset
        )
        # An error is told again with the next answer: Kafka resets the cached high watermark for it.
        self.high_watermark = -1 if answer.error_code else answer.high_watermark
        self.log_start_offset = answer.log_start_offset
        return news


class FetchSession:
    """The partitions of one session in the order in which they will be read, and the epoch expected next."""

    __slots__ = ("epoch", "last_used_ms", "partitions", "session_id", "uses_topic_ids")

    def __init__(self, session_id: int, uses_topic_ids: bool, now_ms: float) -> None:
        self.session_id = session_id
        self.uses_topic_ids = uses_topic_ids
        self.epoch = 1
        self.last_used_ms = now_ms
        self.partitions: dict[PartitionKey, CachedPartition] = {}

    def update(self, wanted: dict[PartitionKey, FetchPartition], forgotten: list[PartitionKey]) -> None:
        for key, request in wanted.items():
            if (cached := self.partitions.get(key)) is None:
                self.partitions[key] = CachedPartition(request)
            else:
                cached.request = request
        for key in forgotten:
            self.partitions.pop(key, None)

    def filter(self, answers: dict[PartitionKey, PartitionData]) -> dict[PartitionKey, PartitionData]:
        """The answers that tell something new. Partitions with records move to the end of the reading order."""
        told: dict[PartitionKey, PartitionData] = {}
        for key, answer in answers.items():
            if (cached := self.partitions.get(key)) is not None and cached.take_news(answer):
                told[key] = answer
                if answer.records:
                    del self.partitions[key]
                    self.partitions[key] = cached
        return told


class FetchSessions:
    """All sessions of this broker, least recently used first."""

    __slots__ = ("_new_id", "_sessions", "slots")

    def __init__(self, slots: int, new_id: Callable[[], int]) -> None:
        """`new_id` gives random positive 31-bit numbers; ids in use are skipped."""
        self.slots = slots
        self._new_id = new_id
        self._sessions: dict[int, FetchSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def resolve(self, session_id: int, epoch: int, uses_topic_ids: bool, now_ms: float) -> FetchSession | None:
        """The session of an incremental fetch, moved on by one epoch; None for a full fetch, which closes an old one.

        Raises KafkaError: FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH, FETCH_SESSION_TOPIC_ID_ERROR.
        """
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self.close(session_id)
            return None
        session = self._sessions.get(session_id)
        if session is None:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, f"no fetch session {session_id}; start a new one")
        if session.epoch != epoch:
            raise KafkaError(
                ErrorCode.INVALID_FETCH_SESSION_EPOCH,
                f"fetch session {session_id} expects epoch {session.epoch}, not {epoch}; start a new one",
            )
        if session.uses_topic_ids != uses_topic_ids:
            raise KafkaError(
                ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
                f"fetch session {session_id} began with topic {'ids' if session.uses_topic_ids else 'names'}",
            )
        session.epoch = next_epoch(epoch)
        session.last_used_ms = now_ms
        del self._sessions[session_id]
        self._sessions[session_id] = session
        return session

    def create(self, uses_topic_ids: bool, now_ms: float) -> FetchSession | None:
        """A new session, or None when the cache is full of sessions in use."""
        if self.slots <= 0:
            return None
        if len(self._sessions) >= self.slots:
            oldest = next(iter(self._sessions.values()))
            if now_ms - oldest.last_used_ms < EVICTION_MS:
                return None
            del self._sessions[oldest.session_id]
        session_id = self._new_id()
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = self._new_id()
        session = FetchSession(session_id, uses_topic_ids, now_ms)
        self._sessions[session_id] = session
        return session

    def close(self, session_id: int) -> None:
        self._sessions.pop(session_id, None)
