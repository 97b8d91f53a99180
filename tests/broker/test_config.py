"""Which value counts, where it came from, how it is described and changed: in Kafka's layers, order and words."""

import logging
from collections.abc import Mapping

import pytest

from broker.config import (
    Alteration,
    BrokerConfig,
    ConfigEntry,
    ConfigError,
    ConfigSource,
    alter_broker,
    alter_topic,
    load_static,
    new_topic_overrides,
    replace_broker,
)
from broker.option import ConfigType, Dynamic
from broker.options import BROKER_OPTIONS
from broker.topic_options import TOPIC_OPTIONS
from protocol.configs import Operation
from protocol.errors import ErrorCode

SET, DELETE, APPEND, SUBTRACT = Operation.SET, Operation.DELETE, Operation.APPEND, Operation.SUBTRACT
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
    monkeypatch.setattr("broker.config.VIEWS_MAX", 3)
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
    assert "from.the.future is unknown to this version" in caplog.text
    assert "Invalid value -7 for configuration retention.ms" in caplog.text


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


def test_only_what_was_asked_for() -> None:
    config = BrokerConfig({}, {"log.segment.bytes": "3000000", "max.connections": "5"})
    names = ["log.segment.bytes", "segment.bytes", "unknown"]
    assert [each.name for each in config.describe_topic({}, names)] == ["segment.bytes"]
    assert [each.name for each in config.describe_broker(names)] == ["log.segment.bytes"]
    assert [each.name for each in config.describe_default_broker(names)] == ["log.segment.bytes"]
    assert config.describe_topic({}, []) == []


# -- changing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("current", "alterations", "expected"),
    [
        ({}, [("segment.ms", SET, " 07 ")], {"segment.ms": "7"}),
        ({"segment.ms": "7"}, [("segment.ms", SET, "8"), ("preallocate", SET, "TRUE")],
         {"segment.ms": "8", "preallocate": "true"}),
        ({"segment.ms": "7", "gone": "1"},
         [("segment.ms", DELETE, None), ("gone", DELETE, ""), ("never", DELETE, None)], {}),
        ({}, [("cleanup.policy", APPEND, "delete")], {"cleanup.policy": "delete"}),
        ({}, [("cleanup.policy", APPEND, "compact")], {"cleanup.policy": "delete,compact"}),
        ({"cleanup.policy": "delete"}, [("cleanup.policy", SUBTRACT, "delete,absent")], {"cleanup.policy": ""}),
        ({}, [("leader.replication.throttled.replicas", APPEND, "0:1, 1:2,0:1")],
         {"leader.replication.throttled.replicas": "0:1,1:2"}),
        ({"leader.replication.throttled.replicas": "0:1,1:2"},
         [("leader.replication.throttled.replicas", APPEND, "1:2,2:3")],
         {"leader.replication.throttled.replicas": "0:1,1:2,2:3"}),
        ({"leader.replication.throttled.replicas": "0:1,1:2"},
         [("leader.replication.throttled.replicas", SUBTRACT, "0:1")],
         {"leader.replication.throttled.replicas": "1:2"}),
        ({"from.the.future": "1"}, [("segment.ms", SET, "7")], {"from.the.future": "1", "segment.ms": "7"}),
    ],
)  # fmt: skip
def test_a_topic_is_altered(
    current: dict[str, str], alterations: list[tuple[str, int, str | None]], expected: Mapping[str, str]
) -> None:
    before = dict(current)
    assert alter_topic(current, [Alteration(*each) for each in alterations]) == expected
    assert current == before, "what is stored is not touched"


