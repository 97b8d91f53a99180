"""ListGroups (key 16): the groups that a broker coordinates, of any type.

v0: the API (KAFKA-2687)
v1: throttle_time_ms (KIP-124)
v2: the broker answers before it throttles (KIP-219)
v3: flexible (KIP-482)
v4: states_filter, group_state (KIP-518)
v5: types_filter, group_type (KIP-848)
"""

from odradek.protocol.codec.schema import Request, Response, Struct, field, i16, i32, message, struct


@struct
class ListedGroup(Struct):
    group_id: str
    protocol_type: str
    group_state: str = field(since=4, default="")
    group_type: str = field(since=5, default="")


@message(key=16, versions=(0, 5), flexible=3)
class ListGroupsResponse(Response):
    throttle_time_ms: i32 = field(since=1, default=0)
    error_code: i16 = 0
    groups: list[ListedGroup]


@message(key=16, versions=(0, 5), flexible=3)
class ListGroupsRequest(Request[ListGroupsResponse]):
    states_filter: list[str] = field(since=4, default_factory=list[str])
    types_filter: list[str] = field(since=5, default_factory=list[str])
