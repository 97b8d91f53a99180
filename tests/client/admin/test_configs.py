"""Resources, sources and types of options: their names for people, and numbers that a newer broker may send."""

from odradek.client.admin.configs import (
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ConfigType,
    ResourceType,
    described_configs,
)
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)


def test_resources_say_what_they_are_and_which_broker_knows() -> None:
    topic, broker, every = ConfigResource.topic("7"), ConfigResource.broker(7), ConfigResource.broker()
    assert [str(each) for each in (topic, broker, every)] == ["topic 7", "broker 7", "broker default"]
    assert [each.node_id for each in (topic, broker, every)] == [None, 7, None]
    assert (str(ConfigResource.group("7")), ConfigResource.group("7").node_id) == ("group 7", None)
    assert ConfigResource(ResourceType.BROKER_LOGGER, "3").node_id == 3
    assert ConfigResource.broker(0).name == "0"


def test_numbers_of_a_newer_broker_are_unknown_and_not_an_error() -> None:
    entry = DescribeConfigsResourceResult(
        name="x", value=None, read_only=True, config_source=99, is_sensitive=True, synonyms=[], config_type=99
    )
    result = DescribeConfigsResult(resource_type=2, resource_name="t", configs=[entry])
    found = described_configs(DescribeConfigsResponse(results=[result]))
    entries = found[ConfigResource.topic("t")]
    assert entries == {"x": ConfigEntry("x", None, ConfigSource.UNKNOWN, True, True, (), ConfigType.UNKNOWN, None)}


def test_numbers_are_those_of_kafka() -> None:
    """DescribeConfigsResponse.java: ConfigSource and ConfigType."""
    assert [source.name for source in map(ConfigSource.of, range(1, 6))] == [
        "TOPIC",
        "DYNAMIC_BROKER",
        "DYNAMIC_DEFAULT_BROKER",
        "STATIC_BROKER",
        "DEFAULT",
    ]
    assert (ConfigType.of(1).name, ConfigType.of(5).name, ConfigType.of(9).name) == ("BOOLEAN", "LONG", "PASSWORD")
