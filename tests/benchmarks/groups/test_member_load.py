"""Many members join a real broker, which is killed meanwhile; no turn of its loop is long, and a long one is seen."""

import asyncio
import json
import signal
import time
from pathlib import Path

import pytest

from benchmarks.groups.member_load import STALL_BAR, member_load
from benchmarks.groups.watched_broker import watch


def test_no_turn_of_the_loop_is_long_while_many_join(tmp_path: Path) -> None:
    said: list[str] = []
    outcome = member_load(tmp_path / "data", 60, 150, said.append)
    assert len(said) == 4
    assert [line.name for line in outcome.lines if not line.is_met] == [], said
    assert str(STALL_BAR) == "≤ 50"


def test_the_longest_turn_is_told_with_what_it_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processor time counts, and not that of sleep."""
    handlers: list[object] = []

    def handle(_: int, handler: object) -> None:
        handlers.append(handler)

    monkeypatch.setattr(signal, "signal", handle)
    monkeypatch.setattr(asyncio.Handle, "_run", vars(asyncio.Handle)["_run"])  # put back afterwards
    report = tmp_path / "turns.json"
    watch(report)

    async def compute() -> None:
        time.sleep(0.05)  # what must not count
        until_s = time.thread_time() + 0.02
        while time.thread_time() < until_s:
            pass

    async def main() -> None:
        await asyncio.create_task(compute(), name="computing")

    with asyncio.Runner() as runner:
        runner.run(main())
    tell, *_ = handlers  # the others are those of asyncio.Runner
    assert callable(tell)
    tell()
    ms, what = json.loads(report.read_text())
    assert what == "computing"
    assert 20 <= ms < 50
    tell()
    assert json.loads(report.read_text()) == [0.0, ""], "since the last time"
