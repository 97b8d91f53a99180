"""The request log: what a line holds at DEBUG and at TRACE, which requests it tells of, and how it is switched."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from odradek.broker.config.broker_options import BROKER_OPTIONS
from odradek.broker.config.option import ConfigType
from odradek.broker.observability.log_levels import levels, set_level
from odradek.broker.observability.request_log import LOGGER_NAME, TRACE, may_be_shown
from odradek.protocol.configs import Operation, ResourceType
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.create_topics import CreatableTopicConfig
from odradek.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from odradek.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from odradek.protocol.messages.metadata import MetadataRequest
from tests.broker.wire import RawClient, batch, connected, create_topic, produced, running_broker


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    yield
    set_level(LOGGER_NAME, None)


def alter(kind: ResourceType, *changes: tuple[str, Operation, str | None]) -> IncrementalAlterConfigsRequest:
    configs = [AlterableConfig(name=name, config_operation=each, value=value) for name, each, value in changes]
    resource = AlterConfigsResource(resource_type=kind, resource_name="0", configs=configs)
    return IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)


async def altered(client: RawClient, *changes: tuple[str, Operation, str | None]) -> None:
    [response] = (await client.ask(alter(ResourceType.BROKER_LOGGER, *changes), 1)).responses
    assert (response.error_code, response.error_message) == (0, None)


def lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    messages = [record.getMessage() for record in caplog.records if record.name == LOGGER_NAME]
    return [json.loads(message.removeprefix("Completed request:")) for message in messages]


async def test_a_line_a_request_with_its_phases_and_its_sender(caplog: pytest.LogCaptureFixture) -> None:
    async with running_broker() as broker, connected(broker) as client:
        await create_topic(client, "orders")
        caplog.set_level(logging.DEBUG, LOGGER_NAME)
        await produced(client, "orders", batch(b"x"))
        host, port = client.writer.get_extra_info("sockname")
    [told] = lines(caplog)
    header = told["requestHeader"]
    assert (header["requestApiKey"], header["requestApiKeyName"], header["requestApiVersion"]) == (0, "Produce", 9)
    assert (told["connection"], told["principal"], told["listener"]) == (
        f"{host}:{port}",
        "User:ANONYMOUS",
        "PLAINTEXT",
    )
    assert (told["securityProtocol"], told["isForwarded"]) == ("PLAINTEXT", False)
    phases = ("requestQueueTimeMs", "localTimeMs", "remoteTimeMs", "responseQueueTimeMs", "sendTimeMs")
    assert sum(told[phase] for phase in phases) == pytest.approx(told["totalTimeMs"], abs=0.01)
    assert told["localTimeMs"] > 0
    assert not {"request", "response"} & set(told)


async def test_a_line_says_which_protocol_the_listener_speaks(caplog: pytest.LogCaptureFixture) -> None:
    options = {"listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT"}
    async with running_broker(options) as broker, connected(broker) as client:
        caplog.set_level(logging.DEBUG, LOGGER_NAME)
        await client.ask(ApiVersionsRequest(client_software_name="raw", client_software_version="1"), 3)
    assert [told["securityProtocol"] for told in lines(caplog)] == ["SASL_PLAINTEXT"]


async def test_trace_holds_request_and_answer(caplog: pytest.LogCaptureFixture) -> None:
    async with running_broker() as broker, connected(broker) as client:
        caplog.set_level(TRACE, LOGGER_NAME)
        await client.ask(MetadataRequest(topics=[]), 8)
    [told] = lines(caplog)
    assert told["request"]["topics"] == []
    assert told["response"]["brokers"][0]["nodeId"] == 0


async def test_only_what_takes_long_is_told_where_so_much_is_set(caplog: pytest.LogCaptureFixture) -> None:
    async with running_broker() as broker, connected(broker) as client:
        caplog.set_level(logging.DEBUG, LOGGER_NAME)
        set_it = alter(ResourceType.BROKER, ("request.log.slower.than.ms", Operation.SET, "60000"))
        set_it.resources[0].resource_name = ""
        assert (await client.ask(set_it, 1)).responses[0].error_code == 0
        caplog.clear()
        await client.ask(MetadataRequest(topics=[]), 8)
    assert lines(caplog) == []


async def test_it_is_switched_while_the_broker_runs(caplog: pytest.LogCaptureFixture) -> None:
    async with running_broker() as broker, connected(broker) as client:
        await client.ask(MetadataRequest(topics=[]), 8)
        assert lines(caplog) == []
        await altered(client, (LOGGER_NAME, Operation.SET, "DEBUG"))
        asked = DescribeConfigsRequest(
            resources=[DescribeConfigsResource(resource_type=8, resource_name="0", configuration_keys=[LOGGER_NAME])]
        )
        [found] = (await client.ask(asked, 1)).results
        assert [(each.name, each.value, each.config_source) for each in found.configs] == [(LOGGER_NAME, "DEBUG", 6)]
        before = len(lines(caplog))
        await altered(client, (LOGGER_NAME, Operation.DELETE, None))
        await client.ask(MetadataRequest(topics=[]), 8)
        assert levels()[LOGGER_NAME] == levels()["root"]
        assert len(lines(caplog)) - before <= 1, "the request that switched it off was under way"


async def test_one_bad_level_changes_none(caplog: pytest.LogCaptureFixture) -> None:
    del caplog
    async with running_broker() as broker, connected(broker) as client:
        before = levels()
        wrong = alter(
            ResourceType.BROKER_LOGGER, (LOGGER_NAME, Operation.SET, "TRACE"), ("root", Operation.SET, "LOUD")
        )
        assert (await client.ask(wrong, 1)).responses[0].error_code
        assert levels() == before


def test_the_value_of_an_option_is_shown_if_it_is_known_and_no_secret() -> None:
    secret = next(name for name, row in BROKER_OPTIONS.items() if row.kind is ConfigType.PASSWORD)
    for name, expected in (("retention.ms", True), ("num.partitions", True), (secret, False), ("no.such", False)):
        assert may_be_shown(CreatableTopicConfig(name=name, value="x")) == expected
