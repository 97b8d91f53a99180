"""`odradek cluster run`: options that make no sense are refused in a sentence; what runs is tests/compat's to show."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from odradek.broker.directories.cluster_layout import NOTE_FILE, TakeNote
from odradek.broker.directories.meta_properties import MetaProperties
from odradek.broker.launch.cluster_command import roll, run


def test_memory_and_a_directory_exclude_each_other(tmp_path: Path) -> None:
    result = CliRunner().invoke(run, ["--memory", "--data-dir", str(tmp_path)])
    assert result.exit_code == click.UsageError.exit_code
    assert "exclude each other" in result.output


def test_nothing_is_started_where_a_take_has_not_ended(tmp_path: Path) -> None:
    known = MetaProperties("Rk9P4m2xT0eXK1m0Vb7n1w", 0, "x1cP0mQnTq6vVtJzW8h3lQ")
    (tmp_path / NOTE_FILE).write_bytes(TakeNote("/serve", known).encode())
    result = CliRunner().invoke(run, ["--listen", "127.0.0.1:0", "--data-dir", str(tmp_path)])
    assert result.exit_code == 1
    assert f"give `odradek cluster take /serve --data-dir {tmp_path}` again" in result.output
    assert not (tmp_path / "metadata" / "metadata.log").exists()
    assert not (tmp_path / "broker-1").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--brokers", "0"], "is not in the range"),
        (["--set", "no.such.option=1"], "no.such.option"),
        (["--listen", "nowhere"], "nowhere"),
        (["--listen", "SASL_PLAINTEXT=127.0.0.1:0"], "speaks SASL, and sasl.enabled.mechanisms has no mechanism"),
        (["--set", "listener.security.protocol.map=PLAINTEXT:SASL_PLAINTEXT"], "listener PLAINTEXT speaks SASL"),
        (["--listen", "127.0.0.1:65534"], "65536"),
        (["--brokers", "auto"], "need --processes"),
        (["--brokers", "many"], "nor auto"),
        (["--metrics", "127.0.0.1:0"], "need --processes"),
        (["--advertise", "a:1"], "need --processes"),
        (["--listen", "127.0.0.1:1", "--listen", "127.0.0.1:2"], "need --processes"),
        (["--processes", "--brokers", "51"], "is not in the range"),
        (["--processes", "--brokers", "3", "--listen", "127.0.0.1:65534"], "begin at 65533 at the latest"),
        (["--processes", "--brokers", "3", "--listen", "127.0.0.1:1", "--listen", "127.0.0.1:2"], "given 2 times"),
        (["--processes", "--listen", "0.0.0.0:9092"], "add --advertise"),
        (["--processes", "--set", "no.such.option=1"], "no.such.option"),
        (["--processes", "--metrics", "SSL=127.0.0.1:0"], "without encryption"),
        (["--secure", "--listen", "192.0.2.1:9092"], "--secure: listener PLAINTEXT://192.0.2.1:9092 accepts"),
        (["--secure", "--processes", "--metrics", "192.0.2.1:9100"], "--secure: the page of metrics on 192.0.2.1"),
        (["--set", "inter.broker.listener.name=A"], "there is no listener named A; there are PLAINTEXT"),
    ],
)
def test_what_makes_no_sense_is_said(arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(run, ["--memory", *arguments])
    assert result.exit_code != 0
    assert said in result.output
    assert "Traceback" not in result.output


def test_where_no_supervisor_runs_nothing_can_be_rolled(tmp_path: Path) -> None:
    result = CliRunner().invoke(roll, ["--data-dir", str(tmp_path)])
    assert result.exit_code == 1
    assert f"Error: no `odradek cluster run --processes` runs on {tmp_path}: start one" in result.output
