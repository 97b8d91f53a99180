"""A few topics in a real cluster are created, waited for, and looked at while nothing happens."""

import pytest

from benchmarks.harness.cluster_servers import Cluster
from benchmarks.harness.plan import Plan
from benchmarks.harness.replicated_topics import topics_of
from benchmarks.load.wire import delete_topic
from benchmarks.many_topics import ManyTopics, is_full, run_many_topics, wait_until_full
from odradek.protocol.messages.metadata import MetadataResponsePartition, MetadataResponseTopic


def topic(in_sync: list[int], leader: int = 1, partitions: int = 3) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name="t",
        partitions=[
            MetadataResponsePartition(
                partition_index=index, leader_id=leader, replica_nodes=[1, 2, 3], isr_nodes=in_sync
            )
            for index in range(partitions)
        ],
    )


def test_a_topic_is_there_when_all_of_it_is_led_and_in_sync() -> None:
    assert is_full(topic([1, 2, 3]))
    assert not is_full(topic([1, 2]))
    assert not is_full(topic([1, 2, 3], leader=-1))
    assert not is_full(topic([1, 2, 3], partitions=2))
    assert not is_full(MetadataResponseTopic(error_code=3, name="t", partitions=[]))


def test_topics_are_created_and_their_cost_is_told(cluster: Cluster) -> None:
    done = run_many_topics(cluster, Plan(many_topics=4, many_topics_idle_s=0.5))
    assert done.seconds > 0
    assert 0 <= done.percent < 300
    assert done.megabytes > 50
    assert "etcd" in str(done)
    with cluster.members[1].wire() as wire:
        names = [f"many-{number}" for number in range(4)]
        assert all(map(is_full, topics_of(wire, names)))
        for name in names:
            delete_topic(wire, name)


def test_topics_that_do_not_come_are_not_waited_for_for_ever(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.many_topics.READY_TIMEOUT_S", 0.1)
    with cluster.members[1].wire() as wire, pytest.raises(TimeoutError, match="1 topics are not in sync"):
        wait_until_full(wire, ["never-there"])


def test_brokers_and_etcd_count_together() -> None:
    assert ManyTopics(1.0, 2.0, 0.5, 100.0).percent == 2.5
