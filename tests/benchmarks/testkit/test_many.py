"""Only as many tests as were asked for count as done."""

import sys
from pathlib import Path

import pytest

from benchmarks.testkit.installed import Project, ProjectFailed
from benchmarks.testkit.many import PROGRAM, seconds

TESTS = "import os, pytest\n@pytest.mark.parametrize('n', range(int(os.environ['TESTKIT_TESTS']) - {less}))\n"


def project_of(directory: Path, less: int) -> Project:
    (directory / f"{PROGRAM}.py").write_text(f"{TESTS.format(less=less)}def test(n): pass\n")
    (directory / "pytest.ini").write_text("[pytest]\n")
    return Project(Path(sys.executable), directory)


def test_a_process_of_tests_is_timed(tmp_path: Path) -> None:
    assert seconds(project_of(tmp_path, 0), "Odradek", 3) > 0


def test_fewer_tests_are_none(tmp_path: Path) -> None:
    with pytest.raises(ProjectFailed, match=r"(?s)3 tests were to pass by Odradek.*2 passed"):
        seconds(project_of(tmp_path, 1), "Odradek", 3)
