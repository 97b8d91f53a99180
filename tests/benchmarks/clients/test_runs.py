"""What surrounds a run: other work is measured and counted, topics come and go, and what they lack is noticed."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks.clients import runs
from benchmarks.clients.runs import Disturbances, Topics, Watch
from benchmarks.contenders.client_load import ClientLoad
from benchmarks.harness.servers import Server
from benchmarks.produce import LogDiffers
from processes.odradek_broker import OdradekBroker

LOAD = ClientLoad("", count=10, warm_count=1, value_bytes_min=50, value_bytes_max=150)


@pytest.fixture
def odradek(tmp_path: Path) -> Iterator[Server]:
    with OdradekBroker(tmp_path / "data") as broker:
        yield Server("Odradek", "0", broker, broker.terminate, broker.data_dir)


def test_work_of_neither_server_nor_contender_is_seen(odradek: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of ten seconds in ten seconds, the server has worked three and contenders that have ended two."""

    def now(clock: float, everybody: float, server: float, children: float) -> None:
        monkeypatch.setattr(runs, "time", SimpleNamespace(monotonic=lambda: clock))
        monkeypatch.setattr(runs, "busy_seconds", lambda: everybody)
        monkeypatch.setattr(runs, "child_cpu_seconds", lambda: children)
        monkeypatch.setattr(runs, "cpu_seconds", {odradek.process.pid: server}.__getitem__)

    now(50.0, 100.0, 1.0, 5.0)
    watch = Watch([odradek])
    now(60.0, 110.0, 4.0, 7.0)
    assert watch.other_cores() == 0.5
    now(60.0, 104.99, 4.0, 7.0)
    assert watch.other_cores() == 0.0, "ticks are counted apart, and may disagree a little"


def test_disturbed_runs_are_counted_by_their_kind() -> None:
    disturbances = Disturbances()
    for _ in range(19):
        assert disturbances.add("speed", 0.2) == "0.20 cores busy otherwise"
    assert disturbances.add("speed", 0.21) == "0.21 cores busy otherwise: disturbed"
    assert disturbances.notes() == ["1 of 20 speed runs had more than 0.2 cores busy otherwise"]
    assert not disturbances.are_many
    disturbances.add("latency", 0.1)
    disturbances.add("latency", 0.5)
    assert disturbances.are_many
    assert "1 of 2 latency runs had more than 0.2 cores busy otherwise" in disturbances.notes()


def test_each_run_has_its_own_topic_that_must_hold_the_load_and_is_gone_afterwards(odradek: Server) -> None:
    topics = Topics()
    with pytest.raises(LogDiffers, match="11 of 11 records are missing"), topics.checked(odradek, LOAD, in_order=True):
        pass
    nothing = ClientLoad("", count=0, warm_count=0, value_bytes_min=50, value_bytes_max=150)
    with topics.checked(odradek, nothing, in_order=True) as first:
        assert list(odradek.data_dir.glob(f"{first.topic}-*"))
    odradek.wait_gone(first.topic)
    with topics.checked(odradek, nothing, in_order=True) as second:
        assert second.topic != first.topic
