"""DescribeConfigs: what counts and where it comes from, for topics, this broker and all brokers."""

import pytest

from odradek.broker.handling.context import Context
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
)
from tests.broker.support import ask, make_topic, running_broker

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
DYNAMIC_TOPIC, DYNAMIC_BROKER, DYNAMIC_DEFAULT, STATIC, DEFAULT = 1, 2, 3, 4, 5
INT, LONG, LIST = 3, 5, 7


async def described(
    context: Context,
    *resources: tuple[int, str],
    keys: list[str] | None = None,
    version: int = 4,
    synonyms: bool = False,
    documentation: bool = False,
) -> list[DescribeConfigsResult]:
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
            for kind, name in resources
        ],
        include_synonyms=synonyms,
        include_documentation=documentation,
    )
    answer = await ask(context, request, version)
    assert [(each.resource_type, each.resource_name) for each in answer.results] == list(resources)
    return answer.results


def entry(result: DescribeConfigsResult, name: str) -> DescribeConfigsResourceResult:
    (found,) = [config for config in result.configs if config.name == name]
    return found


@pytest.mark.parametrize("version", range(1, 5))
async def test_a_topics_options_with_their_sources(version: int) -> None:
    async with running_broker({"log.segment.bytes": "2000000"}) as context:
        await make_topic(context, "orders", configs={"retention.ms": "60000"})
        (result,) = await described(context, (TOPIC, "orders"), version=version)
    assert (result.error_code, result.error_message) == (ErrorCode.NONE, None)
    own, inherited, default = (entry(result, name) for name in ("retention.ms", "segment.bytes", "flush.ms"))
    assert (own.value, own.config_source, own.read_only, own.is_sensitive) == ("60000", DYNAMIC_TOPIC, False, False)
    assert (inherited.value, inherited.config_source) == ("2000000", STATIC)
    assert (default.value, default.config_source) == ("9223372036854775807", DEFAULT)
    assert own.synonyms == []
    assert own.config_type == (LONG if version >= 3 else 0)
    assert own.documentation is None
    names = [config.name for config in result.configs]
    assert names == sorted(names)
    assert "cleanup.policy" in names


async def test_synonyms_stand_in_the_order_in_which_they_count() -> None:
    async with running_broker({"log.segment.bytes": "2000000"}) as context:
        await make_topic(context, "orders", configs={"segment.bytes": "3000000"})
        (result,) = await described(context, (TOPIC, "orders"), keys=["segment.bytes"], synonyms=True)
    (config,) = result.configs
    assert [(synonym.name, synonym.value, synonym.source) for synonym in config.synonyms] == [
        ("segment.bytes", "3000000", DYNAMIC_TOPIC),
        ("log.segment.bytes", "2000000", STATIC),
        ("log.segment.bytes", "1073741824", DEFAULT),
    ]


@pytest.mark.parametrize("version", range(1, 5))
async def test_type_and_documentation_are_answered_since_version_3(version: int) -> None:
    async with running_broker() as context:
        await make_topic(context, "orders")
        (result,) = await described(
            context, (TOPIC, "orders"), keys=["cleanup.policy"], version=version, documentation=True
        )
    (config,) = result.configs
    assert config.config_type == (LIST if version >= 3 else 0)
    assert bool(config.documentation) == (version >= 3)


async def test_keys_choose_and_unknown_ones_are_left_out() -> None:
    async with running_broker() as context:
        await make_topic(context, "orders")
        (some,) = await described(context, (TOPIC, "orders"), keys=["retention.ms", "nosuch", "segment.bytes"])
        (none,) = await described(context, (TOPIC, "orders"), keys=["nosuch"])
        (empty,) = await described(context, (TOPIC, "orders"), keys=[])
        (null,) = await described(context, (TOPIC, "orders"), keys=None)
    assert sorted(config.name for config in some.configs) == ["retention.ms", "segment.bytes"]
    assert none.configs == []
    assert empty.configs == null.configs
    assert len(null.configs) > 20


async def test_this_broker_and_what_is_set_for_all() -> None:
    async with running_broker({"num.partitions": "3"}) as context:
        broker, everybody = await described(context, (BROKER, "0"), (BROKER, ""))
    config = entry(broker, "num.partitions")
    assert (config.value, config.config_source, config.read_only, config.config_type) == ("3", STATIC, True, INT)
    assert not entry(broker, "message.max.bytes").read_only
    assert (everybody.error_code, everybody.configs) == (ErrorCode.NONE, [])


@pytest.mark.parametrize(
    ("resource", "code", "reason"),
    [
        ((TOPIC, "nowhere"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The topic 'nowhere' does not exist."),
        ((TOPIC, "a b"), ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic name is invalid"),
        ((TOPIC, ""), ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic name is invalid"),
        ((BROKER, "7"), ErrorCode.INVALID_REQUEST, "Unexpected broker id, expected 0"),
        ((BROKER, "-1"), ErrorCode.INVALID_REQUEST, "Unexpected broker id, expected 0"),
        ((BROKER, "abc"), ErrorCode.INVALID_REQUEST, "Broker id must be an integer, but it is: abc"),
        ((BROKER, "٣"), ErrorCode.INVALID_REQUEST, "Broker id must be an integer"),
        ((BROKER_LOGGER, "7"), ErrorCode.INVALID_REQUEST, "Unexpected broker id, expected 0"),
        ((BROKER_LOGGER, ""), ErrorCode.INVALID_REQUEST, "the id is missing"),
        ((CLIENT_METRICS, "m"), ErrorCode.INVALID_REQUEST, "Resources of type CLIENT_METRICS are not supported"),
        ((0, "x"), ErrorCode.INVALID_REQUEST, "Unknown resource type 0"),
        ((77, "x"), ErrorCode.INVALID_REQUEST, "Unknown resource type 77"),
    ],
)
async def test_a_resource_that_cannot_be_described(resource: tuple[int, str], code: ErrorCode, reason: str) -> None:
    async with running_broker() as context:
        await make_topic(context, "orders")
        bad, good = await described(context, resource, (TOPIC, "orders"))
    assert bad.error_code == code
    assert reason in (bad.error_message or "")
    assert bad.configs == []
    assert good.error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", range(1, 5))
async def test_a_group_answers_its_options_whether_it_is_there_or_not(version: int) -> None:
    async with running_broker() as context:
        (result,) = await described(context, (GROUP, "billing"), version=version, synonyms=True)
        assert {each.name: (each.value, each.config_source) for each in result.configs} == {
            "consumer.assignment.interval.ms": ("1000", DEFAULT),
            "consumer.heartbeat.interval.ms": ("5000", DEFAULT),
            "consumer.session.timeout.ms": ("45000", DEFAULT),
        }
        synonym = entry(result, "consumer.session.timeout.ms").synonyms
        assert [(each.name, each.value) for each in synonym] == [("group.consumer.session.timeout.ms", "45000")]
        (nameless,) = await described(context, (GROUP, ""), version=version)
        assert (nameless.error_code, nameless.configs) == (ErrorCode.INVALID_REQUEST, [])
