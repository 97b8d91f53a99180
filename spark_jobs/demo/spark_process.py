"""The streaming job as a child process, which can be killed between two commits of its checkpoint.

A Spark driver is two processes, Python and a JVM; the job gets a session and process group of its own, so that SIGKILL
reaches both at once, and nothing of it outlives the demo. How far it is, is read from the checkpoint: Spark writes
`commits/<batch id>` once a micro-batch is done.
"""

import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from odradek.spark_jobs.delays import STATISTICS
from odradek.spark_jobs.demo.child import Child
from odradek.spark_jobs.demo.steps import Completed, DemoFailed

POLL_INTERVAL_S = 0.02
BATCH_LINE = re.compile(r"^batch (\d+):", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of the demo's streaming job."""

    flights: str = "flights"
    results: str = "flight-delays"
    dead_letters: str = "flights-dead-letters"


def delays_command(bootstrap: str, topics: Topics, checkpoint: Path, max_offsets_per_trigger: int) -> list[str]:
    """`python -m odradek.spark_jobs.flights delays`, by the interpreter that runs the demo."""
    options = {
        "--bootstrap-servers": bootstrap,
        "--topic": topics.flights,
        "--result-topic": topics.results,
        "--dead-letter-topic": topics.dead_letters,
        "--checkpoint": str(checkpoint),
        "--max-offsets-per-trigger": str(max_offsets_per_trigger),
    }
    arguments = [text for pair in options.items() for text in pair]
    return [sys.executable, "-u", "-m", "odradek.spark_jobs.flights", "delays", *arguments]


def committed_batches(checkpoint: Path) -> int:
    """How many micro-batches of the statistics are committed."""
    commits = checkpoint / STATISTICS / "commits"
    return sum(name.isdigit() for name in os.listdir(commits)) if commits.is_dir() else 0


class SparkProcess(Child):
    """One run of the job."""

    def __init__(self, command: list[str], checkpoint: Path, log: Path) -> None:
        self._checkpoint = checkpoint
        self._log = log
        with log.open("w", encoding="utf-8") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)

    def stop(self) -> None:
        """As `kill`: what the job has committed stands in its checkpoint."""
        self.kill()

    def kill(self) -> None:
        """SIGKILL to the driver and its JVM; does nothing when they are gone."""
        if self._process.poll() is None:
            # The process is ours and not yet waited for, so its id, which is the group's, cannot be anybody else's.
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def wait_for_commits(self, count: int, completed: Completed) -> None:
        """Returns as soon as `count` micro-batches are committed; raises DemoFailed when the job ends before."""
        while (committed := committed_batches(self._checkpoint)) < count:
            completed(committed)
            if self._ended_within(POLL_INTERVAL_S):
                raise DemoFailed(f"the Spark job ended ({self._process.returncode}) too early: {self._last_lines()}")

    def wait(self, completed: Completed) -> str:
        """Returns what the job printed, once it has ended well; raises DemoFailed otherwise."""
        while not self._ended_within(POLL_INTERVAL_S):
            completed(committed_batches(self._checkpoint))
        if self._process.returncode != 0:
            raise DemoFailed(f"the Spark job failed ({self._process.returncode}): {self._last_lines()}")
        return self._log.read_text(encoding="utf-8")

    def _ended_within(self, seconds: float) -> bool:
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _last_lines(self) -> str:
        lines = self._log.read_text(encoding="utf-8").splitlines()
        return "\n".join([f"its log is {self._log}, and ends with", *lines[-15:]])


def first_batch(output: str) -> int | None:
    """The number of the first micro-batch that the job reported."""
    found = BATCH_LINE.search(output)
    return int(found[1]) if found else None
