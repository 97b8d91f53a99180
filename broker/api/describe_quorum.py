"""DescribeQuorum (key 55): who decides for the cluster, and how far the others have followed (KIP-595).

Odradek has no quorum of its own: the metadata stands in a store (docs/decisions/008). The answer is what comes nearest:
the controller as leader and only voter, the revision of its key as the epoch, and the store's revision that this broker
has applied as the high watermark. The other brokers are observers, about whose progress nothing is known here.

Only partition 0 of `__cluster_metadata` may be asked for, as in Kafka.

The controller says, as Kafka's leader does, that it has fetched now: so others learn what time it is there.

Versions: 1 timestamps (KIP-836). 2 error messages, directory ids, nodes (KIP-853).
"""

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import CLUSTER
from odradek.broker.handling.context import Call, Context
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.describe_quorum import (
    METADATA_TOPIC,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    QuorumListener,
    QuorumNode,
    QuorumPartition,
    QuorumTopic,
    ReplicaState,
)

UNKNOWN = -1
EPOCH_MAX = 2**31 - 1


async def handle(context: Context, call: Call, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    # Brokers ask for the time of the controller, and need no more than what they replicate by.
    if not context.permits(call, Operation.CLUSTER_ACTION, CLUSTER, logs_refusal=False):
        context.require(call, Operation.DESCRIBE, CLUSTER)
    for topic in request.topics:
        if topic.topic_name != METADATA_TOPIC or [each.partition_index for each in topic.partitions] != [0]:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"only partition 0 of {METADATA_TOPIC} has a quorum")
    image, listener = context.metadata.image, call.caller.listener
    node_id = context.identity.node_id
    told_ms = context.environment.now_ms() if image.controller_id == node_id else UNKNOWN
    partition = QuorumPartition(
        partition_index=0,
        leader_id=image.controller_id,
        leader_epoch=image.controller_revision & EPOCH_MAX,
        high_watermark=image.revision,
        current_voters=[
            ReplicaState(
                replica_id=broker_id,
                log_end_offset=image.revision,
                last_fetch_timestamp=told_ms,
                last_caught_up_timestamp=told_ms,
            )
            for broker_id in image.brokers
            if broker_id == image.controller_id
        ],
        observers=[
            ReplicaState(replica_id=broker_id, log_end_offset=image.revision if broker_id == node_id else UNKNOWN)
            for broker_id in sorted(image.brokers)
            if broker_id != image.controller_id
        ],
    )
    return DescribeQuorumResponse(
        topics=[QuorumTopic(topic_name=METADATA_TOPIC, partitions=[partition])],
        nodes=[
            QuorumNode(node_id=broker_id, listeners=[QuorumListener(name=listener, host=host, port=port)])
            for broker_id, broker in sorted(image.brokers.items())
            if listener in broker.endpoints
            for host, port in (broker.endpoints[listener],)
        ],
    )


def fail(request: DescribeQuorumRequest, code: ErrorCode) -> DescribeQuorumResponse:
    del request
    return DescribeQuorumResponse(error_code=code, error_message=code.text, topics=[])
