"""The time runs until the program has said its word, and only for one that ends well."""

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks.testkit import process
from benchmarks.testkit.installed import Project, ProjectFailed
from benchmarks.testkit.process import PROGRAM, acknowledged, percentile


def project_of(directory: Path, program: str) -> Project:
    (directory / PROGRAM).write_text(program)
    return Project(Path(sys.executable), directory)


def test_what_comes_after_the_word_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program ends when the clock is read for the second time, or after 10 s, and badly then."""
    is_read = tmp_path / "is_read"
    os.mkfifo(is_read)
    to_program = os.open(is_read, os.O_RDWR)
    readings_s = [10.0, 10.25]

    def clock() -> float:
        now_s = readings_s.pop(0)
        if not readings_s:
            os.write(to_program, b".")
        return now_s

    monkeypatch.setattr(process, "time", SimpleNamespace(perf_counter=clock))
    program = f"import signal\nsignal.alarm(10)\nprint('acknowledged', flush=True)\nopen({is_read.name!r}).read(1)\n"
    assert acknowledged(project_of(tmp_path, program)) == 0.25
    os.close(to_program)


@pytest.mark.parametrize("program", ["print('refused')", "print('acknowledged')\nraise SystemExit('late')"])
def test_another_word_or_a_bad_end_is_told(tmp_path: Path, program: str) -> None:
    with pytest.raises(ProjectFailed, match=r"first_record\.py said '(refused|acknowledged)\\n' and ended with"):
        acknowledged(project_of(tmp_path, program))


def test_a_percentile_is_one_of_the_values() -> None:
    assert percentile([3.0, 1.0, 2.0], 0.95) == 3.0
    assert percentile(list(map(float, range(1, 46))), 0.95) == 43.0
