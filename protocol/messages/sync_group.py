"""SyncGroup (key 14): the leader of a classic group hands in the assignment, and each member gets its own.

v0: the API (KAFKA-2464)
v1: throttle_time_ms (KIP-124)
v2: the broker answers before it throttles (KIP-219)
v3: group_instance_id (KIP-345)
v4: flexible (KIP-482)
v5: protocol_type and protocol_name, which must be those of the group (KIP-559)
"""

from odradek.protocol.codec.schema import Request, Response, Struct, field, i16, i32, message, struct


@message(key=14, versions=(0, 5), flexible=4)
class SyncGroupResponse(Response):
    throttle_time_ms: i32 = field(since=1, default=0)
    error_code: i16 = 0
    protocol_type: str | None = field(since=5, default=None)
    protocol_name: str | None = field(since=5, default=None)
    assignment: bytes = b""


@struct
class SyncGroupRequestAssignment(Struct):
    member_id: str
    assignment: bytes


@message(key=14, versions=(0, 5), flexible=4)
class SyncGroupRequest(Request[SyncGroupResponse]):
    group_id: str
    generation_id: i32
    member_id: str
    group_instance_id: str | None = field(since=3, default=None)
    protocol_type: str | None = field(since=5, default=None)
    protocol_name: str | None = field(since=5, default=None)
    assignments: list[SyncGroupRequestAssignment]
