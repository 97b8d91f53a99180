"""A cluster of processes under test: etcd and three brokers, one topic, and questions to whoever answers.

    with plain_cluster(tmp_path) as cluster:
        cluster.who("leader").kill()
        cluster.wait_until_whole()

A role is held by whoever has it now: `controller`; `leader`, who leads most of those that are not controller; and
`follower`, who leads least of them. Brokers 1 and 2 are the preferred leaders, so 3 mostly follows.

What is done to its processes is noted (`happened`), for the history.
"""

import re
import socket
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

from odradek.protocol.codec.codec import decode, encode_parts
from odradek.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from odradek.protocol.messages.metadata import MetadataResponsePartition as Partition
from odradek.testing.sim.checking.cluster_history import RecordsDeleted
from odradek.testing.sim.checking.history import FaultKind, Happened, Record
from processes.apache_kafka import ask
from processes.child_process import ChildProcess
from processes.cluster_processes import Processes
from processes.etcd_process import Etcd
from processes.odradek_broker import OdradekBroker
from tests.cluster.client_session import now_ms

TOPIC: Final = "ledger"
ASSIGNMENTS: Final = ([1, 2, 3], [2, 3, 1], [1, 3, 2], [2, 1, 3])
NODES: Final = (1, 2, 3)
NOBODY: Final = -1
METADATA_VERSION: Final = 8
CREATE_TOPICS_VERSION: Final = 4
ANSWER_TIMEOUT_S: Final = 2.0
PATIENCE_S: Final = 60.0
LOOK_S: Final = 0.02
MINIMUM_OF_TWO: Final = {"min.insync.replicas": "2"}
OPTIONS: Final = ("--set", "auto.create.topics.enable=false", "--set", "log.segment.bytes=1048576")

Address = tuple[str, int]
Role = Literal["leader", "follower", "controller"]
ROLES: Final[tuple[Role, ...]] = ("leader", "follower", "controller")


class RealCluster:
    """`processes` holds all that belongs to it, and ends it."""

    copies: int = len(NODES)
    """How many replicas each partition has."""
    excused_errors: re.Pattern[str] | None = None
    """What a line that a broker's log has at level ERROR may say, since a fault was meant to cause it."""

    def __init__(self, processes: Processes, brokers: Sequence[OdradekBroker]) -> None:
        self.processes = processes
        self.brokers = list(brokers)
        self.notes: list[Record] = []
        """What goes into the history besides what clients were told."""
        self.deletions: list[RecordsDeleted] = []
        """What operators have deleted, noted before they ask for it."""
        self._turn = 0

    @property
    def bootstrap(self) -> str:
        """Where clients find it, past any relay."""
        return ",".join(f"{host}:{port}" for host, port in self.all_addresses())

    def happened(self, kind: FaultKind, machine: str, detail: str = "") -> None:
        self.notes.append(Happened(now_ms(), kind, machine, detail))

    def broker_processes(self) -> list[ChildProcess]:
        """All in which brokers run."""
        return list(self.brokers)

    def data_directories(self) -> list[Path]:
        """Of each broker."""
        return [broker.data_dir for broker in self.brokers]

    # -- what it says ---------------------------------------------------------------------------------------------

    def all_addresses(self) -> list[Address]:
        return [(broker.host, broker.port) for broker in self.brokers]

    def addresses(self) -> list[Address]:
        """Of brokers that should answer."""
        return [(broker.host, broker.port) for broker in self.brokers if broker.is_running and not broker.is_paused]

    def answers(self, topic: str = TOPIC) -> list[MetadataResponse]:
        """Metadata of the topic, from each that should answer. Raises OSError when one does not."""
        return [metadata_of(address, topic) for address in self.addresses()]

    def controller(self) -> OdradekBroker:
        """Whom all agree on, and who is there."""
        return self._broker(self._agreed(lambda answer: answer.controller_id))

    def partitions(self) -> dict[int, Partition]:
        """As those see them who answer and agree, each with a leader."""

        def leaders(answer: MetadataResponse) -> object:
            found = [(each.leader_id, each.leader_epoch) for each in partitions_in(answer).values()]
            return tuple(found) if all(leader in NODES for leader, _ in found) else NOBODY

        self._agreed(leaders)
        return partitions_in(self.answers()[0])

    def next(self) -> OdradekBroker:
        """Who has the next role: in three rounds each is struck once."""
        self._turn += 1
        return self.who(ROLES[self._turn % len(ROLES)])

    def who(self, role: Role) -> OdradekBroker:
        return self._broker(self.node_of(role))

    def node_of(self, role: Role) -> int:
        """The node id of the broker that has the role."""
        controller = self._agreed(lambda answer: answer.controller_id)
        assert isinstance(controller, int)
        if role == "controller":
            return controller
        leaders = self.leaders()
        others = [node for node in NODES if node != controller]
        chosen = max if role == "leader" else min
        return chosen(others, key=leaders.count)

    def leaders(self) -> list[int]:
        """Of each partition, as all say."""
        return [each.leader_id for each in self.partitions().values()]

    def in_sync(self, topic: str = TOPIC) -> list[list[int]]:
        """Of each partition, as the first says who answers."""
        return [sorted(each.isr_nodes) for each in partitions_in(self.answers(topic)[0]).values()]

    # -- until ----------------------------------------------------------------------------------------------------

    def wait_until_whole(self) -> None:
        """Every broker says that every replica is in sync, and that there is a leader."""
        self.wait_until(lambda: is_whole(self.answers(), self.copies))

    def wait_until(self, is_so: Callable[[], bool], timeout_s: float = PATIENCE_S) -> None:
        """Asks until it is. One that does not answer makes it not so. Raises AssertionError, with what they say."""
        deadline = time.monotonic() + timeout_s
        while not _or_false(is_so):
            assert time.monotonic() < deadline, f"not within {timeout_s} s: {self._told()}"
            time.sleep(LOOK_S)  # between two questions

    def _agreed(self, part: Callable[[MetadataResponse], object]) -> object:
        """What all of them say, as soon as they say the same, and nobody is named who is not there."""
        found: list[object] = []

        def is_agreed() -> bool:
            found[:] = {part(answer) for answer in self.answers()}
            return len(found) == 1 and NOBODY not in found

        self.wait_until(is_agreed)
        return found[0]

    def _broker(self, number: object) -> OdradekBroker:
        return next(broker for broker in self.brokers if node_id(broker) == number)

    def _told(self) -> str:
        told: list[str] = []
        for address in self.all_addresses():
            try:
                answer = metadata_of(address)
            except OSError as error:
                told.append(f"{address}: {error!r}")
                continue
            states = {
                index: (each.leader_id, each.leader_epoch, sorted(each.isr_nodes))
                for index, each in partitions_in(answer).items()
            }
            told.append(f"{address}: controller {answer.controller_id}, partitions {states}")
        return "; ".join(told)


