"""Fetches of followers, as their leader answers them: everything up to the log's end, in sessions without end.

A follower fetches all that it follows here with one session (KIP-227), which names a partition only when its position
has changed. So an answer costs what has happened, not what there is: the session hears of each append (`log_watchers`),
and reads those partitions only. A session lives until its follower begins another one, and is never evicted.

What a request says of a partition is its follower's position: all before it is in the follower's log, and equal to
ours, which `last_fetched_epoch` proves (KIP-595). Where it does not, the answer says where the two part, the position
does not count, and the partition leaves the session: nothing is read for it before its follower names it again. One
that a request does not name is where it was, and was caught up at that time if it had all.

Only brokers may ask, on the listener that is theirs, with their present broker epoch (KIP-903).

**Throttled replicas** (KIP-73) that lead here are sent to followers that are not in sync as fast as
`leader.replication.throttled.rate` allows, for all followers together. One that has to wait stays due, and the others
go on (`ReplicaManager.shouldLeaderThrottle`).

**Nobody waits behind a Fetch that waits**: it is answered with what there is as soon as its connection has received
another request.
"""

from contextlib import suppress
from math import inf

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import CLUSTER
from odradek.broker.disk.cold_reads import TRIES, warm
from odradek.broker.disk.disk_page_cache import NotCached
from odradek.broker.handling.context import Call, Context, of_partition
from odradek.broker.log.segment_reader import FetchData
from odradek.broker.replica.isolation import Isolation
from odradek.broker.replica.partition import Partition
from odradek.broker.replication.divergence import diverging, require_comparable
from odradek.broker.replication.follower_sessions import FollowedByPeer, FollowerSession, Key
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)

IMAGE_WAIT_MS = 500.0


async def handle_follower(context: Context, call: Call, request: FetchRequest) -> FetchResponse:
    """Raises KafkaError for the whole request: CLUSTER_AUTHORIZATION_FAILED, STALE_BROKER_EPOCH, INVALID_REQUEST, and
    those of sessions. Who is no broker by its rights is told so of each partition, as in Kafka."""
    if not context.permits(call, Operation.CLUSTER_ACTION, CLUSTER):
        return _refused(call, request)
    context.require_broker(call)
    state = request.replica_state
    if state is None or state.replica_epoch < 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "a follower's Fetch needs version 15 or later, with a broker epoch")
    await _check_epoch(context, state.replica_id, state.replica_epoch)
    call.caller.follows = True
    session = context.sessions.followers.resolve(
        request.session_id, request.session_epoch, state.replica_id, state.replica_epoch
    )
    return await FollowerReading(context, call, request, session).answer()


def _refused(call: Call, request: FetchRequest) -> FetchResponse:
    error = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "only brokers fetch as followers")
    return FetchResponse(
        error_code=ErrorCode.NONE,
        session_id=0,
        responses=[
            FetchableTopicResponse(
                topic=topic.topic,
                topic_id=topic.topic_id,
                partitions=[_failed(each.partition, call.failed(error)) for each in topic.partitions],
            )
            for topic in request.topics
        ],
    )


def _failed(index: int, code: ErrorCode) -> PartitionData:
    return PartitionData(
        partition_index=index,
        error_code=code,
        high_watermark=-1,
        last_stable_offset=-1,
        log_start_offset=-1,
        aborted_transactions=[],
        records=b"",
    )


async def _check_epoch(context: Context, broker_id: int, broker_epoch: int) -> None:
    """A broker's epoch is the revision of its registration: our image may not have come so far."""
    metadata = context.metadata
    with suppress(TimeoutError):
        await metadata.revision.reach(broker_epoch, IMAGE_WAIT_MS)
    broker = metadata.image.brokers.get(broker_id)
    if broker is None or broker.epoch != broker_epoch:
        raise KafkaError(
            ErrorCode.STALE_BROKER_EPOCH, f"broker {broker_id} is not registered with epoch {broker_epoch}"
        )


