"""DeleteAcls (key 31): deletes the ACLs that filters match, and answers which these were (KIP-140).

Filters are those of DescribeAcls.

v0: the API, which knows no pattern types
v1: pattern types (KIP-290)
v2: flexible (KIP-482)
v3: the resource type USER (KIP-373)
"""

from odradek.protocol.codec.schema import Request, Response, Struct, field, i8, i16, i32, message, struct

LITERAL = 3


@struct
class DeleteAclsMatchingAcl(Struct):
    error_code: i16 = 0
    error_message: str | None = None
    resource_type: i8
    resource_name: str
    pattern_type: i8 = field(since=1, default=LITERAL)
    principal: str
    host: str
    operation: i8
    permission_type: i8


@struct
class DeleteAclsFilterResult(Struct):
    error_code: i16 = 0
    error_message: str | None = None
    matching_acls: list[DeleteAclsMatchingAcl] = field(default_factory=list[DeleteAclsMatchingAcl])


@message(key=31, versions=(0, 3), flexible=2)
class DeleteAclsResponse(Response):
    throttle_time_ms: i32 = 0
    filter_results: list[DeleteAclsFilterResult]


@struct
class DeleteAclsFilter(Struct):
    resource_type_filter: i8
    resource_name_filter: str | None
    pattern_type_filter: i8 = field(since=1, default=LITERAL)
    principal_filter: str | None
    host_filter: str | None
    operation: i8
    permission_type: i8


@message(key=31, versions=(0, 3), flexible=2)
class DeleteAclsRequest(Request[DeleteAclsResponse]):
    filters: list[DeleteAclsFilter]
