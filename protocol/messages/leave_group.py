"""LeaveGroup (key 13): members leave a classic group, or are removed from it.

v0: the API (KAFKA-2464)
v1: throttle_time_ms (KIP-124)
v2: the broker answers before it throttles (KIP-219)
v3: several members at once, static ones by their instance id (KIP-345)
v4: flexible (KIP-482)
v5: reason (KIP-800)
"""

from odradek.protocol.codec.schema import Request, Response, Struct, field, i16, i32, message, struct


@struct
class MemberResponse(Struct):
    member_id: str
    group_instance_id: str | None = None
    error_code: i16 = 0


@message(key=13, versions=(0, 5), flexible=4)
class LeaveGroupResponse(Response):
    throttle_time_ms: i32 = field(since=1, default=0)
    error_code: i16 = 0
    members: list[MemberResponse] = field(since=3, default_factory=list[MemberResponse])


@struct
class MemberIdentity(Struct):
    member_id: str
    group_instance_id: str | None = None
    reason: str | None = field(since=5, default=None)


@message(key=13, versions=(0, 5), flexible=4)
class LeaveGroupRequest(Request[LeaveGroupResponse]):
    group_id: str
    member_id: str = field(until=2, default="")
    members: list[MemberIdentity] = field(since=3, default_factory=list[MemberIdentity])
