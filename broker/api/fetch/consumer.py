"""Fetch (key 1): whole batches up to the high watermark, or a wait until there are enough.

Subscribe, read everything, and answer at once if there is enough, time is up, or anything is urgent (an error, a
diverging epoch); otherwise wait for news and read again. The handler's own task is the purgatory. At least one whole
batch is answered even when it is larger than the limits (KIP-74). What is enough: `min_bytes`, or any bytes at all once
a partition's read was cut before the end that this reader may see, at a limit or where a segment ends. The log holds
more, and no wait makes that read longer; Kafka's DelayedFetch waits where the limit is below `min_bytes`.
Fetch sessions: `broker/fetching/consumer_sessions.py` (KIP-227). What is not in the page cache is waited for only if
nothing else is to be answered (`broker/disk/cold_reads.py`).

With read_committed nothing is read behind the last stable offset, and the aborted transactions are named (KIP-98).

Versions: 4 isolation level (KIP-98). 5 log start offset. 7 sessions (KIP-227). 9 leader epochs (KIP-320). 10 topics
that are compressed with zstd (KIP-110). 11 rack (KIP-392). 12 flexible, diverging epoch (KIP-595). 13 topic ids
(KIP-516). 15 replica state (KIP-903). 16 node endpoints (KIP-951). 17 replica directory id (KIP-853). 18 the high
watermark that a follower of a Raft log knows, which nobody is here (KIP-1166).
"""

from collections.abc import Iterable, Mapping

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import of_topic
from odradek.broker.api.fetch.follower import handle_follower
from odradek.broker.disk.cold_reads import TRIES, warm
from odradek.broker.disk.disk_page_cache import NotCached
from odradek.broker.fetching.consumer_sessions import INITIAL_EPOCH, FetchSession, PartitionKey
from odradek.broker.handling.client_view import current_leader
from odradek.broker.handling.context import Call, Context, of_partition
from odradek.broker.handling.decisions import forget_before
from odradek.broker.observability.request_times import FETCH_CONSUMER, FETCH_FOLLOWER
from odradek.broker.replica.isolation import READ_COMMITTED, Isolation
from odradek.broker.replica.partition import Partition
from odradek.broker.replica.watch import Watch
from odradek.broker.replication.closest_replica import NO_REPLICA, RACK_AWARE, closest_replica
from odradek.broker.replication.divergence import diverging
from odradek.protocol.batches.batch import HEADER_SIZE
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)

FOLLOWERS_SINCE = 11
"""Consumers that know of racks may read from followers, up to the high watermark that these know (KIP-392)."""
TOPIC_IDS_SINCE = 13
REPLICA_STATE_SINCE = 15
LEADERS_TOLD_SINCE = 16
"""Where the new leader is, and where it listens (KIP-951). The field is older, and was for Raft alone."""
ZSTD_SINCE = 10
STORAGE_ERROR_SINCE = 6

SMALLEST_BATCH_BYTES = HEADER_SIZE + 7
"""One record without key and value. Where a limit has less room than this, nothing more can come."""

PARTITION_BYTES = 40
"""About what an answer has for a partition besides its records."""

NO_ENDPOINTS: Mapping[int, NodeEndpoint] = {}

Answers = dict[PartitionKey, PartitionData]


async def handle(context: Context, call: Call, request: FetchRequest) -> FetchResponse:
    if _replica_id(request, call.version) >= 0:
        call.times.name = FETCH_FOLLOWER
        return await handle_follower(context, call, request)
    call.times.name = FETCH_CONSUMER
    uses_ids = call.version >= TOPIC_IDS_SINCE
    now_ms = context.environment.monotonic_ms()
    session = context.sessions.consumers.resolve(request.session_id, request.session_epoch, uses_ids, now_ms)
    wanted = _wanted(request)
    if session is not None:
        session.update(wanted, _forgotten(request))
        wanted = {key: cached.request for key, cached in session.partitions.items()}
    reading = Reading(context, call, request, wanted)
    answers = await reading.answers()
    if context.quotas is not None and context.quotas.must_withhold(call, _size_bytes(answers)):
        return _response({}, session)
    if session is not None:
        return _response(session.filter(answers), session, reading.node_endpoints)
    if request.session_epoch == INITIAL_EPOCH and wanted:
        session = context.sessions.consumers.create(uses_ids, now_ms)
        if session is not None:
            session.update(wanted, [])
            session.filter(answers)
    return _response(answers, session, reading.node_endpoints)


