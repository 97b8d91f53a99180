"""ListGroups (key 16): the groups that this broker coordinates. It waits for nothing, and may name what is not
committed yet; a partition that is being loaded is COORDINATOR_LOAD_IN_PROGRESS for the whole answer, as in Kafka.

However many there are, the loop has a turn after each shard.

Versions: 3 flexible. 4 states (KIP-518). 5 types (KIP-848).
"""

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import CLUSTER, of_group
from odradek.broker.coordinator.shard import ShardState
from odradek.broker.group.group import Group
from odradek.broker.handling.context import Call, Context
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from odradek.runtime.tasks import breathe

GROUPS_TOGETHER = 1000
"""So many are looked at before the loop has a turn."""


async def handle(context: Context, call: Call, request: ListGroupsRequest) -> ListGroupsResponse:
    sees_all = context.permits(call, Operation.DESCRIBE, CLUSTER, logs_refusal=False)
    states = {state.strip().lower() for state in request.states_filter}
    kinds = {kind.lower() for kind in request.types_filter}
    response = ListGroupsResponse(groups=[])
    looked_at = 0
    for shard in tuple(context.groups.all):
        if shard.state is ShardState.LOADING:
            response.error_code = call.failed(KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
            response.groups.clear()
            break
        if shard.state is not ShardState.ACTIVE:
            continue
        for group in tuple(shard.machine.groups.values()):
            looked_at += 1
            if looked_at % GROUPS_TOGETHER == 0:
                await breathe()
            if (states and group.state_name.lower() not in states) or (kinds and group.kind.value not in kinds):
                continue
            if sees_all or _may_see(context, call, group.group_id):
                response.groups.append(_listed(group))
    return response


def _may_see(context: Context, call: Call, group_id: str) -> bool:
    return context.permits(call, Operation.DESCRIBE, of_group(group_id), logs_refusal=False)


def _listed(group: Group) -> ListedGroup:
    return ListedGroup(
        group_id=group.group_id,
        protocol_type=group.protocol_type or "",
        group_state=group.state_name,
        group_type=group.kind.value,
    )


def fail(request: ListGroupsRequest, code: ErrorCode) -> ListGroupsResponse:
    del request
    return ListGroupsResponse(error_code=code, groups=[])
