"""Work that is neither the server's nor our own nor the kernel's is told apart, by numbers worked out by hand."""

import os
import subprocess
import sys

import pytest

from benchmarks.host import work
from benchmarks.host.work import Watch, Work, disturbance_note


def test_work_of_anybody_else_is_what_is_left() -> None:
    before = Work(server=1.0, children=5.0, kernel=2.0, everybody=100.0, clock=50.0)
    after = Work(server=4.0, children=7.0, kernel=2.5, everybody=110.0, clock=60.0)
    assert after.since(before).other_cores == pytest.approx((10.0 - 3.0 - 2.0 - 0.5) / 10.0)


def test_ticks_may_disagree_a_little() -> None:
    assert Work(server=3.0, children=2.0, kernel=0.0, everybody=4.99, clock=10.0).other_cores == 0.0


def test_a_watch_sees_what_is_done_in_its_block() -> None:
    with Watch(os.getpid()) as watch:
        subprocess.run([sys.executable, "-c", "sum(range(3 * 10**6))"], check=True)
    assert 0 < watch.work.children < 60
    assert 0 < watch.work.clock < 60


def test_a_server_of_several_processes_is_their_sum_with_their_children(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "cpu_seconds", {1: 1.0, 2: 2.5, 3: 7.0}.__getitem__)
    monkeypatch.setattr(work, "waited_cpu_seconds", {1: 0.0, 2: 0.25, 3: 9.0}.__getitem__)
    assert Work.until_now(1, 2).server == 3.75
    assert Work.until_now().server == 0


def test_disturbed_runs_are_told_with_their_number() -> None:
    assert disturbance_note("x", 1, 10) == "x: 1 of 10 runs were disturbed, mostly by more than 0.2 busy cores"
