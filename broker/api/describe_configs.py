"""DescribeConfigs (key 32): what counts for a topic, a group, this broker, or all brokers, and where it comes from.

A topic, a consumer group (there or not) and a broker answer every option, or those of `configuration_keys` (null or
none: all; unknown names are left out). The broker "" answers what was set for all brokers at run time only; the loggers
of this broker, their levels. Each resource has its own error; other types are not supported (INVALID_REQUEST).

Versions: 1 source and synonyms (KIP-226). 3 type and documentation (KIP-569). 4 flexible.
"""

from odradek.broker.access.operations import Operation
from odradek.broker.config.broker_config import ConfigEntry
from odradek.broker.handling.broker_loggers import describe_loggers
from odradek.broker.handling.config_resources import broker_of, require, topic_of, unsupported
from odradek.broker.handling.context import Call, Context
from odradek.protocol.configs import ResourceType
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)


async def handle(context: Context, call: Call, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    results: list[DescribeConfigsResult] = []
    for resource in request.resources:
        try:
            asked = resource.resource_type, resource.resource_name
            require(context, call, Operation.DESCRIBE_CONFIGS, asked)
            entries = _entries(context, resource)
        except KafkaError as error:
            results.append(_failed(resource, call.failed(error), error.message))
            continue
        results.append(
            DescribeConfigsResult(
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                configs=[_told(entry, request) for entry in entries],
            )
        )
    return DescribeConfigsResponse(results=results)


def _entries(context: Context, resource: DescribeConfigsResource) -> list[ConfigEntry]:
    """Raises KafkaError: INVALID_REQUEST, INVALID_TOPIC_EXCEPTION, UNKNOWN_TOPIC_OR_PARTITION."""
    names = frozenset(resource.configuration_keys) if resource.configuration_keys else None
    if resource.resource_type == ResourceType.TOPIC:
        return context.config.describe_topic(topic_of(context, resource.resource_name).configs, names)
    if resource.resource_type == ResourceType.BROKER:
        if broker_of(context, resource.resource_name) is None:
            return context.config.describe_default_broker(names)
        return context.config.describe_broker(names)
    if resource.resource_type == ResourceType.GROUP:
        if not resource.resource_name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
        overrides = context.metadata.image.configs_of_group(resource.resource_name)
        return context.config.describe_group(overrides, names)
    if resource.resource_type == ResourceType.BROKER_LOGGER:
        return describe_loggers(context, resource.resource_name, names)
    raise unsupported(resource.resource_type)


def _told(entry: ConfigEntry, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.is_read_only,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        synonyms=[
            DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
            for synonym in (entry.synonyms if request.include_synonyms else ())
        ],
        config_type=entry.type,
        documentation=entry.documentation if request.include_documentation else None,
    )


def _failed(resource: DescribeConfigsResource, code: ErrorCode, message: str) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[],
    )


def fail(request: DescribeConfigsRequest, code: ErrorCode) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(results=[_failed(resource, code, code.text) for resource in request.resources])
