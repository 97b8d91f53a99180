"""`odradek testing serve` as another program runs it: the line that says it is ready, its end, what it refuses, and
what the image and the example of Compose make of it."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import Mock

import click
import pytest
from click.testing import CliRunner
from kafka import KafkaProducer

from odradek.testing.serve_command import serve
from processes.free_ports import free_ports

REPOSITORY = Path(__file__).resolve().parents[3]
READY = re.compile(r"odradek \S+ test cluster ready on (\S+) \(topics orders:6, bills:1; data in memory\)\n")


@contextmanager
def served(*arguments: str) -> Generator["subprocess.Popen[str]"]:
    command = [sys.executable, "-m", "odradek", "testing", "serve", *arguments]
    with subprocess.Popen(
        command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_says_where_it_is_and_ends_by_a_signal(number: signal.Signals) -> None:
    with served(
        "--brokers", "2", "--topics", "orders:6,bills", "--act-as", "3.9", "--advertise", "localhost"
    ) as process:
        assert process.stdout is not None
        ready = READY.fullmatch(process.stdout.readline())
        assert ready is not None
        assert len(ready[1].split(",")) == 2
        assert ready[1].startswith("localhost:")
        producer = KafkaProducer(bootstrap_servers=ready[1])
        assert len(producer.partitions_for("orders")) == 6
        producer.send("orders", b"a").get(10)
        producer.close()
        process.send_signal(number)
        assert process.communicate(timeout=10) == ("", "")
        assert process.returncode == 0


def test_ports_follow_one_another_and_one_that_is_taken_is_said() -> None:
    [port] = free_ports(1)
    with served("--brokers", "1", "--port", str(port)) as process:
        assert process.stdout is not None
        assert f"ready on 127.0.0.1:{port} " in process.stdout.readline()
        with served("--brokers", "1", "--port", str(port)) as second:
            _, said = second.communicate(timeout=20)
        assert said == f"Error: cannot listen on 127.0.0.1:{port}: Address already in use\n"
        assert second.returncode == 1


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--topics", "orders:0"], 2, "'orders:0' is not NAME[:PARTITIONS]"),
        (["--topics", "orders:six"], 2, "'orders:six' is not NAME[:PARTITIONS]"),
        (["--brokers", "0"], 2, "0 is not in the range 1<=x<=100"),
        (["--set", "num.partitions=many"], 1, "Error: Invalid value many for configuration num.partitions"),
        (["--host", "::"], 1, "Error: host :: accepts on every address"),
        (["--topics", "or ders", "--brokers", "1"], 1, "Error: topics could not be made: 'or ders'"),
    ],
)
def test_what_it_cannot_be_is_said(arguments: list[str], code: int, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signal, "signal", Mock())  # those of the test stay
    monkeypatch.setattr("odradek.broker.launch.logging_format.configure_logging", Mock())
    done = CliRunner().invoke(serve, arguments)
    assert (done.exit_code, said in done.output) == (code, True), done.output


def entry_point() -> list[str]:
    [line] = re.findall(r"^ENTRYPOINT (.*)$", (REPOSITORY / "Dockerfile").read_text(), re.MULTILINE)
    command: list[str] = json.loads(line)
    return command


@pytest.mark.parametrize(
    ("variable", "arguments", "run"),
    [
        ("--topics orders:6 --advertise kafka", ["--listen", "0.0.0.0:9092"],
         "testing serve --host 0.0.0.0 --port 9092 --advertise localhost --topics orders:6 --advertise kafka"),
        (None, ["--listen", "0.0.0.0:9092", "--set", "a=* b"], "serve --listen 0.0.0.0:9092 --set a=* b"),
    ],
    ids=["tests", "production"],
)  # fmt: skip
def test_the_image_runs_it_where_one_variable_says_so(
    variable: str | None, arguments: list[str], run: str, tmp_path: Path
) -> None:
    program = tmp_path / "odradek"
    program.write_text('#!/bin/sh -f\necho "$@"\n')
    program.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"} | (
        {} if variable is None else {"ODRADEK_TESTING": variable}
    )
    done = subprocess.run([*entry_point(), *arguments], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == run + "\n"


def test_the_example_of_compose_publishes_what_it_runs() -> None:
    text = (REPOSITORY / "examples" / "compose.testing.yaml").read_text()
    [variable] = re.findall(r'ODRADEK_TESTING: "(.*)"', text)
    with serve.make_context("serve", variable.split()) as context:
        assert isinstance(context, click.Context)
        brokers = context.params["brokers"]
    [first, last] = re.findall(r'- "(\d+)-(\d+):\1-\2"', text)[0]
    assert (int(first), int(last) - int(first) + 1) == (9092, brokers)
