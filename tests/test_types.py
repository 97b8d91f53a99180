"""That mypy and pyright look at every folder, and ruff at names: what is planted in a copy of the repository is found.

Each checker has its own way past the links in odradek/ (pyproject.toml), and a way that is wrong checks nothing and
succeeds.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.source_rules import LINKED

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("odradek", *LINKED, "processes", "tests", "benchmarks", "examples")
PLANTED = '"""An error."""\n\nplanted: int = "text"\n'
CHECKERS = {"mypy": ["mypy", "--no-incremental"], "pyright": ["pyright", "--pythonpath", sys.executable]}


@pytest.fixture
def skeleton(tmp_path: Path) -> Path:
    """The folders, each with one module, the links and the settings: enough to see where a checker looks."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for name in FOLDERS:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text('"""A package."""\n')
        (tmp_path / name / "planted.py").write_text(PLANTED)
    for name in LINKED:
        (tmp_path / "odradek" / name).symlink_to((ROOT / "odradek" / name).readlink())
    (tmp_path / "typings").mkdir()
    return tmp_path


@pytest.mark.parametrize("checker", CHECKERS)
def test_an_error_in_any_folder_is_found(checker: str, skeleton: Path) -> None:
    command = [sys.executable, "-m", *CHECKERS[checker]]
    done = subprocess.run(command, cwd=skeleton, capture_output=True, text=True, check=False, timeout=110)
    assert done.returncode == 1, done.stderr
    complaints = [line for line in done.stdout.splitlines() if "planted.py:3" in line and "error" in line]
    found = [name for name in FOLDERS if sum(f"{name}/planted.py:3" in line for line in complaints) == 1]
    assert (found, len(complaints)) == (list(FOLDERS), len(FOLDERS)), done.stdout


@pytest.mark.parametrize("name", LINKED)
def test_a_folder_is_not_imported_by_its_own_name(name: str) -> None:
    """Each class in it would exist twice."""
    command = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--stdin-filename",
        "tests/planted.py",
        "--output-format",
        "concise",
        "-",
    ]
    source = f'"""A module."""\n\nfrom {name} import anything\n\nprint(anything)\n'
    done = subprocess.run(command, cwd=ROOT, input=source, capture_output=True, text=True, check=False, timeout=60)
    assert f"TID251 `{name}` is banned: Import odradek.{name}." in done.stdout
