"""A test that is killed by SIGKILL tidies up nothing: whether what it had started is gone all the same."""

import os
import select
import subprocess
import sys

from processes.child_process import REPOSITORY


def outlives_its_test(source: str, timeout_ms: int = 10_000) -> bool:
    """Runs `source`, which starts a process, prints its id and waits, and kills it; whether that process is still there
    when the time is over."""
    with subprocess.Popen(
        [sys.executable, "-c", source], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY
    ) as test:
        assert test.stdout is not None
        watched = os.pidfd_open(int(test.stdout.readline()))
        try:
            test.kill()
            poll = select.poll()
            poll.register(watched, select.POLLIN)
            return not poll.poll(timeout_ms)
        finally:
            os.close(watched)
