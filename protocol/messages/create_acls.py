"""CreateAcls (key 30): adds ACLs; one that exists already is no mistake (KIP-140).

v0: the API, which knows no pattern types
v1: pattern types (KIP-290)
v2: flexible (KIP-482)
v3: the resource type USER (KIP-373)
"""

from odradek.protocol.codec.schema import Request, Response, Struct, field, i8, i16, i32, message, struct

LITERAL = 3


@struct
class AclCreationResult(Struct):
    error_code: i16 = 0
    error_message: str | None = None


@message(key=30, versions=(0, 3), flexible=2)
class CreateAclsResponse(Response):
    throttle_time_ms: i32 = 0
    results: list[AclCreationResult]


@struct
class AclCreation(Struct):
    resource_type: i8
    resource_name: str
    resource_pattern_type: i8 = field(since=1, default=LITERAL)
    principal: str
    host: str
    operation: i8
    permission_type: i8


@message(key=30, versions=(0, 3), flexible=2)
class CreateAclsRequest(Request[CreateAclsResponse]):
    creations: list[AclCreation]
