"""JoinGroup (key 11): a member enters a classic group, or takes part in its next rebalance.

The answer waits until the members of the next generation are known; the leader among them gets the metadata of all.

v0: the API (KAFKA-2464)
v1: rebalance_timeout_ms; before, session_timeout_ms takes its place (KIP-62)
v2: throttle_time_ms (KIP-124)
v3: the broker answers before it throttles (KIP-219)
v4: MEMBER_ID_REQUIRED is answered with the id that a new member comes back with (KIP-394)
v5: group_instance_id (KIP-345)
v6: flexible (KIP-482)
v7: protocol_type in the response, whose protocol_name may be null (KIP-559)
v8: reason (KIP-800)
v9: skip_assignment (KIP-814)
"""

from odradek.protocol.codec.schema import Request, Response, Struct, field, i16, i32, message, struct


@struct
class JoinGroupResponseMember(Struct):
    member_id: str
    group_instance_id: str | None = field(since=5, default=None)
    metadata: bytes


@message(key=11, versions=(0, 9), flexible=6)
class JoinGroupResponse(Response):
    throttle_time_ms: i32 = field(since=2, default=0)
    error_code: i16 = 0
    generation_id: i32 = -1
    protocol_type: str | None = field(since=7, default=None)
    protocol_name: str | None = field(nullable_since=7, default="")
    leader: str = ""
    skip_assignment: bool = field(since=9, default=False)
    member_id: str = ""
    members: list[JoinGroupResponseMember] = field(default_factory=list[JoinGroupResponseMember])


@struct
class JoinGroupRequestProtocol(Struct):
    name: str
    metadata: bytes


@message(key=11, versions=(0, 9), flexible=6)
class JoinGroupRequest(Request[JoinGroupResponse]):
    group_id: str
    session_timeout_ms: i32
    rebalance_timeout_ms: i32 = field(since=1, default=-1)
    member_id: str
    group_instance_id: str | None = field(since=5, default=None)
    protocol_type: str
    protocols: list[JoinGroupRequestProtocol]
    reason: str | None = field(since=8, default=None)
