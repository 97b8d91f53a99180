"""AlterConfigs (key 33): replace all options that are set for a topic, a group or a broker (KIP-133).

What the request does not name goes back to its default; that is why IncrementalAlterConfigs took its place (KIP-339).
Otherwise it is like that one.

Versions: 2 flexible.
"""

from odradek.broker.access.operations import Operation
from odradek.broker.config.alterations import new_group_overrides, new_topic_overrides, replace_broker
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
from odradek.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

TIMEOUT_MS = 30_000
"""The request has none of its own; this is Kafka's default for a request."""


async def handle(context: Context, call: Call, request: AlterConfigsRequest) -> AlterConfigsResponse:
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
            await _replace(context, changes, resource, request.validate_only)
        except KafkaError as error:
            response.error_code = call.failed(error)
            response.error_message = error.message
    return AlterConfigsResponse(responses=responses)


async def _replace(
    context: Context, changes: MetadataChange, resource: AlterConfigsResource, validate_only: bool
) -> None:
    """Raises KafkaError."""
    name = resource.resource_name
    values = _values(resource)
    if resource.resource_type == ResourceType.TOPIC:
        await change_topic(context, changes, name, lambda _: new_topic_overrides(values), validate_only=validate_only)
    elif resource.resource_type == ResourceType.BROKER:
        broker_id = broker_of(context, name)
        overrides = replace_broker(values, per_broker=broker_id is not None)
        await change_broker(context, changes, broker_id, lambda _: overrides, validate_only=validate_only)
    elif resource.resource_type == ResourceType.GROUP:
        await change_group(context, changes, name, lambda _: new_group_overrides(values), validate_only=validate_only)
    else:
        raise unsupported(resource.resource_type)


def _values(resource: AlterConfigsResource) -> dict[str, str | None]:
    """Raises KafkaError INVALID_REQUEST."""
    values = {config.name: config.value for config in resource.configs}
    if len(values) != len(resource.configs):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    nulls = [name for name, value in values.items() if value is None]
    if nulls:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(nulls)}")
    return values


def fail(request: AlterConfigsRequest, code: ErrorCode) -> AlterConfigsResponse:
    return AlterConfigsResponse(
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
