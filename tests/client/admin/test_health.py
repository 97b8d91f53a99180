"""What a partition lacks, from what brokers tell of it."""

import pytest

from odradek.client.admin.health import out_of_sync, partition_healths
from odradek.client.admin.replication import Reassignment
from odradek.client.admin.topics import PartitionDescription, TopicDescription
from odradek.client.topic_partition import TopicPartition

P0 = TopicPartition("orders", 0)


def topic(replicas: tuple[int, ...], isr: tuple[int, ...], leader: int = 1) -> TopicDescription:
    return TopicDescription("orders", None, False, (PartitionDescription(0, leader, 5, replicas, isr),))


@pytest.mark.parametrize(
    ("described", "min_insync", "lacks"),
    [
        (topic((1, 2, 3), (1, 2, 3)), 2, ()),
        (topic((1, 2, 3), (3, 1)), 2, ("is_under_replicated",)),
        (topic((1, 2, 3), (1,)), 2, ("is_under_replicated", "is_under_min_isr")),
        (topic((1, 2, 3), (), -1), 1, ("is_offline", "is_under_replicated", "is_under_min_isr")),
        (topic((1,), (1,)), 2, ()),
        (topic((1, 2), (1,), -1), 1, ("is_offline", "is_under_replicated")),
    ],
)
def test_what_a_partition_lacks(described: TopicDescription, min_insync: int, lacks: tuple[str, ...]) -> None:
    [health] = partition_healths([described], {}, {"orders": min_insync})
    names = ("is_offline", "is_under_replicated", "is_under_min_isr")
    assert tuple(name for name in names if getattr(health, name)) == lacks
    assert health.is_well == (not lacks)
    assert (health.partition, health.state) == (P0, described.partitions[0])


def test_where_min_insync_replicas_is_not_known_it_is_not_missed() -> None:
    [health] = partition_healths([topic((1, 2, 3), (1,))], {}, {})
    assert (health.is_under_replicated, health.is_under_min_isr) == (True, False)


def test_who_is_being_added_is_not_missed_yet_and_who_goes_still_counts() -> None:
    moving = {P0: Reassignment((4, 2, 1), adding=(4,), removing=(1,))}
    [health] = partition_healths([topic((4, 2, 1), (1, 2))], moving, {})
    assert health.is_well
    [health] = partition_healths([topic((4, 2, 1), (2,))], moving, {})
    assert health.is_under_replicated


def test_topics_whose_options_have_to_be_known_are_those_with_a_replica_out_of_sync() -> None:
    assert out_of_sync([topic((1, 2), (2, 1))]) == []
    assert out_of_sync([topic((1, 2), (2,))]) == ["orders"]