class Reading:
    """One Fetch's readings of its partitions, until one of them is worth answering."""

    def __init__(
        self, context: Context, call: Call, request: FetchRequest, wanted: dict[PartitionKey, FetchPartition]
    ) -> None:
        self._context = context
        self._call = call
        self._request = request
        self._wanted = wanted
        self._size_bytes_max = min(request.max_bytes, context.config.fetch_max_bytes)
        if context.quotas is not None:
            self._size_bytes_max = min(self._size_bytes_max, context.quotas.fetch_bytes_max(call))
        self._min_bytes = min(request.min_bytes, max(1, self._size_bytes_max))
        self._tight_bytes = self._min_bytes + SMALLEST_BATCH_BYTES
        self._reads_committed = request.isolation_level == READ_COMMITTED
        self._isolation = Isolation.TXN_COMMITTED if self._reads_committed else Isolation.HIGH_WATERMARK
        self._size_bytes = 0
        self._is_cut = False
        """Whether records were left that could be read now."""
        self._rooms: dict[Partition, int] = {}
        """Where a partition has fewer bytes left to its limit than `min_bytes`: so many may be added to the answer."""
        self._urgent = False
        self._missing: list[NotCached] = []
        self.node_endpoints: dict[int, NodeEndpoint] = {}
        """Of leaders that are named in answers."""
        self._rack = request.rack_id if context.config.replica_selector_class == RACK_AWARE else ""
        self._racks: Mapping[int, str | None] = {}
        """Of all brokers, where they matter."""

    async def answers(self) -> Answers:
        """The reading to answer with. While waiting it is thrown away, and so is what it counted as errors."""
        environment = self._context.environment
        deadline_ms = environment.monotonic_ms() + self._request.max_wait_ms
        answers = await self._read_patiently()
        if self._is_enough(answers) or self._request.max_wait_ms <= 0:
            return answers
        watch = Watch(environment.loop, self._watched(), self._isolation)
        with watch, self._context.interruptible(watch.interrupt):
            while True:
                watch.mark()
                answers = await self._read_patiently()
                remaining_ms = deadline_ms - environment.monotonic_ms()
                if self._is_enough(answers) or remaining_ms <= 0 or self._context.stopping:
                    return answers
                watch.rooms = self._rooms
                with self._context.waiting(self._call):
                    has_come = await watch.wait(self._min_bytes - self._size_bytes, remaining_ms)
                if not has_come:
                    return await self._read_patiently()

    def _is_enough(self, answers: Answers) -> bool:
        if self._urgent or not answers or self._size_bytes >= self._min_bytes:
            return True
        return self._is_cut and self._size_bytes > 0  # without a byte it is what is cold, and is waited for

    def _watched(self) -> list[Partition]:
        partitions: list[Partition] = []
        for key in self._wanted:
            try:
                partitions.append(self._find(key, -1))
            except KafkaError:
                continue  # it was answered with an error already, which is urgent; this one vanished since
        return partitions

    async def _read_patiently(self) -> Answers:
        """One reading. Where all that there is to answer is not in memory, it is fetched first."""
        disk, environment = self._context.disk, self._context.environment
        for _ in range(TRIES):
            with disk.cached_only():
                answers = self._read()
            if not self._missing:
                return answers
            fetching = warm(disk, environment, self._missing)
            if self._is_enough(answers):
                self._context.tasks.start(fetching, "fetch in what the next Fetch will ask for")
                return answers
            await fetching
        return self._read()

    def _read(self) -> Answers:
        self._size_bytes = 0
        self._urgent = False
        self._is_cut = False
        self._rooms = {}
        self._missing = []
        if self._call.decisions is not None:  # the last reading is the answer, by the rights of then
            forget_before(self._call.decisions, self._context.access.generation)
        if self._rack:
            self._racks = {broker.broker_id: broker.rack for broker in self._context.metadata.image.brokers.values()}
        return {key: self._read_partition(key, wanted) for key, wanted in self._wanted.items()}

    def _read_partition(self, key: PartitionKey, wanted: FetchPartition) -> PartitionData:
        answer: PartitionData | None = None
        try:
            self._context.member.registration.require_lease()
            partition = self._find(key, wanted.current_leader_epoch)
            if self._call.version < ZSTD_SINCE and partition.config.compression_type == "zstd":
                raise KafkaError(
                    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
                    f"{partition.topic} has compression.type zstd, which needs Fetch version {ZSTD_SINCE} or later",
                )
            answer = self._told(partition, wanted.partition)
            if self._rack and partition.is_leader and (closest := self._closest(partition, wanted)) != NO_REPLICA:
                answer.preferred_read_replica = closest
                self._urgent = True
                return answer
            if (parted := diverging(partition, wanted.last_fetched_epoch, wanted.fetch_offset)) is not None:
                answer.diverging_epoch = EpochEndOffset(epoch=parted[0], end_offset=parted[1])
                self._urgent = True
            else:
                self._read_records(partition, wanted, answer)
            return answer
        except NotCached as missing:
            self._missing.append(missing)
            return answer or _failed(wanted.partition, ErrorCode.NONE)
        except Exception as failure:  # noqa: BLE001 - the other partitions are answered all the same
            error = of_partition(failure, key[0] or self._context.metadata.image.name_by_id(key[1]), key[2])
            self._urgent = True
            code = self._call.failed(error)
            if code == ErrorCode.KAFKA_STORAGE_ERROR and self._call.version < STORAGE_ERROR_SINCE:
                code = ErrorCode.NOT_LEADER_OR_FOLLOWER
            answer = _failed(wanted.partition, code)
            moved = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
            if code in moved and self._call.version >= LEADERS_TOLD_SINCE:
                self._name_the_leader(key, answer)
            return answer

    def _name_the_leader(self, key: PartitionKey, answer: PartitionData) -> None:
        _, topic_id, index = key
        name = self._context.metadata.image.name_by_id(topic_id)
        leader = current_leader(self._context, self._call, name, index)
        if leader is not None:
            answer.current_leader = LeaderIdAndEpoch(leader_id=leader.leader_id, leader_epoch=leader.leader_epoch)
            if leader.endpoint is not None:
                host, port = leader.endpoint
                self.node_endpoints[leader.leader_id] = NodeEndpoint(
                    node_id=leader.leader_id, host=host, port=port, rack=leader.rack
                )

    def _closest(self, partition: Partition, wanted: FetchPartition) -> int:
        start = partition.log.log_start_offset
        return closest_replica(partition.replicas, self._racks, self._rack, wanted.fetch_offset, start)

    def _find(self, key: PartitionKey, current_leader_epoch: int) -> Partition:
        name, topic_id, index = key
        partitions = self._context.partitions
        if self._call.version >= TOPIC_IDS_SINCE:
            name = partitions.topic_name(topic_id)
        self._context.require(self._call, Operation.READ, of_topic(name))
        if self._call.version >= FOLLOWERS_SINCE:
            return partitions.replica(name, index, current_leader_epoch)
        return partitions.leader(name, index, current_leader_epoch)

    def _told(self, partition: Partition, index: int) -> PartitionData:
        return PartitionData(
            partition_index=index,
            error_code=ErrorCode.NONE,
            high_watermark=partition.high_watermark.value,
            last_stable_offset=partition.reader.last_stable_offset,
            log_start_offset=partition.log.log_start_offset,
            aborted_transactions=[] if self._reads_committed else None,
            records=b"",
        )

    def _read_records(self, partition: Partition, wanted: FetchPartition, answer: PartitionData) -> None:
        room_bytes = self._size_bytes_max - self._size_bytes
        size_bytes_max = max(0, min(wanted.partition_max_bytes, room_bytes))
        offset = wanted.fetch_offset
        try:
            records, is_cut = partition.reader.fetch(
                offset,
                size_bytes_max,
                at_least_one_batch=self._size_bytes == 0,
                isolation=self._isolation,
                as_slice=self._call.caller.takes_slices,
            )
            if self._reads_committed:
                answer.aborted_transactions = [
                    AbortedTransaction(producer_id=txn.producer_id, first_offset=txn.first_offset)
                    for txn in partition.log.aborted_transactions(offset, records)
                ]
        except NotCached as missing:
            self._missing.append(missing)
            return
        answer.records = records
        self._size_bytes += (size_bytes := len(records))
        if is_cut or size_bytes_max - size_bytes < self._tight_bytes:
            self._note_limit(partition, size_bytes, size_bytes_max, is_cut)

    def _note_limit(self, partition: Partition, size_bytes: int, size_bytes_max: int, is_cut: bool) -> None:
        """Takes note that the limit has cut the read, or how much more it would let through: whole batches only."""
        room_bytes = size_bytes_max - size_bytes - SMALLEST_BATCH_BYTES
        if is_cut or (size_bytes and room_bytes < 0):
            self._is_cut = True
        else:
            self._rooms[partition] = max(0, room_bytes)


