"""A cluster in one process under test: `odradek cluster run`, with three brokers and their metadata."""

import re
import socket
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.child_process import ChildProcess
from tests.cluster.processes import LOOPBACK, Processes
from tests.cluster.real_cluster import NODES, OPTIONS, Address, RealCluster, create_topic

READY: Final = re.compile(r"odradek \S+ cluster ready on (?P<addresses>\S+) \(data in .+\)")
TRIES_MAX: Final = 100


class WholeProcess(ChildProcess):
    """The process."""

    def __init__(self, data_dir: Path, log_file: Path) -> None:
        super().__init__("brokers", log_file=log_file, dies_with_us=True)
        self.data_dir = data_dir
        self.ports = consecutive_ports(len(NODES))

    def command(self) -> list[str]:
        listen = ("--listen", f"{LOOPBACK}:{self.ports[0]}", "--data-dir", str(self.data_dir))
        count = ("--brokers", str(len(self.ports)), "--log-level", "info")
        return [sys.executable, "-m", "odradek", "cluster", "run", *count, *listen, *OPTIONS]

    def is_ready_line(self, line: str) -> bool:
        return READY.match(line) is not None


class ClusterInOne(RealCluster):
    """Brokers that start and end together."""

    def __init__(self, processes: Processes, whole: WholeProcess) -> None:
        super().__init__(processes, [])
        self.whole = whole

    def broker_processes(self) -> list[ChildProcess]:
        return [self.whole]

    def data_directories(self) -> list[Path]:
        return [self.whole.data_dir / f"broker-{number}" for number in NODES]

    def all_addresses(self) -> list[Address]:
        return [(LOOPBACK, port) for port in self.whole.ports]

    def addresses(self) -> list[Address]:
        return self.all_addresses() if self.whole.is_running else []


@contextmanager
def cluster_in_one(directory: Path) -> Generator[ClusterInOne]:
    with Processes(directory) as processes:
        whole = processes.add(WholeProcess(directory / "cluster", processes.log_file("brokers")))
        processes.start(whole)
        cluster = ClusterInOne(processes, whole)
        create_topic(cluster)
        yield cluster


def consecutive_ports(count: int) -> list[int]:
    """Loopback ports one behind the other that were free a moment ago."""
    for _ in range(TRIES_MAX):
        with socket.create_server((LOOPBACK, 0)) as first:
            start = first.getsockname()[1]
        ports = list(range(start, start + count))
        if ports[-1] < 1 << 16 and all(map(_is_free, ports)):
            return ports
    raise OSError(f"no {count} free ports in a row")


def _is_free(port: int) -> bool:
    try:
        with socket.create_server((LOOPBACK, port)):
            return True
    except OSError:
        return False
