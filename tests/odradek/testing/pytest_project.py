"""A small project whose tests are run as its developer runs them: pytest in a process of its own, with our plugin."""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[3]
PLUGIN: Final = "odradek.testing.pytest_plugin"
SECONDS_MAX: Final = 60.0
LEFT_OUT: Final = ("PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER", "PYTEST_CURRENT_TEST", "KAFKA_BOOTSTRAP_SERVERS")


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended, and what it printed."""

    code: int
    text: str

    def assert_outcomes(self, **counts: int) -> None:
        """`passed=2, failed=1`: these, in this order of pytest's, and nothing else."""
        last = self.text.rstrip().splitlines()[-1]
        assert ", ".join(f"{count} {name}" for name, count in counts.items()) + " in " in last, self.text


def command(*arguments: str, plugins: Sequence[str] = ()) -> list[str]:
    """Only these plugins are loaded, and ours: whatever else is installed beside."""
    loaded = [word for name in (PLUGIN, *plugins) for word in ("-p", name)]
    return [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *loaded, *arguments]


def environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in LEFT_OUT}
    return {**kept, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT)}


def run(directory: Path, *arguments: str, plugins: Sequence[str] = ()) -> Ended:
    """Runs the tests of the directory."""
    done = subprocess.run(
        command(*arguments, plugins=plugins),
        cwd=directory,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=SECONDS_MAX,
    )
    return Ended(done.returncode, done.stdout)


def write(directory: Path, text: str, ini: str = "", name: str = "test_project.py") -> None:
    """A module of tests, and the lines of its pytest.ini."""
    (directory / "pytest.ini").write_text(f"[pytest]\n{ini}\n")
    (directory / name).write_text(text)
