"""A supervised cluster under test: `odradek cluster run --processes` with three brokers, and one topic.

    with supervised_cluster(tmp_path, copies=1) as cluster:
        cluster.whole.kill_broker(cluster.victim("leader"))
        cluster.wait_until_whole()

With one copy, as topics of a supervised cluster have it by default, a broker's partitions are away as long as it is;
with three, another broker leads. The supervisor and its processes write one log.
"""

import re
import time
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from odradek.broker.launch.supervisor.restarts import DEATHS_MAX, WITHIN_MS
from processes.child_process import ChildProcess
from processes.cluster_processes import Processes
from processes.supervised_cluster import SupervisedCluster
from tests.cluster.real_cluster import ASSIGNMENTS, NODES, OPTIONS, Address, RealCluster, Role, create_topic

MEANT: Final = (
    r"broker \d was killed by SIGKILL, and is started again in |"
    r"the registration of process \d+, which is over, cannot be deleted, which is tried again: \[Errno 28\]"
)
"""Kills, and a full device."""
NAME: Final = "brokers"
FEW_OFFSETS: Final = ("--set", "offsets.topic.num.partitions=4")
"""They are moved, too, where all is spread."""


class Supervised(RealCluster):
    """Brokers that a supervisor starts again."""

    excused_errors = re.compile(MEANT)

    def __init__(self, processes: Processes, whole: SupervisedCluster, copies: int) -> None:
        super().__init__(processes, [])
        self.whole = whole
        self.copies = copies
        self.paused: set[int] = set()
        self._deaths: deque[tuple[float, int]] = deque()

    def broker_processes(self) -> list[ChildProcess]:
        return [self.whole]

    def data_directories(self) -> list[Path]:
        return [self.directory / f"broker-{number}" for number in NODES]

    @property
    def directory(self) -> Path:
        """Of the whole cluster."""
        assert self.whole.data_dir is not None
        return self.whole.data_dir

    def all_addresses(self) -> list[Address]:
        return [("127.0.0.1", self.whole.port + index) for index in range(len(NODES))]

    def addresses(self) -> list[Address]:
        if not self.whole.is_running:
            return []
        return [address for node, address in zip(NODES, self.all_addresses(), strict=True) if node not in self.paused]

    def victim(self, role: Role) -> int:
        """The broker that has this role, to be killed. The supervisor leaves a broker down that dies too often within a
        minute: another broker is named in its place, or the minute is waited for."""
        node = self.node_of(role)
        while True:
            now_s = time.monotonic()
            while self._deaths and now_s - self._deaths[0][0] > WITHIN_MS / 1000 + 1:
                self._deaths.popleft()
            counts = {each: sum(died == each for _, died in self._deaths) for each in NODES}
            if counts[node] >= DEATHS_MAX - 1:
                node = min(NODES, key=lambda each: counts[each])
            if counts[node] < DEATHS_MAX - 1:
                self._deaths.append((now_s, node))
                return node
            time.sleep(1)  # until the oldest death is forgotten

    def said_since(self, position: int) -> str:
        """What its processes have logged behind this many characters."""
        return self.whole.output[position:]


@contextmanager
def supervised_cluster(directory: Path, *options: str, copies: int) -> Generator[Supervised]:
    """Three brokers in a directory of their own, and TOPIC with so many replicas, one or three. `options`: of `odradek
    cluster run`, besides OPTIONS."""
    with Processes(directory) as processes:
        whole = processes.add(
            SupervisedCluster(
                directory / "cluster",
                *("--log-level", "info", *OPTIONS, *FEW_OFFSETS, *options),
                brokers=len(NODES),
                name=NAME,
                log_file=processes.log_file(NAME),
                dies_with_us=True,
            )
        )
        processes.start(whole)
        cluster = Supervised(processes, whole, copies)
        create_topic(
            cluster,
            assignments=[nodes[:copies] for nodes in ASSIGNMENTS],
            configs={"min.insync.replicas": str(min(2, copies))},
        )
        yield cluster
