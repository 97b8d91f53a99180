"""When a server is busy with compaction is seen from outside, and a log that was not compacted is noticed.

The server is a real Odradek with a log of few keys; its files of compaction are made by hand.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.compaction import Cleaning, Reading, check_newest, is_under_way
from benchmarks.harness.readback import LogDiffers
from benchmarks.harness.results import Unavailable
from benchmarks.harness.servers import Server, running_odradek
from benchmarks.load.frames import Load
from benchmarks.load.load import run_load
from benchmarks.load.wire import create_topic


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with running_odradek(tmp_path / "data") as server:
        yield server


@pytest.mark.parametrize("name", ["00000000000000000000.log.cleaned", "00000000000000000000.index.swap"])
def test_files_of_a_compaction_are_known_by_their_names(tmp_path: Path, name: str) -> None:
    (tmp_path / "00000000000000000000.log").touch()
    assert not is_under_way(tmp_path)
    (tmp_path / name).touch()
    assert is_under_way(tmp_path)


def test_a_compaction_lasts_from_its_first_sign_to_its_last(server: Server, tmp_path: Path) -> None:
    directory = server.data_dir / "t-0"
    directory.mkdir(exist_ok=True)
    marker = directory / "00000000000000000000.log.cleaned"
    times: list[int] = []

    def clean() -> None:
        time.sleep(0.2)  # before it begins
        times.append(time.perf_counter_ns())
        marker.touch()
        time.sleep(0.3)  # while it lasts
        marker.unlink()
        times.append(time.perf_counter_ns())

    cleaning = Cleaning(server, "t")
    thread = threading.Thread(target=clean)
    thread.start()
    cleaning.watch(1.0)
    thread.join()
    os.rmdir(directory)
    began, ended = times
    margin_ns = 150_000_000
    assert began - margin_ns <= cleaning.first_ns <= began + margin_ns
    assert ended - margin_ns <= cleaning.last_ns <= ended + margin_ns


def test_what_a_process_reads_that_the_server_has_started_counts(tmp_path: Path) -> None:
    """The server is this process. What a child has read counts once, though it is the parent's in the end."""
    path = tmp_path / "log"
    path.write_bytes(bytes(1 << 20))
    reads = f"open({str(path)!r}, 'rb').read(); print(1, flush=True); input()"
    reading = Reading(os.getpid())
    with subprocess.Popen([sys.executable, "-c", reads], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.read(1) == b"1"
        assert reading.since_last() >= 1 << 20
        assert 0 <= reading.since_last() < 1 << 19
    assert -(1 << 19) < reading.since_last() < 1 << 19


def test_a_server_that_compacts_nothing_cannot_be_measured(server: Server) -> None:
    directory = server.data_dir / "t-0"
    directory.mkdir(exist_ok=True)
    with pytest.raises(Unavailable, match="compacted nothing within"):
        Cleaning(server, "t").watch(0.1)
    os.rmdir(directory)


def test_a_log_that_still_holds_everything_and_one_that_lacks_a_key_are_noticed(server: Server) -> None:
    load = Load("keyed", 1 << 20, time.time_ns() // 1_000_000, keys=100)
    with server.wire() as wire:
        create_topic(wire, load.topic)
        run_load(server.process.host, server.process.port, load)
        with pytest.raises(LogDiffers, match="still holds all of its 1024 records"):
            check_newest(wire, load)
        more = Load("keyed", 2 << 20, load.timestamp_ms, keys=100)
        with pytest.raises(LogDiffers, match=r"the newest record of key 0{14}30 is at 948, not 1948"):
            check_newest(wire, more)
