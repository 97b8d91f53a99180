"""What keeps the loop busy does what it says, against a real Odradek; what its page says is put into words."""

from math import inf
from pathlib import Path

from benchmarks.harness.bench import Bench
from benchmarks.harness.metrics_page import Histogram
from benchmarks.harness.plan import MEBIBYTE, Plan
from benchmarks.harness.servers import running_odradek
from benchmarks.loop_lag import Busy, forget, shares_of


def test_shares_are_told_by_the_bounds_of_their_buckets() -> None:
    lag = Histogram(((0.001, 600.0), (0.05, 999.0), (inf, 1000.0)))
    assert shares_of(lag) == "1,000 samples, p50 ≤ 1 ms, p99 ≤ 50 ms, p99.9 ≤ 50 ms, p100 ≤ inf ms"


def test_segments_roll_and_go_while_records_are_synced_and_cold_logs_are_read(tmp_path: Path) -> None:
    plan = Plan(run_bytes=8 * MEBIBYTE, filling_bytes=128 * MEBIBYTE)
    bench = Bench(plan, tmp_path, [], lambda line: None)
    often = ("--set", "log.initial.task.delay.ms=20", "--set", "log.retention.check.interval.ms=20")
    with running_odradek(tmp_path / "data", often) as server:
        busy = Busy(bench, server)
        text = busy.run()
    assert "synced" in text
    assert "cold passes" in text
    assert busy.other_cores >= 0


def test_a_log_is_taken_out_of_the_page_cache_without_being_changed(tmp_path: Path) -> None:
    log = tmp_path / "00000000000000000000.log"
    log.write_bytes(b"records")
    forget(tmp_path)
    assert log.read_bytes() == b"records"
