"""A project runs its own interpreter in its own directory, and nothing leads it to this checkout."""

import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from benchmarks.testkit.installed import PACKAGES, Project, ProjectFailed, copy_programs, pinned


def test_packages_have_the_versions_of_this_environment() -> None:
    assert {f"{package}=={version(package)}" for package in PACKAGES} <= set(pinned())
    assert [line for line in pinned() if line.startswith("odradek")] == []


def test_a_program_runs_in_the_project_without_our_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTEST_ADDOPTS"):
        monkeypatch.setenv(name, str(tmp_path))
    project = Project(Path(sys.executable), tmp_path)
    assert set(project.environment()).isdisjoint({"PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTEST_ADDOPTS"})
    printed = project.run(["-c", "import os; print(os.getcwd(), os.environ['SET'])"], {"SET": "so"})
    assert printed == f"{tmp_path} so\n"


def test_one_that_fails_is_quoted(tmp_path: Path) -> None:
    project = Project(Path(sys.executable), tmp_path)
    with pytest.raises(ProjectFailed, match=r"ended with 3:\nsaid"):
        project.run(["-c", "print('said'); raise SystemExit(3)"])


def test_programs_are_copied_to_where_no_package_is(tmp_path: Path) -> None:
    copy_programs(tmp_path / "project")
    names = {path.name for path in (tmp_path / "project").iterdir()}
    assert names == {"worker.py", "first_record.py", "fixture_memory.py", "many_tests.py"}
