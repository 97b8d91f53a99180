"""Which value counts, where it came from, how it is described and changed: in Kafka's layers, order and words."""

import logging

import pytest

from odradek.broker.config.alterations import new_topic_overrides
from odradek.broker.config.broker_config import (
    BrokerConfig,
    ConfigEntry,
    ConfigError,
    ConfigSource,
    load_static,
)
from odradek.broker.config.broker_options import BROKER_OPTIONS
from odradek.broker.config.kafka_options import NOT_HERE
from odradek.broker.config.option import ConfigType
from odradek.broker.config.topic_options import TOPIC_OPTIONS
from odradek.protocol.errors import ErrorCode

DEFAULT = ConfigSource.DEFAULT
_MIB = 1024 * 1024


def entry(entries: list[ConfigEntry], name: str) -> ConfigEntry:
    (found,) = [each for each in entries if each.name == name]
    return found


def origins(entry: ConfigEntry) -> list[str]:
    return [f"{synonym.name}={synonym.value}@{int(synonym.source)}" for synonym in entry.synonyms]


def refusal(error: ErrorCode, message: str) -> "pytest.RaisesExc[ConfigError]":
    return pytest.RaisesExc(ConfigError, check=lambda caught: (caught.code, caught.message) == (error, message))


# -- which value counts -----------------------------------------------------------------------------------------------


def test_every_option_has_a_typed_value() -> None:
    broker = BrokerConfig()
    topic = broker.topic()
    for row in BROKER_OPTIONS.values():
        assert getattr(broker, row.attribute) == row.default
    for row in TOPIC_OPTIONS.values():
        assert getattr(topic, row.attribute) == row.default
    assert topic.segment_bytes + broker.num_partitions == 1024 * _MIB + 1
    assert topic.producer_id_expiration_ms == 86_400_000


def test_the_first_layer_that_has_a_value_counts() -> None:
    name = "log.segment.bytes"
    static, default, dynamic = {name: "2000000"}, {name: "3000000"}, {name: "4000000"}
    assert BrokerConfig(static).log_segment_bytes == 2_000_000
    assert BrokerConfig(static, default).log_segment_bytes == 3_000_000
    config = BrokerConfig(static, default, dynamic)
    assert config.log_segment_bytes == config.topic().segment_bytes == 4_000_000
    assert config.topic({"segment.bytes": "5000000"}).segment_bytes == 5_000_000
    config.update(default, {})
    assert config.log_segment_bytes == config.topic().segment_bytes == 3_000_000
    config.update({}, {})
    assert config.log_segment_bytes == 2_000_000


@pytest.mark.parametrize(
    ("static", "retention_ms"),
    [
        ({}, 604_800_000),
        ({"log.retention.hours": "2"}, 7_200_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, 180_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3", "log.retention.ms": "4"}, 4),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.minutes": "-1", "log.retention.hours": "2"}, -1),
    ],
)
def test_the_finest_unit_counts(static: dict[str, str], retention_ms: int) -> None:
    config = BrokerConfig(static)
    assert config.topic().retention_ms == retention_ms
    assert config.topic({"retention.ms": "9"}).retention_ms == 9


def test_views_of_topics_are_kept_by_their_overrides() -> None:
    config = BrokerConfig()
    overrides = {"segment.bytes": "2000000"}
    view = config.topic(overrides)
    assert config.topic(overrides) is view
    assert config.topic() is config.topic()
    assert config.topic(dict(overrides)) is not view
    config.update({}, {"log.index.interval.bytes": "1"})
    assert config.topic(overrides) is not view
    assert config.topic(overrides).index_interval_bytes == 1
    assert view.index_interval_bytes == 4096, "who holds a view keeps it"


def test_views_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odradek.broker.config.broker_config.VIEWS_MAX", 3)
    config = BrokerConfig()
    for number in range(1, 20):
        # Each mapping is forgotten at once, so that ids are given again.
        assert config.topic({"segment.ms": str(number)}).segment_ms == number


@pytest.mark.parametrize("static", [{"node.id": "7"}, {"broker.id": "7"}, {"node.id": "7", "broker.id": " 07"}])
def test_the_older_and_the_newer_name_of_the_node_id(static: dict[str, str]) -> None:
    config = BrokerConfig(static)
    assert (config.node_id, config.broker_id) == (7, 7)


