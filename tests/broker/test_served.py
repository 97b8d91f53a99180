"""Which APIs are served is a value of the server: with another table it is a broker of another release."""

import pytest

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import ResourceType
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.served import BY_KEY, SERVED, limited, served_with
from odradek.broker.server import Broker
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.create_topics import CreateTopicsRequest
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.messages.produce import ProduceRequest
from odradek.runtime.environment import Environment
from tests.broker.wire import connected, settings

KEYS = {ApiVersionsRequest.api_key: (0, 2), MetadataRequest.api_key: (0, 8), ProduceRequest.api_key: (0, 7)}


def test_every_api_has_one_row() -> None:
    assert len({api.key for api in SERVED}) == len(SERVED) == len(BY_KEY)


def test_a_table_is_limited_to_the_versions_that_both_have() -> None:
    older = limited(BY_KEY, KEYS)
    assert {key: api.served for key, api in older.items()} == {18: (0, 2), 3: (0, 8), 0: (3, 7)}
    assert older[ProduceRequest.api_key].advertised == (0, 7)
    with pytest.raises(ValueError, match="CreateTopics is served from 2 to 7"):
        limited(BY_KEY, {CreateTopicsRequest.api_key: (0, 1)})
    with pytest.raises(KeyError):
        limited(BY_KEY, {999: (0, 1)})


def test_two_phases_have_a_version_where_their_option_is_on() -> None:
    key = InitProducerIdRequest.api_key
    off, on = BrokerConfig({}), BrokerConfig({"transaction.two.phase.commit.enable": "true"})
    assert served_with(off) == BY_KEY
    assert {key: api for key, api in served_with(on).items() if api != BY_KEY[key]}.keys() == {key}
    assert (BY_KEY[key].served, served_with(on)[key].served) == ((0, 5), (0, 6))
    assert (Operation.TWO_PHASE_COMMIT, ResourceType.TRANSACTIONAL_ID) in served_with(on)[key].needs
    older = limited(BY_KEY, {key: (0, 4)})
    assert served_with(on, older) == older, "a release from before it"
    assert served_with(on, {}) == {}


async def test_a_server_of_another_release_answers_and_refuses_as_that_one_does() -> None:
    broker = Broker(settings(None, None), Environment(), MemoryDisk(), served=limited(BY_KEY, KEYS))
    await broker.start()
    try:
        async with connected(broker) as client:
            answer = await client.ask(ApiVersionsRequest(), 2)
            told = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
            assert told == {18: (0, 2), 3: (0, 8), 0: (0, 7)}
            assert (await client.ask(MetadataRequest(topics=None), 8)).topics == []
            client.send(MetadataRequest(topics=None), 9)
            assert await client.reader.read() == b"", "a version that is not advertised closes the connection"
    finally:
        await broker.stop()


@pytest.mark.parametrize(("value", "highest"), [("true", 6), ("false", 5)])
async def test_a_server_advertises_two_phases_by_its_option(value: str, highest: int) -> None:
    options = {"transaction.two.phase.commit.enable": value}
    broker = Broker(settings(None, options), Environment(), MemoryDisk())
    await broker.start()
    try:
        async with connected(broker) as client:
            answer = await client.ask(ApiVersionsRequest(), 2)
            told = {each.api_key: each.max_version for each in answer.api_keys}
            assert told[InitProducerIdRequest.api_key] == highest
    finally:
        await broker.stop()
