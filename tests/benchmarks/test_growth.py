"""What is varied is varied as it says, and the numbers of a small run stand in their columns."""

from pathlib import Path

from benchmarks.figures.figures import Summary
from benchmarks.growth import SERIES, cell, run_once, table
from benchmarks.harness.bench import Bench
from benchmarks.harness.plan import Plan
from benchmarks.harness.servers import running_odradek


def test_each_series_varies_one_thing() -> None:
    varied = {series.name: [value for value, _load in series.loads] for series in SERIES}
    assert varied == {
        "growth-partitions": ["1", "10", "100", "1,000"],
        "growth-connections": ["1", "8", "64", "256"],
        "growth-batches": ["1 KiB", "4 KiB", "16 KiB", "64 KiB", "256 KiB", "1,024 KiB"],
        "growth-records": ["100 B", "1,024 B", "8,192 B"],
    }
    shapes = {series.name: [load for _value, load in series.loads] for series in SERIES}
    assert [load.spread for load in shapes["growth-partitions"]] == [1, 10, 100, 1000]
    assert [load.connections for load in shapes["growth-connections"]] == [1, 8, 64, 256]
    assert [load.partitions for load in shapes["growth-connections"]] == [1, 8, 64, 256]
    assert [load.batch_bytes // 1024 for load in shapes["growth-batches"]] == [1, 4, 16, 64, 256, 1024]
    assert [load.record_bytes for load in shapes["growth-records"]] == [100, 1024, 8192]


def test_a_load_is_produced_and_its_cost_is_known(tmp_path: Path) -> None:
    bench = Bench(Plan(growth_bytes=16 << 20), tmp_path, [], lambda line: None)
    (_, spread), *_ = SERIES[0].loads[1:]
    with running_odradek(tmp_path / "data") as server:
        run = run_once(bench, spread, server)
    assert run.values["µs/request"] > 0
    assert run.values["s/GB"] > 0


def test_a_table_has_a_row_for_each_value() -> None:
    rows = [["1 KiB", cell(Summary((10.0, 12.0)), 0), cell(Summary((50.04,)), 1), cell(Summary((1.0,)), 2)]]
    title, _, head, _rule, row = table(SERIES[2], rows).splitlines()
    assert title == "How Odradek's cost grows with the size of a batch:"
    assert [each.strip() for each in head.split("|")[1:-1]][1:] == ["MB/s", "server CPU, µs a request", "s/GB"]
    assert [each.strip() for each in row.split("|")[1:-1]] == [
        "1 KiB",
        "11 [10–12]",
        "50.0 [50.0–50.0]",
        "1.00 [1.00–1.00]",
    ]
