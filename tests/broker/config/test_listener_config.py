"""What counts for a listener and a mechanism, as AbstractConfig.valuesWithPrefixOverride has it: the narrower one, from
whichever layer; and what DescribeConfigs says of it."""

import logging

import pytest

from odradek.broker.config.broker_config import BrokerConfig, ConfigEntry, ConfigSource
from odradek.broker.config.option import ByReference, ConfigError, ConfigType
from tests.broker.config.security_rows import SecurityRows, security_rows, value

__all__ = ["security_rows"]

pytestmark = pytest.mark.usefixtures("security_rows")


def entry(entries: list[ConfigEntry], name: str) -> ConfigEntry:
    (found,) = [each for each in entries if each.name == name]
    return found


def origins(entry: ConfigEntry) -> list[str]:
    return [f"{synonym.name}={synonym.value}@{int(synonym.source)}" for synonym in entry.synonyms]


def test_the_listeners_own_value_counts_before_the_brokers() -> None:
    config = BrokerConfig(
        {
            "ssl.client.auth": "requested",
            "listener.name.external.ssl.client.auth": "required",
            "listener.name.external.ssl.keystore.location": " /keys/e.pem ",
        }
    )
    external, other = config.listener("EXTERNAL"), config.listener("INTERNAL")
    assert value(external, "ssl_client_auth") == "required"
    assert value(external, "ssl_keystore_location") == "/keys/e.pem"
    assert value(other, "ssl_client_auth") == value(config, "ssl_client_auth") == "requested"
    assert value(other, "ssl_keystore_location") is None
    assert (external.listener_name, external.num_partitions) == ("EXTERNAL", 1)
    assert external.is_own(SecurityRows.ssl_client_auth)
    assert not other.is_own(SecurityRows.ssl_client_auth), "KIP-684 asks whether it is the listener's own"


def test_a_mechanisms_own_value_counts_before_the_listeners() -> None:
    name = "connections.max.reauth.ms"
    config = BrokerConfig({name: "1", f"listener.name.x.{name}": "2", f"listener.name.x.plain.{name}": "3"})
    listener = config.listener("x")
    reauth = "connections_max_reauth_ms"
    assert [value(listener.mechanism(each), reauth) for each in ("PLAIN", "plain", "SCRAM-SHA-256")] == [3, 3, 2]
    assert [value(each, reauth) for each in (listener, config.listener("y"), config)] == [2, 1, 1]
    assert value(config.listener("y").mechanism("PLAIN"), reauth) == 1


def test_a_jaas_line_counts_with_a_mechanism_alone() -> None:
    """JaasContext.loadServerContext ignores any other; so `listener.name.x.sasl.jaas.config` is nobody's password."""
    config = BrokerConfig(
        {
            "sasl.jaas.config": "of nobody",
            "listener.name.x.sasl.jaas.config": "of nobody, either",
            "listener.name.x.plain.sasl.jaas.config": "of plain",
        }
    )
    listener = config.listener("X")
    assert value(listener, "sasl_jaas_config") is None
    assert value(listener.mechanism("PLAIN"), "sasl_jaas_config") == "of plain"
    assert value(listener.mechanism("SCRAM-SHA-256"), "sasl_jaas_config") is None
    assert value(config.listener("Y").mechanism("PLAIN"), "sasl_jaas_config") is None


def test_layers_count_name_by_name_and_the_narrower_name_before_any() -> None:
    """A listener's static value stands before a dynamic one of the broker, as in Kafka."""
    name = "listener.name.x.max.connections"
    config = BrokerConfig({name: "1"}, {"max.connections": "50"}, {"max.connections": "60"})
    assert config.listener("X").max_connections == 1
    config.update({name: "2"}, {"max.connections": "60"})
    assert config.listener("X").max_connections == 2
    config.update({name: "2"}, {name: "3"})
    assert config.listener("X").max_connections == 3
    config.update({}, {})
    assert config.listener("X").max_connections == 1
    assert config.listener("Y").max_connections == config.max_connections


def test_a_view_is_kept_until_options_change() -> None:
    config = BrokerConfig()
    view = config.listener("X")
    assert config.listener("x") is view
    config.update({"max.connections": "5"}, {})
    assert config.listener("X") is not view
    assert (view.max_connections, config.listener("X").max_connections) == (2**31 - 1, 5)


def test_nothing_is_kept_for_mechanisms_that_clients_make_up() -> None:
    listener = BrokerConfig().listener("X")
    assert listener.mechanism("MADE-UP-1") is listener.mechanism("MADE-UP-2")


def test_a_start_is_refused_for_a_value_under_the_name_that_was_given() -> None:
    given = r"^Invalid value maybe for configuration listener\.name\.x\.ssl\.client\.auth: "
    with pytest.raises(ConfigError, match=given):
        BrokerConfig({"listener.name.x.ssl.client.auth": "maybe"})
    with pytest.raises(ConfigError, match=r"did you mean listener\.name\.x\.ssl\.client\.auth\?"):
        BrokerConfig({"listener.name.x.ssl.client.aut": "none"})


