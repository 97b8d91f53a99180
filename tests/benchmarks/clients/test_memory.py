"""A stopped broker stands still and goes on; what a process grew by is held against what was put in."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.clients.memory import BUFFER_BYTES, FILLINGS, Filling, figure_of, fill, stopped
from benchmarks.clients.runs import Topics
from benchmarks.contenders.client_load import ClientLoad
from benchmarks.contenders.job import Filled
from benchmarks.harness.servers import Server
from benchmarks.produce import LogDiffers
from benchmarks.start import QUESTION, answers
from processes.odradek_broker import OdradekBroker


@pytest.fixture
def odradek(tmp_path: Path) -> Iterator[Server]:
    with OdradekBroker(tmp_path / "data") as broker:
        yield Server("Odradek", "0", broker, broker.terminate, broker.data_dir)


def test_a_stopped_broker_takes_bytes_and_answers_when_it_goes_on(odradek: Server) -> None:
    process = odradek.process
    with socket.create_connection((process.host, process.port), timeout=0.3) as sock:
        with stopped(odradek):
            sock.sendall(QUESTION)
            with pytest.raises(TimeoutError):
                sock.recv(1)
        sock.settimeout(10.0)
        assert sock.recv(1)
    assert answers(process.host, process.port)


def test_a_broker_goes_on_whatever_happens_while_it_stands_still(odradek: Server) -> None:
    with pytest.raises(RuntimeError, match="no"), stopped(odradek):
        raise RuntimeError("no")
    assert answers(odradek.process.host, odradek.process.port)


@pytest.mark.parametrize("filling", FILLINGS, ids=str)
def test_more_records_are_offered_than_a_buffer_has_room_for(filling: Filling) -> None:
    load = filling.load
    assert load.count * (filling.value_bytes + filling.key_bytes) > 60_000_000
    value, key = next(load.iterate())
    assert (len(value), len(key or b"")) == (filling.value_bytes, filling.key_bytes)


def test_a_buffer_is_filled_while_the_broker_stands_still_and_all_of_it_arrives(odradek: Server) -> None:
    """With values so large that few are enough. More than four bytes for each byte put in would be an error here."""
    filled = fill(odradek, Topics(), Filling("8 KiB, keys", 8192, 16, 4.0).load, "asyncio")
    assert filled.payload_bytes == filled.records * 8208
    assert BUFFER_BYTES / 2 < filled.payload_bytes <= BUFFER_BYTES
    assert BUFFER_BYTES / 4 < filled.growth_bytes < 4 * BUFFER_BYTES
    odradek.wait_gone("clients")


def test_a_buffer_that_was_never_full_fails_the_run(odradek: Server) -> None:
    load = ClientLoad("", count=100, warm_count=10, value_bytes_min=100, value_bytes_max=100)
    with pytest.raises(LogDiffers, match="was not full with 100 records"):
        fill(odradek, Topics(), load, "asyncio")


def test_growth_is_judged_by_the_bytes_of_keys_and_values() -> None:
    runs = [Filled(44_000_000, 20_000_000, 1), Filled(46_000_000, 20_000_000, 1), Filled(43_000_000, 20_000_000, 1)]
    figure = figure_of(Filling("100 B, keys", 100, 16, 2.2), runs)
    assert (figure.ours.median, figure.theirs.median, figure.ratio) == (44.0, 20.0, 2.2)
    assert figure.is_met
    assert not figure_of(Filling("100 B, keys", 100, 16, 2.1), runs).is_met