def test_the_data_directory() -> None:
    assert BrokerConfig().data_dirs == ("./odradek-data",)
    assert BrokerConfig({"log.dir": "/a"}).data_dirs == ("/a",)
    assert BrokerConfig({"log.dir": "/a", "log.dirs": "/b,/c"}).data_dirs == ("/b", "/c")


@pytest.mark.parametrize(
    ("static", "message"),
    [
        ({"num.partitons": "1"}, "Unknown broker config name: num.partitons; did you mean num.partitions?"),
        (
            {"num.partitions": "0"},
            "Invalid value 0 for configuration num.partitions: it must be a whole number of 32 bits of at least 1.",
        ),
        ({"node.id": "1", "broker.id": "2"}, "broker.id (2) and node.id (1) are one and the same; they must be equal."),
        ({"listeners": ""}, "Invalid value for configuration listeners: it must name at least one NAME://HOST:PORT."),
        (
            {"log.cleanup.policy": "shrink"},
            "Invalid value shrink for configuration log.cleanup.policy: it must be a list of compact, delete.",
        ),
    ],
)
def test_a_start_is_refused_with_one_sentence(static: dict[str, str], message: str) -> None:
    with refusal(ErrorCode.INVALID_CONFIG, message):
        BrokerConfig(static)


def test_what_is_stored_and_not_usable_is_left_out_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        config = BrokerConfig({"log.segment.bytes": "2000000"}, {"from.the.future": "1"}, {"log.segment.bytes": "x"})
        assert config.log_segment_bytes == 2_000_000
        topic = config.topic({"retention.ms": "-7", "also.new": "", "segment.ms": "5"})
        assert (topic.retention_ms, topic.segment_ms) == (604_800_000, 5)
        assert topic.overrides == {"segment.ms": "5"}
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 4
    assert "stored configuration of all brokers: 'from.the.future' is unknown and has no effect" in caplog.text
    assert "Invalid value -7 for configuration retention.ms" in caplog.text


def test_what_has_no_effect_is_warned_of_once_with_the_nearest_option(caplog: pytest.LogCaptureFixture) -> None:
    """And again when it was deleted and is set again, but not whenever another option is changed."""
    unknown = {"log.retention.mss": "1", "forged\nline": "x", "num.io.threads": "secret"}
    with caplog.at_level(logging.WARNING):
        config = BrokerConfig()
        for stored in (unknown, unknown | {"log.retention.ms": "1000"}, {}, {"log.retention.mss": "2"}):
            config.update({}, stored)
    mistyped = "stored configuration of this broker: 'log.retention.mss' is unknown and has no effect; did you mean "
    assert caplog.messages == [
        "stored configuration of this broker: 'forged\\nline' is unknown and has no effect",
        f"{mistyped}log.retention.ms?",
        "stored configuration of this broker: 'num.io.threads' has no effect here (one thread serves everything)",
        f"{mistyped}log.retention.ms?",
    ]


def test_of_very_many_options_without_effect_some_are_told(caplog: pytest.LogCaptureFixture) -> None:
    """A client may store thousands, and each name is compared with all there are."""
    BrokerConfig().update({f"no.such.{number}": "x" for number in range(1000)}, {})
    assert len(caplog.messages) == 21
    assert caplog.messages[-1] == "stored configuration of all brokers: 980 more have no effect"


def test_a_start_is_refused_with_all_mistakes_and_what_to_do_for_each() -> None:
    """As an operator brings Kafka's own server.properties."""
    static = {
        "num.io.threads": "8",
        "num.partitions": "none",
        "num.partitons": "1",
        "listener.name.secure.ssl.provider": "secret",
        "node.id": "1",
        "colour": "red",
        "broker.id": "2",
        "background.threads": "10",
        "num.network.threads": "3",
        "process.roles": "broker,controller",
    }
    with pytest.raises(ConfigError) as refused:
        BrokerConfig(static)
    assert str(refused.value).splitlines() == [
        "7 mistakes in the configuration of the broker:",
        "  num.io.threads, background.threads, num.network.threads are options of Apache Kafka's without effect here "
        "(one thread serves everything): remove them",
        "  listener.name.secure.ssl.provider is an option of Apache Kafka's without effect here (OpenSSL speaks TLS, "
        "with random numbers and algorithms of its own): remove it",
        "  process.roles is an option of Apache Kafka's without effect here (the metadata is not kept by KRaft; "
        "`metadata.store` says where it is): remove it",
        "  Invalid value none for configuration num.partitions: it must be a whole number of 32 bits of at least 1.",
        "  Unknown broker config name: num.partitons; did you mean num.partitions?",
        "  Unknown broker config name: colour",
        "  broker.id (2) and node.id (1) are one and the same; they must be equal.",
    ]