def _size_bytes(answers: Answers) -> int:
    """What a quota counts: about what is sent."""
    return sum(PARTITION_BYTES + len(answer.records) for answer in answers.values() if answer.records)


def _wanted(request: FetchRequest) -> dict[PartitionKey, FetchPartition]:
    return {
        (topic.topic, topic.topic_id, partition.partition): partition
        for topic in request.topics
        for partition in topic.partitions
    }


def _forgotten(request: FetchRequest) -> list[PartitionKey]:
    return [
        (topic.topic, topic.topic_id, index) for topic in request.forgotten_topics_data for index in topic.partitions
    ]


def _replica_id(request: FetchRequest, version: int) -> int:
    if version < REPLICA_STATE_SINCE:
        return request.replica_id
    return -1 if request.replica_state is None else request.replica_state.replica_id


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


def _response(
    answers: Answers, session: FetchSession | None, node_endpoints: Mapping[int, NodeEndpoint] = NO_ENDPOINTS
) -> FetchResponse:
    topics: dict[tuple[str, bytes], FetchableTopicResponse] = {}
    for (name, topic_id, _), answer in answers.items():
        topic = topics.get((name, topic_id))
        if topic is None:
            topic = FetchableTopicResponse(topic=name, topic_id=topic_id, partitions=[])
            topics[name, topic_id] = topic
        topic.partitions.append(answer)
    return FetchResponse(
        error_code=ErrorCode.NONE,
        session_id=0 if session is None else session.session_id,
        responses=list(topics.values()),
        node_endpoints=list(node_endpoints.values()),
    )


def fail(request: FetchRequest, code: ErrorCode) -> FetchResponse:
    """Since version 7 the answer has an error of its own; before, every partition says so."""
    keys: Iterable[PartitionKey] = _wanted(request)
    answers = {key: _failed(key[2], code) for key in keys}
    response = _response(answers if request.session_id == 0 else {}, None)
    response.error_code = code
    return response
