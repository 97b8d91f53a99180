"""What a membership asks for as messages of Kafka, and their answers as it takes them. Pure.

A message holds what any version may carry; the encoder leaves out what the version in use does not have. `at_least`
names the version that a request cannot do without: a static member is told apart since KIP-345, and a member of KIP-848
makes its own id since version 1.
"""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from odradek.client.consumer.assignment.assignor import TopicLayout
from odradek.client.consumer.membership.requests import (
    Answer,
    AssignmentByTopicId,
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
    TopicsDescribed,
)
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.errors import code_of
from odradek.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from odradek.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from odradek.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from odradek.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse

__all__ = ["ToCoordinator", "Wire", "answer_of", "described", "layouts_of", "topics_request", "wire_of"]

REASON_LENGTH_MAX: Final = 255
"""Of what a member says why it joins or leaves (KIP-800; JoinGroupRequest.java)."""
STATIC_JOIN: Final = 5
STATIC_OTHERS: Final = 3
OWN_MEMBER_ID: Final = 1
TOPIC_IDS: Final = 12
TOPIC_IDS_ANSWERED: Final = 10

ToCoordinator = Join | Sync | Heartbeat | Leave | ConsumerHeartbeat


class Wire(NamedTuple):
    request: Request[Any]
    at_least: int = 0
    timeout_ms: float | None = None
    """None: as every request."""


# --------------------------------------------------------------------------------------------------- to coordinators
def wire_of(asked: ToCoordinator) -> Wire:
    """The message for a request to the coordinator."""
    match asked:
        case Join():
            return Wire(_join(asked), STATIC_JOIN if asked.group_instance_id else 0, asked.timeout_ms)
        case Sync():
            return Wire(_sync(asked), STATIC_OTHERS if asked.group_instance_id else 0, asked.timeout_ms)
        case Heartbeat():
            request = HeartbeatRequest(
                group_id=asked.group_id,
                generation_id=asked.generation,
                member_id=asked.member_id,
                group_instance_id=asked.group_instance_id,
            )
            return Wire(request, STATIC_OTHERS if asked.group_instance_id else 0)
        case Leave():
            return Wire(_leave(asked), STATIC_OTHERS if asked.group_instance_id else 0)
        case ConsumerHeartbeat():
            return Wire(_consumer_heartbeat(asked), OWN_MEMBER_ID)


def answer_of(response: Response) -> Answer:
    """What a coordinator answered."""
    match response:
        case JoinGroupResponse():
            return _joined(response)
        case SyncGroupResponse():
            if response.error_code:
                return Refused(code_of(response.error_code))
            return Synced(bytes(response.assignment), response.protocol_type, response.protocol_name)
        case HeartbeatResponse():
            return Refused(code_of(response.error_code)) if response.error_code else HeartbeatTaken()
        case LeaveGroupResponse():
            codes = [response.error_code, *(member.error_code for member in response.members)]
            code = next((code for code in codes if code), 0)
            return Refused(code_of(code)) if code else Left()
        case ConsumerGroupHeartbeatResponse():
            return _consumer_heartbeat_answer(response)
        case _:
            raise AssertionError(f"{type(response).__name__} answers no request of a membership")


def _join(asked: Join) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=asked.group_id,
        session_timeout_ms=asked.session_timeout_ms,
        rebalance_timeout_ms=asked.rebalance_timeout_ms,
        member_id=asked.member_id,
        group_instance_id=asked.group_instance_id,
        protocol_type=asked.protocol_type,
        protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in asked.protocols],
        reason=asked.reason[:REASON_LENGTH_MAX],
    )


def _joined(response: JoinGroupResponse) -> Answer:
    if response.error_code:
        return Refused(code_of(response.error_code), member_id=response.member_id)
    members = tuple(
        JoinedMember(member.member_id, member.group_instance_id, bytes(member.metadata)) for member in response.members
    )
    return Joined(
        response.member_id,
        response.generation_id,
        response.protocol_name or "",
        response.leader,
        members,
        response.protocol_type,
        response.skip_assignment,
    )


def _sync(asked: Sync) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id=asked.group_id,
        generation_id=asked.generation,
        member_id=asked.member_id,
        group_instance_id=asked.group_instance_id,
        protocol_type=asked.protocol_type,
        protocol_name=asked.protocol_name,
        assignments=[
            SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
            for member_id, assignment in asked.assignments
        ],
    )


def _leave(asked: Leave) -> LeaveGroupRequest:
    member = MemberIdentity(
        member_id=asked.member_id,
        group_instance_id=asked.group_instance_id,
        reason=asked.reason[:REASON_LENGTH_MAX],
    )
    return LeaveGroupRequest(group_id=asked.group_id, member_id=asked.member_id, members=[member])


def _consumer_heartbeat(asked: ConsumerHeartbeat) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=asked.group_id,
        member_id=asked.member_id,
        member_epoch=asked.member_epoch,
        instance_id=asked.instance_id,
        rack_id=asked.rack_id,
        rebalance_timeout_ms=asked.rebalance_timeout_ms,
        subscribed_topic_names=None if asked.subscribed_topics is None else list(asked.subscribed_topics),
        server_assignor=asked.server_assignor,
        topic_partitions=None if asked.owned is None else _by_id(asked.owned),
    )


def _by_id(owned: AssignmentByTopicId) -> list[TopicPartitions]:
    return [TopicPartitions(topic_id=topic_id, partitions=sorted(numbers)) for topic_id, numbers in owned.items()]


def _consumer_heartbeat_answer(response: ConsumerGroupHeartbeatResponse) -> Answer:
    if response.error_code:
        return Refused(code_of(response.error_code), response.error_message or "")
    assigned: dict[bytes, frozenset[int]] | None = None
    if response.assignment is not None:
        assigned = {
            bytes(topic.topic_id): frozenset(topic.partitions) for topic in response.assignment.topic_partitions
        }
    return ConsumerHeartbeatAnswer(response.member_epoch, response.heartbeat_interval_ms, response.member_id, assigned)


# ------------------------------------------------------------------------------------------------ topics, of anybody
def described(asked: DescribeTopics) -> Wire:
    """Metadata of these topics. It creates none: who wants a topic has asked for it otherwise."""
    topics = [MetadataRequestTopic(name=name) for name in sorted(asked.names)]
    topics += [MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in sorted(asked.topic_ids)]
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    return Wire(request, TOPIC_IDS if asked.topic_ids else 0)


def topics_request() -> MetadataRequest:
    """Of all topics that there are."""
    return MetadataRequest(topics=None, allow_auto_topic_creation=False)


def layouts_of(response: MetadataResponse) -> TopicsDescribed:
    racks = {broker.node_id: broker.rack for broker in response.brokers if broker.rack}
    return TopicsDescribed(
        {
            topic.name: TopicLayout(len(topic.partitions), _racks(topic, racks), bytes(topic.topic_id))
            for topic in response.topics
            if topic.name is not None and not topic.error_code and topic.partitions
        }
    )


def _racks(topic: MetadataResponseTopic, racks: dict[int, str]) -> tuple[frozenset[str], ...]:
    if not racks:
        return ()

    def of(nodes: Iterable[int]) -> frozenset[str]:
        return frozenset(racks[node] for node in nodes if node in racks)

    return tuple(of(each.replica_nodes) for each in sorted(topic.partitions, key=lambda each: each.partition_index))
