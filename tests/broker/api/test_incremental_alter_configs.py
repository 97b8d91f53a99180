"""IncrementalAlterConfigs: single options of topics and brokers change at once, whole per resource, or not at all."""

import asyncio

import pytest

from odradek.broker.cluster.memory import MemoryStore
from odradek.broker.cluster.store import Snapshot
from odradek.broker.handling.context import Context
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from odradek.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
)
from tests.broker.support import ask, make_topic, running_broker

TOPIC, BROKER, BROKER_LOGGER, GROUP = 2, 4, 8, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
Alteration = tuple[int, str, str | None]
THROTTLED = "leader.replication.throttled.replicas"


def resource(kind: int, name: str, *alterations: Alteration) -> AlterConfigsResource:
    return AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            AlterableConfig(name=option, config_operation=operation, value=value)
            for operation, option, value in alterations
        ],
    )


async def altered(
    context: Context, *resources: AlterConfigsResource, version: int = 1, validate_only: bool = False
) -> list[AlterConfigsResourceResponse]:
    request = IncrementalAlterConfigsRequest(resources=list(resources), validate_only=validate_only)
    answer = await ask(context, request, version)
    assert [(each.resource_type, each.resource_name) for each in answer.responses] == [
        (each.resource_type, each.resource_name) for each in resources
    ]
    return answer.responses


def stored(context: Context, topic: str = "orders") -> dict[str, str]:
    return dict(context.metadata.image.topic_configs(topic))


@pytest.mark.parametrize("version", [0, 1])
async def test_an_option_of_a_topic_counts_when_the_answer_is_out(version: int) -> None:
    async with running_broker() as context:
        await make_topic(context, "orders", configs={"retention.ms": "60000"})
        (response,) = await altered(
            context, resource(TOPIC, "orders", (SET, "max.message.bytes", "5000")), version=version
        )
        assert context.partitions.leader("orders", 0).config.max_message_bytes == 5000
        assert stored(context) == {"retention.ms": "60000", "max.message.bytes": "5000"}
    assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)


async def test_an_option_is_deleted_and_the_default_counts_again() -> None:
    async with running_broker() as context:
        await make_topic(context, "orders", configs={"max.message.bytes": "5000"})
        await altered(context, resource(TOPIC, "orders", (DELETE, "max.message.bytes", None)))
        assert stored(context) == {}
        assert context.partitions.leader("orders", 0).config.max_message_bytes == 1048588


async def test_lists_are_added_to_and_taken_from() -> None:
    async with running_broker() as context:
        await make_topic(context, "orders")
        for alteration, expected in (
            ((APPEND, THROTTLED, "0:0,1:0"), "0:0,1:0"),
            ((APPEND, THROTTLED, "1:0,2:0"), "0:0,1:0,2:0"),
            ((SUBTRACT, THROTTLED, "1:0,9:9"), "0:0,2:0"),
        ):
            (response,) = await altered(context, resource(TOPIC, "orders", alteration))
            assert response.error_code == ErrorCode.NONE
            assert stored(context) == {THROTTLED: expected}


@pytest.mark.parametrize(
    ("alteration", "code", "reason"),
    [
        ((SET, "nosuch", "1"), ErrorCode.INVALID_CONFIG, "Unknown topic config name: nosuch"),
        ((SET, "retention.ms", "soon"), ErrorCode.INVALID_CONFIG, "Invalid value soon for configuration retention.ms"),
        ((SET, "remote.storage.enable", "true"), ErrorCode.INVALID_CONFIG, "tiered storage is not built"),
        ((SET, "min.insync.replicas", "0"), ErrorCode.INVALID_CONFIG, "Invalid value 0"),
        ((APPEND, "retention.ms", "1"), ErrorCode.INVALID_CONFIG, "Can't APPEND to key retention.ms"),
        ((SET, "retention.ms", None), ErrorCode.INVALID_REQUEST, "Null value not supported for : retention.ms"),
        ((7, "retention.ms", "1"), ErrorCode.INVALID_REQUEST, "Unknown operation 7"),
    ],
)
async def test_one_bad_option_leaves_its_resource_as_it_was(
    alteration: Alteration, code: ErrorCode, reason: str
) -> None:
    async with running_broker() as context:
        for name in ("orders", "others"):
            await make_topic(context, name)
        good = (SET, "max.message.bytes", "5000")
        refused, taken = await altered(
            context, resource(TOPIC, "orders", good, alteration), resource(TOPIC, "others", good)
        )
        assert stored(context, "orders") == {}
        assert stored(context, "others") == {"max.message.bytes": "5000"}
    assert refused.error_code == code
    assert reason in (refused.error_message or "")
    assert taken.error_code == ErrorCode.NONE


async def test_the_same_option_twice_is_refused() -> None:
    async with running_broker() as context:
        await make_topic(context, "orders")
        twice = resource(TOPIC, "orders", (SET, "retention.ms", "1"), (DELETE, "retention.ms", None))
        (response,) = await altered(context, twice)
        assert stored(context) == {}
    assert response.error_code == ErrorCode.INVALID_REQUEST


