"""The rows hold together: defaults are valid, topic options and their broker options agree, names are attributes."""

from typing import Any

import pytest

from odradek.broker.config.broker_options import BROKER_OPTIONS, BrokerOptions
from odradek.broker.config.option import LONG_MAX, ConfigError, ConfigType, Dynamic, Effect, Option
from odradek.broker.config.topic_options import TOPIC_OPTIONS, TopicOptions

ALL = [*TOPIC_OPTIONS.values(), *BROKER_OPTIONS.values()]


@pytest.mark.parametrize("row", ALL, ids=lambda row: row.name)
def test_a_default_is_allowed_and_comes_back(row: Option[Any]) -> None:
    if row.default_text is None:
        assert row.default is None
    else:
        assert row.parse(row.default_text) == row.default
    assert row.doc.endswith((".", "`.")), "a sentence"


@pytest.mark.parametrize("row", TOPIC_OPTIONS.values(), ids=lambda row: row.name)
def test_a_topic_option_agrees_with_its_broker_option(row: Option[Any]) -> None:
    if not row.synonym:
        return
    broker_row = BROKER_OPTIONS[row.synonym]
    assert broker_row.kind is row.kind
    assert (broker_row.minimum, broker_row.maximum, broker_row.choices) == (row.minimum, row.maximum, row.choices)
    assert (broker_row.refuse is None) == (row.refuse is None)
    assert broker_row.effect is row.effect
    assert broker_row.dynamic in (Dynamic.CLUSTER_WIDE, Dynamic.ALL_BROKERS), (
        "what topics inherit may change while the broker runs"
    )
    default = broker_row.default
    for fallback in broker_row.fallbacks:
        if default is None and (coarse := BROKER_OPTIONS[fallback.name].default) is not None:
            default = coarse * fallback.factor
    assert default == row.default


def test_rows_stand_in_order_of_their_names() -> None:
    for rows in (TOPIC_OPTIONS, BROKER_OPTIONS):
        assert list(rows) == sorted(rows)
    assert len(TOPIC_OPTIONS) == 34
    assert all(getattr(TopicOptions, row.attribute) is row for row in TOPIC_OPTIONS.values())
    assert all(getattr(BrokerOptions, row.attribute) is row for row in BROKER_OPTIONS.values())


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("remote.log.copy.disable", "true", "tiered storage is not built"),
        ("remote.log.delete.on.disable", "true", "tiered storage is not built"),
        ("remote.storage.enable", "true", "tiered storage is not built"),
    ],
)
def test_what_is_not_built_is_refused_with_a_sentence(name: str, value: str, reason: str) -> None:
    """For the topic, and for the broker from which topics inherit."""
    row = TOPIC_OPTIONS[name]
    for each in (row, BROKER_OPTIONS[row.synonym]) if row.synonym else (row,):
        with pytest.raises(ConfigError, match=rf"^Invalid value {value} for configuration {each.name}: .*{reason}"):
            each.parse(value)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("cleanup.policy", "compact", ("compact",)),
        ("cleanup.policy", "compact,delete", ("compact", "delete")),
        ("compression.type", "zstd", "zstd"),
        ("compression.type", "uncompressed", "uncompressed"),
        ("message.timestamp.type", "LogAppendTime", "LogAppendTime"),
        ("message.timestamp.before.max.ms", "1000", 1000),
        ("message.timestamp.after.max.ms", "9223372036854775807", LONG_MAX),
        ("flush.messages", "1", 1),
        ("flush.ms", "0", 0),
    ],
)
def test_what_a_log_does_is_for_topic_and_broker_to_say(name: str, value: str, expected: object) -> None:
    topic_row = TOPIC_OPTIONS[name]
    for row in (topic_row, BROKER_OPTIONS[topic_row.synonym]):
        assert row.parse(value) == expected
        assert row.effect is Effect.BUILT


def test_what_is_kept_without_effect_belongs_to_parts_that_are_not_built() -> None:
    stored = {row.name for row in ALL if row.effect is Effect.STORED}
    assert stored == {
        "local.retention.bytes",
        "local.retention.ms",
        "log.cleaner.threads",
        "log.local.retention.bytes",
        "log.local.retention.ms",
    }


@pytest.mark.parametrize("text", ["*", "0:1", "0:1,2:3", ""])
def test_throttled_replicas(text: str) -> None:
    assert TopicOptions.leader_replication_throttled_replicas.parse(text) is not None


@pytest.mark.parametrize("text", ["x", "0:1,x", "0:", "*,0:1", "0:1:2"])
def test_wrong_throttled_replicas(text: str) -> None:
    with pytest.raises(ConfigError, match=r"it must be \* or a list of PARTITION:BROKER"):
        TopicOptions.follower_replication_throttled_replicas.parse(text)


def test_other_bounds() -> None:
    gzip = BrokerOptions.compression_gzip_level
    assert [gzip.parse(text) for text in ("-1", "1", "9")] == [-1, 1, 9]
    for text in ("0", "10", "-2"):
        with pytest.raises(ConfigError, match="between 1 and 9"):
            gzip.parse(text)
    assert BrokerOptions.listeners.parse("A://:1,B://[::1]:2") == ("A://:1", "B://[::1]:2")
    for text in ("127.0.0.1:9092", "A://h:1,A://h:2"):
        with pytest.raises(ConfigError, match="for configuration listeners"):
            BrokerOptions.listeners.parse(text)
    assert BrokerOptions.listeners.kind is ConfigType.LIST
