"""`odradek cluster run --processes` as a child process: a supervisor, and a process for each broker.

    with SupervisedCluster(tmp_path / "data", brokers=2) as cluster:
        KafkaProducer(bootstrap_servers=cluster.bootstrap)
        cluster.kill_broker(1)                          # the supervisor starts it again
        cluster.kill()                                  # the supervisor; its brokers stop
        cluster.roll()                                  # `odradek cluster roll`

The brokers are numbered from 1, on ports next to one another, which are found before the first start; later ones take
the same.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from processes.child_process import REPOSITORY, ChildProcess
from processes.free_ports import free_run
from processes.odradek_cluster import READY, OdradekClusterFailed

WAIT_S: Final = 30.0
LOOK_S: Final = 0.01


class SupervisedCluster(ChildProcess):
    """So many brokers with their data under `data_dir`, None: in memory; with further `options` of `cluster run`."""

    failure = OdradekClusterFailed

    def __init__(
        self,
        data_dir: Path | str | None,
        *options: str,
        brokers: int = 2,
        name: str = "supervisor",
        log_file: Path | None = None,
        dies_with_us: bool = False,
    ) -> None:
        """The rest is `ChildProcess`'s."""
        super().__init__(name, log_file=log_file, dies_with_us=dies_with_us)
        self.data_dir = None if data_dir is None else Path(data_dir).resolve()
        self.options = options
        self.brokers = brokers
        self.port = free_run(brokers)
        self.addresses: list[str] = []
        self.ready_line = ""

    @property
    def bootstrap(self) -> str:
        """All of them."""
        return ",".join(self.addresses)

    def command(self) -> list[str]:
        where = ["--memory"] if self.data_dir is None else ["--data-dir", str(self.data_dir)]
        listen = ["--brokers", str(self.brokers), "--listen", f"127.0.0.1:{self.port}"]
        return [sys.executable, "-m", "odradek", "cluster", "run", "--processes", *listen, *where, *self.options]

    def is_ready_line(self, line: str) -> bool:
        ready = READY.match(line)
        if ready is not None:
            self.addresses = ready["addresses"].split(",")
            self.ready_line = line
        return ready is not None

    # -- its processes ----------------------------------------------------------------------------------------------

    def pids(self) -> dict[str, int]:
        """The processes of the supervisor by their names, `broker 1` and so on."""
        return {name: pid for pid, name in children_of(self.pid)}

    def broker_pid(self, node_id: int, *, other_than: int = 0) -> int:
        """Of a broker that runs, or is about to; another process than a former one."""
        deadline_s = time.monotonic() + WAIT_S
        while (pid := self.pids().get(f"broker {node_id}", other_than)) == other_than:
            if time.monotonic() > deadline_s:
                raise self.failure(f"no process of broker {node_id}; {self._tail()}")
            time.sleep(LOOK_S)  # nothing tells of another process's child
        return pid

    def until_said(self, text: str) -> None:
        """Returns when the log has it. Raises OdradekClusterFailed when that takes too long."""
        deadline_s = time.monotonic() + WAIT_S
        while text not in self.output:
            if time.monotonic() > deadline_s:
                raise self.failure(f"it did not say {text!r}; {self._tail()}")
            time.sleep(LOOK_S)  # nothing tells of a line in a log

    def kill_broker(self, node_id: int, number: signal.Signals = signal.SIGKILL) -> int:
        """Signals a broker, and returns the process id that it had. One that is to stand still does so then."""
        pid = self.broker_pid(node_id)
        os.kill(pid, number)
        while number == signal.SIGSTOP and not is_stopped(pid):
            time.sleep(LOOK_S)  # nothing tells of another process's child
        return pid

    def roll(self, timeout_s: float = 120.0) -> "subprocess.CompletedProcess[str]":
        """`odradek cluster roll` on its directory."""
        command = [sys.executable, "-m", "odradek", "cluster", "roll", "--data-dir", str(self.data_dir)]
        return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=timeout_s, check=False)


def children_of(pid: int) -> list[tuple[int, str]]:
    """The processes that this one has started, with the last word of their command lines."""
    found: list[tuple[int, str]] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except (OSError, IndexError):
                continue  # it has ended meanwhile
            if parent == pid and len(words) > 1:
                found.append((int(entry.name), words[-2].decode(errors="replace")))
    return found


def until_gone(pids: "list[int]", timeout_s: float = WAIT_S) -> None:
    """Returns when none of these processes runs any more. Raises TimeoutError."""
    deadline_s = time.monotonic() + timeout_s
    while left := [pid for pid in pids if is_alive(pid)]:
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"processes {left} still run after {timeout_s} s")
        time.sleep(LOOK_S)  # they are no children of ours


def is_alive(pid: int) -> bool:
    """Whether it runs; one that has ended and was not reaped does not."""
    return _state(Path(f"/proc/{pid}")) not in ("", "Z", "X")


def is_stopped(pid: int) -> bool:
    """Whether all threads of a process are stopped. For the kernel it is running before that: where its parent dies, no
    signal wakes it."""
    return {_state(thread) for thread in Path(f"/proc/{pid}/task").iterdir()} <= {"T", ""}


def _state(entry: Path) -> str:
    """The letter that proc(5) has for a process or a thread; empty when there is none."""
    try:
        return (entry / "stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""
