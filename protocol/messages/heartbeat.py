"""Heartbeat (key 12): a member of a classic group says that it lives, and hears of rebalances.

v0: the API (KAFKA-2464)
v1: throttle_time_ms (KIP-124)
v2: the broker answers before it throttles (KIP-219)
v3: group_instance_id (KIP-345)
v4: flexible (KIP-482)
"""

from odradek.protocol.codec.schema import Request, Response, field, i16, i32, message


@message(key=12, versions=(0, 4), flexible=4)
class HeartbeatResponse(Response):
    throttle_time_ms: i32 = field(since=1, default=0)
    error_code: i16 = 0


@message(key=12, versions=(0, 4), flexible=4)
class HeartbeatRequest(Request[HeartbeatResponse]):
    group_id: str
    generation_id: i32
    member_id: str
    group_instance_id: str | None = field(since=3, default=None)
