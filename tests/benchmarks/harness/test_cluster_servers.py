"""A cluster of three real brokers: its processes, their addresses, and a broker that is struck down and comes back."""

import signal
from pathlib import Path

import pytest

from benchmarks.harness.cluster_servers import Cluster, Member, running_kafka_cluster
from benchmarks.harness.replicated_topics import controller_of, replicated_topic, restore_leaders
from benchmarks.load.wire import served_keys
from odradek.broker.version import VERSION
from processes.apache_kafka import quick_jvm
from processes.kafka_nodes import NODE_IDS


def test_a_cluster_has_three_brokers_and_an_etcd_each_a_process_of_its_own(cluster: Cluster) -> None:
    assert str(cluster) == f"Odradek {VERSION}"
    assert tuple(cluster.members) == NODE_IDS
    assert len(set(cluster.pids)) == len(NODE_IDS) + 1
    assert cluster.bootstrap.count(",") == 2
    for member in cluster.members.values():
        assert f"{member.process.host}:{member.process.port}" == member.address
        with member.wire() as wire:
            assert 0 in served_keys(wire)


def test_a_broker_that_was_killed_is_back_at_its_address(cluster: Cluster) -> None:
    member = cluster.members[2]
    before, address = member.process.pid, member.address
    member.strike(signal.SIGKILL)
    member.revive()
    assert member.address == address
    assert member.process.pid != before
    with member.wire() as wire:
        assert 0 in served_keys(wire)


def test_files_of_a_topic_that_stay_are_not_waited_for_for_ever(
    tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.harness.servers.GONE_TIMEOUT_S", 0.1)
    (tmp_path / "stays-0").mkdir()
    alone = Cluster("Odradek", "1", {1: Member(1, cluster.members[1].process, tmp_path)})
    with pytest.raises(TimeoutError, match="stays-0 is still there"):
        alone.wait_gone("stays")
    alone.wait_gone("goes")


@pytest.mark.java
@pytest.mark.slow
def test_apache_kafka_runs_as_three_nodes_that_replicate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.harness.cluster_servers.OWN_JVM", quick_jvm())
    # Else its first look for what is to be deleted comes half a minute after the start.
    with running_kafka_cluster(tmp_path, {"log.initial.task.delay.ms": "500"}) as kafka:
        assert kafka.etcd_pids == []
        assert len(set(kafka.pids)) == len(NODE_IDS)
        with replicated_topic(kafka, "t", 3) as leaders:
            assert sorted(leaders) == [1, 2, 3]
            restore_leaders(kafka, "t", 3)
        assert controller_of(kafka).node_id in NODE_IDS
