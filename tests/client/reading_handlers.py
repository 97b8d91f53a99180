"""Fetch and ListOffsets on the scripted cluster: the leader's rules, in few lines, from the logs that Produce fills.

    reading = serve_reading(cluster)
    reading.errors["orders", 0] = [ErrorCode.NOT_LEADER_OR_FOLLOWER]    # the next answers for this partition

Sessions are kept where `reading.keeps_sessions` (KIP-227), and else declined. `reading.preferred` names, by partition,
a replica to read from instead of the leader (KIP-392); replicas answer as the leader does.

There is no waiting for `min_bytes`: without records the answer comes at once, so tests on virtual time give the
network a delay, or the Fetch a fault.
"""

from collections import defaultdict

from odradek.protocol.batches.record_encoding import build_batch
from odradek.protocol.batches.records import Record
from odradek.protocol.codec.schema import Response
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from tests.client.broker_handlers import Call
from tests.client.broker_log import PartitionLog
from tests.client.scripted_broker import Partition, ScriptedBroker, ScriptedCluster

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
SESSIONS_SINCE = 7


class FetchSession:
    """What a broker remembers of one reader."""

    def __init__(self) -> None:
        self.epoch = 0
        """Of the next request."""
        self.wanted: dict[tuple[str, bytes, int], FetchPartition] = {}

    def update(self, request: FetchRequest) -> None:
        for topic in request.topics:
            for part in topic.partitions:
                self.wanted[topic.topic, topic.topic_id, part.partition] = part
        for gone in request.forgotten_topics_data:
            for index in gone.partitions:
                self.wanted.pop((gone.topic, gone.topic_id, index), None)
        self.epoch += 1

    def topics(self) -> list[FetchTopic]:
        return [
            FetchTopic(topic=topic, topic_id=topic_id, partitions=[part])
            for (topic, topic_id, _), part in self.wanted.items()
        ]


