"""IncrementalAlterConfigs (key 44): set, delete, append to or subtract from single options (KIP-339).

All operations on one resource happen, or none does and the resource answers why. The others of the request are not
concerned. A change counts when the answer is out. `validate_only` checks everything and changes nothing. A broker's
option of an unknown name is stored, without effect; a topic's or a group's is refused (INVALID_CONFIG). Log levels of
this broker count until it ends.

Versions: 1 flexible.
"""

from functools import partial

from odradek.broker.access.operations import Operation
from odradek.broker.config.alterations import Alteration, alter_broker, alter_group, alter_topic, check_operations
from odradek.broker.config.topic_options import TOPIC_OPTIONS
from odradek.broker.handling.broker_loggers import alter_loggers
from odradek.broker.handling.config_resources import (
    broker_of,
    change_broker,
    change_group,
    change_topic,
    repeated,
    require,
    unsupported,
)
from odradek.broker.handling.context import Call, Context
from odradek.broker.handling.metadata_change import MetadataChange
from odradek.protocol.configs import ResourceType
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

TIMEOUT_MS = 30_000
"""The request has none of its own; this is Kafka's default for a request."""


async def handle(
    context: Context, call: Call, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    changes = MetadataChange(context, call, TIMEOUT_MS)
    errors = repeated([(resource.resource_type, resource.resource_name) for resource in request.resources])
    responses: list[AlterConfigsResourceResponse] = []
    for resource in request.resources:
        response = AlterConfigsResourceResponse(
            resource_type=resource.resource_type, resource_name=resource.resource_name
        )
        responses.append(response)
        try:
            asked = resource.resource_type, resource.resource_name
            if (error := errors.get(asked)) is not None:
                raise error
            require(context, call, Operation.ALTER_CONFIGS, asked)
            await _alter(context, changes, resource, request.validate_only)
        except KafkaError as error:
            response.error_code = call.failed(error)
            response.error_message = error.message
    return IncrementalAlterConfigsResponse(responses=responses)


async def _alter(
    context: Context, changes: MetadataChange, resource: AlterConfigsResource, validate_only: bool
) -> None:
    """Raises KafkaError."""
    name = resource.resource_name
    alterations = [Alteration(config.name, config.config_operation, config.value) for config in resource.configs]
    if resource.resource_type == ResourceType.TOPIC:
        check_operations(alterations, TOPIC_OPTIONS)
        change = partial(alter_topic, alterations=alterations)
        await change_topic(context, changes, name, change, validate_only=validate_only)
    elif resource.resource_type == ResourceType.BROKER:
        broker_id = broker_of(context, name)
        change = partial(alter_broker, alterations=alterations, per_broker=broker_id is not None)
        await change_broker(context, changes, broker_id, change, validate_only=validate_only)
    elif resource.resource_type == ResourceType.GROUP:
        change = partial(alter_group, alterations=alterations)
        await change_group(context, changes, name, change, validate_only=validate_only)
    elif resource.resource_type == ResourceType.BROKER_LOGGER:
        alter_loggers(context, name, alterations, validate_only=validate_only)
    else:
        raise unsupported(resource.resource_type)


def fail(request: IncrementalAlterConfigsRequest, code: ErrorCode) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                error_code=code,
                error_message=code.text,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource in request.resources
        ]
    )
