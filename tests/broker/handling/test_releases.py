"""A broker that acts as an earlier release tells clients what that one told them, and serves brokers as ever."""

import pytest
from kafka.protocol.broker_version_data import BROKER_API_VERSIONS, infer_broker_version_from_api_versions

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.broker_options import BrokerOptions
from odradek.broker.config.option import ConfigError
from odradek.broker.handling.releases import LAST, acting_as
from odradek.broker.served import BY_KEY
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from tests.broker.support import ask, running_broker

RELEASES = {name: tuple(map(int, name.split("."))) for name in LAST}
PREVIEWS = {ConsumerGroupHeartbeatRequest.api_key, ConsumerGroupDescribeRequest.api_key}


async def told(release: str) -> ApiVersionsResponse:
    async with running_broker({"act.as": release}) as context:
        request = ApiVersionsRequest(client_software_name="tests", client_software_version="1.0")
        return await ask(context, request, 4)


@pytest.mark.parametrize("release", RELEASES)
async def test_the_highest_versions_are_those_that_the_release_has(release: str) -> None:
    """As kafka-python has them from brokers; of 3.9 it asked one on ZooKeeper, which has fewer APIs."""
    highest = {api.api_key: api.max_version for api in (await told(release)).api_keys}
    theirs = {key: last for key, (_, last) in BROKER_API_VERSIONS[RELEASES[release]].items()}
    compared = (highest.keys() & theirs.keys()) - {WriteTxnMarkersRequest.api_key}
    assert {key: highest[key] for key in compared} == {key: theirs[key] for key in compared}
    assert (highest.keys() & PREVIEWS == PREVIEWS) is (release != "3.9")


@pytest.mark.parametrize("release", RELEASES)
async def test_clients_take_us_for_that_release(release: str) -> None:
    ranges = {api.api_key: (api.min_version, api.max_version) for api in (await told(release)).api_keys}
    assert infer_broker_version_from_api_versions(ranges) == RELEASES[release]


async def test_features_are_told_from_the_release_on_that_has_them() -> None:
    """Java's client begins to speak transaction version 2 by the feature alone."""
    for release in RELEASES:
        answer = await told(release)
        names = [] if release == "3.9" else ["group.version", "transaction.version"]
        assert [each.name for each in answer.supported_features] == names
        assert [each.name for each in answer.finalized_features] == names
        assert (answer.finalized_features_epoch >= 0) is (release != "3.9")


async def test_who_asks_for_more_than_it_was_told_is_answered() -> None:
    async with running_broker({"act.as": "3.9"}) as context:
        assert (await ask(context, MetadataRequest(topics=None), 13)).brokers


def test_what_is_for_brokers_alone_is_told_as_ever() -> None:
    oldest = acting_as(BY_KEY, "3.9")
    for key in (27, 63):
        assert oldest[key].advertised == BY_KEY[key].advertised
    assert {key: api.served for key, api in oldest.items()} == {key: api.served for key, api in BY_KEY.items()}


def test_without_a_release_nothing_changes() -> None:
    assert acting_as(BY_KEY, BrokerConfig({}).act_as) is BY_KEY


def test_the_option_takes_these_releases_and_no_others() -> None:
    assert set(BrokerOptions.act_as.choices) == set(LAST)
    for text in ("3.8", "4.4", "4", "4.3.1", ""):
        with pytest.raises(ConfigError, match=r"act\.as: it must be one of 3\.9, 4\.0, 4\.1, 4\.2, 4\.3"):
            BrokerConfig({"act.as": text})
