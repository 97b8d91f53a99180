"""A worker is asked and answers; why one has ended is told. Workers of a few lines stand in for ours."""

import sys
from pathlib import Path

import pytest

from benchmarks.testkit.installed import Project, ProjectFailed
from benchmarks.testkit.worker_process import working

ECHO = "import sys\nfor line in sys.stdin: print(len(line.split()), flush=True)\n"


def project_of(directory: Path, worker: str) -> Project:
    (directory / "worker.py").write_text(worker)
    return Project(Path(sys.executable), directory)


def test_each_line_has_its_answer(tmp_path: Path) -> None:
    with working(project_of(tmp_path, ECHO)) as worker:
        assert [worker.ask("kill"), worker.ask("reset 3 50 1")] == [1, 4]


def test_one_that_ends_instead_is_quoted(tmp_path: Path) -> None:
    project = project_of(tmp_path, "raise SystemExit('no brokers today')")
    with (
        pytest.raises(ProjectFailed, match=r"told 'kill', ended with 1:\nno brokers today"),
        working(project) as worker,
    ):
        worker.ask("kill")
