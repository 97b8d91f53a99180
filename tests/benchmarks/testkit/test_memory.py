"""A process of pytest answers by a file, which is gone afterwards."""

import sys
from pathlib import Path

from benchmarks.testkit.installed import Project
from benchmarks.testkit.memory import PROGRAM, memory

TEST = """
import os
def test_it():
    lines = "Pss: 2000 kB", "VmRSS: " + os.environ["TESTKIT_BROKERS"] + "000 kB"
    open(os.environ["TESTKIT_ANSWER"], "w").write("\\n".join(lines) + "\\n")
"""


def test_memory_is_what_the_process_tells(tmp_path: Path) -> None:
    (tmp_path / f"{PROGRAM}.py").write_text(TEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    assert memory(Project(Path(sys.executable), tmp_path), 3, 0.0) == (3.072, 2.048)
    assert not (tmp_path / "answer.txt").exists()
