"""The workload is stated: every history has brokers, clients and faults, and its line says what it took."""

import json
import subprocess

import pytest

from benchmarks import simulator
from benchmarks.harness.results import Unavailable
from benchmarks.simulator import WORKLOAD, main, told
from odradek.testing.sim.checking.history import History
from odradek.testing.sim.cluster.brokers import Brokers
from odradek.testing.sim.cluster.evidence import Evidence
from odradek.testing.sim.simulation import Result
from odradek.testing.sim.world.world import World


def test_all_are_clusters_with_clients_and_faults() -> None:
    assert len(WORKLOAD) == 10
    for scenario in WORKLOAD.values():
        assert (scenario.brokers, scenario.has_store) == (3, True)
        assert scenario.producers
        assert scenario.readers
        assert scenario.faults


def result(violations: list[str]) -> Result:
    scenario = WORKLOAD[5]
    with World(7) as world:
        evidence = Evidence(world, Brokers(world, (1,), {}))
    return Result(7, "cafe", violations, 20.0, 0.5, 1000, 10, History(), evidence, scenario, {})


def test_one_history_is_run_and_told(capsys: pytest.CaptureFixture[str]) -> None:
    main(["5"])
    line = json.loads(capsys.readouterr().out)
    assert line["seed"] == 5
    assert line["violations"] == []
    assert line["virtual_s"] > WORKLOAD[5].safety_s
    assert line["cpu_s"] > 0


def test_what_a_child_tells_is_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    say(monkeypatch, told(result([])), told(result([])))
    assert simulator.timed() == (40.0, 1.0, 2000)


def test_a_history_that_ends_badly_is_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    say(monkeypatch, told(result(["lost"])))
    with pytest.raises(Unavailable, match="seed 7 ends badly: lost"):
        simulator.timed()


def say(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    """The next child says so, and has ended."""

    def run(*arguments: object, **options: object) -> "subprocess.CompletedProcess[str]":
        del arguments, options
        return subprocess.CompletedProcess((), 0, "\n".join(lines), "")

    monkeypatch.setattr(subprocess, "run", run)
