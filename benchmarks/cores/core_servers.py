"""The contenders on one machine: several processes of Odradek under a supervisor, one alone, and Apache Kafka.

All are clusters (`cluster_servers.py`), so that the same questions go to each: who leads, and what all of its processes
have used. The supervisor counts as Odradek's. Apache Kafka is one node, and uses all cores. Topics have one replica.
"""

import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.harness.bench import Bench
from benchmarks.harness.cluster_servers import Cluster, Member
from benchmarks.harness.servers import DELETE_DELAY_OPTIONS, running_kafka, running_odradek
from benchmarks.load.wire import served_keys
from odradek.broker.version import VERSION
from processes.supervised_cluster import SupervisedCluster

HOST = "127.0.0.1"
PROCESSES = 2
ALONE_ID = 1
"""The node id of an Odradek in one process, and of Apache Kafka."""
BACK_TIMEOUT_S = 30.0
LOOK_EVERY_S = 0.01


class SupervisedBroker:
    """One broker of a supervisor, as a `Process`: it is the supervisor who starts it again."""

    def __init__(self, supervisor: SupervisedCluster, node_id: int) -> None:
        self.host = HOST
        self.port = supervisor.port + node_id - 1
        self._supervisor = supervisor
        self._node_id = node_id
        self._killed_pid = 0

    @property
    def pid(self) -> int:
        return self._supervisor.broker_pid(self._node_id)

    def kill(self) -> None:
        """SIGKILL."""
        self._killed_pid = self._supervisor.kill_broker(self._node_id)

    def start(self) -> None:
        """Returns when the one that was started in place of the killed one answers. Raises TimeoutError, and
        OdradekClusterFailed where nobody starts it."""
        self._supervisor.broker_pid(self._node_id, other_than=self._killed_pid)
        member = Member(self._node_id, self, Path())
        deadline_s = time.monotonic() + BACK_TIMEOUT_S
        while not _answers(member):
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"broker {self._node_id} is not back after {BACK_TIMEOUT_S} s")
            time.sleep(LOOK_EVERY_S)  # between two looks


def _answers(member: Member) -> bool:
    try:
        with member.wire() as wire:
            return bool(served_keys(wire))
    except OSError:
        return False


def supervised(directory: Path, options: Sequence[str] = (), *, brokers: int = PROCESSES) -> SupervisedCluster:
    """So many processes of Odradek, not started. `options` are those of `odradek cluster run`."""
    return SupervisedCluster(directory, *DELETE_DELAY_OPTIONS, *options, brokers=brokers)


def cluster_of(supervisor: SupervisedCluster) -> Cluster:
    """A supervisor with data on disk and its brokers, all ready."""
    data_dir = supervisor.data_dir
    assert data_dir is not None, "nothing can be seen of topics in memory"
    members = {
        node_id: Member(node_id, SupervisedBroker(supervisor, node_id), data_dir / f"broker-{node_id}")
        for node_id in range(1, supervisor.brokers + 1)
    }
    name = f"Odradek in {supervisor.brokers} processes"
    cluster = Cluster(name, VERSION, members, supervisor=supervisor)
    cluster.wait_acquainted()
    return cluster


@contextmanager
def running_processes(
    directory: Path, options: Sequence[str] = (), *, brokers: int = PROCESSES
) -> Generator[Cluster, None, None]:
    """So many processes of Odradek, started on an empty directory."""
    with supervised(directory, options, brokers=brokers) as supervisor:
        yield cluster_of(supervisor)


@contextmanager
def running_alone(directory: Path, options: Sequence[str] = ()) -> Generator[Cluster, None, None]:
    """One process of Odradek, as `odradek serve` starts it, on an empty directory."""
    with running_odradek(directory, ["--node-id", str(ALONE_ID), *options]) as server:
        members = {ALONE_ID: Member(ALONE_ID, server.process, server.data_dir)}
        yield Cluster("Odradek in one process", server.version, members)


@contextmanager
def running_kafka_alone(directory: Path) -> Generator[Cluster, None, None]:
    """One node of Apache Kafka, started on an empty directory."""
    with running_kafka(directory) as server:
        yield Cluster(server.name, server.version, {ALONE_ID: Member(ALONE_ID, server.process, server.data_dir)})


@contextmanager
def core_pair(bench: Bench, name: str, *, brokers: int = PROCESSES) -> Generator[tuple[Cluster, Cluster], None, None]:
    """Odradek in so many processes, and Apache Kafka, on directories of their own, and nobody beside."""
    bench.close()
    with ExitStack() as stack:
        directory = bench.directory / name
        ours = stack.enter_context(running_processes(directory / "processes", bench.options(), brokers=brokers))
        theirs = stack.enter_context(running_kafka_alone(directory / "kafka"))
        yield ours, theirs


def addresses_of(cluster: Cluster, leaders: Sequence[int]) -> list[str]:
    """Where each partition is led."""
    return [cluster.members[leader].address for leader in leaders]
