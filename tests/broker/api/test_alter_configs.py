"""AlterConfigs replaces everything that is set for a resource; what the request leaves out goes back to its default."""

import pytest

from odradek.broker.handling.context import Context
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
)
from tests.broker.support import ask, make_topic, running_broker

TOPIC, BROKER, BROKER_LOGGER, GROUP = 2, 4, 8, 32


def resource(kind: int, name: str, *values: tuple[str, str | None]) -> AlterConfigsResource:
    return AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[AlterableConfig(name=option, value=value) for option, value in values],
    )


async def replaced(
    context: Context, *resources: AlterConfigsResource, version: int = 2, validate_only: bool = False
) -> list[AlterConfigsResourceResponse]:
    request = AlterConfigsRequest(resources=list(resources), validate_only=validate_only)
    answer = await ask(context, request, version)
    assert [(each.resource_type, each.resource_name) for each in answer.responses] == [
        (each.resource_type, each.resource_name) for each in resources
    ]
    return answer.responses


def stored(context: Context) -> dict[str, str]:
    return dict(context.metadata.image.topic_configs("orders"))


@pytest.mark.parametrize("version", range(3))
async def test_all_options_of_a_topic_are_replaced(version: int) -> None:
    async with running_broker() as context:
        await make_topic(context, "orders", configs={"retention.ms": "1", "segment.ms": "2"})
        (response,) = await replaced(context, resource(TOPIC, "orders", ("max.message.bytes", "5000")), version=version)
        assert stored(context) == {"max.message.bytes": "5000"}
        assert context.partitions.leader("orders", 0).config.max_message_bytes == 5000
        await replaced(context, resource(TOPIC, "orders"), version=version)
        assert stored(context) == {}
        assert context.partitions.leader("orders", 0).config.max_message_bytes == 1048588
    assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)


async def test_all_dynamic_options_of_a_broker_are_replaced() -> None:
    async with running_broker() as context:
        await replaced(context, resource(BROKER, "0", ("message.max.bytes", "3000"), ("max.connections", "9")))
        await replaced(context, resource(BROKER, "", ("message.max.bytes", "2000")))
        assert (context.config.message_max_bytes, context.config.max_connections) == (3000, 9)
        await replaced(context, resource(BROKER, "0", ("max.connections", "8")))
        assert (context.config.message_max_bytes, context.config.max_connections) == (2000, 8)


@pytest.mark.parametrize(
    ("kind", "name", "values", "code", "reason"),
    [
        (TOPIC, "orders", [("nosuch", "1")], ErrorCode.INVALID_CONFIG, "Unknown topic config name: nosuch"),
        (TOPIC, "orders", [("segment.ms", "x")], ErrorCode.INVALID_CONFIG, "Invalid value x"),
        (TOPIC, "orders", [("segment.ms", None)], ErrorCode.INVALID_REQUEST, "Null value not supported"),
        (TOPIC, "orders", [("segment.ms", "1"), ("segment.ms", "2")], ErrorCode.INVALID_REQUEST, "duplicate"),
        (TOPIC, "nowhere", [], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "does not exist"),
        (TOPIC, "nowhere", [("nosuch", "1")], ErrorCode.INVALID_CONFIG, "Unknown topic config name: nosuch"),
        (TOPIC, "a/b", [("nosuch", "1")], ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic name is invalid"),
        (TOPIC, "", [], ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed."),
        (BROKER, "7", [], ErrorCode.INVALID_REQUEST, "Unexpected broker id"),
        (BROKER, "0", [("num.partitions", "4")], ErrorCode.INVALID_REQUEST, "Cannot update these configs"),
        (BROKER, "0", [("message.max.bytes", "x")], ErrorCode.INVALID_CONFIG, "Invalid value x"),
        (BROKER_LOGGER, "0", [], ErrorCode.INVALID_REQUEST, "BROKER_LOGGER are not supported"),
        (3, "x", [], ErrorCode.INVALID_REQUEST, "Unknown resource type 3"),
    ],
)
async def test_what_is_refused_changes_nothing(
    kind: int, name: str, values: list[tuple[str, str | None]], code: ErrorCode, reason: str
) -> None:
    async with running_broker() as context:
        await make_topic(context, "orders", configs={"retention.ms": "1"})
        (response,) = await replaced(context, resource(kind, name, *values))
        assert stored(context) == {"retention.ms": "1"}
        assert context.metadata.image.broker_configs == {}
    assert response.error_code == code
    assert reason in (response.error_message or "")


async def test_the_same_resource_twice_is_refused_each_time() -> None:
    async with running_broker() as context:
        await make_topic(context, "orders", configs={"retention.ms": "1"})
        responses = await replaced(context, resource(TOPIC, "orders"), resource(TOPIC, "orders"))
        assert stored(context) == {"retention.ms": "1"}
    assert [response.error_code for response in responses] == [ErrorCode.INVALID_REQUEST] * 2


async def test_validate_only_checks_and_changes_nothing() -> None:
    async with running_broker() as context:
        await make_topic(context, "orders", configs={"retention.ms": "1"})
        responses = await replaced(
            context, resource(TOPIC, "orders"), resource(BROKER, "0", ("max.connections", "9")), validate_only=True
        )
        assert stored(context) == {"retention.ms": "1"}
        assert context.metadata.image.broker_configs == {}
    assert [response.error_code for response in responses] == [ErrorCode.NONE] * 2


async def test_all_options_of_a_group_are_replaced() -> None:
    session, heartbeat = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
    async with running_broker() as context:
        for values in ({session: "50000"}, {heartbeat: "6000"}, {}):
            (response,) = await replaced(context, resource(GROUP, "billing", *values.items()))
            assert response.error_code == ErrorCode.NONE
            assert context.metadata.image.configs_of_group("billing") == values
        for group_id, option in (("", (session, "50000")), ("billing", (session, "1")), ("billing", (session, None))):
            (response,) = await replaced(context, resource(GROUP, group_id, option))
            assert response.error_code in (ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_CONFIG)
        assert context.metadata.image.group_configs == {}
