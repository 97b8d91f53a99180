"""The settings of a consumer: Kafka's names and defaults, and what they mean for fetching."""

from typing import Any

import pytest

from odradek.client.consumer.assignment.range_assignor import RangeAssignor
from odradek.client.consumer.config import ConsumerConfig
from odradek.client.errors.client_errors import ConfigError

SERVER = "localhost:9092"


def test_kafkas_names_are_understood_and_its_defaults_are_ours() -> None:
    config = ConsumerConfig.from_dict(
        {"bootstrap.servers": SERVER, "auto.offset.reset": "EARLIEST", "client.rack": "r1", "group.id": "billing"}
    )
    assert (config.auto_offset_reset, config.client_rack, config.group_id) == ("earliest", "r1", "billing")
    default = ConsumerConfig(SERVER)
    assert (default.auto_offset_reset, default.client_rack, default.group_id) == ("latest", "", None)
    assert (default.fetch_max_bytes, default.max_partition_fetch_bytes) == (52_428_800, 1_048_576)
    assert default.client_id.startswith("consumer-")


def test_fetching_follows_the_settings_and_waits_without_an_end() -> None:
    config = ConsumerConfig(SERVER, prefetch_bytes=1_000, isolation_level="read_committed", metadata_max_age_ms=5)
    settings = config.fetch_settings()
    assert (settings.buffer_bytes, settings.retry_timeout_ms, settings.replica_max_age_ms) == (1_000, None, 5)
    assert settings.read_committed
    assert settings.follows_new_topics


def test_a_wrong_setting_is_named() -> None:
    with pytest.raises(ConfigError, match="auto_offset_reset must be one of earliest, latest, none"):
        ConsumerConfig(SERVER, auto_offset_reset="first")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="prefetch_bytes"):
        ConsumerConfig(SERVER, prefetch_bytes=0)

    async def deserialize(topic: str, data: bytes | None) -> object:
        return data

    with pytest.raises(ConfigError, match="no coroutine function"):
        ConsumerConfig(SERVER, value_deserializer=deserialize)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"group_id": ""}, "group_id must not be empty"),
        ({"topics": ["a"]}, "topics is set, and group_id is not"),
        ({"group_instance_id": "i"}, "group_instance_id is set, and group_id is not"),
        ({"group_id": "g", "topics": [""]}, "topics must be topics' names"),
        ({"group_id": "g", "topics": b"a"}, "topics must be topics' names"),
        ({"group_id": "g", "group_instance_id": ""}, "group_instance_id must not be empty"),
        ({"group_id": "g", "heartbeat_interval_ms": 45_000}, "must be lower than session_timeout_ms"),
        (
            {"group_id": "g", "group_protocol": "consumer", "session_timeout_ms": 45_000},
            "session_timeout_ms is set, and group_protocol is consumer",
        ),
        ({"group_id": "g", "partition_assignment_strategy": "rnage"}, "must be names of assignors"),
        ({"group_id": "g", "partition_assignment_strategy": []}, "must be names of assignors"),
        ({"group_id": "g", "on_lost": 5}, "on_lost must be a function or a coroutine function"),
    ],
)
def test_settings_of_a_group_that_do_not_go_together_are_named(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        ConsumerConfig(SERVER, **settings)


def test_settings_of_a_group_may_be_texts_and_objects() -> None:
    written = {
        "bootstrap.servers": SERVER,
        "group.id": "g",
        "topics": "a, b,a",
        "partition.assignment.strategy": "cooperative-sticky,sticky",
        "enable.auto.commit": "false",
    }
    config = ConsumerConfig.from_dict(written)
    assert config.topics == ("a", "b")
    assert [each.name for each in config.made_assignors()] == ["cooperative-sticky", "sticky"]
    assert not config.enable_auto_commit
    own = RangeAssignor()
    config = ConsumerConfig(SERVER, group_id="g", partition_assignment_strategy=[own, "sticky"], client_rack="r1")
    assert config.made_assignors()[0] is own
    assert config.membership_settings().rack == "r1"
