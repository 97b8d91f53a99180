"""A contender's process, seen from the benchmark: started for one job, talked to in lines, and gone afterwards."""

import contextlib
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator
from typing import IO, Any

from benchmarks.contenders.job import ContenderFailed, Job
from benchmarks.host.machine import REPOSITORY

JOB_TIMEOUT_S = 120.0


class Conversation:
    """Lines of JSON from a contender, and lines to it."""

    def __init__(self, process: "subprocess.Popen[str]", job: Job, errors: IO[str]) -> None:
        self._process = process
        self._job = job
        self._errors = errors
        self.identity: str = self.hear()

    def hear(self) -> Any:
        """What it says next. Raises ContenderFailed when it has ended instead."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise self.failure()
        return json.loads(line)

    def say(self, line: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended: the next `hear` tells why
            self._process.stdin.write(f"{line}\n")
            self._process.stdin.flush()

    def failure(self) -> ContenderFailed:
        code = self._process.wait()
        self._errors.seek(0)
        return ContenderFailed(
            f"{self._job.client}, {self._job.idiom or self._job.kind}: ended with {code}\n{self._errors.read()[-4000:]}"
        )


@contextlib.contextmanager
def contending(job: Job, timeout_s: float = JOB_TIMEOUT_S) -> Generator[Conversation, None, None]:
    """A process that does the job. It has ended well when the block has. Raises ContenderFailed."""
    command = [sys.executable, "-m", "benchmarks.contenders", job.to_json()]
    with (
        tempfile.TemporaryFile("w+", prefix="contender-") as errors,
        subprocess.Popen(
            command,
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        overdue = threading.Timer(timeout_s, process.kill)
        overdue.start()
        try:
            conversation = Conversation(process, job, errors)
            yield conversation
            if process.wait() != 0:
                raise conversation.failure()
        except BaseException:
            process.kill()
            raise
        finally:
            overdue.cancel()
