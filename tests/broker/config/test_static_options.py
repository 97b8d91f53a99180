"""What an operator starts a broker with: secrets on the command line, values by reference, and what is told of them."""

import logging

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.option import ByReference, ConfigError
from odradek.broker.config.static_options import (
    Sources,
    broker_row,
    has_secret,
    is_sensitive,
    load_static,
    parse_assignment,
)
from tests.broker.config.security_rows import SecurityRows, security_rows

__all__ = ["security_rows"]

pytestmark = pytest.mark.usefixtures("security_rows")

DECLARED = (
    "config.providers=env\nconfig.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider\n"
)


def nothing(path: str) -> bytes:
    raise FileNotFoundError(path)


def test_references_are_looked_up_in_a_file_and_on_the_command_line() -> None:
    sources = Sources({"A": "hunter a", "B": "hunter b"}, nothing)
    static = load_static(
        f"{DECLARED}metadata.etcd.username=${{env:A}}\nssl.key.password=${{env:NO_SUCH}}\n",
        ["metadata.etcd.password=${env:B}", "ssl.key.password=written"],
        sources=sources,
    )
    assert static == {
        "config.providers": "env",
        "metadata.etcd.username": "hunter a",
        "metadata.etcd.password": "hunter b",
        "ssl.key.password": "written",
    }
    config = BrokerConfig(static)
    assert (config.metadata_etcd_username, config.config_providers) == ("hunter a", ("env",))
    assert "hunter" not in repr(config.describe_broker())


def test_without_sources_nothing_is_looked_up() -> None:
    assert load_static("broker.rack=${env:A}", []) == {"broker.rack": "${env:A}"}
    with pytest.raises(ConfigError, match="values by reference are looked up in a --config file and in --set alone"):
        BrokerConfig({"config.providers.env.class": "x"})


def test_a_value_by_reference_that_is_refused_is_not_shown() -> None:
    with pytest.raises(ConfigError) as caught:
        BrokerConfig(
            {
                "num.partitions": ByReference("hunter2"),
                "listeners": ByReference("hunter2://"),
                "listener.name.x.ssl.client.auth": ByReference("hunter2"),
                "node.id": ByReference("4711"),
                "broker.id": "1",
            }
        )
    said = str(caught.value)
    assert said.splitlines()[0] == "4 mistakes in the configuration of the broker:"
    assert "Invalid value [hidden] for configuration listeners: it must be a list separated by commas." in said
    assert "broker.id (1) and node.id are one and the same" not in said
    assert "broker.id and node.id are one and the same; they must be equal." in said
    assert "hunter2" not in said
    assert "4711" not in said


@pytest.mark.parametrize("text", ["hunter2!", "ssl.key.password hunter2", "=hunter2", " =hunter2"])
def test_an_assignment_that_is_none_may_be_a_secret(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_assignment(text)
    assert str(caught.value) == "'[hidden]' is not of the form name=value"


def test_a_secret_on_the_command_line_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        load_static(
            "ssl.key.password=of a file\n",
            [
                "metadata.etcd.password=hunter2",
                "listener.name.x.ssl.key.password=hunter3",
                'listener.name.x.plain.sasl.jaas.config=required password="${env:PASSWORD}";',
                "metadata.etcd.username=me",
                "no.such.password=hunter4",
                "ssl.key.password=",
            ],
        )
    assert [message.split("=")[0] for message in caplog.messages] == [
        "--set metadata.etcd.password",
        "--set listener.name.x.ssl.key.password",
    ]
    assert all("which `ps` shows to everybody" in message for message in caplog.messages)
    assert "hunter" not in caplog.text


@pytest.mark.parametrize(
    ("name", "sensitive", "secret"),
    [
        ("ssl.key.password", True, True),
        ("listener.name.x.ssl.key.password", True, True),
        ("listener.name.x.plain.sasl.jaas.config", True, True),
        ("num.partitions", False, False),
        ("listener.name.x.ssl.client.auth", False, False),
        ("no.such", True, False),
        ("listener.name.x.no.such", True, False),
    ],
)
def test_what_may_be_a_secret(name: str, sensitive: bool, secret: bool) -> None:
    assert (is_sensitive(name), has_secret(name, "x")) == (sensitive, secret)


def test_the_row_of_a_name() -> None:
    assert broker_row("listener.name.x.ssl.key.password") is SecurityRows.ssl_key_password
    with pytest.raises(ConfigError, match="an option of a listener is"):
        broker_row("listener.name.x")
    with pytest.raises(ConfigError, match="an option of Apache Kafka's without effect here"):
        broker_row("listener.name.x.num.network.threads")
