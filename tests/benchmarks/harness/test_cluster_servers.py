"""A cluster of three real brokers: its processes, their addresses, and a broker that is struck down and comes back."""

import signal
from pathlib import Path

import pytest

from benchmarks.harness.cluster_servers import Cluster, Member
from benchmarks.load.wire import served_keys
from odradek.broker.version import VERSION
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
