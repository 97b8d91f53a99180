"""A test that outlives its time limit ends its process by name, and not the whole run by silence."""

import subprocess
import sys
from pathlib import Path

CONFTEST = """
import os
from tests.stuck_tests import StuckTests

def pytest_configure(config):
    config.pluginmanager.register(StuckTests(os.dup(2), grace_s=0.3))
"""

STUCK = """
import threading
import pytest

@pytest.mark.timeout(0.3)
def test_swallows_its_time_limit():
    try:
        threading.Event().wait()
    except BaseException:
        threading.Event().wait()

@pytest.mark.timeout(20)
def test_good():
    pass
"""


def test_a_test_that_swallows_its_time_limit_is_named_and_ends_its_process(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_stuck.py").write_text(STUCK)
    command = [sys.executable, "-m", "pytest", str(tmp_path), "-c", "/dev/null", "-n", "1", "-p", "no:randomly"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, cwd=Path(__file__).parents[1], env={"PYTHONPATH": "."}
    )
    assert "crashed while running 'test_stuck.py::test_swallows_its_time_limit'" in done.stdout
    assert "1 failed, 1 passed" in done.stdout
    assert "in test_swallows_its_time_limit" in done.stderr
