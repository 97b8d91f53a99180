"""AlterPartitionReassignments (key 45): gives partitions other replicas, or cancels that (KIP-455).

For the controller, to which others send it on. Each partition has its own error, and is changed or not by itself. The
answer says that the move has begun: it is over (ListPartitionReassignments) when those that are added are in sync and,
where fewer are added than removed, all of the target; and when without those that are removed no fewer are in sync than
`min.insync.replicas`, unless that was so before. A cancellation that would leave fewer is refused.

Versions: 1 whether the number of replicas may change (KIP-860).
"""

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import CLUSTER
from odradek.broker.handling.context import Call, Context
from odradek.broker.handling.forwarding import forward
from odradek.broker.handling.metadata_change import MetadataChange
from odradek.broker.handling.partition_plans import reassign
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)


async def handle(
    context: Context, call: Call, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    context.require(call, Operation.ALTER, CLUSTER)
    if (answer := await forward(context, call, request, request.timeout_ms)) is not None:
        return answer
    changes = MetadataChange(context, call, request.timeout_ms)
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        responses=[
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    await _reassign(context, call, changes, topic.name, partition, request)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


async def _reassign(
    context: Context,
    call: Call,
    changes: MetadataChange,
    topic: str,
    wanted: ReassignablePartition,
    request: AlterPartitionReassignmentsRequest,
) -> ReassignablePartitionResponse:
    index = wanted.partition_index
    try:
        may_change_count = request.allow_replication_factor_change
        await reassign(context, changes, topic, index, wanted.replicas, may_change_count=may_change_count)
    except KafkaError as error:
        return ReassignablePartitionResponse(
            partition_index=index, error_code=call.failed(error), error_message=error.message
        )
    return ReassignablePartitionResponse(partition_index=index)


def fail(request: AlterPartitionReassignmentsRequest, code: ErrorCode) -> AlterPartitionReassignmentsResponse:
    """Every partition says so, too."""
    return AlterPartitionReassignmentsResponse(
        error_code=code,
        error_message=code.text,
        responses=[
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    ReassignablePartitionResponse(
                        partition_index=each.partition_index, error_code=code, error_message=code.text
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )
