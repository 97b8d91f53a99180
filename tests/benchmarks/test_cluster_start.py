"""A cluster in one process, started for real: the record that stops the clock is on all replicas."""

import time
from pathlib import Path

from benchmarks.cluster_process import acknowledged, create_replicated
from benchmarks.cluster_start import TOPIC, started
from benchmarks.host.machine import resident_bytes
from processes.odradek_cluster import OdradekCluster


def test_the_first_record_of_a_new_cluster_and_of_one_started_again(tmp_path: Path) -> None:
    cluster = OdradekCluster(tmp_path / "cluster")
    try:
        assert started(cluster, is_new=True) > 0
        assert resident_bytes(cluster.pid) > 10_000_000
        cluster.terminate()
        assert started(cluster, is_new=False) > 0
        assert acknowledged((cluster.host, cluster.port), TOPIC, time.time_ns() // 1_000_000) == 2
        create_replicated((cluster.host, cluster.port), "other", 3)
        cluster.terminate()
    finally:
        cluster.close()


def test_the_record_is_there(tmp_path: Path) -> None:
    with OdradekCluster(tmp_path / "cluster") as cluster:
        create_replicated((cluster.host, cluster.port), TOPIC)
        assert acknowledged((cluster.host, cluster.port), TOPIC, 1) == 0
        found = (tmp_path / "cluster").glob(f"broker-*/{TOPIC}-0/*.log")
        assert sorted(path.parent.parent.name for path in found) == ["broker-1", "broker-2", "broker-3"]
