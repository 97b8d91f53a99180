"""Small produce runs against a real Odradek: measured, read back, and gone afterwards."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.harness.plan import MEBIBYTE, Plan
from benchmarks.harness.servers import Server
from benchmarks.load.frames import Load
from benchmarks.produce import LARGE, MANY, SHAPES, SMALL, Shape, run_produce
from processes.odradek_broker import OdradekBroker


@pytest.fixture
def odradek(tmp_path: Path) -> Iterator[Server]:
    options = ("--set", "log.segment.delete.delay.ms=1000")
    with OdradekBroker(tmp_path / "data", *options) as broker:
        yield Server("Odradek", "0", broker, broker.terminate, broker.data_dir)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: str(shape.name))
def test_a_run_measures_compares_and_leaves_nothing_behind(odradek: Server, shape: Shape) -> None:
    plan = Plan()
    load = shape.load(plan, "produce-1", 16 * MEBIBYTE)
    run = run_produce(odradek, load, shape, dirt=shape.load(plan, "dirt-1", MEBIBYTE))
    assert run.speed == run.values["MB/s"] > 1
    assert run.values["s/GB"] > 0
    assert run.seconds == pytest.approx(16 * 1.048576 / run.speed)
    assert run.values["requests/s"] == pytest.approx(load.batch_count / run.seconds)
    assert [path.name for path in odradek.data_dir.glob("*-1-*")] == []


def test_the_issues_amounts_are_the_defaults() -> None:
    plan = Plan()
    loads = [shape.load(plan, "t", plan.run_bytes) for shape in (SMALL, LARGE, MANY)]
    assert [load.produced_bytes for load in loads] == [1 << 30] * 3
    assert [load.in_flight for load in loads] == [5, 5, 5]
    assert [(load.batch_bytes, load.connections, load.partitions) for load in loads] == [
        (16384, 1, 1),
        (1048576, 1, 1),
        (16384, 8, 8),
    ]


def test_the_generator_does_the_same_for_the_sink_as_for_a_broker() -> None:
    assert [shape.sink_load(Plan()).is_idempotent for shape in SHAPES] == [shape.is_idempotent for shape in SHAPES]
    assert [shape.sink_load(Plan()).connections for shape in SHAPES] == [1, 1, 1, 8]


def test_a_topic_gets_the_options_of_the_run(odradek: Server) -> None:
    load = Load("rolled-1", 4 * MEBIBYTE, time.time_ns() // 1_000_000)
    run = run_produce(odradek, load, configs={"segment.bytes": str(MEBIBYTE)})
    assert run.values["records/s"] > 0
