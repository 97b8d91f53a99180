"""Replicas, reassignments and elections on the scripted cluster: a controller with few rules.

    replicated = serve_replication(cluster)
    replicated.place("orders", 0, replicas=(1, 2, 3), isr=(1,), elr=(2,))
    replicated.finish("orders", 0)                       # the reassignment that is under way

Metadata and DescribeTopicPartitions tell of them. As in `admin_handlers`, only `cluster.controller_id` decides; the
others answer NOT_CONTROLLER. Partitions that nobody placed are on their leader alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from odradek.protocol.codec.schema import Response
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from odradek.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    QuorumPartition,
    QuorumTopic,
    ReplicaState,
)
from odradek.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from odradek.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from odradek.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from odradek.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from tests.client.broker_handlers import Call
from tests.client.scripted_broker import ScriptedCluster

Key = tuple[str, int]
PREFERRED, UNCLEAN = 0, 1
CONTROLLER_EPOCH = 7


@dataclass(slots=True)
class Placed:
    """Where a partition is. `target`: where it is moving to."""

    replicas: list[int]
    isr: list[int]
    elr: list[int] = field(default_factory=list[int])
    last_known: list[int] = field(default_factory=list[int])
    target: list[int] | None = None


class Replicated:
    """The state behind the handlers."""

    def __init__(self, cluster: ScriptedCluster) -> None:
        self.cluster = cluster
        self.placed: dict[Key, Placed] = {}
        self.registered = set(cluster.brokers)
        self.page_partitions = 2_000
        """So many a page of DescribeTopicPartitions has."""
        self._metadata = cluster.handlers[MetadataRequest]

    def place(
        self,
        topic: str,
        index: int,
        replicas: Sequence[int],
        isr: Sequence[int],
        *,
        elr: Sequence[int] = (),
        last_known: Sequence[int] = (),
    ) -> None:
        self.placed[topic, index] = Placed(list(replicas), list(isr), list(elr), list(last_known))
        self.cluster.topics[topic].partitions[index].leader = isr[0] if isr else -1

    def of(self, topic: str, index: int) -> Placed:
        leader = self.cluster.topics[topic].partitions[index].leader
        return self.placed.setdefault((topic, index), Placed([leader], [leader]))

    def finish(self, topic: str, index: int) -> None:
        """The new replicas are in sync, and the old ones go."""
        placed = self.of(topic, index)
        assert placed.target is not None
        placed.replicas, placed.isr, placed.target = placed.target, list(placed.target), None

    # ---------------------------------------------------------------------------------------------- describing
    def metadata(self, call: Call) -> Response | None:
        response = self._metadata(call)
        assert isinstance(response, MetadataResponse)
        for topic in response.topics:
            for partition in topic.partitions:
                placed = self.of(topic.name or "", partition.partition_index)
                partition.replica_nodes, partition.isr_nodes = list(_all(placed)), list(placed.isr)
        return response

    def describe_topic_partitions(self, call: Call) -> Response:
        request = call.exchange.request
        assert isinstance(request, DescribeTopicPartitionsRequest)
        response = DescribeTopicPartitionsResponse(topics=[])
        room = self.page_partitions
        for name in sorted(topic.name for topic in request.topics):
            cursor = request.cursor
            if cursor is not None and name < cursor.topic_name:
                call.broker.violated("DescribeTopicPartitions of what was answered")
            if (topic := self.cluster.topics.get(name)) is None:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                response.topics.append(DescribeTopicPartitionsResponseTopic(error_code=code, name=name, partitions=[]))
                continue
            first = cursor.partition_index if cursor is not None and cursor.topic_name == name else 0
            indexes = range(len(topic.partitions))[first : first + room]
            room -= len(indexes)
            parts = [self._described(name, index) for index in indexes]
            response.topics.append(
                DescribeTopicPartitionsResponseTopic(name=name, topic_id=topic.topic_id, partitions=parts)
            )
            if first + len(parts) < len(topic.partitions):
                response.next_cursor = Cursor(topic_name=name, partition_index=first + len(parts))
                break
        return response

    def _described(self, topic: str, index: int) -> DescribeTopicPartitionsResponsePartition:
        placed, partition = self.of(topic, index), self.cluster.topics[topic].partitions[index]
        return DescribeTopicPartitionsResponsePartition(
            partition_index=index,
            leader_id=partition.leader,
            leader_epoch=partition.leader_epoch,
            replica_nodes=list(_all(placed)),
            isr_nodes=list(placed.isr),
            eligible_leader_replicas=list(placed.elr),
            last_known_elr=list(placed.last_known),
            offline_replicas=[],
        )

    # ---------------------------------------------------------------------------------------------- the controller
    def elect_leaders(self, call: Call) -> Response:
        request = call.exchange.request
        assert isinstance(request, ElectLeadersRequest)
        response = ElectLeadersResponse(replica_election_results=[])
        if call.broker.node_id != self.cluster.controller_id:
            response.error_code = ErrorCode.NOT_CONTROLLER
            return response
        if request.topic_partitions is None:
            wanted = [(name, [*range(len(topic.partitions))]) for name, topic in self.cluster.topics.items()]
        else:
            wanted = [(each.topic, each.partitions) for each in request.topic_partitions]
        for topic, indexes in wanted:
            results = [self._elect(topic, index, request.election_type) for index in indexes]
            response.replica_election_results.append(ReplicaElectionResult(topic=topic, partition_result=results))
        return response

    def _elect(self, topic: str, index: int, election: int) -> PartitionResult:
        code = ErrorCode.NONE
        known = self.cluster.topics.get(topic)
        if known is None or index >= len(known.partitions):
            return PartitionResult(partition_id=index, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        placed, partition = self.of(topic, index), known.partitions[index]
        if election == UNCLEAN:
            alive = [each for each in placed.replicas if self._is_alive(each)]
            if partition.leader >= 0:
                code = ErrorCode.ELECTION_NOT_NEEDED
            elif not alive:
                code = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
            else:
                placed.isr, placed.elr, placed.last_known = alive[:1], [], []
                self.cluster.move_leader(topic, index, to=alive[0])
        elif partition.leader == placed.replicas[0]:
            code = ErrorCode.ELECTION_NOT_NEEDED
        elif placed.replicas[0] not in placed.isr or not self._is_alive(placed.replicas[0]):
            code = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        else:
            self.cluster.move_leader(topic, index, to=placed.replicas[0])
        return PartitionResult(partition_id=index, error_code=code)

    def _is_alive(self, node_id: int) -> bool:
        return node_id in self.cluster.brokers and self.cluster.brokers[node_id].is_running

    def alter_reassignments(self, call: Call) -> Response:
        request = call.exchange.request
        assert isinstance(request, AlterPartitionReassignmentsRequest)
        if call.broker.node_id != self.cluster.controller_id:
            return AlterPartitionReassignmentsResponse(error_code=ErrorCode.NOT_CONTROLLER, responses=[])
        return AlterPartitionReassignmentsResponse(
            responses=[
                ReassignableTopicResponse(
                    name=topic.name,
                    partitions=[
                        self._alter(topic.name, each, request.allow_replication_factor_change)
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def _alter(self, topic: str, asked: ReassignablePartition, may_change: bool) -> ReassignablePartitionResponse:
        index, wanted = asked.partition_index, asked.replicas
        code, message = ErrorCode.NONE, None
        known = self.cluster.topics.get(topic)
        if known is None or index >= len(known.partitions):
            code, message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None
        elif wanted is None:
            placed = self.of(topic, index)
            code = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS if placed.target is None else ErrorCode.NONE
            placed.target = None
        elif not set(wanted) <= self.registered:
            code, message = ErrorCode.INVALID_REPLICA_ASSIGNMENT, "no such broker"
        elif not may_change and len(wanted) != len(self.of(topic, index).replicas):
            code, message = ErrorCode.INVALID_REPLICATION_FACTOR, "another number"
        elif wanted != self.of(topic, index).replicas:
            self.of(topic, index).target = list(wanted)
        return ReassignablePartitionResponse(partition_index=index, error_code=code, error_message=message)

    def list_reassignments(self, call: Call) -> Response:
        request = call.exchange.request
        assert isinstance(request, ListPartitionReassignmentsRequest)
        if call.broker.node_id != self.cluster.controller_id:
            return ListPartitionReassignmentsResponse(error_code=ErrorCode.NOT_CONTROLLER, topics=[])
        wanted = (
            None
            if request.topics is None
            else {(topic.name, index) for topic in request.topics for index in topic.partition_indexes}
        )
        response = ListPartitionReassignmentsResponse(topics=[])
        for (topic, index), placed in self.placed.items():
            if placed.target is not None and (wanted is None or (topic, index) in wanted):
                ongoing = OngoingPartitionReassignment(
                    partition_index=index,
                    replicas=list(_all(placed)),
                    adding_replicas=[each for each in placed.target if each not in placed.replicas],
                    removing_replicas=[each for each in placed.replicas if each not in placed.target],
                )
                response.topics.append(OngoingTopicReassignment(name=topic, partitions=[ongoing]))
        return response

    def unregister(self, call: Call) -> Response:
        request = call.exchange.request
        assert isinstance(request, UnregisterBrokerRequest)
        if call.broker.node_id != self.cluster.controller_id:
            return UnregisterBrokerResponse(error_code=ErrorCode.NOT_CONTROLLER)
        if request.broker_id not in self.registered:
            return UnregisterBrokerResponse(error_code=ErrorCode.BROKER_ID_NOT_REGISTERED, error_message="who?")
        self.registered.discard(request.broker_id)
        return UnregisterBrokerResponse()

    def describe_quorum(self, call: Call) -> Response:
        request = call.exchange.request
        assert isinstance(request, DescribeQuorumRequest)
        (topic,) = request.topics
        partition = QuorumPartition(
            partition_index=topic.partitions[0].partition_index,
            leader_id=self.cluster.controller_id,
            leader_epoch=CONTROLLER_EPOCH,
            high_watermark=100,
            current_voters=[ReplicaState(replica_id=self.cluster.controller_id, log_end_offset=101)],
            observers=[ReplicaState(replica_id=2, log_end_offset=99, last_fetch_timestamp=5)],
        )
        return DescribeQuorumResponse(topics=[QuorumTopic(topic_name=topic.topic_name, partitions=[partition])])


def _all(placed: Placed) -> Sequence[int]:
    """The replicas with those that are coming: the target first, as Kafka's controller has it."""
    return [*dict.fromkeys([*(placed.target or ()), *placed.replicas])]


def serve_replication(cluster: ScriptedCluster) -> Replicated:
    """Has all brokers serve this; after `serve_admin`, whose Metadata it asks."""
    replicated = Replicated(cluster)
    handlers: dict[type, Callable[[Call], Response | None]] = {
        MetadataRequest: replicated.metadata,
        DescribeTopicPartitionsRequest: replicated.describe_topic_partitions,
        ElectLeadersRequest: replicated.elect_leaders,
        AlterPartitionReassignmentsRequest: replicated.alter_reassignments,
        ListPartitionReassignmentsRequest: replicated.list_reassignments,
        UnregisterBrokerRequest: replicated.unregister,
        DescribeQuorumRequest: replicated.describe_quorum,
    }
    for request_type, handler in handlers.items():
        cluster.serve(request_type, handler)
    return replicated
