"""A short run at a steady rate against three real brokers is measured, and what is not there is missed."""

import pytest

from benchmarks.cluster_latency import RATE_PER_S, require_count, run_paced_client
from benchmarks.harness.cluster_servers import Cluster
from benchmarks.harness.readback import LogDiffers
from benchmarks.harness.replicated_topics import replicated_topic


def test_the_issues_rate_is_sent() -> None:
    assert RATE_PER_S == 2000


def test_a_run_is_measured_and_leaves_nothing(cluster: Cluster) -> None:
    run = run_paced_client("steady", cluster, 0.2, 0.5)
    assert 0 < run.values["p50"] <= run.values["p99"] <= run.values["p99.9"] <= run.values["max"]
    assert run.values["late p99"] < run.values["max"]
    assert run.speed == run.values["p50"]
    for member in cluster.members.values():
        assert list(member.data_dir.glob("steady-*")) == []


def test_records_that_are_missing_are_noticed(cluster: Cluster) -> None:
    with replicated_topic(cluster, "missing", 3) as leaders:
        require_count(cluster, "missing", leaders, 0)
        with pytest.raises(LogDiffers, match="holds 0 records, sent were 1"):
            require_count(cluster, "missing", leaders, 1)