async def test_the_same_resource_twice_is_refused_each_time() -> None:
    async with running_broker() as context:
        await make_topic(context, "orders")
        responses = await altered(
            context,
            resource(TOPIC, "orders", (SET, "retention.ms", "1")),
            resource(BROKER, "", (SET, "message.max.bytes", "2000")),
            resource(TOPIC, "orders", (SET, "max.message.bytes", "5000")),
        )
        assert stored(context) == {}
    assert [response.error_code for response in responses] == [ErrorCode.INVALID_REQUEST, 0, ErrorCode.INVALID_REQUEST]
    assert responses[0].error_message == "Each resource must appear at most once."


async def test_this_broker_wins_over_all_brokers_and_topics_inherit_from_it() -> None:
    async with running_broker() as context:
        await make_topic(context, "orders")
        partition = context.partitions.leader("orders", 0)
        await altered(context, resource(BROKER, "", (SET, "message.max.bytes", "3000")))
        assert partition.config.max_message_bytes == 3000
        await altered(context, resource(BROKER, "0", (SET, "message.max.bytes", "4000")))
        assert partition.config.max_message_bytes == 4000
        await altered(context, resource(BROKER, "0", (DELETE, "message.max.bytes", None)))
        assert partition.config.max_message_bytes == 3000
        assert context.config.message_max_bytes == 3000


