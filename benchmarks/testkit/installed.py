"""An empty project with the wheel installed, kafka-python, confluent-kafka and pytest: where the test kit is measured.

The wheel is built from this checkout, once for a bench. All packages have the versions that this environment has, which
are those of requirements/dev.txt; nothing else is installed, so that no plugin of pytest's costs anything.
"""

import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path

from benchmarks.harness.bench import Bench
from benchmarks.host.machine import REPOSITORY
from processes.wheel import build

PACKAGES = ("kafka-python", "confluent-kafka", "pytest")
PROGRAMS = Path(__file__).parent / "programs"
INSTALL_SECONDS_MAX = 300.0
RUN_SECONDS_MAX = 600.0


class ProjectFailed(Exception):
    """A program of the project did not do what it was started for; the text holds what it printed."""


@dataclass(frozen=True, slots=True)
class Project:
    """An interpreter, and the directory that holds the programs and is current when they run."""

    python: Path
    directory: Path

    def environment(self, settings: Mapping[str, str] | None = None) -> dict[str, str]:
        """That of this process with `settings`, without what has Python look elsewhere for modules or bytecode, and
        without options of another pytest."""
        without = {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTEST_ADDOPTS", "VIRTUAL_ENV"}
        return {name: value for name, value in os.environ.items() if name not in without} | dict(settings or {})

    def run(self, arguments: Sequence[str], settings: Mapping[str, str] | None = None) -> str:
        """Runs Python in the project until it ends; what it printed. Raises ProjectFailed, TimeoutExpired."""
        done = subprocess.run(
            [str(self.python), *arguments],
            cwd=self.directory,
            env=self.environment(settings),
            capture_output=True,
            text=True,
            check=False,
            timeout=RUN_SECONDS_MAX,
        )
        if done.returncode != 0:
            told = f"{done.stdout[-4000:]}{done.stderr[-4000:]}"
            raise ProjectFailed(f"python {' '.join(arguments)} ended with {done.returncode}:\n{told}")
        return done.stdout

    def run_tests(self, program: str, settings: Mapping[str, str]) -> str:
        """Has pytest run the tests of a program. Raises ProjectFailed where one fails, TimeoutExpired."""
        return self.run(["-m", "pytest", "-q", f"{program}.py"], settings)


def installed(bench: Bench) -> Project:
    """The bench's project, made when it is first asked for. Raises CalledProcessError where the wheel cannot be built
    or pip cannot install, TimeoutExpired, OSError."""
    directory = bench.directory / "testkit"
    project = Project(directory / "environment" / "bin" / "python", directory / "project")
    if not project.directory.exists():
        bench.say("testkit: the wheel is built and installed")
        shutil.rmtree(directory, ignore_errors=True)  # what an attempt left that failed
        install(project, build(REPOSITORY, "wheel", directory / "wheel"))
        copy_programs(project.directory)
        if not (place := place_of_odradek(project)).is_relative_to(directory):
            raise ProjectFailed(f"the project imports odradek from {place}, not what was installed for it")
    return project


def install(project: Project, wheel: Path) -> None:
    """Makes its environment. Raises CalledProcessError, TimeoutExpired, OSError."""
    environment = project.python.parent.parent
    venv.create(environment, symlinks=True)
    constraints = environment / "constraints.txt"
    constraints.write_text("".join(f"{line}\n" for line in pinned()))
    command = [sys.executable, "-m", "pip", "--python", str(project.python), "install", "--quiet"]
    command += ["--disable-pip-version-check", "--constraint", str(constraints), str(wheel), *PACKAGES]
    subprocess.run(command, cwd=environment, check=True, stdin=subprocess.DEVNULL, timeout=INSTALL_SECONDS_MAX)


def pinned() -> list[str]:
    """What this environment has, as lines of a constraints file; ourselves not, for the wheel is that."""
    return sorted({f"{each.name}=={each.version}" for each in distributions() if each.name != "odradek"})


def copy_programs(directory: Path) -> None:
    """Into a new directory, where no configuration of ours is above them. Raises OSError."""
    shutil.copytree(PROGRAMS, directory, ignore=shutil.ignore_patterns("__init__.py", "__pycache__"))


def place_of_odradek(project: Project) -> Path:
    """Where the project finds it. Raises ProjectFailed."""
    return Path(json.loads(project.run(["-c", "import json, odradek; print(json.dumps(odradek.__file__))"])))
