"""DescribeAcls (key 29): the ACLs that a filter matches, by resource pattern (KIP-140).

Any broker answers, from the metadata that it knows. Without an authorizer SECURITY_DISABLED is answered, by which
MirrorMaker knows that there are no ACLs to copy.

Versions: 1 pattern types (KIP-290). 2 flexible. 3 the resource type USER (KIP-373).
"""

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import CLUSTER
from odradek.broker.handling.context import Call, Context
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)


async def handle(context: Context, call: Call, request: DescribeAclsRequest) -> DescribeAclsResponse:
    from odradek.broker.access.acl_filter import AclFilter
    from odradek.broker.handling.acl_changes import require_authorizer, require_known

    wanted = AclFilter(
        request.resource_type_filter,
        request.resource_name_filter,
        request.pattern_type_filter,
        request.principal_filter,
        request.host_filter,
        request.operation,
        request.permission_type,
    )
    require_known(call, has_unknown=wanted.has_unknown)
    context.require(call, Operation.DESCRIBE, CLUSTER)
    require_authorizer(context)
    resources: dict[tuple[int, str, int], DescribeAclsResource] = {}
    for binding in sorted(context.metadata.image.acls.values()):
        if not wanted.matches(binding):
            continue
        pattern = binding.kind, binding.name, binding.pattern
        if (resource := resources.get(pattern)) is None:
            resource = resources[pattern] = DescribeAclsResource(
                resource_type=binding.kind, resource_name=binding.name, pattern_type=binding.pattern, acls=[]
            )
        resource.acls.append(
            AclDescription(
                principal=binding.principal,
                host=binding.host,
                operation=binding.operation,
                permission_type=binding.permission,
            )
        )
    return DescribeAclsResponse(resources=list(resources.values()))


def fail(request: DescribeAclsRequest, code: ErrorCode) -> DescribeAclsResponse:
    del request
    return DescribeAclsResponse(error_code=code, error_message=code.text)
