"""ElectLeaders (key 43): gives partitions their preferred leader, or those that nobody leads any leader (KIP-460).

For the controller, to which others send it on. Null for the partitions means all; of these the answer leaves out those
that need no election. An unclean election may lose what was acknowledged: it is refused where somebody leads.

Versions: 0 the preferred leader. 1 the election's type. 2 flexible.
"""

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import CLUSTER
from odradek.broker.cluster.keys import partition_key
from odradek.broker.cluster.partition_writes import PartitionWrite
from odradek.broker.handling.context import Call, Context
from odradek.broker.handling.forwarding import forward
from odradek.broker.handling.metadata_change import MetadataChange
from odradek.broker.handling.partition_plans import ElectionType, find, with_elected_leader
from odradek.protocol.errors import ErrorCode, KafkaError, code_of
from odradek.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)


async def handle(context: Context, call: Call, request: ElectLeadersRequest) -> ElectLeadersResponse:
    context.require(call, Operation.ALTER, CLUSTER)
    if (answer := await forward(context, call, request, request.timeout_ms)) is not None:
        return answer
    try:
        election = ElectionType(request.election_type)
    except ValueError:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"unknown election type {request.election_type}") from None
    changes = MetadataChange(context, call, request.timeout_ms)
    topics = context.metadata.image.topics
    if request.topic_partitions is None:
        asked = [(topic.name, list(range(len(topic.partitions)))) for _, topic in sorted(topics.items())]
    else:
        asked = [(topic.topic, topic.partitions) for topic in request.topic_partitions]
    results: list[ReplicaElectionResult] = []
    for topic, indexes in asked:
        partitions = [await _elect(context, call, changes, topic, index, election) for index in indexes]
        if request.topic_partitions is None:
            partitions = [each for each in partitions if code_of(each.error_code) is not ErrorCode.ELECTION_NOT_NEEDED]
        if partitions or request.topic_partitions is not None:
            results.append(ReplicaElectionResult(topic=topic, partition_result=partitions))
    return ElectLeadersResponse(replica_election_results=results)


async def _elect(
    context: Context, call: Call, changes: MetadataChange, topic: str, index: int, election: ElectionType
) -> PartitionResult:
    try:
        image = context.metadata.image
        after = with_elected_leader(image, topic, index, election)
        _, before = find(image, topic, index)
        change = PartitionWrite(partition_key(topic, index), before, after)
        await changes.apply(lambda: context.member.controller.change([change]))
    except KafkaError as error:
        return PartitionResult(partition_id=index, error_code=call.failed(error), error_message=error.message)
    return PartitionResult(partition_id=index)


def fail(request: ElectLeadersRequest, code: ErrorCode) -> ElectLeadersResponse:
    return ElectLeadersResponse(
        error_code=code,
        replica_election_results=[
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[PartitionResult(partition_id=index, error_code=code) for index in topic.partitions],
            )
            for topic in request.topic_partitions or []
        ],
    )
