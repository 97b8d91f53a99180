"""A small log on two processes is read from both, with each size; who reads is known by the CPU that it took."""

from dataclasses import replace
from pathlib import Path

from benchmarks.cores.fetch import SIZES, run_cores_fetch, sink_speed
from benchmarks.harness.bench import Bench
from benchmarks.harness.cluster_servers import Cluster
from benchmarks.harness.plan import MEBIBYTE, Plan

PLAN = replace(Plan.small(), run_bytes=16 * MEBIBYTE)


def test_a_run_reads_everything_with_each_size(processes: Cluster, tmp_path: Path) -> None:
    bench = Bench(PLAN, tmp_path, [], lambda line: None)
    run = run_cores_fetch(bench, processes)
    for size in SIZES:
        assert run.values[size] > 0
        assert run.values[f"{size} s/GB"] > 0
    assert run.seconds > 0
    for member in processes.members.values():
        assert list(member.data_dir.glob("fetch-*")) == []


def test_the_generator_itself_is_measured_with_as_many_connections() -> None:
    assert sink_speed(PLAN, "64 KiB").median > 0
