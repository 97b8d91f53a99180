"""Contenders as clusters: three brokers of Odradek with an etcd, three nodes of Apache Kafka, and any others.

All are processes on this machine, on loopback, with data directories beside one another and their defaults; deleted
topics are removed after a second, as in `servers.py`. etcd syncs its files, and what it uses counts as Odradek's. A
node of Kafka is broker and controller at once, with the heap and the JVM options of its own scripts.
"""

import contextlib
import os
import signal
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness.servers import DELETE_DELAY, DELETE_DELAY_OPTIONS, KAFKA_HEAP, Process, wait_gone
from benchmarks.load.wire import Wire
from odradek.broker.version import VERSION
from odradek.protocol.messages.metadata import MetadataRequest
from processes.apache_kafka import OWN_JVM
from processes.cluster_processes import Processes
from processes.etcd_process import Etcd
from processes.jars import KAFKA_VERSION
from processes.kafka_nodes import NODE_IDS, kafka_nodes
from processes.supervised_cluster import SupervisedCluster

PREFIX = "/odradek"
READY_TIMEOUT_S = 60.0
INTERNAL_TOPICS = {
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.state.log.num.partitions": "50",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
}
"""Kafka's defaults; those of a single node, which the tests' runner has, are smaller."""


@dataclass(frozen=True, slots=True)
class Member:
    """One broker of a cluster."""

    node_id: int
    process: Process
    data_dir: Path

    @property
    def address(self) -> str:
        return f"{self.process.host}:{self.process.port}"

    def wire(self) -> Wire:
        """A connection to it. Raises OSError."""
        return Wire(self.process.host, self.process.port)

    def strike(self, by: signal.Signals) -> None:
        """Sends it a signal, and waits for nothing: a large process takes a while to be gone."""
        os.kill(self.process.pid, by)

    def revive(self) -> None:
        """After SIGKILL: returns when it is ready again. Raises what its start raises."""
        self.process.kill()  # learns that it has ended
        self.process.start()


@dataclass(frozen=True, slots=True, eq=False)
class Cluster:
    """One contender, running."""

    name: str
    version: str
    members: Mapping[int, Member]
    """By node id."""
    etcd: Etcd | None = None
    supervisor: SupervisedCluster | None = None
    """Whose processes the brokers are."""

    def __str__(self) -> str:
        return f"{self.name} {self.version}"

    @property
    def broker_pids(self) -> list[int]:
        return [member.process.pid for member in self.members.values()]

    @property
    def etcd_pids(self) -> list[int]:
        return [] if self.etcd is None else [self.etcd.pid]

    @property
    def store_pids(self) -> list[int]:
        """Of what has the metadata and is no broker: etcd, or the supervisor."""
        return [*self.etcd_pids, *([] if self.supervisor is None else [self.supervisor.pid])]

    @property
    def pids(self) -> list[int]:
        """Of all that is counted as the server's."""
        return [*self.broker_pids, *self.store_pids]

    @property
    def bootstrap(self) -> str:
        return ",".join(member.address for member in self.members.values())

    def wait_acquainted(self) -> None:
        """Returns when each broker knows all of them. Raises TimeoutError, OSError."""
        deadline = time.monotonic() + READY_TIMEOUT_S
        for member in self.members.values():
            with member.wire() as wire:
                while len(known := wire.ask(MetadataRequest(topics=[]), 8).brokers) < len(self.members):
                    if time.monotonic() > deadline:
                        raise TimeoutError(f"{self}: broker {member.node_id} knows {len(known)} brokers")
                    time.sleep(0.05)  # between two looks

    def wait_gone(self, topic: str) -> None:
        """Returns when no broker has files of a deleted topic any more. Raises TimeoutError."""
        wait_gone(self, [member.data_dir for member in self.members.values()], topic)


@contextlib.contextmanager
def running_odradek_cluster(directory: Path, options: Sequence[str] = ()) -> Generator[Cluster, None, None]:
    """Odradek, started on an empty directory. `options` are those of `odradek serve`."""
    with Processes(directory) as processes:
        etcd = processes.etcd()
        processes.start(etcd)
        told = ("--metadata", etcd.address(PREFIX), *DELETE_DELAY_OPTIONS, *options)
        brokers = {node_id: processes.broker(node_id, *told) for node_id in NODE_IDS}
        processes.start(*brokers.values())
        members = {node_id: Member(node_id, broker, broker.data_dir) for node_id, broker in brokers.items()}
        cluster = Cluster("Odradek", VERSION, members, etcd)
        cluster.wait_acquainted()
        yield cluster


@contextlib.contextmanager
def running_kafka_cluster(
    directory: Path, properties: Mapping[str, str] | None = None
) -> Generator[Cluster, None, None]:
    """Apache Kafka, started on an empty directory, with further properties."""
    told = {**INTERNAL_TOPICS, **DELETE_DELAY, **(properties or {})}
    with kafka_nodes(lambda _node_id: told, heap=KAFKA_HEAP, jvm_options=OWN_JVM, directory=directory) as nodes:
        members = {node_id: Member(node_id, node, node.data_directory) for node_id, node in nodes.items()}
        cluster = Cluster("Apache Kafka", KAFKA_VERSION, members)
        cluster.wait_acquainted()
        yield cluster
