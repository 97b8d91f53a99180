"""DeleteGroups (key 42): removes groups without members, with their offsets.

v0: the API (KIP-229)
v1: the broker answers before it throttles (KIP-219)
v2: flexible (KIP-482)
"""

from odradek.protocol.codec.schema import Request, Response, Struct, i16, i32, message, struct


@struct
class DeletableGroupResult(Struct):
    group_id: str
    error_code: i16 = 0


@message(key=42, versions=(0, 2), flexible=2)
class DeleteGroupsResponse(Response):
    throttle_time_ms: i32 = 0
    results: list[DeletableGroupResult]


@message(key=42, versions=(0, 2), flexible=2)
class DeleteGroupsRequest(Request[DeleteGroupsResponse]):
    groups_names: list[str]