def test_all_mistakes_of_a_start_are_told_however_many_they_are() -> None:
    """An answer's text is cut; this goes to a terminal."""
    static = dict.fromkeys(NOT_HERE, "x") | {f"no.such.{number}": "x" for number in range(100)}
    with pytest.raises(ConfigError) as refused:
        BrokerConfig(static)
    assert [name for name in static if name not in str(refused.value)] == []
    assert len(str(refused.value).splitlines()) == 1 + len(set(NOT_HERE.values())) + 100
    of_one_reason = {name: "x" for name in NOT_HERE if name.startswith(("ssl.", "sasl."))}
    with pytest.raises(ConfigError, match="remove them") as refused:
        BrokerConfig(of_one_reason)
    assert [name for name in of_one_reason if name not in str(refused.value)] == []


def test_the_file_comes_before_the_command_line() -> None:
    text = "num.partitions=3\nlog.dirs=/data\n"
    assert load_static(text, ["num.partitions=4", "node.id=1"]) == {
        "num.partitions": "4",
        "log.dirs": "/data",
        "node.id": "1",
    }
    assert load_static(None, []) == {}
    with pytest.raises(ConfigError, match="not of the form name=value"):
        load_static(None, ["num.partitions"])


# -- describing: expected values are what Apache Kafka 4.3.1 answered -------------------------------------------------


def test_a_topic_without_anything_of_its_own() -> None:
    entries = BrokerConfig().describe_topic({})
    assert [each.name for each in entries] == sorted(TOPIC_OPTIONS)
    assert all((each.source, each.is_read_only, each.is_sensitive) == (DEFAULT, False, False) for each in entries)
    found = entry(entries, "segment.bytes")
    assert (found.value, found.type, found.documentation) == (
        "1073741824",
        ConfigType.INT,
        TOPIC_OPTIONS["segment.bytes"].doc,
    )
    assert origins(found) == ["log.segment.bytes=1073741824@5"]
    # The default of log.retention.hours counts, but Kafka lists nothing before the first log.retention.ms.
    assert (entry(entries, "retention.ms").value, entry(entries, "retention.ms").synonyms) == ("604800000", ())
    assert origins(entry(entries, "flush.ms")) == []
    assert origins(entry(entries, "remote.storage.enable")) == []


def test_what_is_not_usable_is_not_described() -> None:
    found = entry(BrokerConfig().describe_topic({"retention.ms": "-7"}), "retention.ms")
    assert (found.value, found.source, found.synonyms) == ("604800000", DEFAULT, ())


def test_synonyms_of_a_topic_in_every_layer() -> None:
    config = BrokerConfig(
        {"log.retention.hours": "24"},
        {"log.segment.bytes": "3000000"},
        {"log.segment.bytes": "2000000", "log.retention.ms": "1000000"},
    )
    entries = config.describe_topic({"segment.bytes": "4000000", "segment.ms": " 0100 ", "preallocate": "TRUE"})
    segment_bytes = entry(entries, "segment.bytes")
    assert (segment_bytes.value, segment_bytes.source) == ("4000000", ConfigSource.DYNAMIC_TOPIC)
    assert origins(segment_bytes) == [
        "segment.bytes=4000000@1",
        "log.segment.bytes=2000000@2",
        "log.segment.bytes=3000000@3",
        "log.segment.bytes=1073741824@5",
    ]
    retention_ms = entry(entries, "retention.ms")
    assert (retention_ms.value, retention_ms.source) == ("1000000", ConfigSource.DYNAMIC_BROKER)
    assert origins(retention_ms) == [
        "log.retention.ms=1000000@2",
        "log.retention.hours=24@4",
        "log.retention.hours=168@5",
    ]
    assert origins(entry(entries, "segment.ms")) == ["segment.ms=100@1"]
    assert entry(entries, "preallocate").value == "true"


