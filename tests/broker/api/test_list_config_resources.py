"""ListConfigResources: topics, brokers, loggers, and groups that set something, by type, in both versions."""

import pytest

from odradek.broker.cluster.keys import encode_configs, group_config_key
from odradek.broker.cluster.store import Txn
from odradek.broker.handling.context import Context
from odradek.protocol.configs import ResourceType
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_config_resources import ListConfigResourcesRequest
from tests.broker.support import ask, make_topic, running_broker


async def listed(context: Context, *types: int, version: int = 1) -> list[tuple[int, str]]:
    request = ListConfigResourcesRequest(resource_types=list(types) if version >= 1 else [])
    answer = await ask(context, request, version)
    assert answer.error_code == ErrorCode.NONE
    return [(each.resource_type, each.resource_name) for each in answer.config_resources]


async def configure(context: Context, group_id: str) -> None:
    put = {group_config_key(group_id): encode_configs({"consumer.session.timeout.ms": "50000"})}
    await context.metadata.applied(await context.metadata.store.commit(Txn(put=put)))


async def test_all_of_a_type_are_listed_or_all_of_all_types() -> None:
    async with running_broker() as context:
        await make_topic(context, "orders")
        for group_id in ("billing", "a/b c", "ä"):
            await configure(context, group_id)
        groups = [(ResourceType.GROUP, each) for each in ("billing", "a/b c", "ä")]
        assert await listed(context, ResourceType.GROUP) == groups
        assert await listed(context, ResourceType.GROUP, ResourceType.GROUP) == groups
        assert await listed(context, ResourceType.TOPIC) == [(ResourceType.TOPIC, "orders")]
        brokers = [(ResourceType.BROKER, "0"), (ResourceType.BROKER_LOGGER, "0")]
        assert await listed(context, ResourceType.BROKER_LOGGER, ResourceType.BROKER) == brokers
        assert await listed(context, ResourceType.CLIENT_METRICS) == []
        assert await listed(context) == [(ResourceType.TOPIC, "orders"), *brokers, *groups]


async def test_version_0_lists_clients_metrics_of_which_there_are_none() -> None:
    async with running_broker() as context:
        await make_topic(context, "orders")
        assert await listed(context, version=0) == []


@pytest.mark.parametrize("unknown", [0, 3, 99, -1])
async def test_a_type_that_does_not_exist_is_an_unsupported_version(unknown: int) -> None:
    async with running_broker() as context:
        request = ListConfigResourcesRequest(resource_types=[ResourceType.TOPIC, unknown])
        answer = await ask(context, request, 1)
        assert (answer.error_code, answer.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, [])
