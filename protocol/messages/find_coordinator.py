"""FindCoordinator (key 10): which broker coordinates a group or a transactional id.

key_type: 0 group, 1 transaction, 2 share.

v0: groups
v1: key_type, throttle_time_ms, error_message (KIP-98, KIP-124)
v2: the broker answers before it throttles (KIP-219)
v3: flexible (KIP-482)
v4: several keys at once (KIP-699)
v5: TRANSACTION_ABORTABLE may be answered (KIP-890)
v6: share groups (KIP-932)
"""

from odradek.protocol.codec.schema import Request, Response, Struct, field, i8, i16, i32, message, struct


@struct
class Coordinator(Struct):
    key: str
    node_id: i32
    host: str
    port: i32
    error_code: i16 = 0
    error_message: str | None = None


@message(key=10, versions=(0, 6), flexible=3)
class FindCoordinatorResponse(Response):
    throttle_time_ms: i32 = field(since=1, default=0)
    error_code: i16 = field(until=3, default=0)
    error_message: str | None = field(since=1, until=3, default=None)
    node_id: i32 = field(until=3, default=0)
    host: str = field(until=3, default="")
    port: i32 = field(until=3, default=0)
    coordinators: list[Coordinator] = field(since=4, default_factory=list[Coordinator])


@message(key=10, versions=(0, 6), flexible=3)
class FindCoordinatorRequest(Request[FindCoordinatorResponse]):
    key: str = field(until=3, default="")
    key_type: i8 = field(since=1, default=0)
    coordinator_keys: list[str] = field(since=4, default_factory=list[str])
