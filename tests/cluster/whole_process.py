"""A cluster in one process under test: `odradek cluster run`, with three brokers and their metadata."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from processes.child_process import ChildProcess
from processes.cluster_processes import Processes
from processes.odradek_cluster import OdradekCluster
from tests.cluster.real_cluster import NODES, OPTIONS, Address, RealCluster, create_topic


class ClusterInOne(RealCluster):
    """Brokers that start and end together."""

    def __init__(self, processes: Processes, whole: OdradekCluster) -> None:
        super().__init__(processes, [])
        self.whole = whole

    def broker_processes(self) -> list[ChildProcess]:
        return [self.whole]

    def data_directories(self) -> list[Path]:
        return [self.whole.data_dir / f"broker-{number}" for number in NODES]

    def all_addresses(self) -> list[Address]:
        split = [address.split(":") for address in self.whole.addresses]
        return [(host, int(port)) for host, port in split]

    def addresses(self) -> list[Address]:
        return self.all_addresses() if self.whole.is_running else []


@contextmanager
def cluster_in_one(directory: Path) -> Generator[ClusterInOne]:
    with Processes(directory) as processes:
        whole = processes.add(
            OdradekCluster(
                directory / "cluster",
                *("--log-level", "info", *OPTIONS),
                name="brokers",
                log_file=processes.log_file("brokers"),
                dies_with_us=True,
            )
        )
        processes.start(whole)
        cluster = ClusterInOne(processes, whole)
        create_topic(cluster)
        yield cluster
