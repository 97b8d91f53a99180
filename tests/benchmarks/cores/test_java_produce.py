"""What both brokers hold is counted, and a log with a gap is noticed."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.cores.core_servers import addresses_of
from benchmarks.cores.java_produce import held_by, run_cores_java_produce
from benchmarks.harness.bench import Bench
from benchmarks.harness.cluster_servers import Cluster
from benchmarks.harness.plan import MEBIBYTE, Plan
from benchmarks.harness.replicated_topics import led_by, replicated_topic
from benchmarks.load.frames import Load
from benchmarks.load.load import run_load_to


def test_the_records_of_a_brokers_partitions_are_counted(processes: Cluster) -> None:
    load = Load("counted", 4 * MEBIBYTE, time.time_ns() // 1_000_000, connections=4, partitions=4)
    with replicated_topic(processes, load.topic, 4, replicas=1) as leaders:
        run_load_to(addresses_of(processes, leaders), load)
        held = [held_by(processes, load.topic, node_id, led_by(node_id, leaders)) for node_id in processes.members]
    assert held == [load.record_count // 2] * 2


@pytest.mark.java
def test_a_run_of_the_tool_is_measured_and_leaves_nothing(processes: Cluster, tmp_path: Path) -> None:
    bench = Bench(replace(Plan.small(), run_bytes=MEBIBYTE), tmp_path, [], lambda line: None)
    run = run_cores_java_produce(bench, processes, 1024)
    assert run.values["records/s"] > 0
    assert [path for member in processes.members.values() for path in member.data_dir.glob("java-*")] == []
