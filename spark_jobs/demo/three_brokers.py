"""Three brokers, a process each, under one command: a cluster of which one can be killed while the others go on.

It is `odradek cluster run --processes`. Its supervisor starts a broker again that was killed, at the same port.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from odradek.spark_jobs.demo.broker_process import BrokerProcess
from odradek.spark_jobs.demo.steps import DemoFailed

NODE_IDS: Final = (1, 2, 3)
BACK_TIMEOUT_S: Final = 30.0
ANSWER_TIMEOUT_S: Final = 1.0
POLL_INTERVAL_S: Final = 0.02

# Arguments for a cluster whose first broker listens on HOST:PORT (port 0: a free one), with its data in a directory.
ClusterCommand = Callable[[str, Path], list[str]]


def odradek_cluster(listen: str, data_directory: Path) -> list[str]:
    """`odradek cluster run --processes`, by the interpreter that runs the demo."""
    where = ("--listen", listen, "--data-dir", str(data_directory))
    return [sys.executable, "-m", "odradek", "cluster", "run", "--processes", "--brokers", str(len(NODE_IDS)), *where]


class ThreeBrokers(BrokerProcess):
    """The supervisor, and with it its brokers; `start` before anything else. `address` has all of them."""

    def __init__(self, directory: Path, command: ClusterCommand = odradek_cluster) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        super().__init__(command, directory / "data", directory / "cluster.log")
        self._killed: dict[int, int] = {}

    @property
    def bootstrap(self) -> str:
        """All of them, for clients: any may be away."""
        return self.address

    def kill_one(self, node_id: int) -> None:
        """SIGKILL, for one of the brokers."""
        self._killed[node_id] = self._pid_of(node_id)
        os.kill(self._killed[node_id], signal.SIGKILL)

    def wait_until_back(self, node_id: int) -> None:
        """Returns when a broker that was killed accepts connections again; raises DemoFailed if it does not."""
        deadline = time.monotonic() + BACK_TIMEOUT_S
        while not self._is_back(node_id):
            if time.monotonic() > deadline:
                raise DemoFailed(f"broker {node_id} was not started again in {BACK_TIMEOUT_S:.0f} s; see {self.log}")
            time.sleep(POLL_INTERVAL_S)

    def _is_back(self, node_id: int) -> bool:
        if self._brokers().get(node_id, self._killed[node_id]) == self._killed[node_id]:
            return False
        host, port = self.address.split(",")[NODE_IDS.index(node_id)].rsplit(":", 1)
        with socket.socket() as client:
            client.settimeout(ANSWER_TIMEOUT_S)
            return client.connect_ex((host, int(port))) == 0

    def _pid_of(self, node_id: int) -> int:
        found = self._brokers().get(node_id)
        if found is None:
            raise DemoFailed(f"broker {node_id} does not run; see {self.log}")
        return found

    def _brokers(self) -> Mapping[int, int]:
        """The process ids of the supervisor's children, by node id: their command lines end with `broker N`."""
        listed = subprocess.run(
            ["ps", "-A", "-ww", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True
        ).stdout
        rows = [line.split(maxsplit=2) for line in listed.splitlines()]
        children = {row[2]: int(row[0]) for row in rows if len(row) == 3 and int(row[1]) == self.pid}
        return {
            node_id: pid
            for node_id in NODE_IDS
            for command, pid in children.items()
            if command.endswith(f" broker {node_id}")
        }
