"""DescribeAcls (key 29): the ACLs that a filter matches, by resource pattern (KIP-140).

Resource types, pattern types, operations and permissions have Kafka's codes (ResourceType, PatternType, AclOperation,
AclPermissionType); 1 is ANY in a filter. A null name, principal or host matches every one.

v0: the API, which knows no pattern types
v1: pattern types (KIP-290)
v2: flexible (KIP-482)
v3: the resource type USER (KIP-373)
"""

from odradek.protocol.codec.schema import Request, Response, Struct, field, i8, i16, i32, message, struct

LITERAL = 3


@struct
class AclDescription(Struct):
    principal: str
    host: str
    operation: i8
    permission_type: i8


@struct
class DescribeAclsResource(Struct):
    resource_type: i8
    resource_name: str
    pattern_type: i8 = field(since=1, default=LITERAL)
    acls: list[AclDescription]


@message(key=29, versions=(0, 3), flexible=2)
class DescribeAclsResponse(Response):
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    resources: list[DescribeAclsResource] = field(default_factory=list[DescribeAclsResource])


@message(key=29, versions=(0, 3), flexible=2)
class DescribeAclsRequest(Request[DescribeAclsResponse]):
    resource_type_filter: i8
    resource_name_filter: str | None
    pattern_type_filter: i8 = field(since=1, default=LITERAL)
    principal_filter: str | None
    host_filter: str | None
    operation: i8
    permission_type: i8
