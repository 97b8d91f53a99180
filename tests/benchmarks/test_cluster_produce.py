"""A small run against three real brokers is measured, read back, and looked at on every replica."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import cluster_produce
from benchmarks.cluster_produce import PARTITIONS, compare_leaders, load_of, measured, run_cluster_produce
from benchmarks.harness.cluster_servers import Cluster
from benchmarks.harness.plan import MEBIBYTE
from benchmarks.harness.readback import LogDiffers
from benchmarks.harness.replicated_topics import replicated_topic
from benchmarks.load.frames import Load


def test_the_load_is_the_issues() -> None:
    load = load_of("t", 2 << 30)
    assert (load.batch_bytes, load.in_flight, load.acks) == (16 * 1024, 5, -1)
    assert (load.connections, load.partitions) == (12, 12)
    assert not load.is_shared


def test_a_run_is_measured_and_leaves_nothing(cluster: Cluster) -> None:
    run = run_cluster_produce(cluster, load_of("produced", 12 * MEBIBYTE), is_dumped=False)
    assert run.speed == run.values["MB/s"] > 0
    assert run.values["s/GB"] > 0
    assert run.values["store s/GB"] >= 0
    for member in cluster.members.values():
        assert list(member.data_dir.glob("produced-*")) == []


@pytest.mark.java
def test_every_replica_holds_the_batches_as_apache_kafkas_tool_sees_them(cluster: Cluster) -> None:
    run_cluster_produce(cluster, load_of("dumped", 12 * MEBIBYTE))


def test_every_directory_is_dumped(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    dumped: list[Path] = []

    def compare(directories: Sequence[Path], _load: Load) -> None:
        dumped.extend(directories)

    monkeypatch.setattr(cluster_produce, "compare_replicas", compare)
    run_cluster_produce(cluster, load_of("all", 2 * MEBIBYTE))
    assert dumped == [member.data_dir for member in cluster.members.values()]


def test_leaders_that_hold_something_else_are_noticed(cluster: Cluster) -> None:
    load = load_of("differs", 3 * MEBIBYTE)
    with replicated_topic(cluster, load.topic, PARTITIONS) as leaders:
        measured(cluster, load, leaders, 0)
        compare_leaders(cluster, load, leaders)
        with pytest.raises(LogDiffers, match="is not the one that was sent"):
            compare_leaders(cluster, replace(load, timestamp_ms=load.timestamp_ms + 1), leaders)
        with pytest.raises(LogDiffers, match="sent were"):
            compare_leaders(cluster, replace(load, total_bytes=2 * load.total_bytes), leaders)
