"""What members, operators and coordinators of groups tell one another, written out by hand from Kafka's definitions.

`golden/` has frames of real clients, each at the version that it picks. Here stand the versions between which a message
changes its form.
"""

import pytest

from odradek.protocol.codec.codec import decode, encode
from odradek.protocol.codec.schema import Message
from odradek.protocol.messages.consumer_group_describe import (
    Assignment as DescribedAssignment,
)
from odradek.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeResponse,
    Member,
)
from odradek.protocol.messages.consumer_group_describe import (
    DescribedGroup as DescribedConsumerGroup,
)
from odradek.protocol.messages.consumer_group_describe import (
    TopicPartitions as DescribedTopicPartitions,
)
from odradek.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from odradek.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from odradek.protocol.messages.group_rebalances import GroupRebalance
from odradek.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from odradek.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from odradek.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from odradek.protocol.messages.list_groups import ListGroupsRequest
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from odradek.protocol.messages.offset_delete import OffsetDeleteResponse
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from odradek.protocol.messages.sync_group import SyncGroupResponse
from odradek.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse

TOPIC_ID = bytes(range(16))
OFFSET = b"\x00\x00\x00\x00\x00\x00\x00\x09"
DAY = b"\x00\x00\x00\x00\x05\x26\x5c\x00"  # 86,400,000 ms
NOT_ASKED = b"\x80\x00\x00\x00"  # authorized operations that nobody asked for
PROTOCOLS = [JoinGroupRequestProtocol(name="range", metadata=b"xy")]


def join(**more: object) -> JoinGroupRequest:
    request = JoinGroupRequest(
        group_id="g", session_timeout_ms=7, member_id="", protocol_type="consumer", protocols=PROTOCOLS
    )
    for name, value in more.items():
        setattr(request, name, value)
    return request


def commit(topic: OffsetCommitRequestTopic, **more: object) -> OffsetCommitRequest:
    request = OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=2, member_id="m", topics=[topic])
    for name, value in more.items():
        setattr(request, name, value)
    return request


COMMITTED = [OffsetCommitRequestPartition(partition_index=3, committed_offset=9, committed_metadata=None)]
MEMBER = Member(
    member_id="m",
    member_epoch=2,
    client_id="c",
    client_host="h",
    subscribed_topic_names=["t"],
    assignment=DescribedAssignment(
        topic_partitions=[DescribedTopicPartitions(topic_id=TOPIC_ID, topic_name="t", partitions=[0])]
    ),
    target_assignment=DescribedAssignment(topic_partitions=[]),
    member_type=1,
)

LEFT = GroupRebalance(
    started_ms=9, generation=2, cause="member left", reason="bye", member_id="m", instance_id="i", last_heard_ms=-1
)
DESCRIBED_5 = bytes(4) + b"\x02\x00\x00\x02g\x01\x01\x01\x01" + NOT_ASKED
"""A group at version 5, up to its tags."""
TOLD = (
    b"\xc4\x9e\x01\x2a"  # tag 0x4f44, 42 bytes
    b"\x02" + bytes(7) + b"\x09\x00\x00\x00\x02\x0cmember left\x04bye\x02m\x02i" + b"\xff" * 8 + b"\x00"
    b"\x00"  # no tags of the response
)

