"""The program `worker` of a project, seen from the benchmark: told lines, asked how many seconds each took."""

import contextlib
import json
import subprocess
import tempfile
import threading
from collections.abc import Generator
from typing import IO

from benchmarks.testkit.installed import Project, ProjectFailed

WORKER_SECONDS_MAX = 600.0


class Worker:
    """See `programs/worker.py` for the lines."""

    def __init__(self, process: "subprocess.Popen[str]", errors: IO[str]) -> None:
        self._process = process
        self._errors = errors

    def __str__(self) -> str:
        return "the test kit"

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, line: str) -> float:
        """Seconds. Raises ProjectFailed when it has ended instead of answering."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended: that it does not answer tells why
            self._process.stdin.write(f"{line}\n")
            self._process.stdin.flush()
        if not (answer := self._process.stdout.readline()):
            code = self._process.wait()
            self._errors.seek(0)
            raise ProjectFailed(f"the worker, told {line!r}, ended with {code}:\n{self._errors.read()[-4000:]}")
        seconds: float = json.loads(answer)
        return seconds


@contextlib.contextmanager
def working(project: Project) -> Generator[Worker, None, None]:
    """A worker, which has ended when the block has."""
    with (
        tempfile.TemporaryFile("w+", prefix="testkit-worker-") as errors,
        subprocess.Popen(
            [str(project.python), "worker.py"],
            cwd=project.directory,
            env=project.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        overdue = threading.Timer(WORKER_SECONDS_MAX, process.kill)
        overdue.start()
        try:
            yield Worker(process, errors)
        except BaseException:
            process.kill()
            raise
        finally:
            overdue.cancel()
