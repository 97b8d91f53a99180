"""A client of the demo as a process: with a stand-in that counts, and that says so when it is told to end."""

import time
from pathlib import Path

import pytest

from odradek.spark_jobs.demo import client_process
from odradek.spark_jobs.demo.client_process import ClientProcess

STAND_IN = """
import asyncio, signal, sys
from odradek.spark_jobs.demo.client_process import run_until_told

async def count(path):
    number = 0
    try:
        while True:
            number += 1
            with open(path, "w") as file:
                file.write(str(number))
            await asyncio.sleep(0.001)  # its work; whether the number grows shows if it runs
    finally:
        with open(path + ".closed", "x"):
            pass

async def refuse():
    raise ValueError("no room")

match sys.argv[1:]:
    case ["count", path]:
        run_until_told(count(path))
    case ["refuse"]:
        run_until_told(refuse())
    case ["stay", path]:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        open(path, "x").close()
        while True:
            signal.pause()
"""
PATIENCE_S = 30.0


@pytest.fixture(autouse=True)
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "stand_in_for_a_client.py").write_text(STAND_IN, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


def start(tmp_path: Path, *arguments: str) -> ClientProcess:
    return ClientProcess("stand_in_for_a_client", *arguments, log=tmp_path / "log")


def wait_for_another(path: Path) -> str:
    """What is in the file once it is something else than now."""
    before = path.read_text() if path.exists() else ""
    deadline = time.monotonic() + PATIENCE_S
    while (now := path.read_text() if path.exists() else "") in ("", before):
        assert time.monotonic() < deadline, f"{path} stays {before!r}"
    return now


def test_the_end_of_the_block_has_its_work_cancelled_and_closed(tmp_path: Path) -> None:
    with start(tmp_path, "count", str(tmp_path / "count")) as client:
        wait_for_another(tmp_path / "count")
        assert client.is_running
    assert not client.is_running
    assert (tmp_path / "count.closed").exists()
    assert client.errors() == ""


def test_one_that_is_killed_closes_nothing(tmp_path: Path) -> None:
    with start(tmp_path, "count", str(tmp_path / "count")) as client:
        wait_for_another(tmp_path / "count")
        client.kill()
        assert not client.is_running
    assert not (tmp_path / "count.closed").exists()


def test_a_paused_one_goes_on_when_it_is_resumed(tmp_path: Path) -> None:
    with start(tmp_path, "count", str(tmp_path / "count")) as client:
        wait_for_another(tmp_path / "count")
        client.pause()
        deadline = time.monotonic() + PATIENCE_S
        while (tmp_path / "count").stat().st_mtime > time.time() - 1:
            assert time.monotonic() < deadline, "it counts on"
        client.resume()
        wait_for_another(tmp_path / "count")


def test_a_paused_one_is_told_to_end_too(tmp_path: Path) -> None:
    with start(tmp_path, "count", str(tmp_path / "count")) as client:
        wait_for_another(tmp_path / "count")
        client.pause()
        started = time.monotonic()
    assert time.monotonic() - started < client_process.STOP_TIMEOUT_S
    assert (tmp_path / "count.closed").exists()


def test_one_that_does_not_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_process, "STOP_TIMEOUT_S", 0.2)
    with start(tmp_path, "stay", str(tmp_path / "stays")) as client:
        deadline = time.monotonic() + PATIENCE_S
        while not (tmp_path / "stays").exists():
            assert time.monotonic() < deadline
    assert not client.is_running


def test_what_its_work_raises_is_in_the_log(tmp_path: Path) -> None:
    with start(tmp_path, "refuse") as client:
        deadline = time.monotonic() + PATIENCE_S
        while client.is_running:
            assert time.monotonic() < deadline
    assert client.errors().startswith("Traceback"), "it has ended by it"
    assert client.errors().endswith("ValueError: no room\n")