class PlainCluster(RealCluster):
    """With its etcd in reach."""

    def __init__(self, processes: Processes, brokers: Sequence[OdradekBroker], etcd: Etcd) -> None:
        super().__init__(processes, brokers)
        self.etcd = etcd


def node_id(broker: OdradekBroker) -> int:
    return int(broker.name.rpartition("-")[2])


# -- how it is made ---------------------------------------------------------------------------------------------------


@contextmanager
def plain_cluster(
    directory: Path, *options: str, assignments: Sequence[list[int]] = ASSIGNMENTS
) -> Generator[PlainCluster]:
    """Three brokers and etcd on loopback, with nothing between them. `options`: of the brokers, besides OPTIONS."""
    with Processes(directory) as processes:
        etcd = processes.etcd()
        processes.start(etcd)
        metadata = ("--metadata", etcd.address("/odradek"))
        brokers = [processes.broker(number, *metadata, *OPTIONS, *options) for number in NODES]
        processes.start(*brokers)
        cluster = PlainCluster(processes, brokers, etcd)
        create_topic(cluster, assignments=assignments)
        yield cluster


def create_topic(
    cluster: RealCluster,
    name: str = TOPIC,
    *,
    assignments: Sequence[list[int]] = ASSIGNMENTS,
    configs: Mapping[str, str] = MINIMUM_OF_TWO,
) -> None:
    """Returns when all replicas are in sync."""
    topic = CreatableTopic(
        name=name,
        num_partitions=-1,
        replication_factor=-1,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=nodes)
            for index, nodes in enumerate(assignments)
        ],
        configs=[CreatableTopicConfig(name=option, value=value) for option, value in configs.items()],
    )
    body = b"".join(encode_parts(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), CREATE_TOPICS_VERSION))
    cluster.wait_until(lambda: all(len(answer.brokers) == len(NODES) for answer in cluster.answers()))
    with socket.create_connection(cluster.addresses()[0], timeout=PATIENCE_S) as connection:
        answer = ask(connection, api_key=19, api_version=CREATE_TOPICS_VERSION, body=body)
    [created] = decode(CreateTopicsResponse, CREATE_TOPICS_VERSION, answer).topics
    assert created.error_code == 0, created
    cluster.wait_until(lambda: is_whole(cluster.answers(name), cluster.copies))


def metadata_of(address: Address, topic: str = TOPIC) -> MetadataResponse:
    """What one broker says of it. Raises OSError."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    body = b"".join(encode_parts(request, METADATA_VERSION))
    with socket.create_connection(address, timeout=ANSWER_TIMEOUT_S) as connection:
        answer = ask(connection, api_key=3, api_version=METADATA_VERSION, body=body)
    return decode(MetadataResponse, METADATA_VERSION, answer)


def is_whole(answers: Sequence[MetadataResponse], copies: int = len(NODES)) -> bool:
    """Whether there are so many replicas, all in sync, and a leader, as each of them says."""
    return bool(answers) and all(
        partitions_in(answer)
        and all(
            len(each.isr_nodes) == copies
            and sorted(each.isr_nodes) == sorted(each.replica_nodes)
            and each.leader_id in each.isr_nodes
            for each in partitions_in(answer).values()
        )
        for answer in answers
    )


def partitions_in(answer: MetadataResponse) -> dict[int, Partition]:
    """By number."""
    [topic] = answer.topics
    return {each.partition_index: each for each in sorted(topic.partitions, key=lambda each: each.partition_index)}


def _or_false(is_so: Callable[[], bool]) -> bool:
    try:
        return is_so()
    except (OSError, IndexError):
        return False
