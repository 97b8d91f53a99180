"""Whole runs of all clients against a real Odradek, in their processes; and the order and sums of all runs."""

from collections.abc import Iterator

import pytest

from benchmarks.clients.runs import Disturbances, Topics
from benchmarks.clients.speed import (
    AIOKAFKA,
    CONFLUENT,
    CONTENDERS,
    KAFKA_PYTHON,
    LARGE,
    SEND,
    SMALL,
    Contender,
    Racing,
    Runs,
    Setting,
    SpeedRun,
    run_of,
    speed_figures,
)
from benchmarks.contenders.client_load import ClientLoad
from benchmarks.contenders.job import Timing
from benchmarks.harness.servers import Server
from processes.odradek_broker import OdradekBroker


@pytest.fixture(scope="module")
def odradek(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with OdradekBroker(tmp_path_factory.mktemp("broker") / "data") as broker:
        yield Server("Odradek", "0", broker, broker.terminate, broker.data_dir)


def racing(said: list[str] | None = None) -> Racing:
    return Racing(Topics(), Disturbances(), (said if said is not None else []).append, "asyncio", scale=0.02)


@pytest.mark.parametrize("has_keys", [False, True])
@pytest.mark.parametrize("contender", CONTENDERS, ids=str)
def test_a_run_sends_everything_and_is_measured(odradek: Server, contender: Contender, has_keys: bool) -> None:
    """What was sent is read back and checked; thousands of records, so that batches get full and are followed."""
    race = racing()
    run, other_cores = race.run(Setting(odradek, SMALL, has_keys), contender)
    assert run.records == round(200_000 * contender.share * 0.02)
    assert run.records_per_s > 100
    assert run.cpu_us_per_record > 0
    assert other_cores >= 0
    assert race.identities[contender.client].startswith(f"{contender.client} ")
    odradek.wait_gone("clients")


def test_every_second_round_goes_the_other_way(odradek: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    said: list[str] = []

    def run_of_none(race: Racing, setting: Setting, contender: Contender) -> tuple[SpeedRun, float]:
        del race
        ran.append(f"{setting}: {contender}")
        return SpeedRun(1000.0 * len(ran), 5.0, 10), 0.3

    monkeypatch.setattr(Racing, "run", run_of_none)
    settings = [Setting(odradek, SMALL, False), Setting(odradek, LARGE, True)]
    race = racing(said)
    runs = race.measure(settings, [AIOKAFKA, CONFLUENT], 2)
    there = ["50–150 B, no keys: aiokafka send", "50–150 B, no keys: confluent-kafka produce"]
    then = ["0.5–1.5 KiB, keys: aiokafka send", "0.5–1.5 KiB, keys: confluent-kafka produce"]
    assert ran == [*there, *then, *there[::-1], *then[::-1]]
    assert [run.records_per_s for run in runs[settings[0], AIOKAFKA]] == [1000, 6000]
    assert "speed 2/2 Odradek 0, 0.5–1.5 KiB, keys, aiokafka send: 8,000 records/s, 5.00 µs CPU a record" in said[-1]
    assert race.disturbances.notes() == ["8 of 8 speed runs had more than 0.2 cores busy otherwise"]


def test_speed_and_cost_count_the_timed_records_alone(odradek: Server) -> None:
    load = ClientLoad("", count=2000, warm_count=500, value_bytes_min=50, value_bytes_max=150)
    assert run_of(Timing(seconds=0.5, cpu_seconds=0.01), load) == SpeedRun(4000.0, 5.0, 2000)
    assert Setting(odradek, SMALL, True).load_of(KAFKA_PYTHON, 1.0) == ClientLoad("", 50_000, 5_000, 50, 150, 16)
    assert Setting(odradek, LARGE, False).load_of(CONFLUENT, 0.5) == ClientLoad("", 40_000, 4_000, 512, 1536)


def test_figures_compare_what_ran_under_the_same_setting(odradek: Server) -> None:
    keyed, keyless = Setting(odradek, SMALL, True), Setting(odradek, SMALL, False)
    runs: Runs = {
        (keyed, SEND): [SpeedRun(600.0, 2.0, 1), SpeedRun(400.0, 3.0, 1), SpeedRun(500.0, 1.0, 1)],
        (keyed, AIOKAFKA): [SpeedRun(100.0, 4.0, 1)],
        (keyless, SEND): [SpeedRun(100.0, 4.0, 1)],
    }
    figures = speed_figures(runs, odradek)
    assert [(figure.name, figure.unit, figure.ratio, str(figure.bar)) for figure in figures] == [
        ("send beside aiokafka, 50–150 B, keys", "records/s", 5.0, "≥ 1.5"),
        ("CPU a record, send beside aiokafka, 50–150 B, keys", "µs", 0.5, "≤ 0.7"),
    ]
    assert speed_figures(runs, Server("Another", "1", odradek.process, odradek.stop, odradek.data_dir)) == []