class FollowerReading:
    """One Fetch of a follower."""

    def __init__(self, context: Context, call: Call, request: FetchRequest, session: FollowerSession) -> None:
        self._context = context
        self._call = call
        self._request = request
        self._session = session
        self._size_bytes_max = min(request.max_bytes, context.config.replica_fetch_response_max_bytes)
        self._answers: dict[Key, PartitionData] = {}
        self._size_bytes = 0
        self._quota_ms = inf
        """Until when throttled partitions that are due have to wait, from now on."""

    async def answer(self) -> FetchResponse:
        context, session, caller = self._context, self._session, self._call.caller
        now_ms = context.environment.monotonic_ms()
        for forgotten in self._request.forgotten_topics_data:
            for index in forgotten.partitions:
                session.forget((forgotten.topic_id, index))
        session.last_fetch_ms = now_ms
        for topic in self._request.topics:
            for wanted in topic.partitions:
                self._take(topic.topic_id, wanted)
        deadline_ms = now_ms + self._request.max_wait_ms
        has_waited = False
        with context.interruptible(session.interrupt), caller.telling_of_arrivals(session.interrupt):
            while True:
                await session.gather()
                await self._read_patiently()
                if self._answers or has_waited or session.is_urgent:
                    self._tell_news()
                remaining_ms = deadline_ms - context.environment.monotonic_ms()
                if self._answers or remaining_ms <= 0 or caller.has_more():
                    return self._response()
                with self._context.waiting(self._call):
                    await session.wait(min(remaining_ms, self._quota_ms))
                has_waited = True
                if session.is_closed:
                    raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, "the follower has begun another session")

    def _take(self, topic_id: bytes, wanted: FetchPartition) -> None:
        """Notes the follower's position, if it counts."""
        key = topic_id, wanted.partition
        try:
            if wanted.current_leader_epoch < 0:
                raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH, "a follower's fetch must say its leader epoch")
            partitions = self._context.partitions
            partition = partitions.leader(
                partitions.topic_name(topic_id), wanted.partition, wanted.current_leader_epoch
            )
            if (parted := diverging(partition, wanted.last_fetched_epoch, wanted.fetch_offset)) is not None:
                # Nothing may be read for what is not in our log: it leaves the session, and is to be named anew.
                self._session.forget(key)
                self._answers[key] = self._told(FollowedByPeer(partition, wanted))
                self._answers[key].diverging_epoch = EpochEndOffset(epoch=parted[0], end_offset=parted[1])
                return
            partition.reader.require_offset(wanted.fetch_offset)
            require_comparable(partition, wanted.last_fetched_epoch, wanted.fetch_offset, wanted.log_start_offset)
            session = self._session
            partition.follower_fetched(
                session.broker_id, session.broker_epoch, wanted.fetch_offset, wanted.log_start_offset
            )
            self._session.add(partition, wanted)
        except Exception as error:  # noqa: BLE001 - the other partitions are answered all the same
            self._fail(key, self._of_partition(key, error))

    async def _read_patiently(self) -> None:
        """Reads what is due. What is not in the page cache is fetched first if there is nothing else to answer."""
        disk, environment = self._context.disk, self._context.environment
        for _ in range(TRIES):
            with disk.cached_only():
                missing = self._read()
            if not missing:
                return
            fetching = warm(disk, environment, missing)
            if self._answers:
                self._context.tasks.start(fetching, "fetch in what a follower will ask for next")
                return
            await fetching
        self._read()

    def _read(self) -> list[NotCached]:
        session = self._session
        missing: list[NotCached] = []
        self._quota_ms = inf
        for key in list(session.to_read):
            if self._size_bytes >= self._size_bytes_max:
                break
            try:
                followed = session.followed[key]
                followed.partition.role.require_leader(followed.request.current_leader_epoch)
                counts = self._is_throttled(followed.partition)
                if counts and self._must_wait():
                    if not followed.was_told:  # the first answer names every partition
                        self._answers[key] = self._told(followed)
                    continue
                records, is_cut = self._records(followed)
            except NotCached as not_cached:
                missing.append(not_cached)
                continue
            except Exception as error:  # noqa: BLE001 - the other partitions are answered all the same
                self._fail(key, self._of_partition(key, error))
                continue
            if records or not is_cut:  # else the answer has no room for it, and its follower need not name it again
                session.to_read.pop(key)
            if counts:
                self._context.sessions.followers.quota.record(len(records), self._context.environment.monotonic_ms())
            if records or not followed.was_told:
                session.to_tell.pop(key, None)
                self._size_bytes += len(records)
                answer = self._answers[key] = self._told(followed)
                answer.records = records
            elif followed.is_news:
                session.to_tell[key] = None
        return missing

    def _of_partition(self, key: Key, error: Exception) -> KafkaError:
        return of_partition(error, self._context.metadata.image.name_by_id(key[0]), key[1])

    def _is_throttled(self, partition: Partition) -> bool:
        return self._session.broker_id not in partition.replicas.isr and partition.is_leader_throttled

    def _must_wait(self) -> bool:
        """Whether there is no room in the quota."""
        wait_ms = self._context.sessions.followers.quota.wait_ms(self._context.environment.monotonic_ms())
        if wait_ms > 0:
            self._quota_ms = max(1.0, wait_ms)
        return wait_ms > 0

    def _tell_news(self) -> None:
        """High watermarks travel with records, or alone if they have waited long enough for some; so do log starts,
        unless a DeleteRecords waits for that."""
        session = self._session
        for key in list(session.to_tell):
            followed = session.followed.get(key)
            if followed is not None and followed.is_news and followed.partition.is_leader:
                self._answers.setdefault(key, self._told(followed))
        session.to_tell.clear()
        session.is_urgent = False

    def _records(self, followed: FollowedByPeer) -> FetchData:
        """Raises KafkaError, NotCached."""
        partition, wanted = followed.partition, followed.request
        size_bytes_max = min(wanted.partition_max_bytes, self._size_bytes_max - self._size_bytes)
        return partition.reader.fetch(
            wanted.fetch_offset,
            size_bytes_max,
            at_least_one_batch=self._size_bytes == 0,
            isolation=Isolation.LOG_END,
            as_slice=self._call.caller.takes_slices,
        )

    def _told(self, followed: FollowedByPeer) -> PartitionData:
        partition = followed.partition
        followed.high_watermark = partition.high_watermark.value
        followed.log_start_offset = partition.log.log_start_offset
        return PartitionData(
            partition_index=partition.index,
            error_code=ErrorCode.NONE,
            high_watermark=followed.high_watermark,
            last_stable_offset=-1,
            log_start_offset=followed.log_start_offset,
            aborted_transactions=None,
            records=b"",
        )

    def _fail(self, key: Key, error: KafkaError) -> None:
        """An error is told once; the follower asks again when it has done something about it."""
        self._session.forget(key)
        self._answers[key] = _failed(key[1], self._call.failed(error))

    def _response(self) -> FetchResponse:
        topics: dict[bytes, FetchableTopicResponse] = {}
        for (topic_id, _), answer in self._answers.items():
            topic = topics.setdefault(topic_id, FetchableTopicResponse(topic="", topic_id=topic_id, partitions=[]))
            topic.partitions.append(answer)
        return FetchResponse(
            error_code=ErrorCode.NONE, session_id=self._session.session_id, responses=list(topics.values())
        )
