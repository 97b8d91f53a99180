"""The demo's Spark process, with a stand-in that commits micro-batches into a checkpoint and has a child of its own."""

import os
import sys
from pathlib import Path

import pytest

from odradek.spark_jobs.demo.spark_process import SparkProcess, Topics, committed_batches, delays_command, first_batch
from odradek.spark_jobs.demo.steps import DemoFailed

# Arguments: checkpoint, number of commits, exit status (or `stay`). The child stands for the JVM: it holds the write
# end of the named pipe `alive` open as long as it lives.
STAND_IN = """
import os, signal, subprocess, sys
checkpoint, commits, ending = sys.argv[1], int(sys.argv[2]), sys.argv[3]
if ending == "stay":
    pipe = os.open(checkpoint + "/alive", os.O_WRONLY)
    subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], pass_fds=[pipe])
os.makedirs(checkpoint + "/statistics/commits", exist_ok=True)
for number in range(commits):
    open(f"{checkpoint}/statistics/commits/{number}", "x").close()
    print(f"batch {number + 3}: 5 rows", flush=True)
if ending == "stay":
    signal.pause()
sys.exit(int(ending))
"""


def command(checkpoint: Path, commits: int, ending: str) -> list[str]:
    return [sys.executable, "-c", STAND_IN, str(checkpoint), str(commits), ending]


def test_kill_takes_the_whole_group_along(tmp_path: Path) -> None:
    """It waits for the commits; after SIGKILL the child is gone, too: the pipe that it held open is at its end."""
    os.mkfifo(tmp_path / "alive")
    seen: list[int] = []
    alive = os.open(tmp_path / "alive", os.O_RDONLY | os.O_NONBLOCK)
    try:
        with SparkProcess(command(tmp_path, 7, "stay"), tmp_path, tmp_path / "log") as job:
            job.wait_for_commits(7, seen.append)
            with pytest.raises(BlockingIOError):
                os.read(alive, 1)
            job.kill()
            # Blocks until the last writer is gone; the test's own time limit ends it otherwise.
            os.set_blocking(alive, True)
            assert os.read(alive, 1) == b""
            job.kill()
    finally:
        os.close(alive)
    assert committed_batches(tmp_path) == 7
    assert all(count < 7 for count in seen)


def test_the_block_leaves_nothing_behind(tmp_path: Path) -> None:
    """Leaving it by an exception kills the job and its child."""
    os.mkfifo(tmp_path / "alive")
    alive = os.open(tmp_path / "alive", os.O_RDONLY | os.O_NONBLOCK)
    try:
        with (
            pytest.raises(KeyboardInterrupt),
            SparkProcess(command(tmp_path, 1, "stay"), tmp_path, tmp_path / "log") as job,
        ):
            job.wait_for_commits(1, lambda _count: None)
            raise KeyboardInterrupt
        os.set_blocking(alive, True)
        assert os.read(alive, 1) == b""
    finally:
        os.close(alive)


def test_wait_returns_what_the_job_printed(tmp_path: Path) -> None:
    """A job that ends well gives its output, from which the first micro-batch is read."""
    with SparkProcess(command(tmp_path, 2, "0"), tmp_path, tmp_path / "log") as job:
        output = job.wait(lambda _count: None)
    assert output == "batch 3: 5 rows\nbatch 4: 5 rows\n"
    assert first_batch(output) == 3
    assert first_batch("some other batch 3: 1\n") is None


def test_a_failed_job_is_a_failure_with_its_last_lines(tmp_path: Path) -> None:
    """The exit status and the end of the log are in the text."""
    with (
        SparkProcess(command(tmp_path, 2, "3"), tmp_path, tmp_path / "log") as job,
        pytest.raises(DemoFailed, match=r"failed \(3\)(.|\n)*batch 4: 5 rows"),
    ):
        job.wait(lambda _count: None)


def test_a_job_that_ends_before_it_could_be_killed_is_a_failure(tmp_path: Path) -> None:
    """Even when it ended well: there was nothing left to resume."""
    with (
        SparkProcess(command(tmp_path, 2, "0"), tmp_path, tmp_path / "log") as job,
        pytest.raises(DemoFailed, match="too early"),
    ):
        job.wait_for_commits(3, lambda _count: None)


def test_committed_batches_counts_commits_only(tmp_path: Path) -> None:
    """Not Spark's checksum and temporary files beside them, and no directory means no commit."""
    assert committed_batches(tmp_path) == 0
    commits = tmp_path / "statistics" / "commits"
    commits.mkdir(parents=True)
    for name in ("0", ".0.crc", "1", ".2.3f6c.tmp"):
        (commits / name).touch()
    assert committed_batches(tmp_path) == 2


def test_the_command_names_everything() -> None:
    """Broker, topics, checkpoint and batch size reach the job's command line."""
    words = delays_command("127.0.0.1:1", Topics("f", "r", "d"), Path("c"), 10)
    assert words[:6] == [sys.executable, "-u", "-m", "odradek.spark_jobs.flights", "delays", "--bootstrap-servers"]
    pairs = dict(zip(words[5::2], words[6::2], strict=True))
    assert pairs == {
        "--bootstrap-servers": "127.0.0.1:1",
        "--topic": "f",
        "--result-topic": "r",
        "--dead-letter-topic": "d",
        "--checkpoint": "c",
        "--max-offsets-per-trigger": "10",
    }
