"""DescribeCluster (key 60): id, brokers and controller of the cluster (KIP-700), addresses as this listener has them.

Fenced is a broker that was registered once, is not there, and was not unregistered: with the address that it had.

Versions: 1 endpoint type (KIP-919): this is an endpoint of brokers, and answers whoever looks for controllers so.
2 fenced brokers, where they are asked for (KIP-1073).
"""

from odradek.broker.access.operations import NOT_ASKED
from odradek.broker.handling.client_view import cluster_operations, controller_for, fenced_nodes, usable_brokers
from odradek.broker.handling.context import Call, Context
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS = 1
CONTROLLERS = 2


async def handle(context: Context, call: Call, request: DescribeClusterRequest) -> DescribeClusterResponse:
    try:
        _check_endpoint_type(request.endpoint_type)
    except KafkaError as error:
        return _failed(call.failed(error), error.message)
    image, listener = context.metadata.image, call.caller.listener
    wants_operations = request.include_cluster_authorized_operations
    brokers: list[DescribeClusterBroker] = []
    for broker in usable_brokers(image, listener):
        host, port = broker.endpoints[listener]
        brokers.append(DescribeClusterBroker(broker_id=broker.broker_id, host=host, port=port, rack=broker.rack))
    if request.include_fenced_brokers:
        brokers += [
            DescribeClusterBroker(broker_id=broker_id, host=host, port=port, rack=node.rack, is_fenced=True)
            for broker_id, node in fenced_nodes(image, listener)
            for host, port in (node.endpoints[listener],)
        ]
    return DescribeClusterResponse(
        cluster_id=context.identity.cluster_id,
        controller_id=controller_for(image, listener),
        brokers=brokers,
        cluster_authorized_operations=cluster_operations(context, call) if wants_operations else NOT_ASKED,
    )


def _check_endpoint_type(endpoint_type: int) -> None:
    """Raises KafkaError: MISMATCHED_ENDPOINT_TYPE, UNSUPPORTED_ENDPOINT_TYPE. Version 0 always means brokers."""
    if endpoint_type == CONTROLLERS:
        raise KafkaError(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE, "this endpoint is one of brokers; the request looks for controllers"
        )
    if endpoint_type != BROKERS:
        raise KafkaError(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {endpoint_type}")


def _failed(code: ErrorCode, message: str) -> DescribeClusterResponse:
    return DescribeClusterResponse(error_code=code, error_message=message, cluster_id="", brokers=[])


def fail(request: DescribeClusterRequest, code: ErrorCode) -> DescribeClusterResponse:
    del request
    return _failed(code, code.text)
