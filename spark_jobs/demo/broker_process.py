"""The broker under demonstration: a child process that is started, killed without mercy, and started again.

It counts as started when it has printed its ready line, `odradek VERSION ready on HOST:PORT (…)`, and its address is
taken from there; a cluster's line has all of its brokers' addresses, with commas. It is signalled by its own process id
only, and gone when the `with` block ends, however it ends.
"""

import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO

from odradek.spark_jobs.demo.child import Child, end
from odradek.spark_jobs.demo.steps import DemoFailed

# Arguments for a broker that listens on HOST:PORT (port 0: a free one), with its data in a directory.
BrokerCommand = Callable[[str, Path], list[str]]

READY_LINE = re.compile(r"odradek \S+ (?:cluster )?ready on (?P<address>\S+:\d+)")
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 10.0


def odradek_command(listen: str, data_directory: Path) -> list[str]:
    """`odradek serve`, by the interpreter that runs the demo."""
    return [sys.executable, "-m", "odradek", "serve", "--listen", listen, "--data-dir", str(data_directory)]


def ready_address(line: str) -> str | None:
    """HOST:PORT of the (first) listener in a ready line, None for any other line."""
    found = READY_LINE.match(line)
    return found["address"] if found else None


class BrokerProcess(Child):
    """A broker on one data directory. `address` is where it listens, from the first start on."""

    def __init__(self, command: BrokerCommand, data_directory: Path, log: Path) -> None:
        self.address = "127.0.0.1:0"
        self.log = log
        self._command = command
        self._data_directory = data_directory
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Starts the broker, on the port it had before if it had one; raises DemoFailed if it does not get ready."""
        assert self._process is None, "the broker is already running"
        with self.log.open("a", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                self._command(self.address, self._data_directory), stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert self._process.stdout is not None
        addresses: SimpleQueue[str | None] = SimpleQueue()
        threading.Thread(target=self._follow, args=(self._process.stdout, addresses), daemon=True).start()
        try:
            address = addresses.get(timeout=START_TIMEOUT_S)
        except Empty:
            address = None
        if address is None:
            raise DemoFailed(f"the broker did not get ready; its log: {self.log}")
        self.address = address

    @property
    def pid(self) -> int:
        assert self._process is not None, "the broker is not running"
        return self._process.pid

    def kill(self) -> None:
        """SIGKILL, and waits until the process is gone."""
        assert self._process is not None, "the broker is not running"
        self._process.kill()
        self._process.wait()
        self._process = None

    def stop(self) -> None:
        """SIGTERM, or SIGKILL when that takes too long. Does nothing when no broker runs."""
        if self._process is None:
            return
        end(self._process, STOP_TIMEOUT_S)
        self._process = None

    def _follow(self, output: IO[str], addresses: "SimpleQueue[str | None]") -> None:
        """Keeps the broker's output in the log until it ends, and passes on the address; None if it ends without."""
        with output, self.log.open("a", encoding="utf-8") as log:
            for line in output:
                log.write(line)
                log.flush()
                if (address := ready_address(line)) is not None:
                    addresses.put(address)
        addresses.put(None)
