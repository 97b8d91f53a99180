"""BrokerHeartbeat (key 63): a broker tells the controller that it lives, or wants to be fenced or shut down (KIP-631).

v0: the API, flexible
v1: offline_log_dirs (KIP-858)
v2: cordoned_log_dirs (KIP-1066)
"""

from odradek.protocol.codec.schema import Request, Response, field, i16, i32, i64, message, uuid


@message(key=63, versions=(0, 2), flexible=0)
class BrokerHeartbeatResponse(Response):
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    is_caught_up: bool = False
    is_fenced: bool = True
    should_shut_down: bool = False


@message(key=63, versions=(0, 2), flexible=0)
class BrokerHeartbeatRequest(Request[BrokerHeartbeatResponse]):
    broker_id: i32
    broker_epoch: i64 = -1
    current_metadata_offset: i64
    want_fence: bool = False
    want_shut_down: bool = False
    offline_log_dirs: list[uuid] = field(since=1, tag=0, default_factory=list[uuid])
    cordoned_log_dirs: list[uuid] | None = field(since=2, tag=1, default=None)
