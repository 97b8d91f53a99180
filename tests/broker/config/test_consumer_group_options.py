"""What a consumer group sets for itself: its rows, the broker's bounds, and what counts when either changes."""

import pytest

from odradek.broker.config.broker_config import BrokerConfig, ConfigSource
from odradek.broker.config.broker_options import BROKER_OPTIONS
from odradek.broker.config.consumer_group_options import CONSUMER_GROUP_OPTIONS, group_row, highest_of, lowest_of
from odradek.broker.config.option import ConfigError

SESSION, HEARTBEAT, INTERVAL = (
    "consumer.session.timeout.ms",
    "consumer.heartbeat.interval.ms",
    "consumer.assignment.interval.ms",
)
ROWS = CONSUMER_GROUP_OPTIONS.values()


def test_each_option_is_the_brokers_of_the_longer_name_and_lies_within_its_bounds() -> None:
    assert list(CONSUMER_GROUP_OPTIONS) == sorted((SESSION, HEARTBEAT, INTERVAL))
    for row in ROWS:
        synonym = BROKER_OPTIONS[row.synonym]
        assert (row.synonym, row.default, row.kind) == (f"group.{row.name}", synonym.default, synonym.kind)
        lowest, highest = BROKER_OPTIONS[lowest_of(row.name)], BROKER_OPTIONS[highest_of(row.name)]
        assert lowest.default <= row.default <= highest.default


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("share.session.timeout.ms", "share groups"),
        ("streams.num.standby.replicas", "streams groups"),
        ("consumer.assignor.offload.enable", "by the coordinator itself"),
        ("group.consumer.session.timeout.ms", f"for a group it is {SESSION}"),
        ("consumer.sesion.timeout.ms", f"did you mean {SESSION}?"),
        ("nope", "Unknown group config name: nope"),
    ],
)
def test_options_of_other_groups_and_unknown_ones_are_refused_with_a_sentence(name: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why.replace("?", "[?]")):
        group_row(name)


@pytest.mark.parametrize(
    ("name", "value", "bound"),
    [
        (SESSION, "44999", "group.consumer.min.session.timeout.ms, which is 45000"),
        (SESSION, "60001", "group.consumer.max.session.timeout.ms, which is 60000"),
        (HEARTBEAT, "4999", "group.consumer.min.heartbeat.interval.ms, which is 5000"),
        (HEARTBEAT, "15001", "group.consumer.max.heartbeat.interval.ms, which is 15000"),
        (INTERVAL, "15001", "group.consumer.max.assignment.interval.ms, which is 15000"),
    ],
)
def test_a_value_outside_of_the_brokers_bounds_is_refused(name: str, value: str, bound: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} must be .* {bound}"):
        BrokerConfig().check_group({name: value})


def test_a_session_is_longer_than_the_interval_of_heartbeats_also_the_brokers() -> None:
    config = BrokerConfig(
        {"group.consumer.min.session.timeout.ms": "1000", "group.consumer.min.heartbeat.interval.ms": "1"}
    )
    config.check_group({SESSION: "5001"})
    config.check_group({SESSION: "1001", HEARTBEAT: "1000"})
    for overrides in ({SESSION: "5000"}, {SESSION: "1000", HEARTBEAT: "1000"}):
        with pytest.raises(ConfigError, match=f"{SESSION} must be greater than {HEARTBEAT}"):
            config.check_group(overrides)


def test_a_group_has_what_it_sets_else_what_the_broker_has() -> None:
    config = BrokerConfig({"group.consumer.heartbeat.interval.ms": "7000"})
    group = config.consumer_group({SESSION: "50000"})
    assert (group.consumer_session_timeout_ms, group.consumer_heartbeat_interval_ms) == (50_000, 7_000)
    assert config.consumer_group().consumer_session_timeout_ms == 45_000
    config.update({"group.consumer.assignment.interval.ms": "9"}, {})
    assert config.consumer_group({SESSION: "50000"}).consumer_assignment_interval_ms == 9


def test_what_was_stored_under_other_bounds_counts_as_the_nearest_within_them() -> None:
    config = BrokerConfig()
    stored = {SESSION: "1", HEARTBEAT: "999999", INTERVAL: "not a number", "of.tomorrow": "1"}
    group = config.consumer_group(stored)
    assert group.consumer_session_timeout_ms == 45_000
    assert group.consumer_heartbeat_interval_ms == 15_000
    assert group.consumer_assignment_interval_ms == 1_000


def test_an_option_is_described_with_the_brokers_behind_it() -> None:
    config = BrokerConfig({"group.consumer.session.timeout.ms": "46000"})
    [entry] = config.describe_group({SESSION: "50000"}, [SESSION, "nope"])
    assert (entry.value, entry.source, entry.is_read_only) == ("50000", ConfigSource.GROUP, False)
    assert [(each.name, each.value, each.source) for each in entry.synonyms] == [
        (SESSION, "50000", ConfigSource.GROUP),
        (f"group.{SESSION}", "46000", ConfigSource.STATIC_BROKER),
        (f"group.{SESSION}", "45000", ConfigSource.DEFAULT),
    ]
    assert [each.value for each in config.describe_group({})] == ["1000", "5000", "46000"]


def test_the_same_mapping_has_one_view_until_the_broker_changes() -> None:
    """Each heartbeat asks for it."""
    config, overrides = BrokerConfig(), {"consumer.session.timeout.ms": "50000"}
    view = config.consumer_group(overrides)
    assert config.consumer_group(overrides) is view
    assert config.consumer_group({**overrides}) is not view
    config.update({"group.consumer.max.session.timeout.ms": "49000"}, {})
    assert config.consumer_group(overrides).consumer_session_timeout_ms == 49_000
