"""Searching: what fails is told with how to see it again, a world that fails ends nothing, finished seeds are left out.

Histories are made up here: which seeds fail, and with which canary, is a table.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from odradek.testing.sim.checking.history import History
from odradek.testing.sim.cluster.brokers import Brokers
from odradek.testing.sim.cluster.evidence import Evidence
from odradek.testing.sim.scenario import Scenario
from odradek.testing.sim.simulation import Result
from odradek.testing.sim.world.world import World
from tests.sim import __main__ as program
from tests.sim import search
from tests.sim.canaries import CANARIES
from tests.sim.search import Hunt, Task, hunt, outcomes, run

NAME = "a wake-up is missed between look and wait"


@pytest.fixture
def sung(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Seed 13 fails always, seed 7 with a canary, seed 99 takes the world with it. The canaries that were sung."""
    heard: list[str] = []

    def simulate(seed: int, **_: Any) -> Result:
        if seed == 99:
            raise ZeroDivisionError("a mistake of the world")
        violations = ["a record is lost"] if seed == 13 or (seed == 7 and heard) else []
        world = World(seed)
        evidence = Evidence(world, Brokers(world, (1,), {}))
        return Result(seed, f"{seed:032x}", violations, 20.0, 0.5, 1, 1, History(), evidence, Scenario.of(seed), {})

    class Singing:
        def __init__(self, canary: object) -> None:
            self.name = next(name for name, each in CANARIES.items() if each is canary)

        def __enter__(self) -> None:
            heard.append(self.name)

        def __exit__(self, *_: object) -> None:
            heard.remove(self.name)

    monkeypatch.setattr(search, "simulate", simulate)
    monkeypatch.setattr(search, "sung", Singing)
    return heard


def test_what_fails_is_told_with_how_to_see_it_again(sung: list[str]) -> None:
    good, bad, with_canary = outcomes([Task(1), Task(13), Task(7, NAME)], jobs=1)
    assert good.is_good
    assert "again" not in good.text
    assert "a record is lost" in bad.text
    assert "again: make sim SEED=13\n" in bad.text
    assert f"python -m tests.sim 7 --canary '{NAME}'" in with_canary.text
    assert not sung


def test_a_world_that_fails_is_an_outcome(sung: list[str]) -> None:
    outcome = run(Task(99))
    assert not outcome.is_good
    assert "a mistake of the world" in outcome.text
    assert "again: make sim SEED=99" in outcome.text


def test_a_canary_counts_as_found_by_a_seed_that_finds_nothing_without_it(sung: list[str]) -> None:
    found = hunt(NAME, [1, 13, 7, 8])
    assert replace(found, cpu_s=0.0) == Hunt(NAME, 3, 7, 0.0)
    assert hunt(NAME, [1, 13]).found_by is None


def test_what_is_finished_is_left_out_when_the_search_goes_on(sung: list[str], tmp_path: Path) -> None:
    done = tmp_path / "done.txt"
    arguments = ["--seeds", "3", "--first", "12", "--done", str(done)]
    first = CliRunner().invoke(program.main, arguments)
    assert (first.exit_code, first.output.count("FAILED")) == (1, 1)
    assert "1 of 3 seeds failed: 13" in first.output
    assert [line.split()[::2] for line in done.read_text().splitlines()] == [
        ["12", "good"],
        ["13", "failed"],
        ["14", "good"],
    ]
    again = CliRunner().invoke(program.main, ["--seeds", "4", "--first", "12", "--done", str(done)])
    assert (again.exit_code, again.output.count("seed ")) == (0, 1)


def test_a_recorded_seed_that_does_not_find_its_canary_fails(sung: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "CANARIES", {NAME: CANARIES[NAME]})
    for seed, exit_code in ((7, 0), (8, 1), (13, 1)):
        monkeypatch.setattr(program, "FOUND_BY", {NAME: seed})
        assert CliRunner().invoke(program.main, ["--recorded", "1"]).exit_code == exit_code
    monkeypatch.setattr(program, "FOUND_BY", {})
    assert CliRunner().invoke(program.main, ["--recorded", "1"]).exit_code == 1