def test_a_broker() -> None:
    config = BrokerConfig({"node.id": "1", "listeners": "A://h:1"}, {"max.connections": "7"}, {"log.roll.ms": "50"})
    entries = config.describe_broker()
    assert [each.name for each in entries] == sorted(BROKER_OPTIONS)
    node_id = entry(entries, "broker.id")
    assert (node_id.value, node_id.source, node_id.is_read_only) == ("1", ConfigSource.STATIC_BROKER, True)
    assert origins(node_id) == ["broker.id=1@4", "broker.id=-1@5"]
    connections = entry(entries, "max.connections")
    assert (connections.value, connections.source, connections.is_read_only) == (
        "7",
        ConfigSource.DYNAMIC_DEFAULT_BROKER,
        False,
    )
    assert origins(entry(entries, "log.roll.ms")) == ["log.roll.ms=50@2", "log.roll.hours=168@5"]
    retention = entry(entries, "log.retention.ms")
    assert (retention.value, retention.source, retention.synonyms) == (None, DEFAULT, ())
    assert origins(entry(entries, "log.retention.hours")) == ["log.retention.hours=168@5"]
    assert (entry(entries, "advertised.listeners").value, entry(entries, "listeners").value) == (None, "A://h:1")


def test_all_brokers() -> None:
    """The broker "" shows what is set for all at run time, and nothing else."""
    config = BrokerConfig({"num.partitions": "3"}, {"log.segment.bytes": "3000000"}, {"log.segment.bytes": "2000000"})
    (found,) = config.describe_default_broker()
    assert (found.name, found.value, found.source) == (
        "log.segment.bytes",
        "3000000",
        ConfigSource.DYNAMIC_DEFAULT_BROKER,
    )
    assert origins(found) == ["log.segment.bytes=3000000@3"]


def test_stored_options_that_are_unknown_are_sensitive_and_without_a_value() -> None:
    """Kafka 4.3.1's own answer, for one broker and for all."""
    config = BrokerConfig({}, {"for.all": "1", "for.both": "2"}, {"for.one": "3", "for.both": "4"})
    unknown = [each for each in config.describe_broker() if each.name.startswith("for.")]
    assert [(each.name, each.source, origins(each)) for each in unknown] == [
        ("for.all", ConfigSource.DYNAMIC_DEFAULT_BROKER, ["for.all=None@3"]),
        ("for.both", ConfigSource.DYNAMIC_BROKER, ["for.both=None@2", "for.both=None@3"]),
        ("for.one", ConfigSource.DYNAMIC_BROKER, ["for.one=None@2"]),
    ]
    for each in unknown:
        assert (each.value, each.is_sensitive, each.is_read_only) == (None, True, True)
        assert (each.type, each.documentation) == (ConfigType.UNKNOWN, None)
    assert [each.name for each in config.describe_default_broker()] == ["for.all", "for.both"]
    named = config.describe_broker({"for.one", "num.partitions"})
    assert [each.name for each in named] == ["num.partitions", "for.one"]


def test_only_what_was_asked_for() -> None:
    config = BrokerConfig({}, {"log.segment.bytes": "3000000", "max.connections": "5"})
    names = ["log.segment.bytes", "segment.bytes", "unknown"]
    assert [each.name for each in config.describe_topic({}, names)] == ["segment.bytes"]
    assert [each.name for each in config.describe_broker(names)] == ["log.segment.bytes"]
    assert [each.name for each in config.describe_default_broker(names)] == ["log.segment.bytes"]
    assert config.describe_topic({}, []) == []


@pytest.mark.parametrize("name", TOPIC_OPTIONS)
def test_what_is_described_can_be_set_again(name: str) -> None:
    """Tools read a topic's configuration, change a line, and send all of it back (AlterConfigs)."""
    value = entry(BrokerConfig().describe_topic({}), name).value
    overrides = new_topic_overrides({name: value})
    assert overrides == {name: value}
    found = entry(BrokerConfig().describe_topic(overrides), name)
    assert (found.value, found.source) == (value, ConfigSource.DYNAMIC_TOPIC)


def test_a_file_that_is_no_properties_file_is_refused_with_its_name_and_line() -> None:
    with pytest.raises(ConfigError, match=r"^server.properties, line 3: .* four hexadecimal digits"):
        load_static("# one\na=1\nb=\\u00x1", [], "server.properties")


@pytest.mark.parametrize("text", ["", "=1", " =1"])
def test_an_assignment_names_a_setting_and_a_value(text: str) -> None:
    with pytest.raises(ConfigError, match="is not of the form name=value"):
        load_static(None, [text])
