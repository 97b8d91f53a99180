"""Groups on the scripted cluster: coordinators with few rules, which tests move about and let fail.

    groups = serve_groups(cluster)
    groups.add("billing", node=1, members=[member("m-1", {"orders": [0]})])
    groups.offsets["billing"]["orders", 0] = (5, "a note", -1)
    groups.errors["billing"] = [ErrorCode.NOT_COORDINATOR]        # the next answers about it, 0 for none
    groups.loading = {2}                                          # brokers that cannot list their groups

A group that nobody has placed is coordinated by broker 0. One without members takes offsets from anybody.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from odradek.protocol.codec.schema import Response
from odradek.protocol.consumer_protocol import Assignment, Subscription, encode_assignment, encode_subscription
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import consumer_group_describe
from odradek.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from odradek.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from odradek.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from odradek.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from odradek.protocol.messages.group_rebalances import GroupRebalance
from odradek.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from odradek.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from odradek.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from tests.client.broker_handlers import Call
from tests.client.scripted_broker import ScriptedCluster

Position = tuple[str, int]
Stored = tuple[int, str, int]


@dataclass(slots=True)
class Group:
    state: str = "Empty"
    protocol_type: str = "consumer"
    group_type: str = "classic"
    members: list[DescribedGroupMember] = field(default_factory=list[DescribedGroupMember])
    consumer_members: list[consumer_group_describe.Member] = field(default_factory=list[consumer_group_describe.Member])
    """Of a group of KIP-848."""
    rebalances: list[GroupRebalance] = field(default_factory=list[GroupRebalance])
    node: int = 0


def member(
    member_id: str, partitions: Mapping[str, Sequence[int]], *, instance_id: str | None = None
) -> DescribedGroupMember:
    """A member of protocol type `consumer`."""
    return DescribedGroupMember(
        member_id=member_id,
        group_instance_id=instance_id,
        client_id="app",
        client_host="/10.1.2.3",
        member_metadata=encode_subscription(Subscription(list(partitions))),
        member_assignment=encode_assignment(Assignment(partitions)),
    )


class Groups:
    """The state behind the handlers."""

    def __init__(self, cluster: ScriptedCluster) -> None:
        self.cluster = cluster
        self.groups: dict[str, Group] = {}
        self.offsets: dict[str, dict[Position, Stored]] = defaultdict(dict)
        self.errors: dict[str, list[int]] = defaultdict(list)
        self.partition_errors: dict[Position, ErrorCode] = {}
        self.loading: set[int] = set()

    def add(self, group_id: str, *, node: int = 0, members: Sequence[DescribedGroupMember] = ()) -> Group:
        group = Group("Stable" if members else "Empty", members=list(members), node=node)
        self.groups[group_id] = group
        return group

    def error_of(self, call: Call, group_id: str) -> int:
        if self.errors[group_id] and (code := self.errors[group_id].pop(0)):
            return code
        node = self.groups[group_id].node if group_id in self.groups else 0
        return ErrorCode.NONE if node == call.broker.node_id else ErrorCode.NOT_COORDINATOR

    # --------------------------------------------------------------------------------------------- who coordinates
    def find_coordinator(self, call: Call) -> Response:
        request = call.exchange.request
        assert isinstance(request, FindCoordinatorRequest)
        if request.key_type != 0:
            call.broker.violated("FindCoordinator of what is no group")
        if call.exchange.version < 4:
            found = self._found(request.key)
            return FindCoordinatorResponse(
                error_code=found.error_code, node_id=found.node_id, host=found.host, port=found.port
            )
        return FindCoordinatorResponse(coordinators=[self._found(key) for key in request.coordinator_keys])

    def _found(self, group_id: str) -> Coordinator:
        node = self.groups[group_id].node if group_id in self.groups else 0
        broker = self.cluster.brokers[node]
        if not broker.is_running:
            code = ErrorCode.COORDINATOR_NOT_AVAILABLE
            return Coordinator(key=group_id, node_id=-1, host="", port=-1, error_code=code, error_message="no leader")
        return Coordinator(key=group_id, node_id=node, host=broker.host, port=broker.port)

    # ------------------------------------------------------------------------------------------------------ groups
    def list_groups(self, call: Call) -> Response:
        request = call.exchange.request
        assert isinstance(request, ListGroupsRequest)
        response = ListGroupsResponse(groups=[])
        if call.broker.node_id in self.loading:
            response.error_code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        for group_id, group in self.groups.items():
            listed = group.node == call.broker.node_id
            listed = listed and (not request.states_filter or group.state in request.states_filter)
            if listed and (not request.types_filter or group.group_type in request.types_filter):
                response.groups.append(
                    ListedGroup(
                        group_id=group_id,
                        protocol_type=group.protocol_type,
                        group_state=group.state,
                        group_type=group.group_type.capitalize(),
                    )
                )
        return response

    def describe_groups(self, call: Call) -> Response:
        request = call.exchange.request
        assert isinstance(request, DescribeGroupsRequest)
        response = DescribeGroupsResponse(groups=[])
        for group_id in request.groups:
            group = self.groups.get(group_id)
            if code := self.error_of(call, group_id):
                described = DescribedGroup(group_id=group_id, error_code=code)
            elif group is None or group.group_type != "classic":
                code = ErrorCode.NONE if call.exchange.version < 6 else ErrorCode.GROUP_ID_NOT_FOUND
                described = DescribedGroup(group_id=group_id, error_code=code, group_state="Dead")
            else:
                described = DescribedGroup(
                    group_id=group_id,
                    group_state=group.state,
                    protocol_type=group.protocol_type,
                    protocol_data="range" if group.state == "Stable" else "",
                    members=list(group.members),
                    rebalances=list(group.rebalances),
                )
            response.groups.append(described)
        return response

    def describe_consumer_groups(self, call: Call) -> Response:
        request = call.exchange.request
        assert isinstance(request, ConsumerGroupDescribeRequest)
        response = ConsumerGroupDescribeResponse(groups=[])
        for group_id in request.group_ids:
            group = self.groups.get(group_id)
            if group is None or group.group_type != "consumer":
                code = ErrorCode.GROUP_ID_NOT_FOUND
                response.groups.append(consumer_group_describe.DescribedGroup(group_id=group_id, error_code=code))
                continue
            response.groups.append(
                consumer_group_describe.DescribedGroup(
                    group_id=group_id,
                    group_state=group.state,
                    group_epoch=7,
                    assignment_epoch=6,
                    assignor_name="uniform",
                    members=list(group.consumer_members),
                    rebalances=list(group.rebalances),
                )
            )
        return response

    def delete_groups(self, call: Call) -> Response:
        request = call.exchange.request
        assert isinstance(request, DeleteGroupsRequest)
        return DeleteGroupsResponse(
            results=[
                DeletableGroupResult(group_id=group_id, error_code=self._delete(call, group_id))
                for group_id in request.groups_names
            ]
        )

    def _delete(self, call: Call, group_id: str) -> int:
        if code := self.error_of(call, group_id):
            return code
        if group_id not in self.groups:
            return ErrorCode.GROUP_ID_NOT_FOUND
        if self.groups[group_id].members:
            return ErrorCode.NON_EMPTY_GROUP
        del self.groups[group_id]
        self.offsets.pop(group_id, None)
        return ErrorCode.NONE

    def leave_group(self, call: Call) -> Response:
        request = call.exchange.request
        assert isinstance(request, LeaveGroupRequest)
        if code := self.error_of(call, request.group_id):
            return LeaveGroupResponse(error_code=code)
        if call.exchange.version < 3:
            return LeaveGroupResponse(
                error_code=self._leave(request.group_id, MemberIdentity(member_id=request.member_id))
            )
        return LeaveGroupResponse(
            members=[
                MemberResponse(
                    member_id=each.member_id,
                    group_instance_id=each.group_instance_id,
                    error_code=self._leave(request.group_id, each),
                )
                for each in request.members
            ]
        )

    def _leave(self, group_id: str, asked: MemberIdentity) -> int:
        members = self.groups[group_id].members
        for each in members:
            if asked.group_instance_id is not None and each.group_instance_id == asked.group_instance_id:
                if asked.member_id not in ("", each.member_id):
                    return ErrorCode.FENCED_INSTANCE_ID
            elif asked.group_instance_id is not None or each.member_id != asked.member_id:
                continue
            members.remove(each)
            return ErrorCode.NONE
        return ErrorCode.UNKNOWN_MEMBER_ID

    # ----------------------------------------------------------------------------------------------------- offsets
    def fetch(self, call: Call) -> Response:
        request = call.exchange.request
        assert isinstance(request, OffsetFetchRequest)
        if call.exchange.version >= 8:
            groups: list[OffsetFetchResponseGroup] = []
            for group in request.groups:
                wanted = None
                if group.topics is not None:
                    wanted = [(topic.name, index) for topic in group.topics for index in topic.partition_indexes]
                if code := self.error_of(call, group.group_id):
                    groups.append(OffsetFetchResponseGroup(group_id=group.group_id, topics=[], error_code=code))
                    continue
                topics = [
                    OffsetFetchResponseTopics(
                        name=topic,
                        partitions=[
                            OffsetFetchResponsePartitions(
                                partition_index=index,
                                committed_offset=stored[0],
                                metadata=stored[1],
                                committed_leader_epoch=stored[2],
                                error_code=self.partition_errors.get((topic, index), ErrorCode.NONE),
                            )
                        ],
                    )
                    for (topic, index), stored in self._stored(group.group_id, wanted)
                ]
                groups.append(OffsetFetchResponseGroup(group_id=group.group_id, topics=topics))
            return OffsetFetchResponse(groups=groups)
        wanted = None
        if request.topics is not None:
            wanted = [(topic.name, index) for topic in request.topics for index in topic.partition_indexes]
        if code := self.error_of(call, request.group_id):
            return OffsetFetchResponse(error_code=code)
        return OffsetFetchResponse(
            topics=[
                OffsetFetchResponseTopic(
                    name=topic,
                    partitions=[
                        OffsetFetchResponsePartition(
                            partition_index=index,
                            committed_offset=stored[0],
                            metadata=stored[1],
                            committed_leader_epoch=stored[2],
                        )
                    ],
                )
                for (topic, index), stored in self._stored(request.group_id, wanted)
            ]
        )

    def _stored(self, group_id: str, wanted: Sequence[Position] | None) -> list[tuple[Position, Stored]]:
        known = self.offsets.get(group_id, {})
        if wanted is None:
            return list(known.items())
        return [(position, known.get(position, (-1, "", -1))) for position in wanted]

    def commit(self, call: Call) -> Response:
        request = call.exchange.request
        assert isinstance(request, OffsetCommitRequest)
        if request.member_id or request.generation_id_or_member_epoch != -1:
            call.broker.violated("an OffsetCommit of an operator as if of a member")
        whole = self.error_of(call, request.group_id)
        group = self.groups.get(request.group_id)
        if not whole and group is not None and group.members:
            whole = ErrorCode.UNKNOWN_MEMBER_ID
        topics: list[OffsetCommitResponseTopic] = []
        for topic in request.topics:
            parts: list[OffsetCommitResponsePartition] = []
            for each in topic.partitions:
                known = self.cluster.topics.get(topic.name)
                is_known = known is not None and each.partition_index < len(known.partitions)
                code = whole or (ErrorCode.NONE if is_known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                if not code:
                    self.groups.setdefault(request.group_id, Group(protocol_type=""))
                    self.offsets[request.group_id][topic.name, each.partition_index] = (
                        each.committed_offset,
                        each.committed_metadata or "",
                        each.committed_leader_epoch,
                    )
                parts.append(OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code))
            topics.append(OffsetCommitResponseTopic(name=topic.name, partitions=parts))
        return OffsetCommitResponse(topics=topics)

    def delete_offsets(self, call: Call) -> Response:
        request = call.exchange.request
        assert isinstance(request, OffsetDeleteRequest)
        code = self.error_of(call, request.group_id)
        if not code and request.group_id not in self.groups:
            code = ErrorCode.GROUP_ID_NOT_FOUND
        if code:
            return OffsetDeleteResponse(error_code=code)
        read = {
            topic
            for each in self.groups[request.group_id].members
            for topic in [topic.name for topic in request.topics if topic.name.encode() in each.member_metadata]
        }
        topics: list[OffsetDeleteResponseTopic] = []
        for topic in request.topics:
            parts: list[OffsetDeleteResponsePartition] = []
            for each in topic.partitions:
                code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if topic.name in read else ErrorCode.NONE
                if not code:
                    self.offsets[request.group_id].pop((topic.name, each.partition_index), None)
                parts.append(OffsetDeleteResponsePartition(partition_index=each.partition_index, error_code=code))
            topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=parts))
        return OffsetDeleteResponse(topics=topics)


def serve_groups(cluster: ScriptedCluster) -> Groups:
    """Has all brokers serve groups."""
    groups = Groups(cluster)
    cluster.serve(FindCoordinatorRequest, groups.find_coordinator)
    cluster.serve(ListGroupsRequest, groups.list_groups)
    cluster.serve(DescribeGroupsRequest, groups.describe_groups)
    cluster.serve(ConsumerGroupDescribeRequest, groups.describe_consumer_groups)
    cluster.serve(DeleteGroupsRequest, groups.delete_groups)
    cluster.serve(LeaveGroupRequest, groups.leave_group)
    cluster.serve(OffsetFetchRequest, groups.fetch)
    cluster.serve(OffsetCommitRequest, groups.commit)
    cluster.serve(OffsetDeleteRequest, groups.delete_offsets)
    return groups
