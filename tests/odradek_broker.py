"""Odradek itself as a child process: started, asked where it listens, killed without mercy, and started again.

    with OdradekBroker(tmp_path / "data", "--set", "num.partitions=3") as broker:
        KafkaProducer(bootstrap_servers=broker.bootstrap)
        broker.kill()
        broker.restart()

It counts as started when it has printed its ready line, and its address is taken from there: the first start takes a
free loopback port, later ones the same. It is signalled by its own process id, and gone when the `with` block ends,
however it ends. (`spark_jobs/demo` has its own, for it does not import tests.)
"""

import os
import re
import select
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

READY: Final = re.compile(r"odradek (?P<version>\S+) ready on (?P<host>\S+):(?P<port>\d+)\b.* \(node \d+, data in .+\)")
REPOSITORY: Final = Path(__file__).resolve().parents[1]
START_TIMEOUT_S: Final = 30.0
STOP_TIMEOUT_S: Final = 10.0
"""Twice what a clean stop is allowed."""


class OdradekFailed(Exception):
    """The broker did not get ready, or did not end as it should; the text holds what it printed."""


class OdradekBroker:
    """A broker on `data_dir`, with further `options` of `odradek serve`. `kill`, `terminate` and `start` alternate."""

    def __init__(self, data_dir: Path | str, *options: str) -> None:
        self.data_dir = Path(data_dir).resolve()
        self.options = options
        self.host = "127.0.0.1"
        self.port = 0
        self.ready_line = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._log = tempfile.TemporaryFile(prefix="odradek-broker-")  # noqa: SIM115 - closed by close(), over several runs
        self._said = ""

    @property
    def bootstrap(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None, "the broker is not running"
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether it was started and has not ended, by itself or by us."""
        return self._process is not None and self._process.poll() is None

    @property
    def output(self) -> str:
        """What it wrote to standard error (its log), in all its runs. Readable after the end, too."""
        if not self._log.closed:
            descriptor = self._log.fileno()
            self._said = os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode(errors="replace")
        return self._said

    def command(self) -> list[str]:
        """The command line of the next start."""
        listen = ["--listen", f"{self.host}:{self.port}", "--data-dir", str(self.data_dir)]
        return [sys.executable, "-m", "odradek", "serve", *listen, *self.options]

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stops it by SIGTERM. Raises OdradekFailed if it had ended by itself or does not end well, unless something
        else went wrong already."""
        try:
            if kind is None and self._process is not None:
                self._check_end(self.terminate())
        finally:
            self.close()

    def close(self) -> None:
        """Ends it by SIGKILL if it still runs, and keeps its output."""
        self.kill()
        self._said = self.output
        self._log.close()

    def start(self) -> None:
        """Starts it, on the port of its last run if there was one. Returns when it accepts connections.

        Raises OdradekFailed when it ends instead, or says nothing in time.
        """
        assert self._process is None, "the broker is already running"
        self._process = subprocess.Popen(
            self.command(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=REPOSITORY,  # where `-m` finds the package when it is not installed
        )
        try:
            self.ready_line = self._first_line(self._process)
            ready = READY.match(self.ready_line)
            if ready is None:
                raise OdradekFailed(f"no ready line but {self.ready_line!r}; the broker's log:\n{self.output[-8000:]}")
            self.host, self.port = ready["host"], int(ready["port"])
        except BaseException:
            self.kill()
            raise

    def kill(self) -> None:
        """SIGKILL, and waits until the process is gone. Does nothing when it is not running."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            _reap(process)

    def terminate(self, timeout_s: float = STOP_TIMEOUT_S) -> int:
        """SIGTERM; the exit code. Raises what `ended` raises."""
        assert self._process is not None, "the broker is not running"
        self._process.terminate()
        return self.ended(timeout_s)

    def ended(self, timeout_s: float = STOP_TIMEOUT_S) -> int:
        """Waits until it has ended, for instance by a signal that was sent to it; the exit code.

        Raises OdradekFailed, after SIGKILL, when it does not end in time.
        """
        process, self._process = self._process, None
        assert process is not None, "the broker is not running"
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            raise OdradekFailed(f"still running after {timeout_s} s; its log:\n{self.output[-8000:]}") from None
        finally:
            _reap(process)
        return process.returncode

    def restart(self) -> None:
        """Starts it again on the same port, after a clean stop if it is still running."""
        if self._process is not None:
            self._check_end(self.terminate())
        self.start()

    def _check_end(self, code: int) -> None:
        if code != 0:
            raise OdradekFailed(f"the broker ended with {code}; its log:\n{self.output[-8000:]}")

    def _first_line(self, process: subprocess.Popen[bytes]) -> str:
        """What it prints first: the whole line, or as much as it printed before it ended."""
        assert process.stdout is not None
        descriptor = process.stdout.fileno()
        deadline = time.monotonic() + START_TIMEOUT_S
        line = bytearray()
        while b"\n" not in line:
            readable, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
            if not readable:
                raise OdradekFailed(f"not ready after {START_TIMEOUT_S} s; the broker's log:\n{self.output[-8000:]}")
            part = os.read(descriptor, 4096)
            if not part:
                break
            line += part
        return bytes(line).decode(errors="replace").partition("\n")[0]


def _reap(process: subprocess.Popen[bytes]) -> None:
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
