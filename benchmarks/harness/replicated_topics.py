"""Topics of a cluster: created with three replicas, looked at until all are in sync, and led by whom they should be.

What one broker says of another one's partitions may be old, so a topic counts as ready when every broker says so.
"""

import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from benchmarks.harness.cluster_servers import Cluster, Member
from benchmarks.load.replies import LoadFailed
from benchmarks.load.wire import LATEST, Wire, ask_for_topic, check, delete_topic, offsets_of, repeat_until_answered
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.describe_quorum import DescribeQuorumRequest, QuorumPartitionData, QuorumTopicData
from odradek.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from odradek.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

REPLICAS = 3
DURABLE = {"min.insync.replicas": "2"}
READY_TIMEOUT_S = 120.0
LOOK_EVERY_S = 0.02
METADATA_TOPIC = "__cluster_metadata"
PREFERRED = 0
"""The type of an election."""
UNNEEDED = (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED)


@dataclass(frozen=True, slots=True)
class PartitionState:
    """A partition, as some broker sees it. `leader` is -1 where there is none."""

    leader: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]

    @property
    def is_full(self) -> bool:
        """Whether it has a leader, and all its replicas are in sync."""
        return self.leader >= 0 and set(self.in_sync) == set(self.replicas)

    @property
    def is_as_preferred(self) -> bool:
        return self.is_full and self.leader == self.replicas[0]


@contextmanager
def replicated_topic(
    cluster: Cluster,
    name: str,
    partitions: int,
    configs: Mapping[str, str] | None = None,
    *,
    replicas: int = REPLICAS,
) -> Generator[list[int], None, None]:
    """A topic with so many replicas of each partition, all in sync, and who leads each; gone at the end if all went
    well.

    Raises KafkaError, OSError, TimeoutError, and LoadFailed where leaders are not spread.
    """
    first = next(iter(cluster.members.values()))
    with first.wire() as wire:
        ask_for_topic(wire, name, partitions, configs, replication_factor=replicas)
    states = wait_for(cluster, name, lambda state: state.is_as_preferred, partitions)
    leaders = [state.leader for state in states]
    require_spread(name, leaders, len(cluster.members))
    for member in cluster.members.values():
        wait_until_leading(member, name, led_by(member.node_id, leaders))
    yield leaders
    with first.wire() as wire:  # another one: brokers may have been killed meanwhile
        delete_topic(wire, name)
    cluster.wait_gone(name)


def led_by(node_id: int, leaders: Sequence[int]) -> list[int]:
    """The partitions that a broker leads, of `leaders` by partition."""
    return [partition for partition, leader in enumerate(leaders) if leader == node_id]


def wait_until_leading(member: Member, topic: str, partitions: Sequence[int]) -> None:
    """Returns when the broker knows that it leads these, which others may know sooner. Raises KafkaError, OSError."""
    with member.wire() as wire:
        repeat_until_answered(lambda: offsets_of(wire, topic, LATEST, partitions))


def require_spread(topic: str, leaders: Sequence[int], brokers: int) -> None:
    """Raises LoadFailed unless every broker leads as many partitions as the others, give or take one."""
    counts = Counter(leaders)
    if len(counts) < min(brokers, len(leaders)) or max(counts.values()) - min(counts.values()) > 1:
        raise LoadFailed(f"the leaders of {topic} are not spread: {dict(sorted(counts.items()))}")


def require_full(cluster: Cluster, topic: str) -> None:
    """Raises LoadFailed unless all replicas are in sync, right now."""
    with next(iter(cluster.members.values())).wire() as wire:
        for index, state in enumerate(states_of(wire, topic)):
            if not state.is_full:
                raise LoadFailed(f"{cluster}: {topic}-{index} is not fully in sync: {state}")


def wait_for(
    cluster: Cluster,
    topic: str,
    is_so: Callable[[PartitionState], bool],
    partitions: int,
    *,
    timeout_s: float = READY_TIMEOUT_S,
) -> list[PartitionState]:
    """The partitions' states when each broker says that all are so. Raises TimeoutError, KafkaError, OSError."""
    deadline = time.monotonic() + timeout_s
    states: list[PartitionState] = []
    for member in cluster.members.values():
        with member.wire() as wire:
            while True:
                states = _states_if_known(wire, topic)
                if len(states) == partitions and all(map(is_so, states)):
                    break
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{cluster}: after {timeout_s} s broker {member.node_id} says {states}")
                time.sleep(LOOK_EVERY_S)  # between two looks, not instead of them
    return states


def _states_if_known(wire: Wire, topic: str) -> list[PartitionState]:
    """Empty where the broker has not heard of the topic yet."""
    try:
        return states_of(wire, topic)
    except KafkaError as error:
        if not error.code.retriable:
            raise
        return []


def states_of(wire: Wire, topic: str) -> list[PartitionState]:
    """The states of a topic's partitions, by index. Raises KafkaError, OSError."""
    (found,) = topics_of(wire, [topic])
    check(found.error_code)
    by_index = {partition.partition_index: state_of(partition) for partition in found.partitions}
    return [by_index[index] for index in sorted(by_index)]


def state_of(partition: MetadataResponsePartition) -> PartitionState:
    return PartitionState(partition.leader_id, tuple(partition.replica_nodes), tuple(partition.isr_nodes))


def topics_of(wire: Wire, names: Sequence[str]) -> list[MetadataResponseTopic]:
    """What a broker knows of topics, errors included. Raises OSError."""
    asked = [MetadataRequestTopic(name=name) for name in names]
    return wire.ask(MetadataRequest(topics=asked, allow_auto_topic_creation=False), 8).topics


def controller_id(wire: Wire) -> int:
    """Who controls the cluster now. Raises KafkaError, OSError."""

    def ask() -> int:
        asked = [QuorumTopicData(topic_name=METADATA_TOPIC, partitions=[QuorumPartitionData(partition_index=0)])]
        answered = wire.ask(DescribeQuorumRequest(topics=asked), 0)
        check(answered.error_code)
        (partition,) = answered.topics[0].partitions
        check(partition.error_code)
        if partition.leader_id < 0:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, "there is no controller")
        return partition.leader_id

    return repeat_until_answered(ask)


def restore_leaders(cluster: Cluster, topic: str, partitions: int) -> list[PartitionState]:
    """Waits until all replicas are in sync and has preferred leaders lead again. Raises as `wait_for` does."""
    states = wait_for(cluster, topic, lambda state: state.is_full, partitions)
    if not all(state.is_as_preferred for state in states):
        with ExitStack() as stack:
            wire = stack.enter_context(controller_of(cluster).wire())
            repeat_until_answered(lambda: _elect_preferred(wire, topic, partitions))
    return wait_for(cluster, topic, lambda state: state.is_as_preferred, partitions)


def controller_of(cluster: Cluster) -> Member:
    """Raises KafkaError, OSError."""
    with next(iter(cluster.members.values())).wire() as wire:
        return cluster.members[controller_id(wire)]


def _elect_preferred(wire: Wire, topic: str, partitions: int) -> None:
    wanted = [TopicPartitions(topic=topic, partitions=list(range(partitions)))]
    answered = wire.ask(ElectLeadersRequest(election_type=PREFERRED, topic_partitions=wanted, timeout_ms=30_000), 1)
    check(answered.error_code)
    for elected in answered.replica_election_results:
        for partition in elected.partition_result:
            if ErrorCode(partition.error_code) not in UNNEEDED:
                check(partition.error_code, partition.error_message)
