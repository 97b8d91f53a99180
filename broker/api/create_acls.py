"""CreateAcls (key 30): adds ACLs; one that is there already is no mistake (KIP-140).

For the controller, to which others send it on. Each ACL has a result of its own: what is wrong with one keeps the
others from nothing. The answer comes when all brokers refuse and allow by what was added, or REQUEST_TIMED_OUT, and
then it is stored nevertheless. Without an authorizer SECURITY_DISABLED is answered.

Versions: 1 pattern types (KIP-290). 2 flexible. 3 the resource type USER (KIP-373).
"""

from functools import partial
from typing import TYPE_CHECKING

from odradek.broker.handling.context import Call, Context
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)

if TYPE_CHECKING:
    from odradek.broker.access.acl import AclCodes


async def handle(context: Context, call: Call, request: CreateAclsRequest) -> CreateAclsResponse:
    from odradek.broker.handling.acl_changes import decided_by_controller, require_known

    asked = [_codes(creation) for creation in request.creations]
    require_known(call, has_unknown=any(codes.has_unknown for codes in asked))
    decide = partial(_create, context, call, asked)
    return await decided_by_controller(context, call, request, decide, _error_code)


async def _create(context: Context, call: Call, asked: "list[AclCodes]", deadline_ms: float) -> CreateAclsResponse:
    """Raises KafkaError NOT_CONTROLLER."""
    from odradek.broker.access.acl import AclBinding, binding_of
    from odradek.broker.cluster.acls import acl_hash, add_acls
    from odradek.broker.handling.acl_changes import carry_out, spread

    results: list[AclCreationResult] = []
    bindings: list[AclBinding] = []
    good: list[AclCreationResult] = []
    for codes in asked:
        result = AclCreationResult()
        results.append(result)
        try:
            bindings.append(binding_of(codes))
            good.append(result)
        except KafkaError as error:
            result.error_code, result.error_message = call.failed(error), error.message
    image = context.metadata.image
    new = [each for each in dict.fromkeys(bindings) if acl_hash(each) not in image.acls]
    try:
        if bindings:
            await carry_out(context, call, deadline_ms, add_acls if new else None, "created", new)
            await spread(context, call, deadline_ms)
    except KafkaError as error:
        if error.code is ErrorCode.NOT_CONTROLLER:
            raise
        for result in good:
            result.error_code, result.error_message = call.failed(error), error.message
    return CreateAclsResponse(results=results)


def _codes(creation: AclCreation) -> "AclCodes":
    from odradek.broker.access.acl import AclCodes

    return AclCodes(
        creation.resource_type,
        creation.resource_name,
        creation.resource_pattern_type,
        creation.principal,
        creation.host,
        creation.operation,
        creation.permission_type,
    )


def _error_code(response: CreateAclsResponse) -> int:
    """NOT_CONTROLLER stands in all results, or in none."""
    return next((result.error_code for result in response.results), ErrorCode.NONE)


def fail(request: CreateAclsRequest, code: ErrorCode) -> CreateAclsResponse:
    return CreateAclsResponse(
        results=[AclCreationResult(error_code=code, error_message=code.text) for _ in request.creations]
    )
