"""What a membership asks for, as messages that our own broker's codec understands, and the answers back again."""

from typing import Any

import pytest

from odradek.client.consumer.assignment.assignor import TopicLayout
from odradek.client.consumer.group.group_messages import (
    REASON_LENGTH_MAX,
    ToCoordinator,
    answer_of,
    described,
    layouts_of,
    wire_of,
)
from odradek.client.consumer.membership.requests import (
    ConsumerHeartbeat,
    ConsumerHeartbeatAnswer,
    DescribeTopics,
    Heartbeat,
    HeartbeatTaken,
    Join,
    Joined,
    JoinedMember,
    Leave,
    Left,
    Refused,
    Sync,
    Synced,
)
from odradek.protocol.codec.codec import decode, encode_parts
from odradek.protocol.codec.schema import Request
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from odradek.protocol.messages.heartbeat import HeartbeatResponse
from odradek.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from odradek.protocol.messages.leave_group import LeaveGroupResponse, MemberResponse
from odradek.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from odradek.protocol.messages.sync_group import SyncGroupResponse

TOPIC_ID = bytes(range(16))


def asked(instance: str | None) -> list[ToCoordinator]:
    return [
        Join("g", "m", instance, 45_000, 300_000, "consumer", (("range", b"meta"),), "a reason", 305_000),
        Sync("g", "m", instance, 3, "consumer", "range", (("m", b"assigned"),), 305_000),
        Heartbeat("g", "m", instance, 3),
        Leave("g", "m", instance, "bye" * 200),
        ConsumerHeartbeat("g", "m", 0, instance, "r1", 300_000, ("a", "b"), None, {TOPIC_ID: frozenset({2, 1})}),
    ]


@pytest.mark.parametrize("instance", [None, "i-1"])
def test_every_request_can_be_carried_by_every_version_that_is_asked_for(instance: str | None) -> None:
    for each in asked(instance):
        wire = wire_of(each)
        kind: type[Request[Any]] = type(wire.request)
        for version in range(max(wire.at_least, kind.min_version), kind.max_version + 1):
            data = memoryview(b"".join(encode_parts(wire.request, version)))
            read: Any = decode(kind, version, data)
            assert read.group_id == "g"
            if instance is not None and not isinstance(each, Leave):
                assert instance in (getattr(read, "group_instance_id", None), getattr(read, "instance_id", None))


def test_who_is_static_needs_the_versions_that_say_so() -> None:
    assert [wire_of(each).at_least for each in asked(None)] == [0, 0, 0, 0, 1]
    assert [wire_of(each).at_least for each in asked("i-1")] == [5, 3, 3, 3, 1]


def test_a_long_reason_is_cut() -> None:
    request: Any = wire_of(asked(None)[3]).request
    assert len(request.members[0].reason) == REASON_LENGTH_MAX


def test_answers_are_what_the_membership_takes() -> None:
    members = [JoinGroupResponseMember(member_id="m", metadata=b"meta")]
    joined = JoinGroupResponse(generation_id=3, protocol_name="range", leader="m", member_id="m", members=members)
    assert answer_of(joined) == Joined("m", 3, "range", "m", (JoinedMember("m", None, b"meta"),))
    assert answer_of(SyncGroupResponse(assignment=b"x")) == Synced(b"x")
    assert answer_of(HeartbeatResponse()) == HeartbeatTaken()
    assert answer_of(LeaveGroupResponse()) == Left()
    topics = [TopicPartitions(topic_id=TOPIC_ID, partitions=[1, 2])]
    beat = ConsumerGroupHeartbeatResponse(
        member_id="m", member_epoch=4, heartbeat_interval_ms=5_000, assignment=Assignment(topic_partitions=topics)
    )
    assert answer_of(beat) == ConsumerHeartbeatAnswer(4, 5_000, "m", {TOPIC_ID: frozenset({1, 2})})
    assert answer_of(ConsumerGroupHeartbeatResponse(member_epoch=4)) == ConsumerHeartbeatAnswer(4, 0)


def test_refusals_carry_their_code() -> None:
    needed = JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="m-1")
    assert answer_of(needed) == Refused(ErrorCode.MEMBER_ID_REQUIRED, member_id="m-1")
    fenced = MemberResponse(member_id="m", error_code=ErrorCode.FENCED_INSTANCE_ID)
    assert answer_of(LeaveGroupResponse(members=[fenced])) == Refused(ErrorCode.FENCED_INSTANCE_ID)
    for response in (
        SyncGroupResponse(error_code=27),
        HeartbeatResponse(error_code=27),
        ConsumerGroupHeartbeatResponse(error_code=27),
    ):
        assert answer_of(response) == Refused(ErrorCode.REBALANCE_IN_PROGRESS)


def test_layouts_have_the_racks_of_replicas_and_leave_out_errors() -> None:
    response = MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=node, host="h", port=1, rack=rack) for node, rack in ((0, "a"), (1, None))
        ],
        topics=[
            MetadataResponseTopic(
                name="t",
                topic_id=TOPIC_ID,
                partitions=[
                    MetadataResponsePartition(partition_index=1, leader_id=0, replica_nodes=[1], isr_nodes=[]),
                    MetadataResponsePartition(partition_index=0, leader_id=0, replica_nodes=[0, 1], isr_nodes=[]),
                ],
            ),
            MetadataResponseTopic(name="gone", error_code=3, partitions=[]),
        ],
    )
    assert layouts_of(response).topics == {"t": TopicLayout(2, (frozenset({"a"}), frozenset()), TOPIC_ID)}
    assert described(DescribeTopics(topic_ids=frozenset({TOPIC_ID}))).at_least == 12
