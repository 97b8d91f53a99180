"""The command line: what it asks of the jobs, with the jobs replaced, and what it refuses."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from odradek.spark_jobs import flights
from odradek.spark_jobs.daily import DailyDelays
from odradek.spark_jobs.delays import DelayOptions, Totals
from odradek.spark_jobs.flights import main
from odradek.spark_jobs.load import LoadOptions
from odradek.spark_jobs.sources import Kafka


@pytest.fixture(autouse=True)
def sessions(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, object]]:
    """The options of the sessions that were asked for; none is opened."""
    asked: list[dict[str, object]] = []
    monkeypatch.setattr(flights, "open_session", lambda _name, **options: asked.append(options))  # pyright: ignore
    return asked


def run(*arguments: str) -> str:
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_load(monkeypatch: pytest.MonkeyPatch, sessions: list[dict[str, object]]) -> None:
    """Defaults, and then every option."""
    asked: list[LoadOptions] = []

    def load(_session: object, options: LoadOptions) -> int:
        asked.append(options)
        return 1_234

    monkeypatch.setattr(flights, "load", load)
    assert run("load") == "1,234 flights written to flights\n"
    run("load", "--bootstrap-servers", "b:1", "--topic", "t", "--limit", "5", "--late-by-days", "10",
        "--kafka", "security.protocol=SSL", "--kafka", "x=a=b", "--master", "local[1]")  # fmt: skip
    assert asked == [
        LoadOptions(Kafka("127.0.0.1:9092", {}), "flights", None, None),
        LoadOptions(Kafka("b:1", {"security.protocol": "SSL", "x": "a=b"}), "t", 5, 10),
    ]
    assert sessions == [{"master": "local[*]"}, {"master": "local[1]"}]


def test_delays(monkeypatch: pytest.MonkeyPatch, sessions: list[dict[str, object]]) -> None:
    """Defaults, and then every option; the totals are printed."""
    asked: list[DelayOptions] = []

    def run_delays(_session: object, options: DelayOptions, _on_progress: object) -> Totals:
        asked.append(options)
        return Totals(batch_count=14, row_count=336_776, dropped_by_watermark=1, dead_letter_count=7)

    monkeypatch.setattr(flights, "run_delays", run_delays)
    assert run("delays", "--checkpoint", "c") == (
        "336,776 rows in 14 micro-batches\nrows dropped by watermark: 1\nrows sent to flights-dead-letters: 7\n"
    )
    run("delays", "--bootstrap-servers", "b:1", "--topic", "t", "--result-topic", "r", "--dead-letter-topic", "d",
        "--checkpoint", "c", "--trigger", "10 seconds", "--max-offsets-per-trigger", "5",
        "--starting-offsets", "latest", "--shuffle-partitions", "8")  # fmt: skip
    assert asked == [
        DelayOptions(Kafka("127.0.0.1:9092", {}), "flights", "flight-delays", "flights-dead-letters", "c",
                     "available-now", 24_000, "earliest"),
        DelayOptions(Kafka("b:1", {}), "t", "r", "d", "c", "10 seconds", 5, "latest"),
    ]  # fmt: skip
    assert [session["shuffle_partitions"] for session in sessions] == [4, 8]


def test_report(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The table goes to the terminal, the picture to the file; an empty topic is an error that says what to do."""
    day = DailyDelays.from_json(
        '{"carrier":"UA","day":"2013-07-10","flights":5,"cancelled":1,"late":2,"delay_sum":125,'
        '"mean_delay":31.25,"p95_delay":87.25,"max_delay":100}'
    )
    held: dict[str, list[DailyDelays]] = {"r": [day], "empty": []}
    monkeypatch.setattr(flights, "read_results", lambda _session, _kafka, topic: held[topic])  # pyright: ignore
    picture = tmp_path / "p.png"
    output = run("report", "--result-topic", "r", "--picture", str(picture))
    assert "United Air Lines" in output
    assert picture.read_bytes().startswith(b"\x89PNG")
    result = CliRunner().invoke(main, ["report", "--result-topic", "empty"])
    assert result.exit_code == 1
    assert "empty holds no results yet" in result.output


@pytest.mark.parametrize(
    "arguments",
    [
        ["delays"],
        ["load", "--kafka", "security.protocol"],
        ["load", "--kafka", "=x"],
        ["load", "--limit", "0"],
        ["delays", "--checkpoint", "c", "--max-offsets-per-trigger", "0"],
    ],
)
def test_refused(arguments: list[str], sessions: list[dict[str, object]]) -> None:
    """A usage error, before Spark is started."""
    assert CliRunner().invoke(main, arguments).exit_code == 2
    assert sessions == []
