"""A wheel or sdist of the project, built from its source: for tests of what is installed, and benchmarks from it."""

import subprocess
import sys
from pathlib import Path

BUILD_SECONDS_MAX = 60.0


def build(tree: Path, kind: str, target: Path) -> Path:
    """The wheel or sdist of a source tree; `target` is a new directory. Raises CalledProcessError, TimeoutExpired."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(target)]
    subprocess.run(command, cwd=tree, check=True, capture_output=True, timeout=BUILD_SECONDS_MAX)
    (built,) = target.iterdir()
    return built
