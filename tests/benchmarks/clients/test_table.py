"""Both tables of a server, cell by cell, and none where nothing was measured."""

from pathlib import Path

import pytest

from benchmarks.clients.speed import CONFLUENT, KAFKA_PYTHON, SMALL, Runs, Setting, SpeedRun
from benchmarks.clients.table import server_tables
from benchmarks.figures.figures import Bar, Figure, Summary
from benchmarks.harness.servers import Server
from processes.odradek_broker import OdradekBroker


@pytest.fixture
def server(tmp_path: Path) -> Server:
    broker = OdradekBroker(tmp_path / "unused")
    broker.close()
    return Server("Odradek", "1.0", broker, broker.close, Path())


def test_contenders_stand_in_one_table_and_figures_in_another(server: Server) -> None:
    other = Server("Apache Kafka", "4", server.process, server.stop, Path())
    runs: Runs = {
        (Setting(server, SMALL, False), KAFKA_PYTHON): [
            SpeedRun(51_000.0, 20.0, 5000),
            SpeedRun(40_000.0, 25.0, 5000),
            SpeedRun(45_000.4, 30.123, 5000),
        ],
        (Setting(server, SMALL, True), CONFLUENT): [SpeedRun(700_000.0, 1.5, 20_000)],
        (Setting(other, SMALL, True), CONFLUENT): [SpeedRun(1.0, 1.0, 1)],
    }
    figure = Figure("send beside it", "records/s", Summary((3.0,)), Summary((2.0,)), Bar("≥", 1.0))
    parts = server_tables(runs, [figure], server, "Odradek 1.0")
    assert parts[0] == "Every client, with Odradek 1.0:"
    assert [[cell.strip() for cell in line.split("|")[1:-1]] for line in parts[1].splitlines()] == [
        ["client", "records a run", "records/s", "CPU a record, µs"],
        ["-" * 39, "-" * 12 + ":", "-" * 24 + ":", "-" * 18 + ":"],
        ["kafka-python send, 50–150 B, no keys", "5,000", "45,000 [40,000–51,000]", "25.00 [20.00–30.12]"],
        ["confluent-kafka produce, 50–150 B, keys", "20,000", "700,000 [700,000–700,000]", "1.50 [1.50–1.50]"],
    ]
    assert parts[2] == "Odradek 1.0 beside the others, with Odradek 1.0:"
    assert parts[3].splitlines()[-1].split("|")[-4:-1] == ["   1.5 ", " ≥ 1 ", " met "]
    open_parts = server_tables({}, [figure], server, "Odradek 1.0", is_preliminary=True)
    assert open_parts[1].splitlines()[-1].split("|")[-2] == " open "
    assert server_tables({}, [], server, "Odradek 1.0") == []
