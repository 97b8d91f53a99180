"""What an installed Odradek costs a project that makes no use of it, each time pytest collects its tests.

    python -m benchmarks.collecting [PAIRS]

Two fresh environments have pytest, one of them the wheel, too. Each pair of runs has one in each, in alternating order.
Wall time is what a developer waits for, and on a machine that does other things, too, it says little; processor time
does not depend on them.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.host.machine import REPOSITORY

PAIRS: Final = 30
LIMIT_MS: Final = 20.0
PROJECT: Final = "def test_one():\n    assert 1\n"
COLLECT: Final = ("-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider")


class Cost(NamedTuple):
    """Milliseconds."""

    wall: float
    processor: float


def main() -> None:
    """Prints the median differences."""
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else PAIRS
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(place / "wheel")]
        subprocess.run(build, cwd=REPOSITORY, check=True, capture_output=True)
        [wheel] = (place / "wheel").iterdir()
        without = environment(place / "without", "pytest")
        with_it = environment(place / "with", "pytest", str(wheel))
        (project := place / "project").mkdir()
        (project / "test_one.py").write_text(PROJECT)
        differences = [difference(with_it, without, project, number % 2 == 1) for number in range(-2, pairs)][2:]
    wall = statistics.median(each.wall for each in differences)
    processor = statistics.median(each.processor for each in differences)
    print(f"median of {pairs}: {wall:.1f} ms, of them {processor:.1f} of a processor (at most {LIMIT_MS:g} wanted)")


def environment(directory: Path, *packages: str) -> Path:
    """Its interpreter. Raises CalledProcessError."""
    venv.create(directory, with_pip=True)
    python = directory / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
    return python


def difference(with_it: Path, without: Path, project: Path, reverse: bool) -> Cost:
    """What one run takes more than the other one."""
    runs = [with_it, without]
    costs = {each: collected(each, project) for each in (reversed(runs) if reverse else runs)}
    return Cost(costs[with_it].wall - costs[without].wall, costs[with_it].processor - costs[without].processor)


def collected(python: Path, project: Path) -> Cost:
    """Of one run of pytest, which has to end well."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST"))}
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([python, *COLLECT], cwd=project, env=variables, check=True, capture_output=True)
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(wall * 1000, processor * 1000)


if __name__ == "__main__":
    main()
