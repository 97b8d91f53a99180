"""Whole runs of all consumers on one topic of a real Odradek, in their processes; their order; who reads otherwise."""

import contextlib
from collections.abc import Generator, Iterator
from dataclasses import replace
from types import SimpleNamespace

import pytest

from benchmarks.clients import consuming as consuming_module
from benchmarks.clients.check import Expected, Reckoning
from benchmarks.clients.consuming import (
    CONSUME,
    CONSUMED,
    CONSUMERS,
    EACH,
    GET_BATCH,
    GETMANY,
    Consuming,
    FilledTopic,
    consuming_figures,
    sum_of,
)
from benchmarks.clients.runs import Disturbances, Topics, now_ms
from benchmarks.clients.speed import Contender, Runs, Setting, SpeedRun
from benchmarks.contenders.job import ContenderFailed, Job
from benchmarks.harness.servers import Server
from benchmarks.produce import LogDiffers
from processes.odradek_broker import OdradekBroker

EVEN, MIXED = CONSUMED["small"]


@pytest.fixture(scope="module")
def odradek(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with OdradekBroker(tmp_path_factory.mktemp("broker") / "data") as broker:
        yield Server("Odradek", "0", broker, broker.terminate, broker.data_dir)


def consuming(said: list[str] | None = None) -> Consuming:
    return Consuming(Topics(), Disturbances(), (said if said is not None else []).append, "asyncio", scale=0.005)


@pytest.fixture(scope="module")
def filled(odradek: Server) -> Iterator[FilledTopic]:
    with consuming().filled(Setting(odradek, MIXED, has_keys=True)) as topic:
        yield topic


@pytest.mark.parametrize("contender", CONSUMERS, ids=str)
def test_a_run_reads_everything_and_is_measured(odradek: Server, filled: FilledTopic, contender: Contender) -> None:
    each = consuming()
    run, other_cores = each.run(Setting(odradek, MIXED, has_keys=True), contender, filled)
    assert run.records == 3000
    assert run.records_per_s > 100
    assert run.cpu_us_per_record > 0
    assert other_cores >= 0
    assert each.identities[contender.client].startswith(f"{contender.client} ")


def test_a_run_that_comes_to_another_sum_fails(
    odradek: Server, filled: FilledTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextlib.contextmanager
    def contend(job: Job) -> Generator[SimpleNamespace, None, None]:
        assert job.kind == "consume"
        yield SimpleNamespace(identity="Odradek", hear=lambda: {"seconds": 1.0, "cpu_seconds": 1.0, "total": 8})

    monkeypatch.setattr(consuming_module, "contending", contend)
    setting = Setting(odradek, MIXED, has_keys=True)
    with pytest.raises(ContenderFailed, match=r"Odradek get_batch read clients-1 to the sum 8, not 7"):
        consuming().run(setting, GET_BATCH, replace(filled, total=7))
    run, _other_cores = consuming().run(setting, GET_BATCH, replace(filled, total=8))
    assert run.records_per_s == 3000


def test_the_sum_is_that_of_the_records_that_were_sent(odradek: Server, filled: FilledTopic) -> None:
    """Offsets are 0, 1, 2, … in each partition, so they can be added up without reading; the bytes are the load's."""
    records = filled.load.records()
    expected = Expected(records)
    counts = [expected.partitions.count(partition) for partition in range(12)]
    known = sum(count * (count - 1) // 2 for count in counts)
    known += sum(value[-1] + key[-1] for value, key in records if key is not None)
    timestamps_ms = filled.total - known
    assert now_ms() - 60_000 < timestamps_ms / len(records) < now_ms()
    with odradek.wire() as wire:
        assert sum_of(wire, filled.load, Reckoning(expected, 0, now_ms())) == filled.total
        with pytest.raises(LogDiffers, match="has the timestamp"):
            sum_of(wire, filled.load, Reckoning(expected, 0, 1))
        with pytest.raises(LogDiffers, match="1 of 3301 records are missing"):
            more = replace(filled.load, count=3001)
            sum_of(wire, filled.load, Reckoning(Expected([*records, more.records()[-1]]), 0, now_ms()))


def test_a_topic_is_filled_once_for_all_runs_of_a_setting(odradek: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    said: list[str] = []

    @contextlib.contextmanager
    def fill_nothing(each: Consuming, setting: Setting) -> Generator[FilledTopic, None, None]:
        del each
        done.append(f"fill {setting}")
        yield FilledTopic(replace(setting.load_of(CONSUME, 1.0), topic=str(setting)), 0)

    def run_nothing(
        each: Consuming, setting: Setting, contender: Contender, topic: FilledTopic
    ) -> tuple[SpeedRun, float]:
        del each
        assert topic.load.topic == str(setting)
        done.append(str(contender))
        return SpeedRun(1000.0 * len(done), 5.0, 10), 0.3

    monkeypatch.setattr(Consuming, "filled", fill_nothing)
    monkeypatch.setattr(Consuming, "run", run_nothing)
    settings = [Setting(odradek, values, has_keys=True) for values in (EVEN, MIXED)]
    each = consuming(said)
    runs = each.measure(settings, [GETMANY, CONSUME], 2)
    there = ["aiokafka getmany", "confluent-kafka consume"]
    assert done == ["fill 100 B, keys", *there, *there[::-1], "fill 50–150 B, keys", *there, *there[::-1]]
    assert [run.records_per_s for run in runs[settings[0], GETMANY]] == [2000, 5000]
    assert "consuming 2/2 Odradek 0, 50–150 B, keys, aiokafka getmany: 10,000 records/s, 5.00 µs CPU" in said[-1]
    assert each.disturbances.notes() == ["8 of 8 consuming runs had more than 0.2 cores busy otherwise"]


def test_figures_compare_each_way_to_read_with_its_like(odradek: Server) -> None:
    setting = Setting(odradek, EVEN, has_keys=True)
    speeds = dict(zip(CONSUMERS, (100, 400, 200, 1000, 900, 500), strict=True))
    runs: Runs = {(setting, contender): [SpeedRun(float(speed), 1.0, 1)] for contender, speed in speeds.items()}
    figures = consuming_figures(runs, odradek)
    assert [(figure.name, figure.unit, figure.ratio, str(figure.bar)) for figure in figures] == [
        ("get_batch beside kafka-python, 100 B, keys", "records/s", 9.0, "≥ 5"),
        ("get_batch beside aiokafka, 100 B, keys", "records/s", 2.25, "≥ 2"),
        ("get_batch beside confluent-kafka, 100 B, keys", "records/s", 0.9, "≥ 1"),
        ("async for beside aiokafka, 100 B, keys", "records/s", 2.5, "≥ 1.5"),
    ]
    del runs[setting, EACH]
    runs |= {(Setting(odradek, MIXED, has_keys=True), contender): done for (_even, contender), done in runs.items()}
    assert [str(figure.bar) for figure in consuming_figures(runs, odradek)] == ["≥ 5", "≥ 2", "≥ 1", *3 * ["None"]]
