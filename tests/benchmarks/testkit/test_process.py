"""The time runs until the program has said its word, and only for one that ends well."""

import sys
from pathlib import Path

import pytest

from benchmarks.testkit.installed import Project, ProjectFailed
from benchmarks.testkit.process import PROGRAM, acknowledged, percentile


def project_of(directory: Path, program: str) -> Project:
    (directory / PROGRAM).write_text(program)
    return Project(Path(sys.executable), directory)


def test_what_comes_after_the_word_does_not_count(tmp_path: Path) -> None:
    program = "import time\nprint('acknowledged', flush=True)\ntime.sleep(0.3)\n"
    assert acknowledged(project_of(tmp_path, program)) < 0.3


@pytest.mark.parametrize("program", ["print('refused')", "print('acknowledged')\nraise SystemExit('late')"])
def test_another_word_or_a_bad_end_is_told(tmp_path: Path, program: str) -> None:
    with pytest.raises(ProjectFailed, match=r"first_record\.py said '(refused|acknowledged)\\n' and ended with"):
        acknowledged(project_of(tmp_path, program))


def test_a_percentile_is_one_of_the_values() -> None:
    assert percentile([3.0, 1.0, 2.0], 0.95) == 3.0
    assert percentile(list(map(float, range(1, 46))), 0.95) == 43.0
