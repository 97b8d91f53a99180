"""A small produce run against a real Odradek, the reader that compares its log, and the warm-up with given speeds."""

import dataclasses
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.frames import Load
from benchmarks.load import run_load
from benchmarks.produce import LogDiffers, Plan, Producing, Run, compare_log
from benchmarks.servers import Server
from benchmarks.wire import Wire, create_topic
from tests.odradek_broker import OdradekBroker

MEBIBYTE = 1024 * 1024
PLAN = Plan(runs=1, run_bytes=16 * MEBIBYTE, record_bytes=1024, warm_s=40, warm_s_max=100, rewarm_s=5)


@pytest.fixture
def odradek(tmp_path: Path) -> Iterator[Server]:
    with OdradekBroker(tmp_path / "data") as broker:
        yield Server("Odradek", "0", broker, broker.terminate, broker.data_dir)


def test_a_run_measures_compares_and_leaves_nothing_behind(odradek: Server) -> None:
    run, _dirty = Producing(PLAN, print).run(odradek)  # not smaller: the kernel counts CPU time by 10 ms
    assert run.megabytes_per_s > 1
    assert run.server_cpu_s_per_gb > 0
    assert run.seconds == pytest.approx(16 * 1.048576 / run.megabytes_per_s)
    assert list(odradek.data_dir.glob("produce-*")) == []


def test_a_log_with_fewer_other_or_more_batches_than_sent_is_noticed(odradek: Server) -> None:
    process = odradek.process
    load = Load("produce-1", MEBIBYTE, time.time_ns() // 1_000_000)
    with Wire(process.host, process.port) as wire:
        create_topic(wire, load.topic)
        run_load(process.host, process.port, load)
        compare_log(wire, load)
        with pytest.raises(LogDiffers, match="from 0 to 1024, sent were 1040"):
            compare_log(wire, dataclasses.replace(load, total_bytes=load.total_bytes + load.batch_bytes))
        with pytest.raises(LogDiffers, match="from 0 to 1024, sent were 1008"):
            compare_log(wire, dataclasses.replace(load, total_bytes=load.total_bytes - load.batch_bytes))
        with pytest.raises(LogDiffers, match="batch 0 at offset 0 is not the one"):
            compare_log(wire, dataclasses.replace(load, timestamp_ms=load.timestamp_ms + 1))


def other_work(monkeypatch: pytest.MonkeyPatch, cores: list[float]) -> Producing:
    """One run of each contender after the slices before them, with so much other work beside each in turn."""
    rest = iter(cores)

    def run_of(producing: Producing, server: Server) -> tuple[Run, int]:
        del producing, server
        return Run(12.0, 300.0, 1.0, 0.1, next(rest)), 0

    monkeypatch.setattr(Producing, "run", run_of)
    producing = Producing(dataclasses.replace(PLAN, warm_s=0, rewarm_s=0), lambda line: None)
    broker = OdradekBroker("unused")
    ours, theirs = (Server(name, "1", broker, broker.close, Path()) for name in ("Odradek", "Kafka"))
    producing.measure(ours, theirs)
    broker.close()
    return producing


def test_runs_beside_other_work_are_counted_and_leave_the_result_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first slice is Odradek's, the next two are Kafka's warm-up: only the two runs after them count."""
    disturbed = other_work(monkeypatch, [0, 0, 0, 0.1, 1.2])
    assert disturbed.is_disturbed
    assert "1 of 2 produce runs had more than 0.2 cores busy otherwise" in disturbed.notes
    assert not other_work(monkeypatch, [2.0, 2.0, 2.0, 0.2, 0.2]).is_disturbed


def warm_up(monkeypatch: pytest.MonkeyPatch, speeds: list[float]) -> tuple[int, list[str]]:
    """How many slices, of 12 s each, were taken, and what was said."""
    said: list[str] = []
    rest = iter(speeds)

    def slice_of(producing: Producing, server: Server) -> tuple[Run, int]:
        del producing, server
        return Run(12.0, next(rest), 1.0, 0.1, 0.0), 0

    monkeypatch.setattr(Producing, "run", slice_of)
    broker = OdradekBroker("unused")
    Producing(PLAN, said.append).warm_up(Server("Kafka", "4", broker, broker.close, Path()))
    broker.close()
    return len(speeds) - len(list(rest)), said


def test_a_warm_up_lasts_forty_seconds_even_when_steady_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    taken, said = warm_up(monkeypatch, [60.0] * 20)
    assert taken == 4
    assert "is steady after 48 s" in said[-1]


def test_a_warm_up_goes_on_until_two_slices_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    taken, _said = warm_up(monkeypatch, [10, 20, 30, 40, 50, 60, 61, 1, 1, 1])
    assert taken == 7


def test_a_warm_up_that_never_gets_steady_ends_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    taken, said = warm_up(monkeypatch, [10, 20] * 10)
    assert taken == 9
    assert "NOT STEADY after 108 s" in said[-1]
