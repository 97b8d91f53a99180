"""The same seed is the same history, event for event, in another process; another seed is another one. And nothing is
found in any of them.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sim.recorded import SHORT

ROOT = Path(__file__).parent.parent.parent


def digests() -> dict[int, str]:
    """The hash of each seed's trace, from a fresh process."""
    command = [sys.executable, "-m", "tests.sim", *map(str, SHORT), "--brief"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert (done.stderr, done.returncode) == ("", 0), done.stdout
    lines = [line.split() for line in done.stdout.splitlines()]
    return {int(line[0]): line[1] for line in lines if len(line) == 2}


@pytest.mark.only_in_sim
@pytest.mark.timeout(600)
def test_four_seeds_do_the_same_in_two_fresh_processes() -> None:
    first = digests()
    assert sorted(first) == sorted(SHORT)
    assert len(set(first.values())) == len(SHORT) == 4, "each seed is another history"
    assert digests() == first
