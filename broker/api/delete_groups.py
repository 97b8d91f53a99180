"""DeleteGroups (key 42): removes groups without members, with their offsets. Each is answered for itself.

Versions: 2 flexible.
"""

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import of_group
from odradek.broker.handling.context import Call, Context
from odradek.broker.handling.group_requests import tell_group
from odradek.broker.handling.large_requests import Steps
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse


async def handle(context: Context, call: Call, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
    results: list[DeletableGroupResult] = []
    steps = Steps(call)
    for group_id in dict.fromkeys(request.groups_names):
        await steps.step()
        result = DeletableGroupResult(group_id=group_id)
        results.append(result)
        try:
            context.require(call, Operation.DELETE, of_group(group_id))
            await _delete(context, call, group_id)
        except KafkaError as error:
            result.error_code = call.failed(error)
    return DeleteGroupsResponse(results=results)


async def _delete(context: Context, call: Call, group_id: str) -> None:
    await tell_group(context, call, group_id, lambda machine, waiting, now: machine.delete(group_id, waiting, now))


def fail(request: DeleteGroupsRequest, code: ErrorCode) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        results=[DeletableGroupResult(group_id=group_id, error_code=code) for group_id in request.groups_names]
    )
