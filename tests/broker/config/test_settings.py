"""Which listener brokers use among themselves: the two options for it, which exclude each other as in Kafka."""

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.listeners import parse_listener
from odradek.broker.config.option import ConfigError
from odradek.broker.config.settings import Settings, told_broker_listener

NAME, PROTOCOL = "inter.broker.listener.name", "security.inter.broker.protocol"


@pytest.mark.parametrize(
    ("static", "expected", "used"),
    [
        ({}, (NAME, None), "A"),
        ({NAME: "ssl"}, (NAME, "SSL"), "SSL"),
        ({PROTOCOL: "SSL"}, (PROTOCOL, "SSL"), "SSL"),
        ({PROTOCOL: "PLAINTEXT"}, (PROTOCOL, "PLAINTEXT"), "PLAINTEXT"),
    ],
)
def test_the_listener_that_brokers_use(static: dict[str, str], expected: tuple[str, str | None], used: str) -> None:
    config = BrokerConfig(static)
    assert told_broker_listener(config) == expected
    listeners = [parse_listener(text) for text in ("A://h:1", "SSL://h:2", "PLAINTEXT://h:3")]
    settings = Settings(listeners, {each.name: each for each in listeners}, None, 0, config)
    assert settings.broker_listener == used


def test_one_of_the_two_options_is_enough() -> None:
    """KafkaConfig.getInterBrokerListenerNameAndSecurityProtocol, whatever their values are."""
    with pytest.raises(ConfigError, match=f"^Only one of {NAME} and {PROTOCOL} should be set"):
        told_broker_listener(BrokerConfig({NAME: "PLAINTEXT", PROTOCOL: "PLAINTEXT"}))
