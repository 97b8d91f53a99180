"""The options of the part `clients` pick what is measured; the parts themselves are stood in for."""

from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.clients import comparison
from benchmarks.clients.comparison import Clients, add_options
from benchmarks.clients.consuming import Consuming
from benchmarks.clients.latency import Seconds, Waiting
from benchmarks.clients.speed import Contender, Racing, Runs, Setting
from benchmarks.figures.figures import Figure
from benchmarks.harness.servers import Server
from processes.odradek_broker import OdradekBroker


@pytest.fixture
def servers(tmp_path: Path) -> tuple[Server, Server]:
    broker = OdradekBroker(tmp_path / "unused")
    broker.close()
    ours, theirs = (Server(name, "1", broker, broker.close, Path()) for name in ("Odradek", "Apache Kafka"))
    return ours, theirs


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What would have been measured, a line each."""
    lines: list[str] = []

    def race(self: Racing, settings: Sequence[Setting], contenders: Sequence[Contender], runs: int) -> Runs:
        lines.extend(f"speed {setting.server.name} {setting}" for setting in settings)
        lines.append(f"{runs} x {', '.join(map(str, contenders))} by {self.scale} on {self.loop}")
        return {}

    def wait(self: Waiting, servers: Sequence[Server], names: Sequence[str], runs: int) -> Seconds:
        lines.append(f"latency {[server.name for server in servers]} {list(names)} {runs} {self.loop}")
        return {}

    def fill(server: Server, topics: object, **options: object) -> list[Figure]:
        del topics
        lines.append(f"memory {server.name} {options['runs']}")
        return []

    def warm(self: Racing, server: Server, seconds: float) -> None:
        del self
        lines.append(f"warm {server.name} {seconds:g}")

    def consume(self: Consuming, settings: Sequence[Setting], contenders: Sequence[Contender], runs: int) -> Runs:
        lines.extend(f"consuming {setting.server.name} {setting}" for setting in settings)
        lines.append(f"{runs} x {', '.join(map(str, contenders))} by {self.scale} on {self.loop}")
        return {}

    monkeypatch.setattr(Consuming, "measure", consume)
    monkeypatch.setattr(Racing, "measure", race)
    monkeypatch.setattr(Racing, "warm_up", warm)
    monkeypatch.setattr(Waiting, "measure", wait)
    monkeypatch.setattr(comparison, "measure_memory", fill)
    return lines


def measure(servers: tuple[Server, Server], *arguments: str) -> None:
    parser = ArgumentParser()
    parser.add_argument("--runs", type=int, default=5)
    add_options(parser)
    Clients(parser.parse_args(arguments), lambda line: None).measure(*servers)


def test_everything_is_measured_unless_less_is_asked_for(servers: tuple[Server, Server], measured: list[str]) -> None:
    measure(servers)
    assert measured == [
        "warm Apache Kafka 8",
        *(
            f"speed {server} {values}, {keys}"
            for server, values in (("Odradek", "50–150 B"), ("Odradek", "0.5–1.5 KiB"), ("Apache Kafka", "50–150 B"))
            for keys in ("no keys", "keys")
        ),
        "5 x kafka-python send, aiokafka send, aiokafka task per record, confluent-kafka produce, Odradek send, "
        "Odradek send_nowait, Odradek send_batch, Odradek task per record by 1.0 on asyncio",
        "latency ['Odradek', 'Apache Kafka'] ['Odradek', 'aiokafka'] 5 asyncio",
        "memory Odradek 5",
        *(
            f"consuming {server} {values}, keys"
            for server, values in (
                *(("Odradek", values) for values in ("100 B", "50–150 B", "1 KiB", "0.5–1.5 KiB")),
                *(("Apache Kafka", values) for values in ("100 B", "50–150 B")),
            )
        ),
        "5 x kafka-python poll, aiokafka getmany, aiokafka async for, confluent-kafka consume, Odradek get_batch, "
        "Odradek async for by 1.0 on asyncio",
    ]


def test_a_slice_is_measured_when_it_is_asked_for(servers: tuple[Server, Server], measured: list[str]) -> None:
    chosen = ["--brokers=odradek", "--clients=aiokafka,Odradek", "--values=large", "--scale=0.5", "--loop=uvloop"]
    measure(servers, "--measure=speed", "--runs=1", *chosen)
    assert measured == [
        "speed Odradek 0.5–1.5 KiB, no keys",
        "speed Odradek 0.5–1.5 KiB, keys",
        "1 x aiokafka send, aiokafka task per record, Odradek send, Odradek send_nowait, Odradek send_batch, "
        "Odradek task per record by 0.5 on uvloop",
    ]
    measured.clear()
    measure(servers, "--measure=memory,latency", "--brokers=kafka", "--clients-warm-s=0")
    assert measured == ["latency ['Apache Kafka'] ['Odradek', 'aiokafka'] 5 asyncio"], "memory is for our broker"
    measured.clear()
    measure(servers, "--measure=memory,latency", "--clients=aiokafka", "--brokers=odradek")
    assert measured == ["latency ['Odradek'] ['aiokafka'] 5 asyncio"], "memory is for our client"


def test_consumers_are_chosen_as_producers_are(servers: tuple[Server, Server], measured: list[str]) -> None:
    chosen = ["--brokers=odradek", "--clients=aiokafka,Odradek", "--values=large", "--scale=0.5", "--runs=1"]
    measure(servers, "--measure=consuming", *chosen)
    assert measured == [
        "consuming Odradek 1 KiB, keys",
        "consuming Odradek 0.5–1.5 KiB, keys",
        "1 x aiokafka getmany, aiokafka async for, Odradek get_batch, Odradek async for by 0.5 on asyncio",
    ]


def test_apache_kafka_has_its_own_choice_of_values(servers: tuple[Server, Server], measured: list[str]) -> None:
    measure(servers, "--measure=speed", "--values=small", "--kafka-values=large", "--clients-warm-s=0")
    assert [line.rpartition(",")[0] for line in measured[:4:2]] == [
        "speed Odradek 50–150 B",
        "speed Apache Kafka 0.5–1.5 KiB",
    ]


def test_what_there_is_not_is_refused(capsys: pytest.CaptureFixture[str], servers: tuple[Server, Server]) -> None:
    with pytest.raises(SystemExit):
        measure(servers, "--clients=aiokafka,pykafka")
    assert "'pykafka' is none of kafka-python, aiokafka, confluent-kafka, Odradek" in capsys.readouterr().err