class Reading:
    """What tests script about reading. `errors`: by partition, the codes of its next answers, 0 for none."""

    def __init__(self) -> None:
        self.errors: dict[tuple[str, int], list[int]] = defaultdict(list)
        self.keeps_sessions = False
        self.sessions: dict[int, FetchSession] = {}
        self.preferred: dict[tuple[str, int], int] = {}
        self.truncated: dict[tuple[str, int], tuple[int, int]] = {}
        """By partition: what a reader of a later epoch or offset is told of where the logs part: epoch and end."""

    def fetch(self, call: Call) -> Response:
        request = call.exchange.request
        assert isinstance(request, FetchRequest)
        if request.session_epoch == -1 or call.exchange.version < SESSIONS_SINCE:
            return self._fetch_all(call, request.topics)
        if request.session_epoch == 0:
            self.sessions.pop(request.session_id, None)
            response = self._fetch_all(call, request.topics)
            if self.keeps_sessions:
                response.session_id = 1 + max(self.sessions, default=0)
                self.sessions[response.session_id] = FetchSession()
                self.sessions[response.session_id].update(request)
            return response
        session = self.sessions.get(request.session_id)
        if session is None:
            return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND, responses=[])
        if session.epoch != request.session_epoch:
            return FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, responses=[])
        session.update(request)
        response = self._fetch_all(call, session.topics())
        response.session_id = request.session_id
        for topic in response.responses:
            topic.partitions = [
                each
                for each in topic.partitions
                if each.records or each.error_code or each.preferred_read_replica >= 0 or each.diverging_epoch
            ]
        response.responses = [topic for topic in response.responses if topic.partitions]
        return response

    def _fetch_all(self, call: Call, topics: list[FetchTopic]) -> FetchResponse:
        request = call.exchange.request
        assert isinstance(request, FetchRequest)
        endpoints: dict[int, NodeEndpoint] = {}
        left = request.max_bytes
        answers: list[FetchableTopicResponse] = []
        for topic in topics:
            name = topic.topic or _name(call.broker.cluster, topic.topic_id)
            parts: list[PartitionData] = []
            for part in topic.partitions:
                data = self._fetch(call.broker, name, part, left, endpoints, request.rack_id)
                left -= len(data.records or b"")
                parts.append(data)
            answers.append(FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=parts))
        return FetchResponse(responses=answers, node_endpoints=list(endpoints.values()))

    def _fetch(
        self,
        broker: ScriptedBroker,
        topic: str,
        part: FetchPartition,
        left: int,
        endpoints: dict[int, NodeEndpoint],
        rack: str,
    ) -> PartitionData:
        index = part.partition
        preferred = self.preferred.get((topic, index), -1)
        if rack and preferred >= 0 and preferred != broker.node_id:
            return PartitionData(
                partition_index=index, high_watermark=-1, preferred_read_replica=preferred, records=b""
            )
        parted = self.truncated.get((topic, index))
        if (
            parted is not None
            and part.last_fetched_epoch >= 0
            and parted < (part.last_fetched_epoch, part.fetch_offset)
        ):
            told = EpochEndOffset(epoch=parted[0], end_offset=parted[1])
            return PartitionData(partition_index=index, high_watermark=-1, diverging_epoch=told, records=b"")
        try:
            state = self._led(broker, topic, index, part.current_leader_epoch, may_follow=preferred == broker.node_id)
            log = state.log
            if not log.start_offset <= part.fetch_offset <= log.end_offset:
                raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
            records = _stored(log, part.fetch_offset, min(part.partition_max_bytes, left))
        except KafkaError as error:
            answer = PartitionData(partition_index=index, error_code=error.code, high_watermark=-1, records=b"")
            leader = _leader(broker.cluster, topic, index)
            if error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER and broker.cluster.gives_hints and leader is not None:
                epoch = broker.cluster.topics[topic].partitions[index].leader_epoch
                answer.current_leader = LeaderIdAndEpoch(leader_id=leader.node_id, leader_epoch=epoch)
                endpoints[leader.node_id] = NodeEndpoint(node_id=leader.node_id, host=leader.host, port=leader.port)
            return answer
        end = log.end_offset
        return PartitionData(
            partition_index=index, high_watermark=end, last_stable_offset=end, log_start_offset=log.start_offset,
            records=records,
        )  # fmt: skip

    def list_offsets(self, call: Call) -> Response:
        request = call.exchange.request
        assert isinstance(request, ListOffsetsRequest)
        return ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[self._offset(call.broker, topic.name, each) for each in topic.partitions],
                )
                for topic in request.topics
            ]
        )

    def _offset(self, broker: ScriptedBroker, topic: str, part: ListOffsetsPartition) -> ListOffsetsPartitionResponse:
        index = part.partition_index
        try:
            state = self._led(broker, topic, index, part.current_leader_epoch)
        except KafkaError as error:
            return ListOffsetsPartitionResponse(partition_index=index, error_code=error.code)
        log = state.log
        offset, timestamp = {LATEST: (log.end_offset, -1), EARLIEST: (log.start_offset, -1)}.get(
            part.timestamp, (-1, -1)
        )
        records = [record for batch in log.batches for record in batch.records if record.offset >= log.start_offset]
        if part.timestamp == MAX_TIMESTAMP and records:
            found = max(records, key=lambda record: (record.timestamp_ms, -record.offset))
            offset, timestamp = found.offset, found.timestamp_ms
        elif part.timestamp >= 0:
            young = [record for record in records if record.timestamp_ms >= part.timestamp]
            offset, timestamp = (young[0].offset, young[0].timestamp_ms) if young else (-1, -1)
        return ListOffsetsPartitionResponse(
            partition_index=index, offset=offset, timestamp=timestamp, leader_epoch=state.leader_epoch
        )

    def _led(
        self, broker: ScriptedBroker, topic: str, index: int, leader_epoch: int, *, may_follow: bool = False
    ) -> Partition:
        """The partition, if this broker leads it or may follow, and the epoch is current. Raises KafkaError."""
        scripted = self.errors[topic, index]
        if scripted and (code := scripted.pop(0)):
            raise KafkaError(ErrorCode(code))
        known = broker.cluster.topics.get(topic)
        if not topic:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        if known is None or index >= len(known.partitions):
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        state = known.partitions[index]
        if state.leader != broker.node_id and not may_follow:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if 0 <= leader_epoch < state.leader_epoch:
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
        if leader_epoch > state.leader_epoch:
            raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH)
        return state


def serve_reading(cluster: ScriptedCluster) -> Reading:
    """Has all brokers serve Fetch and ListOffsets."""
    reading = Reading()
    cluster.serve(FetchRequest, reading.fetch)
    cluster.serve(ListOffsetsRequest, reading.list_offsets)
    return reading


def fill(
    cluster: ScriptedCluster, topic: str, partition: int, *batches: list[bytes], timestamp_ms: int = 1_000
) -> None:
    """Appends batches of values, a millisecond between two records."""

    log = cluster.log(topic, partition)
    for values in batches:
        first = log.end_offset
        records = [Record(index, 1_000 + first + index, None, value) for index, value in enumerate(values)]
        log.append(build_batch(records), cluster.topics[topic].partitions[partition].leader_epoch)


def _stored(log: PartitionLog, offset: int, size_bytes_max: int) -> bytes:
    """Whole batches from the one on that holds the offset; the first even if it is too large (KIP-74)."""
    found = b""
    for batch in log.batches:
        if batch.next_offset <= offset:
            continue
        data = build_batch(batch.records, base_offset=batch.base_offset, leader_epoch=batch.leader_epoch)
        if found and len(found) + len(data) > size_bytes_max:
            break
        found += data
    return found


def _name(cluster: ScriptedCluster, topic_id: bytes) -> str:
    return next((topic.name for topic in cluster.topics.values() if topic.topic_id == topic_id), "")


def _leader(cluster: ScriptedCluster, topic: str, index: int) -> ScriptedBroker | None:
    known = cluster.topics.get(topic)
    return None if known is None else cluster.brokers.get(known.partitions[index].leader)
