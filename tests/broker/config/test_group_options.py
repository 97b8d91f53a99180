"""The options of coordinators of groups: how they are read, and who goes by them."""

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.broker_options import BROKER_OPTIONS
from odradek.broker.config.group_options import GroupOptions
from odradek.broker.config.option import ConfigError, Dynamic, rows
from odradek.broker.group.group_host import GroupOptions as ReadByGroups
from odradek.broker.group.offset_coordinator import OffsetOptions as ReadByOffsets
from odradek.broker.launch.memory_defaults import with_defaults

GROUP_OPTIONS = rows(GroupOptions)
OF_THE_TOPIC = {
    "offsets.topic.compression.codec",
    "offsets.topic.num.partitions",
    "offsets.topic.replication.factor",
    "offsets.topic.segment.bytes",
}


def test_they_are_options_of_a_broker_in_order_of_their_names() -> None:
    assert list(GROUP_OPTIONS) == sorted(GROUP_OPTIONS)
    assert GROUP_OPTIONS.items() <= BROKER_OPTIONS.items()


def test_whatever_groups_read_there_is_and_nothing_else() -> None:
    read = {
        name for owner in (ReadByGroups, ReadByOffsets) for name in vars(owner) if name.startswith(("group", "off"))
    }
    read |= {"offsets_retention_check_interval_ms", "offsets_commit_timeout_ms", "group_coordinator_append_linger_ms"}
    assert {row.attribute for row in GROUP_OPTIONS.values() if row.name not in OF_THE_TOPIC} == read
    config = BrokerConfig({})
    assert all(getattr(config, name) == getattr(GroupOptions, name).default for name in read)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("group.consumer.assignors", "org.apache.kafka.clients.consumer.RangeAssignor"),
        ("group.consumer.assignors", "uniform,sticky"),
        ("group.consumer.migration.policy", "sideways"),
        ("group.max.size", "0"),
        ("offsets.commit.timeout.ms", "0"),
        ("offsets.retention.minutes", "0"),
        ("offsets.retention.check.interval.ms", "0"),
        ("offsets.topic.compression.codec", "5"),
        ("offsets.topic.compression.codec", "zstd"),
        ("offsets.topic.num.partitions", "0"),
        ("offsets.topic.replication.factor", "0"),
        ("offsets.topic.replication.factor", "32768"),
        ("offsets.topic.segment.bytes", "0"),
        ("group.coordinator.append.linger.ms", "-2"),
    ],
)
def test_what_makes_no_sense_is_refused(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=rf"^Invalid value {value} for configuration {name}: "):
        GROUP_OPTIONS[name].parse(value)


def test_one_of_them_may_be_changed_while_the_broker_runs_as_in_kafka() -> None:
    changeable = [row.name for row in GROUP_OPTIONS.values() if row.dynamic is not Dynamic.READ_ONLY]
    assert changeable == ["group.consumer.assignment.interval.ms"]


def test_in_memory_a_new_group_waits_for_nobody_unless_told_so() -> None:
    name = GroupOptions.group_initial_rebalance_delay_ms.name
    for memory, static, delay_ms in ((True, {}, 0), (False, {}, 3000), (True, {name: "50"}, 50)):
        assert BrokerConfig(with_defaults(static, memory=memory)).group_initial_rebalance_delay_ms == delay_ms