@pytest.mark.parametrize(
    ("alterations", "code", "message"),
    [
        ([("nosuch", SET, "1")], ErrorCode.INVALID_CONFIG, "Unknown topic config name: nosuch"),
        ([("log.segment.bytes", SET, "2000000")], ErrorCode.INVALID_CONFIG,
         "Unknown topic config name: log.segment.bytes; for a topic it is segment.bytes"),
        ([("retention.ms", APPEND, "1")], ErrorCode.INVALID_CONFIG,
         "Can't APPEND to key retention.ms because its type is not LIST."),
        ([("nosuch", SUBTRACT, "1")], ErrorCode.INVALID_CONFIG,
         "Can't SUBTRACT to key nosuch because its type is not LIST."),
        ([("retention.ms", SET, None)], ErrorCode.INVALID_REQUEST, "Null value not supported for : retention.ms"),
        ([("cleanup.policy", APPEND, None)], ErrorCode.INVALID_REQUEST,
         "Null value not supported for : cleanup.policy"),
        ([("retention.ms", 4, "1")], ErrorCode.INVALID_REQUEST, "Unknown operation 4 for configuration retention.ms"),
        ([("retention.ms", SET, "1"), ("retention.ms", DELETE, None)], ErrorCode.INVALID_REQUEST,
         "Error due to duplicate config keys : retention.ms"),
        ([("max.compaction.lag.ms", SET, "5")], ErrorCode.INVALID_CONFIG,
         "conflict topic config setting min.compaction.lag.ms (99) > max.compaction.lag.ms (5)"),
        ([("cleanup.policy", APPEND, "shrink")], ErrorCode.INVALID_CONFIG,
         "Invalid value delete,shrink for configuration cleanup.policy: it must be a list of compact, delete."),
        ([("segment.ms", SET, "7"), ("segment.bytes", SET, "13")], ErrorCode.INVALID_CONFIG,
         "Invalid value 13 for configuration segment.bytes: it must be a whole number of 32 bits of at least 1048576 "
         "(bytes)."),
    ],
)  # fmt: skip
def test_a_wrong_alteration_of_a_topic_is_refused(
    alterations: list[tuple[str, int, str | None]], code: ErrorCode, message: str
) -> None:
    with refusal(code, message):
        alter_topic({"min.compaction.lag.ms": "99"}, [Alteration(*each) for each in alterations])


def test_a_new_topic() -> None:
    assert new_topic_overrides({"segment.ms": " 7", "cleanup.policy": "delete , delete"}) == {
        "segment.ms": "7",
        "cleanup.policy": "delete",
    }
    with refusal(ErrorCode.INVALID_CONFIG, "Null value not supported for topic configs: a,b"):
        new_topic_overrides({"b": None, "a": None, "segment.ms": "1"})
    with refusal(ErrorCode.INVALID_CONFIG, "Unknown topic config name: retention; did you mean retention.ms?"):
        new_topic_overrides({"retention": "1"})
    with pytest.raises(ConfigError, match="conflict topic config setting"):
        new_topic_overrides({"min.compaction.lag.ms": "2", "max.compaction.lag.ms": "1"})


def test_a_broker_is_altered() -> None:
    alterations = [Alteration("log.segment.bytes", SET, " 2000000"), Alteration("log.roll.ms", DELETE, None)]
    current = {"log.roll.ms": "5", "max.connections": "3"}
    for per_broker in (True, False):
        assert alter_broker(current, alterations, per_broker=per_broker) == {
            "max.connections": "3",
            "log.segment.bytes": "2000000",
        }
        assert replace_broker({"log.roll.ms": "06"}, per_broker=per_broker) == {"log.roll.ms": "6"}


@pytest.mark.parametrize(
    ("name", "value", "code", "message"),
    [
        ("num.partitions", "4", ErrorCode.INVALID_REQUEST, "Cannot update these configs dynamically: [num.partitions]"),
        ("nosuch.broker", "1", ErrorCode.INVALID_CONFIG, "Unknown broker config name: nosuch.broker"),
        ("max.connections", None, ErrorCode.INVALID_REQUEST, "Null value not supported for : max.connections"),
        ("log.cleanup.policy", "shrink", ErrorCode.INVALID_CONFIG,
         "Invalid value shrink for configuration log.cleanup.policy: it must be a list of compact, delete."),
    ],
)  # fmt: skip
def test_a_wrong_alteration_of_a_broker_is_refused(name: str, value: str | None, code: ErrorCode, message: str) -> None:
    with refusal(code, message):
        alter_broker({}, [Alteration(name, SET, value)], per_broker=True)
    with refusal(code, message):
        replace_broker({name: value}, per_broker=True)


def test_what_belongs_to_one_broker_is_not_set_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BROKER_OPTIONS["listeners"], "dynamic", Dynamic.PER_BROKER)
    message = "Cannot update these configs at default cluster level, broker id must be specified: [listeners]"
    with refusal(ErrorCode.INVALID_REQUEST, message):
        alter_broker({}, [Alteration("listeners", SET, "A://h:1")], per_broker=False)
    assert alter_broker({}, [Alteration("listeners", SET, "A://h:1")], per_broker=True) == {"listeners": "A://h:1"}


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