def test_what_is_stored_and_not_usable_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        config = BrokerConfig({}, {}, {"listener.name.x.max.connections": "many", "listener.name.x.no.such": "1"})
    assert config.listener("X").max_connections == 2**31 - 1
    assert [message.partition(": ")[2] for message in caplog.messages] == [
        "listener.name.x.max.connections has no effect: Invalid value many for configuration "
        "listener.name.x.max.connections: it must be a whole number of 32 bits of at least 0.",
        "'listener.name.x.no.such' is unknown and has no effect",
    ]


# -- describing: as ConfigHelper.scala does ---------------------------------------------------------------------------


def test_what_is_set_for_a_listener_is_described_under_its_own_name() -> None:
    """Read-only and without documentation, whatever it is: Kafka looks both up under the whole name."""
    name = "listener.name.x.max.connections"
    config = BrokerConfig({"max.connections": "1", name: "2"}, {name: "3"}, {name: "4"})
    found = entry(config.describe_broker(), name)
    assert (found.value, found.source, found.type) == ("4", ConfigSource.DYNAMIC_BROKER, ConfigType.INT)
    assert (found.is_read_only, found.is_sensitive, found.documentation) == (True, False, None)
    assert origins(found) == [
        f"{name}=4@2",
        f"{name}=3@3",
        f"{name}=2@4",
        "max.connections=1@4",
        "max.connections=2147483647@5",
    ]
    assert origins(entry(config.describe_broker(), "max.connections")) == [
        "max.connections=1@4",
        "max.connections=2147483647@5",
    ]
    of_all = entry(config.describe_default_broker(), name)
    assert (of_all.value, of_all.source, origins(of_all)) == ("3", ConfigSource.DYNAMIC_DEFAULT_BROKER, [f"{name}=3@3"])
    assert [each.name for each in config.describe_broker([name])] == [name]


@pytest.mark.parametrize("name", ["listener.name.x.ssl.key.password", "listener.name.x.plain.sasl.jaas.config"])
def test_a_secret_of_a_listener_is_not_shown(name: str) -> None:
    config = BrokerConfig({name: "hunter2"}, {}, {name: "hunter3"})
    found = entry(config.describe_broker(), name)
    assert (found.value, found.is_sensitive, found.type) == (None, True, ConfigType.PASSWORD)
    assert origins(found) == [f"{name}=None@2", f"{name}=None@4"]
    assert "hunter" not in repr(config.describe_broker())


def test_what_came_by_reference_is_not_shown() -> None:
    """Neither where it is set, nor where a topic or a group inherits it, nor among synonyms."""
    secret = ByReference("1234567")
    names = ("log.segment.bytes", "log.retention.hours", "group.consumer.session.timeout.ms", "max.connections")
    static = {**dict.fromkeys(names, secret), "group.consumer.session.timeout.ms": ByReference("45678")}
    static |= {"log.retention.hours": ByReference("87654"), "listener.name.x.max.connections": secret}
    config = BrokerConfig(static)
    assert (config.log_segment_bytes, config.listener("X").max_connections) == (1_234_567, 1_234_567)
    described = [*config.describe_broker(), *config.describe_topic({}), *config.describe_group({})]
    for shown in ("1234567", "45678", "87654", str(87654 * 3_600_000)):
        assert shown not in repr(described)
    for found in (
        entry(config.describe_broker(), "log.segment.bytes"),
        entry(config.describe_broker(), "listener.name.x.max.connections"),
        entry(config.describe_topic({}), "segment.bytes"),
        entry(config.describe_topic({}), "retention.ms"),
        entry(config.describe_group({}), "consumer.session.timeout.ms"),
    ):
        assert (found.value, found.is_sensitive) == (None, True)


def test_what_stands_before_a_value_by_reference_is_shown() -> None:
    config = BrokerConfig({"log.segment.bytes": ByReference("1234567")}, {}, {"log.segment.bytes": "2000000"})
    found = entry(config.describe_broker(), "log.segment.bytes")
    assert (found.value, found.is_sensitive) == ("2000000", False)
    assert origins(found) == [
        "log.segment.bytes=2000000@2",
        "log.segment.bytes=None@4",
        "log.segment.bytes=1073741824@5",
    ]
    own = entry(config.describe_topic({"segment.bytes": "3000000"}), "segment.bytes")
    assert (own.value, own.is_sensitive) == ("3000000", False)


def test_the_id_of_a_node_by_reference_is_hidden_under_both_names() -> None:
    config = BrokerConfig({"node.id": ByReference("4711")})
    assert (config.node_id, config.broker_id) == (4711, 4711)
    assert "4711" not in repr(config.describe_broker())
