"""A group of any broker, ours or Apache Kafka, asked by raw requests in any version: for asking both the same.

Member ids are random, so that `shape` says whose they are instead.
"""

from collections.abc import Mapping, Sequence
from time import sleep

from odradek.protocol.consumer_protocol import Subscription, encode_subscription
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_groups import DeleteGroupsRequest
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from odradek.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
)
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.compat.peer import Peer
from tests.compat.questions import Answer, name_of


class Group:
    """One group, of which a peer asks; its coordinator is there."""

    def __init__(self, peer: Peer, group_id: str) -> None:
        self.peer = peer
        self.group_id = group_id
        while name_of(self._coordinator()) != "NONE":
            sleep(0.05)
        while self._committed() in ("COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR"):
            sleep(0.05)

    def _coordinator(self) -> int:
        request = FindCoordinatorRequest(coordinator_keys=[self.group_id])
        [found] = self.peer.ask(request, 4).coordinators
        return found.error_code

    def _committed(self) -> str:
        groups = [OffsetFetchRequestGroup(group_id=self.group_id, topics=None)]
        [group] = self.peer.ask(OffsetFetchRequest(groups=groups), 8).groups
        return name_of(group.error_code)

    # -- members ----------------------------------------------------------------------------------------------------

    def join(
        self,
        member_id: str = "",
        *,
        version: int = 9,
        instance_id: str | None = None,
        protocols: Sequence[str] = ("range",),
        type_: str = "consumer",
        session_ms: int = 30_000,
        topics: Sequence[str] = ("a",),
    ) -> JoinGroupResponse:
        metadata = encode_subscription(Subscription(topics), 1)
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=30_000 if version >= 1 else -1,
            member_id=member_id,
            group_instance_id=instance_id if version >= 5 else None,
            protocol_type=type_,
            protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata) for name in protocols],
        )
        return self.peer.ask(request, version)

    def joined(self, *, version: int = 9, type_: str = "consumer", topics: Sequence[str] = ("a",)) -> str:
        """The id of a member that has joined."""
        member_id = self.join(version=version, type_=type_, topics=topics).member_id
        if version >= 4:
            answer = self.join(member_id, version=version, type_=type_, topics=topics)
            assert answer.error_code == ErrorCode.NONE, name_of(answer.error_code)
        return member_id

    def stable(self, *, type_: str = "consumer", topics: Sequence[str] = ("a",)) -> str:
        """The id of the only member, which has its assignment."""
        member_id = self.joined(type_=type_, topics=topics)
        synced = self.sync(member_id, assignments={member_id: b"all"}, type_=type_)
        assert synced[0] == "NONE", synced
        return member_id

    def sync(
        self,
        member_id: str,
        generation: int = 1,
        *,
        version: int = 5,
        assignments: Mapping[str, bytes] | None = None,
        type_: str | None = "consumer",
        name: str | None = "range",
        instance_id: str | None = None,
    ) -> tuple[str, bytes, str | None, str | None]:
        given = [
            SyncGroupRequestAssignment(member_id=key, assignment=each) for key, each in (assignments or {}).items()
        ]
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance_id if version >= 3 else None,
            protocol_type=type_ if version >= 5 else None,
            protocol_name=name if version >= 5 else None,
            assignments=given,
        )
        answer = self.peer.ask(request, version)
        return name_of(answer.error_code), bytes(answer.assignment), answer.protocol_type, answer.protocol_name

    def heartbeat(
        self, member_id: str, generation: int = 1, *, version: int = 4, instance_id: str | None = None
    ) -> str:
        request = HeartbeatRequest(
            group_id=self.group_id,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance_id if version >= 3 else None,
        )
        return name_of(self.peer.ask(request, version).error_code)

    def leave(self, *members: tuple[str, str | None], version: int = 5) -> Answer:
        """Up to version 2 of the first one."""
        if version < 3:
            request = LeaveGroupRequest(group_id=self.group_id, member_id=members[0][0])
        else:
            each = [MemberIdentity(member_id=key, group_instance_id=instance) for key, instance in members]
            request = LeaveGroupRequest(group_id=self.group_id, members=each)
        answer: LeaveGroupResponse = self.peer.ask(request, version)
        left = [(each.group_instance_id, name_of(each.error_code)) for each in answer.members]
        return name_of(answer.error_code), left

    # -- offsets ----------------------------------------------------------------------------------------------------

    def commit(
        self,
        topic: str,
        *indexes: int,
        version: int = 9,
        member_id: str = "",
        generation: int = -1,
        offset: int = 7,
        metadata: str | None = "x",
        retention_ms: int = -1,
        instance_id: str | None = None,
    ) -> Answer:
        asked = [
            OffsetCommitRequestPartition(
                partition_index=index, committed_offset=offset, committed_leader_epoch=-1, committed_metadata=metadata
            )
            for index in indexes
        ]
        request = OffsetCommitRequest(
            group_id=self.group_id,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=instance_id if version >= 7 else None,
            retention_time_ms=retention_ms,
            topics=[OffsetCommitRequestTopic(name=topic, partitions=asked)] if indexes else [],
        )
        answer = self.peer.ask(request, version)
        parts = [(each.partition_index, name_of(each.error_code)) for one in answer.topics for each in one.partitions]
        return sorted(parts)  # Kafka names those first that it refuses

    def fetch(self, topics: Sequence[tuple[str, list[int]]] | None, *, version: int = 9) -> Answer:
        """The error of the group, and what is said of each partition."""
        if version < 8:
            return self._fetch_alone(topics, version)
        wanted = None
        if topics is not None:
            wanted = [OffsetFetchRequestTopics(name=name, partition_indexes=indexes) for name, indexes in topics]
        groups = [OffsetFetchRequestGroup(group_id=self.group_id, topics=wanted)]
        [group] = self.peer.ask(OffsetFetchRequest(groups=groups), version).groups
        return name_of(group.error_code), [fetched(part) for each in group.topics for part in each.partitions]

    def _fetch_alone(self, topics: Sequence[tuple[str, list[int]]] | None, version: int) -> Answer:
        wanted = None
        if topics is not None:
            wanted = [OffsetFetchRequestTopic(name=name, partition_indexes=indexes) for name, indexes in topics]
        answer = self.peer.ask(OffsetFetchRequest(group_id=self.group_id, topics=wanted), version)
        return name_of(answer.error_code), [fetched(part) for each in answer.topics for part in each.partitions]

    def delete_offsets(self, *positions: tuple[str, int]) -> Answer:
        topics = [
            OffsetDeleteRequestTopic(name=name, partitions=[OffsetDeleteRequestPartition(partition_index=index)])
            for name, index in positions
        ]
        answer = self.peer.ask(OffsetDeleteRequest(group_id=self.group_id, topics=topics), 0)
        parts = [(each.partition_index, name_of(each.error_code)) for one in answer.topics for each in one.partitions]
        return name_of(answer.error_code), sorted(parts)

    # -- operators --------------------------------------------------------------------------------------------------

    def describe(self, *, version: int = 6, operations: bool = False) -> Answer:
        request = DescribeGroupsRequest(
            groups=[self.group_id], include_authorized_operations=operations and version >= 3
        )
        [group] = self.peer.ask(request, version).groups
        members = [
            (each.group_instance_id, each.client_host, bytes(each.member_metadata), bytes(each.member_assignment))
            for each in group.members
        ]
        return (
            name_of(group.error_code),
            group.group_state,
            group.protocol_type,
            group.protocol_data,
            group.authorized_operations,
            members,
        )

    def described_as_there(self) -> Answer:
        """Kafka tells a member its id before it has written that there is such a group."""
        for _ in range(100):
            request = DescribeGroupsRequest(groups=[self.group_id])
            [group] = self.peer.ask(request, 5).groups
            if group.group_state != "Dead":
                break
            sleep(0.05)
        return self.describe()

    def delete(self, *others: str, version: int = 2) -> Answer:
        answer = self.peer.ask(DeleteGroupsRequest(groups_names=[self.group_id, *others]), version)
        return sorted(name_of(each.error_code) for each in answer.results)


def fetched(part: OffsetFetchResponsePartition | OffsetFetchResponsePartitions) -> Answer:
    return (
        part.partition_index,
        part.committed_offset,
        part.committed_leader_epoch,
        part.metadata,
        name_of(part.error_code),
    )


def shape(answer: JoinGroupResponse) -> Answer:
    """Without the ids."""
    return (
        name_of(answer.error_code),
        answer.generation_id,
        answer.protocol_type,
        answer.protocol_name,
        answer.leader != "" and answer.leader == answer.member_id,
        bool(answer.member_id),
        answer.skip_assignment,
        [(each.group_instance_id, bytes(each.metadata)) for each in answer.members],
    )