BY_HAND: list[tuple[Message, int, bytes]] = [
    (
        join(),
        0,
        b"\x00\x01g\x00\x00\x00\x07\x00\x00\x00\x08consumer\x00\x00\x00\x01\x00\x05range\x00\x00\x00\x02xy",
    ),
    (
        join(rebalance_timeout_ms=8, group_instance_id="i"),
        5,
        b"\x00\x01g\x00\x00\x00\x07\x00\x00\x00\x08\x00\x00\x00\x01i\x00\x08consumer"
        b"\x00\x00\x00\x01\x00\x05range\x00\x00\x00\x02xy",
    ),
    (
        join(rebalance_timeout_ms=8, reason="why"),
        8,
        b"\x02g\x00\x00\x00\x07\x00\x00\x00\x08\x01\x00\x09consumer\x02\x06range\x03xy\x00\x04why\x00",
    ),
    (
        JoinGroupResponse(error_code=79, member_id="m"),
        4,
        b"\x00\x00\x00\x00\x00\x4f" + b"\xff" * 4 + b"\x00\x00\x00\x00\x00\x01m" + bytes(4),
    ),
    (
        JoinGroupResponse(error_code=79, member_id="m", protocol_name=None),
        7,
        b"\x00\x00\x00\x00\x00\x4f" + b"\xff" * 4 + b"\x00\x00\x01\x02m\x01\x00",
    ),
    (
        JoinGroupResponse(
            generation_id=1,
            protocol_type="consumer",
            protocol_name="range",
            leader="m",
            skip_assignment=True,
            member_id="m",
            members=[JoinGroupResponseMember(member_id="m", metadata=b"xy")],
        ),
        9,
        b"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x09consumer\x06range\x02m\x01\x02m\x02\x02m\x00\x03xy\x00\x00",
    ),
    (LeaveGroupRequest(group_id="g", member_id="m"), 2, b"\x00\x01g\x00\x01m"),
    (
        LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id="", group_instance_id="i")]),
        3,
        b"\x00\x01g\x00\x00\x00\x01\x00\x00\x00\x01i",
    ),
    (
        LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id="m", reason="why")]),
        5,
        b"\x02g\x02\x02m\x00\x04why\x00\x00",
    ),
    (
        LeaveGroupResponse(members=[MemberResponse(member_id="m", error_code=25)]),
        4,
        b"\x00\x00\x00\x00\x00\x00\x02\x02m\x00\x00\x19\x00\x00",
    ),
    (SyncGroupResponse(error_code=27), 0, b"\x00\x1b\x00\x00\x00\x00"),
    (
        SyncGroupResponse(protocol_type="consumer", protocol_name="range", assignment=b"xy"),
        5,
        b"\x00\x00\x00\x00\x00\x00\x09consumer\x06range\x03xy\x00",
    ),
    (
        commit(OffsetCommitRequestTopic(name="t", partitions=COMMITTED), retention_time_ms=86_400_000),
        2,
        b"\x00\x01g\x00\x00\x00\x02\x00\x01m" + DAY + b"\x00\x00\x00\x01\x00\x01t\x00\x00\x00\x01"
        b"\x00\x00\x00\x03" + OFFSET + b"\xff\xff",
    ),
    (
        commit(OffsetCommitRequestTopic(name="t", partitions=COMMITTED)),
        9,
        b"\x02g\x00\x00\x00\x02\x02m\x00\x02\x02t\x02\x00\x00\x00\x03" + OFFSET + b"\xff\xff\xff\xff\x00\x00\x00\x00",
    ),
    (
        commit(OffsetCommitRequestTopic(topic_id=TOPIC_ID, partitions=COMMITTED)),
        10,
        b"\x02g\x00\x00\x00\x02\x02m\x00\x02" + TOPIC_ID + b"\x02\x00\x00\x00\x03" + OFFSET + b"\xff\xff\xff\xff\x00"
        b"\x00\x00\x00",
    ),
    (
        OffsetCommitResponse(
            topics=[
                OffsetCommitResponseTopic(
                    topic_id=TOPIC_ID, partitions=[OffsetCommitResponsePartition(partition_index=3, error_code=100)]
                )
            ]
        ),
        10,
        b"\x00\x00\x00\x00\x02" + TOPIC_ID + b"\x02\x00\x00\x00\x03\x00\x64\x00\x00\x00",
    ),
    (
        OffsetFetchRequest(group_id="g", topics=[OffsetFetchRequestTopic(name="t", partition_indexes=[3])]),
        1,
        b"\x00\x01g\x00\x00\x00\x01\x00\x01t\x00\x00\x00\x01\x00\x00\x00\x03",
    ),
    (OffsetFetchRequest(group_id="g", topics=None), 2, b"\x00\x01g\xff\xff\xff\xff"),
    (OffsetFetchRequest(group_id="g", topics=None, require_stable=True), 7, b"\x02g\x00\x01\x00"),
    (
        OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)]),
        8,
        b"\x02\x02g\x00\x00\x00\x00",
    ),
    (
        OffsetFetchRequest(
            groups=[
                OffsetFetchRequestGroup(
                    group_id="g",
                    member_id="m",
                    member_epoch=2,
                    topics=[OffsetFetchRequestTopics(topic_id=TOPIC_ID, partition_indexes=[3])],
                )
            ],
            require_stable=True,
        ),
        10,
        b"\x02\x02g\x02m\x00\x00\x00\x02\x02" + TOPIC_ID + b"\x02\x00\x00\x00\x03\x00\x00\x01\x00",
    ),
    (
        OffsetFetchResponse(
            topics=[
                OffsetFetchResponseTopic(
                    name="t",
                    partitions=[OffsetFetchResponsePartition(partition_index=3, committed_offset=9, metadata="")],
                )
            ],
            error_code=16,
        ),
        5,
        b"\x00\x00\x00\x00\x00\x00\x00\x01\x00\x01t\x00\x00\x00\x01\x00\x00\x00\x03"
        + OFFSET
        + b"\xff\xff\xff\xff\x00\x00\x00\x00\x00\x10",
    ),
    (
        OffsetFetchResponse(
            groups=[
                OffsetFetchResponseGroup(
                    group_id="g",
                    topics=[
                        OffsetFetchResponseTopics(
                            name="t",
                            partitions=[
                                OffsetFetchResponsePartitions(partition_index=3, committed_offset=9, metadata=None)
                            ],
                        )
                    ],
                    error_code=16,
                )
            ]
        ),
        8,
        b"\x00\x00\x00\x00\x02\x02g\x02\x02t\x02\x00\x00\x00\x03"
        + OFFSET
        + b"\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x10\x00\x00",
    ),
    (OffsetDeleteResponse(error_code=68), 0, b"\x00\x44\x00\x00\x00\x00\x00\x00\x00\x00"),
    (DescribeGroupsRequest(groups=["g"], include_authorized_operations=True), 5, b"\x02\x02g\x01\x00"),
    (
        DescribeGroupsResponse(groups=[DescribedGroup(group_id="g", group_state="Dead")]),
        0,
        b"\x00\x00\x00\x01\x00\x00\x00\x01g\x00\x04Dead\x00\x00\x00\x00\x00\x00\x00\x00",
    ),
    (
        DescribeGroupsResponse(groups=[DescribedGroup(error_code=69, error_message="no", group_id="g")]),
        6,
        b"\x00\x00\x00\x00\x02\x00\x45\x03no\x02g\x01\x01\x01\x01" + NOT_ASKED + b"\x00\x00",
    ),
    (DescribeGroupsResponse(groups=[DescribedGroup(group_id="g", rebalances=[LEFT])]), 5, DESCRIBED_5 + b"\x01" + TOLD),
    (ListGroupsRequest(), 0, b""),
    (ListGroupsRequest(states_filter=["Stable"], types_filter=["consumer"]), 5, b"\x02\x07Stable\x02\x09consumer\x00"),
    (
        ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=2),
        0,
        b"\x02g\x02m\x00\x00\x00\x02\x00\x00\xff\xff\xff\xff\x00\x00\x00\x00",
    ),
    (
        ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id="m",
            member_epoch=0,
            rebalance_timeout_ms=7,
            subscribed_topic_names=[],
            subscribed_topic_regex="t.*",
            topic_partitions=[TopicPartitions(topic_id=TOPIC_ID, partitions=[3])],
        ),
        1,
        b"\x02g\x02m\x00\x00\x00\x00\x00\x00\x00\x00\x00\x07\x01\x04t.*\x00\x02"
        + TOPIC_ID
        + b"\x02\x00\x00\x00\x03\x00\x00",
    ),
    (
        ConsumerGroupHeartbeatResponse(member_id="m", member_epoch=2, heartbeat_interval_ms=5),
        1,
        b"\x00\x00\x00\x00\x00\x00\x00\x02m\x00\x00\x00\x02\x00\x00\x00\x05\xff\x00",
    ),
    (
        ConsumerGroupHeartbeatResponse(
            assignment=Assignment(topic_partitions=[TopicPartitions(topic_id=TOPIC_ID, partitions=[3])])
        ),
        1,
        bytes(16) + b"\x01\x02" + TOPIC_ID + b"\x02\x00\x00\x00\x03\x00\x00\x00",
    ),
    (
        ConsumerGroupDescribeResponse(
            groups=[
                DescribedConsumerGroup(
                    group_id="g",
                    group_state="Stable",
                    group_epoch=2,
                    assignment_epoch=2,
                    assignor_name="uniform",
                    members=[MEMBER],
                )
            ]
        ),
        1,
        b"\x00\x00\x00\x00\x02\x00\x00\x00\x02g\x07Stable\x00\x00\x00\x02\x00\x00\x00\x02\x08uniform"
        b"\x02\x02m\x00\x00\x00\x00\x00\x02\x02c\x02h\x02\x02t\x00"  # a member up to its subscription
        b"\x02" + TOPIC_ID + b"\x02t\x02\x00\x00\x00\x00\x00\x00"  # its assignment
        b"\x01\x00"  # its target assignment
        b"\x01\x00" + NOT_ASKED + b"\x00\x00",
    ),
    (
        ConsumerGroupDescribeResponse(groups=[DescribedConsumerGroup(group_id="g", rebalances=[LEFT])]),
        0,
        bytes(4) + b"\x02\x00\x00\x00\x02g\x01" + bytes(8) + b"\x01\x01" + NOT_ASKED + b"\x01" + TOLD,
    ),
    (
        UpdateFeaturesRequest(
            timeout_ms=9, feature_updates=[FeatureUpdateKey(feature="f", max_version_level=1, allow_downgrade=True)]
        ),
        0,
        b"\x00\x00\x00\x09\x02\x02f\x00\x01\x01\x00\x00",
    ),
    (
        UpdateFeaturesRequest(
            timeout_ms=9,
            feature_updates=[FeatureUpdateKey(feature="f", max_version_level=0, upgrade_type=3)],
            validate_only=True,
        ),
        1,
        b"\x00\x00\x00\x09\x02\x02f\x00\x00\x03\x00\x01\x00",
    ),
    (UpdateFeaturesResponse(), 1, b"\x00\x00\x00\x00\x00\x00\x00\x01\x00"),
    (UpdateFeaturesResponse(error_code=95, error_message="no"), 2, b"\x00\x00\x00\x00\x00\x5f\x03no\x00"),
    (ListConfigResourcesRequest(), 0, b"\x00"),
    (ListConfigResourcesRequest(resource_types=[32, 16]), 1, b"\x03\x20\x10\x00"),
    (
        ListConfigResourcesResponse(config_resources=[ConfigResource(resource_name="m")]),
        0,
        b"\x00\x00\x00\x00\x00\x00\x02\x02m\x00\x00",
    ),
    (
        ListConfigResourcesResponse(config_resources=[ConfigResource(resource_name="g", resource_type=32)]),
        1,
        b"\x00\x00\x00\x00\x00\x00\x02\x02g\x20\x00\x00",
    ),
]


@pytest.mark.parametrize(
    ("message", "version", "expected"), BY_HAND, ids=[f"{type(case[0]).__name__}-{case[1]}" for case in BY_HAND]
)
def test_messages_written_out_by_hand(message: Message, version: int, expected: bytes) -> None:
    """Encoded to exactly these bytes, and decoded from them."""
    assert encode(message, version).hex(" ") == expected.hex(" ")
    assert decode(type(message), version, expected) == message


def test_a_group_that_has_not_rebalanced_is_told_as_by_kafka() -> None:
    assert encode(DescribeGroupsResponse(groups=[DescribedGroup(group_id="g")]), 5) == DESCRIBED_5 + b"\x00\x00"


def test_before_there_were_tags_no_rebalance_is_told() -> None:
    told, untold = (DescribeGroupsResponse(groups=[DescribedGroup(group_id="g", rebalances=r)]) for r in ([LEFT], []))
    for version in range(5):
        assert encode(told, version) == encode(untold, version)
