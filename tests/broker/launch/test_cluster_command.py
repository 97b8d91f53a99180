"""`odradek cluster run`: options that make no sense are refused in a sentence; what runs is tests/compat's to show."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from odradek.broker.launch.cluster_command import run


def test_memory_and_a_directory_exclude_each_other(tmp_path: Path) -> None:
    result = CliRunner().invoke(run, ["--memory", "--data-dir", str(tmp_path)])
    assert result.exit_code == click.UsageError.exit_code
    assert "exclude each other" in result.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--brokers", "0"], "is not in the range"),
        (["--set", "no.such.option=1"], "no.such.option"),
        (["--listen", "nowhere"], "nowhere"),
        (["--listen", "SSL=127.0.0.1:0"], "which is not built"),
        (["--set", "listener.security.protocol.map=PLAINTEXT:SSL"], "write PLAINTEXT:PLAINTEXT"),
        (["--listen", "127.0.0.1:65534"], "65536"),
    ],
)
def test_what_makes_no_sense_is_said(arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(run, ["--memory", *arguments])
    assert result.exit_code != 0
    assert said in result.output
    assert "Traceback" not in result.output
