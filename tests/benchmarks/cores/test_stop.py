"""A stop is timed while a load runs, and only then."""

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from benchmarks.cores.core_servers import supervised
from benchmarks.cores.stop import require_running, stopped_under_load
from benchmarks.harness.plan import MEBIBYTE, Plan
from benchmarks.load.load import LoadResult
from benchmarks.load.replies import LoadFailed


def test_the_processes_are_stopped_in_the_middle_of_a_load(tmp_path: Path) -> None:
    plan = Plan(cluster_slice_bytes=4 * MEBIBYTE)
    with ThreadPoolExecutor(1) as threads, supervised(tmp_path / "data") as supervisor:
        assert 0 < stopped_under_load(supervisor, plan, threads) < 30
        assert not supervisor.is_running


def test_a_load_that_is_over_is_no_load() -> None:
    running: Future[LoadResult] = Future()
    require_running(running)
    running.set_result(LoadResult(1.0, 1.0, 1))
    with pytest.raises(LoadFailed, match="over before the stop"):
        require_running(running)
