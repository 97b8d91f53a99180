"""ListConfigResources (key 74): the names of what has, or may have, options of its own.

All topics, the brokers that are there, their loggers, and the groups that set something; clients' metrics have none
here. Without types all of these; a type that does not exist is UNSUPPORTED_VERSION, as in Kafka.

Versions: 0 clients' metrics alone (KIP-1000). 1 by type (KIP-1142).
"""

from collections.abc import Iterable, Mapping

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import CLUSTER
from odradek.broker.handling.context import Call, Context
from odradek.protocol.configs import ResourceType
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

TYPES_SINCE = 1


async def handle(context: Context, call: Call, request: ListConfigResourcesRequest) -> ListConfigResourcesResponse:
    context.require(call, Operation.DESCRIBE_CONFIGS, CLUSTER)
    image = context.metadata.image
    brokers = [str(broker_id) for broker_id in sorted(image.brokers)]
    names: Mapping[int, Iterable[str]] = {
        ResourceType.TOPIC: image.topics,
        ResourceType.BROKER: brokers,
        ResourceType.BROKER_LOGGER: brokers,
        ResourceType.CLIENT_METRICS: (),
        ResourceType.GROUP: image.group_configs,
    }
    asked = set(request.resource_types or names) if call.version >= TYPES_SINCE else {int(ResourceType.CLIENT_METRICS)}
    if unknown := asked - names.keys():
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"unknown resource types: {sorted(unknown)}")
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=kind)
            for kind, of_kind in names.items()
            if kind in asked
            for name in of_kind
        ]
    )


def fail(request: ListConfigResourcesRequest, code: ErrorCode) -> ListConfigResourcesResponse:
    del request
    return ListConfigResourcesResponse(error_code=code)
