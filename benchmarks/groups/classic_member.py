"""A member by the classic protocol: JoinGroup, SyncGroup, then heartbeats at once. The leader deals partitions out.

A coordinator that is not ready is asked again at once, as often as it takes.
"""

from collections.abc import Generator, Sequence
from typing import Any

from benchmarks.groups.stability import MemberSteps, Question, Stability
from benchmarks.load.wire import check
from odradek.protocol.consumer_protocol import (
    Assignment,
    Subscription,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from odradek.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

JOIN, SYNC, HEARTBEAT, LEAVE = 9, 5, 4, 5
TIMEOUT_MS = 30_000
NAME = "range"
REJOIN = frozenset({ErrorCode.REBALANCE_IN_PROGRESS.value, ErrorCode.ILLEGAL_GENERATION.value})


NOT_READY = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS.value,
        ErrorCode.COORDINATOR_NOT_AVAILABLE.value,
        ErrorCode.NOT_COORDINATOR.value,
    }
)


def classic_member(number: int, group: str, topic: str, stability: Stability) -> MemberSteps:
    """Joins until the group is stable, then leaves. Raises KafkaError for what is none of its steps."""
    member_id = yield from until_stable(number, group, topic, stability)
    left = yield LeaveGroupRequest(group_id=group, members=[MemberIdentity(member_id=member_id)]), LEAVE
    check(left.error_code)


def until_stable(
    number: int, group: str, topic: str, stability: Stability, member_id: str = ""
) -> Generator[Question, Any, str]:
    """Joins, as a new member or again, until the group is stable; its member id. Raises KafkaError for what is none of
    its steps."""
    joining = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=TIMEOUT_MS,
        rebalance_timeout_ms=TIMEOUT_MS,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name=NAME, metadata=encode_subscription(Subscription([topic])))],
    )
    while not stability.is_reached:
        joined: JoinGroupResponse = yield joining, JOIN
        joining.member_id = joined.member_id or joining.member_id
        if joined.error_code in (ErrorCode.MEMBER_ID_REQUIRED, *REJOIN, *NOT_READY):
            continue
        check(joined.error_code)
        synced = yield sync_request(group, topic, joined, stability.partitions), SYNC
        if synced.error_code in (*REJOIN, *NOT_READY):
            continue
        check(synced.error_code)
        owned = decode_assignment(synced.assignment).partitions.get(topic, ())
        stability.tell(number, joined.generation_id, frozenset(owned))
        beat = HeartbeatRequest(group_id=group, generation_id=joined.generation_id, member_id=joined.member_id)
        while not stability.is_reached:
            beaten = yield beat, HEARTBEAT
            if beaten.error_code in (*REJOIN, *NOT_READY):
                break
            check(beaten.error_code)
    return joining.member_id


def sync_request(group: str, topic: str, joined: JoinGroupResponse, partitions: int) -> SyncGroupRequest:
    """With the assignments, where this member leads."""
    dealt = deal([member.member_id for member in joined.members], topic, partitions)
    return SyncGroupRequest(
        group_id=group,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        protocol_type="consumer",
        protocol_name=NAME,
        assignments=dealt if joined.leader == joined.member_id else [],
    )


def deal(members: Sequence[str], topic: str, partitions: int) -> list[SyncGroupRequestAssignment]:
    """Partition `n` goes to member `n` modulo their number."""
    count = len(members)
    return [
        SyncGroupRequestAssignment(
            member_id=member, assignment=encode_assignment(Assignment({topic: list(range(at, partitions, count))}))
        )
        for at, member in enumerate(members)
    ]
