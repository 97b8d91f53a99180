"""Rows of the matrix of rights: coordinators, groups of both protocols, and their offsets."""

from odradek.protocol.codec.schema import ZERO_UUID
from odradek.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.protocol.messages.delete_groups import DeleteGroupsRequest
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from odradek.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from odradek.protocol.messages.list_groups import ListGroupsRequest
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
)
from odradek.protocol.messages.sync_group import SyncGroupRequest
from tests.compat.rights_questions import asks
from tests.compat.rights_questions_of_data import UNKNOWN_ID
from tests.compat.rights_world import GROUP_ID, IDLE, MEMBERS, NEW, OPEN, TOPIC_NAME, World

UNKNOWN = "unknown"
"""A group that is not there, and to which nobody has a right of his own."""
NOBODY = "nobody"
"""No member of any group."""
GROUPS, TRANSACTIONS, SHARES = 0, 1, 2
IDS_SINCE = 10
LEAVING = -1


# -- coordinators ---------------------------------------------------------------------------------------------------
def one(key_type: int, key: str) -> FindCoordinatorRequest:
    return FindCoordinatorRequest(key=key, key_type=key_type)


def several(key_type: int, *keys: str) -> FindCoordinatorRequest:
    return FindCoordinatorRequest(key_type=key_type, coordinator_keys=list(keys))


asks("FindCoordinator", (0, 3), lambda _: one(GROUPS, GROUP_ID), what="of a group")
asks("FindCoordinator", (1, 3), lambda _: one(TRANSACTIONS, OPEN), what="of a transactional id")
asks("FindCoordinator", (4, 6), lambda _: several(GROUPS, GROUP_ID, UNKNOWN), what="of groups")
asks("FindCoordinator", (4, 6), lambda _: several(TRANSACTIONS, OPEN, UNKNOWN), what="of transactional ids")
asks("FindCoordinator", (5, 6), lambda _: several(SHARES, f"{GROUP_ID}:x:0"), what="of share groups")


# -- members: each is one that the group does not know, so that nothing waits ---------------------------------------
def join(world: World) -> JoinGroupRequest:
    del world
    return JoinGroupRequest(
        group_id=GROUP_ID,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id=NOBODY,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )


asks("JoinGroup", (0, 5, 9), join)
asks(
    "SyncGroup",
    (0, 4),
    lambda _: SyncGroupRequest(group_id=GROUP_ID, generation_id=1, member_id=NOBODY, assignments=[]),
)
asks(
    "SyncGroup",
    (5,),
    lambda _: SyncGroupRequest(
        group_id=GROUP_ID,
        generation_id=1,
        member_id=NOBODY,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[],
    ),
)
asks("Heartbeat", (0, 4), lambda _: HeartbeatRequest(group_id=GROUP_ID, generation_id=1, member_id=NOBODY))
asks("LeaveGroup", (0, 2), lambda _: LeaveGroupRequest(group_id=GROUP_ID, member_id=NOBODY))
asks(
    "LeaveGroup",
    (3, 5),
    lambda _: LeaveGroupRequest(group_id=GROUP_ID, members=[MemberIdentity(member_id=NOBODY)]),
)


def beat(world: World, *topics: str, regex: str | None = None) -> ConsumerGroupHeartbeatRequest:
    """Of a member that is not there, and says goodbye."""
    del world
    return ConsumerGroupHeartbeatRequest(
        group_id=MEMBERS,
        member_id=NOBODY,
        member_epoch=LEAVING,
        subscribed_topic_names=list(topics) or None,
        subscribed_topic_regex=regex,
    )


asks("ConsumerGroupHeartbeat", (0, 1), beat)
asks("ConsumerGroupHeartbeat", (0, 1), lambda world: beat(world, TOPIC_NAME, NEW), what="with topics")


# -- operators ------------------------------------------------------------------------------------------------------
asks("DescribeGroups", (0,), lambda _: DescribeGroupsRequest(groups=[GROUP_ID, UNKNOWN]))
asks(
    "DescribeGroups",
    (3, 5, 6),
    lambda _: DescribeGroupsRequest(groups=[GROUP_ID, UNKNOWN], include_authorized_operations=True),
    what="with operations",
)
asks("ListGroups", (0, 4, 5), lambda _: ListGroupsRequest(), renew=lambda world, _: world.keep_member())
asks(
    "DeleteGroups",
    (0, 2),
    lambda _: DeleteGroupsRequest(groups_names=[IDLE, UNKNOWN]),
    renew=lambda world, _: world.commit(IDLE),
)
asks(
    "ConsumerGroupDescribe",
    (0, 1),
    lambda _: ConsumerGroupDescribeRequest(group_ids=[MEMBERS, UNKNOWN], include_authorized_operations=True),
    renew=lambda world, _: world.keep_member(),
)


# -- offsets --------------------------------------------------------------------------------------------------------
def commit(world: World) -> OffsetCommitRequest:
    partitions = [OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")]
    return OffsetCommitRequest(
        group_id=GROUP_ID,
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=[
            OffsetCommitRequestTopic(name=TOPIC_NAME, topic_id=world.ids[TOPIC_NAME], partitions=partitions),
            OffsetCommitRequestTopic(name=NEW, topic_id=UNKNOWN_ID, partitions=partitions),
        ],
    )


def fetch_of_one(*topics: str) -> OffsetFetchRequest:
    """No topics: all that the group has."""
    wanted = [OffsetFetchRequestTopic(name=name, partition_indexes=[0]) for name in topics]
    return OffsetFetchRequest(group_id=GROUP_ID, topics=wanted or None)


def fetch_of_several(world: World, *topics: str) -> OffsetFetchRequest:
    ids = {TOPIC_NAME: world.ids[TOPIC_NAME], NEW: UNKNOWN_ID}
    wanted = [
        OffsetFetchRequestTopics(name=name, topic_id=ids.get(name, ZERO_UUID), partition_indexes=[0]) for name in topics
    ]
    groups = [OffsetFetchRequestGroup(group_id=group_id, topics=wanted or None) for group_id in (GROUP_ID, UNKNOWN)]
    return OffsetFetchRequest(groups=groups)


def delete_offsets(world: World) -> OffsetDeleteRequest:
    del world
    partitions = [OffsetDeleteRequestPartition(partition_index=0)]
    topics = [OffsetDeleteRequestTopic(name=name, partitions=partitions) for name in (TOPIC_NAME, NEW)]
    return OffsetDeleteRequest(group_id=IDLE, topics=topics)


asks("OffsetCommit", (2, 9, 10), commit)
asks("OffsetFetch", (1, 2, 5, 6, 7), lambda _: fetch_of_one(TOPIC_NAME, NEW))
asks("OffsetFetch", (2, 7), lambda _: fetch_of_one(), what="all")
asks("OffsetFetch", (8, 9, 10), lambda world: fetch_of_several(world, TOPIC_NAME, NEW))
asks("OffsetFetch", (8, 10), fetch_of_several, what="all")
asks("OffsetDelete", (0,), delete_offsets, renew=lambda world, _: world.commit(IDLE))