@pytest.mark.parametrize(
    ("kind", "name", "alteration", "code", "reason"),
    [
        (TOPIC, "nowhere", (SET, "retention.ms", "1"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "does not exist"),
        (TOPIC, "", (SET, "retention.ms", "1"), ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed."),
        (TOPIC, "nowhere", (SET, "nosuch", "1"), ErrorCode.INVALID_CONFIG, "Unknown topic config name: nosuch"),
        (TOPIC, "nowhere", (SET, "retention.ms", "soon"), ErrorCode.INVALID_CONFIG, "Invalid value soon"),
        (TOPIC, "nowhere", (SET, "retention.ms", None), ErrorCode.INVALID_REQUEST, "Null value not supported"),
        (TOPIC, "nowhere", (DELETE, "nosuch", None), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "does not exist"),
        (TOPIC, "a/b", (SET, "nosuch", "1"), ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic name is invalid"),
        (TOPIC, "a/b", (APPEND, "retention.ms", "1"), ErrorCode.INVALID_CONFIG, "Can't APPEND"),
        (BROKER, "7", (SET, "message.max.bytes", "1"), ErrorCode.INVALID_REQUEST, "Unexpected broker id, expected 0"),
        (BROKER, "x", (SET, "message.max.bytes", "1"), ErrorCode.INVALID_REQUEST, "must be an integer"),
        (BROKER, "0", (SET, "num.partitions", "4"), ErrorCode.INVALID_REQUEST, "Cannot update these configs"),
        (BROKER, "0", (SET, "message.max.bytes", "many"), ErrorCode.INVALID_CONFIG, "Invalid value many"),
        (BROKER_LOGGER, "7", (SET, "root", "DEBUG"), ErrorCode.INVALID_REQUEST, "Unexpected broker id, expected 0"),
        (BROKER_LOGGER, "", (SET, "root", "DEBUG"), ErrorCode.INVALID_REQUEST, "the id is missing"),
        (BROKER_LOGGER, "0", (SET, "no.such", "DEBUG"), ErrorCode.INVALID_CONFIG, "Logger no.such does not exist!"),
        (BROKER_LOGGER, "0", (SET, "root", "LOUD"), ErrorCode.INVALID_CONFIG, "not a supported log level"),
        (BROKER_LOGGER, "0", (DELETE, "root", None), ErrorCode.INVALID_REQUEST, "Removing the log level of the root"),
        (BROKER_LOGGER, "0", (APPEND, "root", "DEBUG"), ErrorCode.INVALID_REQUEST, "APPEND operation is not allowed"),
        (16, "g", (SET, "x", "1"), ErrorCode.INVALID_REQUEST, "CLIENT_METRICS are not supported"),
        (1, "x", (SET, "x", "1"), ErrorCode.INVALID_REQUEST, "Unknown resource type 1"),
    ],
)
async def test_a_resource_that_cannot_be_changed(
    kind: int, name: str, alteration: Alteration, code: ErrorCode, reason: str
) -> None:
    async with running_broker() as context:
        (response,) = await altered(context, resource(kind, name, alteration))
        assert context.metadata.image.broker_configs == {}
    assert response.error_code == code
    assert reason in (response.error_message or "")


@pytest.mark.parametrize(("name", "source"), [("0", 2), ("", 3)])
async def test_an_option_that_no_broker_knows_is_stored_and_described_without_its_value(name: str, source: int) -> None:
    async with running_broker() as context:
        (response,) = await altered(context, resource(BROKER, name, (SET, "no.such.option", "a secret")))
        assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
        assert context.metadata.image.configs_of_broker(None if name == "" else 0) == {"no.such.option": "a secret"}
        described = DescribeConfigsResource(resource_type=BROKER, resource_name=name, configuration_keys=None)
        answer = await ask(context, DescribeConfigsRequest(resources=[described], include_documentation=True), 4)
        [found] = [each for each in answer.results[0].configs if each.name == "no.such.option"]
        assert (found.value, found.is_sensitive, found.read_only, found.config_source) == (None, True, True, source)
        assert (found.config_type, found.documentation) == (0, None)
        await altered(context, resource(BROKER, name, (DELETE, "no.such.option", None)))
        assert context.metadata.image.broker_configs == {}


async def test_validate_only_checks_and_changes_nothing() -> None:
    async with running_broker() as context:
        await make_topic(context, "orders")
        await make_topic(context, "others")
        responses = await altered(
            context,
            resource(TOPIC, "orders", (SET, "retention.ms", "1")),
            resource(TOPIC, "others", (SET, "retention.ms", "soon")),
            resource(BROKER, "", (SET, "message.max.bytes", "many")),
            resource(BROKER, "0", (SET, "message.max.bytes", "3000")),
            validate_only=True,
        )
        assert stored(context) == {}
        assert context.metadata.image.broker_configs == {}
    assert [response.error_code for response in responses] == [
        ErrorCode.NONE,
        ErrorCode.INVALID_CONFIG,
        ErrorCode.INVALID_CONFIG,
        ErrorCode.NONE,
    ]


async def test_changes_at_the_same_time_do_not_undo_one_another() -> None:
    class Interleaving(MemoryStore):
        async def read(self, prefix: str) -> Snapshot:
            snapshot = await super().read(prefix)
            await asyncio.sleep(0)
            return snapshot

    options = {"retention.ms": "1", "max.message.bytes": "5000", "segment.ms": "7", "index.interval.bytes": "9"}
    async with running_broker(store=Interleaving()) as context:
        await make_topic(context, "orders")
        for kind, name in ((TOPIC, "orders"), (BROKER, "")):
            values = options if kind == TOPIC else {"message.max.bytes": "3000", "log.segment.bytes": "2000000"}
            answers = await asyncio.gather(
                *(altered(context, resource(kind, name, (SET, option, value))) for option, value in values.items())
            )
            assert [response.error_code for (response,) in answers] == [ErrorCode.NONE] * len(values)
            found = stored(context) if kind == TOPIC else dict(context.metadata.image.configs_of_broker(None))
            assert found == values


SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"


def of_group(context: Context, group_id: str = "billing") -> dict[str, str]:
    return dict(context.metadata.image.configs_of_group(group_id))


@pytest.mark.parametrize("version", [0, 1])
async def test_an_option_of_a_group_is_set_and_deleted_whether_the_group_is_there_or_not(version: int) -> None:
    async with running_broker() as context:
        for group_id in ("billing", "a/b c"):
            asked = resource(GROUP, group_id, (SET, SESSION, " 050000 "), (SET, HEARTBEAT, "6000"))
            (response,) = await altered(context, asked, version=version)
            assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
            assert of_group(context, group_id) == {SESSION: "50000", HEARTBEAT: "6000"}
        await altered(context, resource(GROUP, "billing", (DELETE, SESSION, None), (DELETE, "nope", None)))
        assert of_group(context) == {HEARTBEAT: "6000"}
        await altered(context, resource(GROUP, "billing", (DELETE, HEARTBEAT, None)))
        assert set(context.metadata.image.group_configs) == {"a/b c"}


async def test_options_of_a_group_are_only_checked_where_that_is_asked() -> None:
    async with running_broker() as context:
        (response,) = await altered(context, resource(GROUP, "billing", (SET, SESSION, "50000")), validate_only=True)
        assert response.error_code == ErrorCode.NONE
        assert of_group(context) == {}


@pytest.mark.parametrize(
    ("group_id", "alterations", "code"),
    [
        ("", [(SET, SESSION, "50000")], ErrorCode.INVALID_REQUEST),
        ("", [(DELETE, SESSION, None)], ErrorCode.INVALID_REQUEST),
        ("billing", [(SET, SESSION, None)], ErrorCode.INVALID_REQUEST),
        ("billing", [(SET, SESSION, "50000"), (SET, SESSION, "50001")], ErrorCode.INVALID_REQUEST),
        ("billing", [(SET, SESSION, "44999")], ErrorCode.INVALID_CONFIG),
        ("billing", [(SET, SESSION, "x")], ErrorCode.INVALID_CONFIG),
        ("billing", [(SET, SESSION, "50000"), (SET, "nope", "1")], ErrorCode.INVALID_CONFIG),
        ("billing", [(SET, "share.session.timeout.ms", "50000")], ErrorCode.INVALID_CONFIG),
        ("billing", [(APPEND, SESSION, "1")], ErrorCode.INVALID_CONFIG),
    ],
)
async def test_what_a_group_may_not_set_is_refused_and_changes_nothing(
    group_id: str, alterations: list[Alteration], code: ErrorCode
) -> None:
    async with running_broker() as context:
        (response,) = await altered(context, resource(GROUP, group_id, *alterations))
        assert response.error_code == code
        assert response.error_message
        assert context.metadata.image.group_configs == {}
