"""The plugin as a wheel installs it: pytest loads it by itself, and rewrites the assertions of none of our modules.

From a checkout it does neither. What it imports before the plugin can say anything is left: three modules, which ask
pytest to leave them as they are, and which are the only ones that it keeps a copy of.
"""

import os
import subprocess
from pathlib import Path

import pytest

from processes.wheel import build
from tests.odradek.test_wheel import copy_of_the_checkout, installed

SECONDS_MAX = 60.0
BEFORE = {"odradek", "odradek.testing", "odradek.testing.pytest_plugin"}
PROJECT = f"""
import importlib.machinery
import sys

BEFORE = {sorted(BEFORE)}


def ours():
    return {{name: module for name, module in sys.modules.items() if name.split(".")[0] == "odradek"}}


def test_nothing_is_imported_before_it_is_used():
    assert sorted(ours()) == BEFORE


def test_a_cluster(kafka, kafka_topic):
    kafka.produce(kafka_topic, ["a"])
    assert len(ours()) > 100
    as_it_is = importlib.machinery.SourceFileLoader
    assert {{name for name, each in ours().items() if type(each.__loader__) is not as_it_is}} <= set(BEFORE)
"""
IMPORTED_BEFORE = "import sys, odradek, odradek.testing, pytest; sys.exit(pytest.main(sys.argv[1:]))"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("from_the_wheel")
    wheel = build(copy_of_the_checkout(directory / "checkout"), "wheel", directory / "wheel")
    return installed(wheel, directory / "environment")


def run(python: Path, project: Path, *arguments: str, **variables: str) -> str:
    """What a run printed that did not fail."""
    (project / "test_project.py").write_text(PROJECT)
    (project / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST"))}
    others = ("hypothesispytest", "asyncio", "randomly", "xdist", "timeout")
    without = [word for name in others for word in ("-p", f"no:{name}")]
    done = subprocess.run(
        [str(python), *arguments, *without, "-p", "no:cacheprovider"],
        cwd=project,
        env={**kept, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS_MAX,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
    return done.stdout


def test_our_modules_are_imported_as_they_are(python: Path, tmp_path: Path) -> None:
    run(python, tmp_path, "-m", "pytest")
    packages = python.parent.parent / "lib"
    rewritten = {each.name.partition(".")[0] for each in packages.rglob("odradek/**/*-pytest-*.pyc")}
    assert rewritten <= {"__init__", "pytest_plugin"}
    assert sum(1 for _ in packages.rglob("odradek/**/*-pytest-*.pyc")) <= len(BEFORE)


def test_so_they_are_where_no_bytecode_may_be_written(python: Path, tmp_path: Path) -> None:
    """And where ours were imported before pytest was, of which it would warn."""
    run(python, tmp_path, "-c", IMPORTED_BEFORE, PYTHONDONTWRITEBYTECODE="1")
