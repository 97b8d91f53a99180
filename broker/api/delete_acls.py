"""DeleteAcls (key 31): deletes the ACLs that filters match, and answers which these were (KIP-140).

For the controller, to which others send it on. The answer comes when no broker allows or refuses by what was deleted
any more, or REQUEST_TIMED_OUT, and then it is gone from the store nevertheless. Whoever repeats the request then is
told that there is nothing to delete, when that counts everywhere. Without an authorizer SECURITY_DISABLED is answered.

Versions: 1 pattern types (KIP-290). 2 flexible. 3 the resource type USER (KIP-373).
"""

from functools import partial
from typing import TYPE_CHECKING

from odradek.broker.handling.context import Call, Context
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)

if TYPE_CHECKING:
    from odradek.broker.access.acl import AclBinding
    from odradek.broker.access.acl_filter import AclFilter


async def handle(context: Context, call: Call, request: DeleteAclsRequest) -> DeleteAclsResponse:
    from odradek.broker.handling.acl_changes import decided_by_controller, require_known

    filters = [_filter(each) for each in request.filters]
    require_known(call, has_unknown=any(each.has_unknown for each in filters))
    decide = partial(_delete, context, call, filters)
    return await decided_by_controller(context, call, request, decide, _error_code)


async def _delete(context: Context, call: Call, filters: "list[AclFilter]", deadline_ms: float) -> DeleteAclsResponse:
    """Raises KafkaError NOT_CONTROLLER."""
    from odradek.broker.cluster.acls import remove_acls
    from odradek.broker.handling.acl_changes import carry_out, spread

    image = context.metadata.image
    results: list[DeleteAclsFilterResult] = []
    found: dict[AclBinding, None] = {}
    for each in filters:
        try:
            each.require_known()
            matching = [binding for binding in image.acls.values() if each.matches(binding)]
            found |= dict.fromkeys(matching)
            results.append(DeleteAclsFilterResult(matching_acls=[_told(binding) for binding in matching]))
        except KafkaError as error:
            results.append(DeleteAclsFilterResult(error_code=call.failed(error), error_message=error.message))
    try:
        await carry_out(context, call, deadline_ms, remove_acls if found else None, "deleted", found)
        await spread(context, call, deadline_ms)
    except KafkaError as error:
        if error.code is ErrorCode.NOT_CONTROLLER:
            raise
        failed = DeleteAclsFilterResult(error_code=call.failed(error), error_message=error.message)
        results = [each if each.error_code else failed for each in results]
    return DeleteAclsResponse(filter_results=results)


def _filter(asked: DeleteAclsFilter) -> "AclFilter":
    from odradek.broker.access.acl_filter import AclFilter

    return AclFilter(
        asked.resource_type_filter,
        asked.resource_name_filter,
        asked.pattern_type_filter,
        asked.principal_filter,
        asked.host_filter,
        asked.operation,
        asked.permission_type,
    )


def _told(binding: "AclBinding") -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        resource_type=binding.kind,
        resource_name=binding.name,
        pattern_type=binding.pattern,
        principal=binding.principal,
        host=binding.host,
        operation=binding.operation,
        permission_type=binding.permission,
    )


def _error_code(response: DeleteAclsResponse) -> int:
    """NOT_CONTROLLER stands in all results, or in none."""
    return next((result.error_code for result in response.filter_results), ErrorCode.NONE)


def fail(request: DeleteAclsRequest, code: ErrorCode) -> DeleteAclsResponse:
    return DeleteAclsResponse(
        filter_results=[DeleteAclsFilterResult(error_code=code, error_message=code.text) for _ in request.filters]
    )
