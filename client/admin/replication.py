"""Who leads partitions and who has replicas of them, as Admin takes and returns it, and what that is on the wire. Pure.

(Source: KIP-183, KIP-460: elections; KIP-455, KIP-860: reassignments; KIP-836: the quorum. KafkaAdminClient.java.)
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from odradek.client.errors.base import ClientError
from odradek.client.errors.client_errors import broker_error
from odradek.client.topic_partition import TopicPartition, by_topic
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from odradek.protocol.messages.describe_quorum import (
    METADATA_TOPIC,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    QuorumPartitionData,
    QuorumTopicData,
    ReplicaState,
)
from odradek.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions
from odradek.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)

__all__ = ["ElectionType", "QuorumDescription", "QuorumReplica", "Reassignment"]

UNCLEAN_SINCE: Final = 1
"""The version of ElectLeaders from which on it can be other than the preferred leader (KIP-460)."""
FACTOR_KEPT_SINCE: Final = 1
"""The version of AlterPartitionReassignments that can refuse another number of replicas (KIP-860)."""


class ElectionType(IntEnum):
    """Which replica shall lead."""

    PREFERRED = 0
    """The first one, if it is in sync."""
    UNCLEAN = 1
    """Any that is there, where none in sync is: records that were acknowledged may be lost."""


@dataclass(frozen=True, slots=True)
class Reassignment:
    """A partition whose replicas are being changed. `replicas` holds those that come and those that go, too."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas that it will have."""
        return tuple(each for each in self.replicas if each not in self.removing)


@dataclass(frozen=True, slots=True)
class QuorumReplica:
    """One that keeps the cluster's metadata. Times are ms since 1970, -1 where they are not known."""

    node_id: int
    log_end_offset: int
    last_fetch_ms: int = -1
    last_caught_up_ms: int = -1


@dataclass(frozen=True, slots=True)
class QuorumDescription:
    """Who keeps the cluster's metadata. `leader_id` is the active controller, which may be no broker; -1: none."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]


# ---------------------------------------------------------------------------------------------------------- elections
def elect_leaders_request(
    partitions: Iterable[TopicPartition] | None, election: ElectionType, timeout_ms: int
) -> ElectLeadersRequest:
    """`partitions`: None for all of the cluster."""
    topics = None
    if partitions is not None:
        topics = [TopicPartitions(topic=topic, partitions=numbers) for topic, numbers in by_topic(partitions).items()]
    return ElectLeadersRequest(election_type=election, topic_partitions=topics, timeout_ms=timeout_ms)


def elected_leaders(response: ElectLeadersResponse) -> dict[TopicPartition, bool | ClientError]:
    """Whether a leader was elected, by partition; False where none was needed. Raises ClientError."""
    if response.error_code:
        raise broker_error(response.error_code, "", "ElectLeaders")
    outcomes: dict[TopicPartition, bool | ClientError] = {}
    for topic in response.replica_election_results:
        for each in topic.partition_result:
            partition = TopicPartition(topic.topic, each.partition_id)
            if each.error_code in (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED):
                outcomes[partition] = each.error_code == ErrorCode.NONE
            else:
                outcomes[partition] = broker_error(each.error_code, each.error_message, f"ElectLeaders of {partition}")
    return outcomes


# ------------------------------------------------------------------------------------------------------ reassignments
def alter_reassignments_request(
    targets: Mapping[TopicPartition, Sequence[int] | None], timeout_ms: int, *, keep_factor: bool
) -> AlterPartitionReassignmentsRequest:
    """`targets`: the replicas that a partition shall have, the preferred leader first; None ends what is under way."""
    topics: dict[str, list[ReassignablePartition]] = {}
    for partition, replicas in targets.items():
        topics.setdefault(partition.topic, []).append(
            ReassignablePartition(
                partition_index=partition.partition, replicas=None if replicas is None else list(replicas)
            )
        )
    return AlterPartitionReassignmentsRequest(
        timeout_ms=timeout_ms,
        allow_replication_factor_change=not keep_factor,
        topics=[ReassignableTopic(name=name, partitions=partitions) for name, partitions in topics.items()],
    )


def altered_reassignments(response: AlterPartitionReassignmentsResponse) -> dict[TopicPartition, ClientError | None]:
    """Raises ClientError."""
    if response.error_code:
        raise broker_error(response.error_code, response.error_message, "AlterPartitionReassignments")
    outcomes: dict[TopicPartition, ClientError | None] = {}
    for topic in response.responses:
        for each in topic.partitions:
            partition = TopicPartition(topic.name, each.partition_index)
            what = f"AlterPartitionReassignments of {partition}"
            outcomes[partition] = broker_error(each.error_code, each.error_message, what) if each.error_code else None
    return outcomes


def list_reassignments_request(
    partitions: Iterable[TopicPartition] | None, timeout_ms: int
) -> ListPartitionReassignmentsRequest:
    """`partitions`: None for all of the cluster."""
    topics = None
    if partitions is not None:
        topics = [
            ListPartitionReassignmentsTopics(name=topic, partition_indexes=numbers)
            for topic, numbers in by_topic(partitions).items()
        ]
    return ListPartitionReassignmentsRequest(timeout_ms=timeout_ms, topics=topics)


def listed_reassignments(response: ListPartitionReassignmentsResponse) -> dict[TopicPartition, Reassignment]:
    """Those under way, in order of their partitions. Raises ClientError."""
    if response.error_code:
        raise broker_error(response.error_code, response.error_message, "ListPartitionReassignments")
    found = {
        TopicPartition(topic.name, each.partition_index): Reassignment(
            tuple(each.replicas), tuple(each.adding_replicas), tuple(each.removing_replicas)
        )
        for topic in response.topics
        for each in topic.partitions
    }
    return dict(sorted(found.items()))


# --------------------------------------------------------------------------------------------------------- the quorum
def describe_quorum_request() -> DescribeQuorumRequest:
    partition = QuorumPartitionData(partition_index=0)
    return DescribeQuorumRequest(topics=[QuorumTopicData(topic_name=METADATA_TOPIC, partitions=[partition])])


def described_quorum(response: DescribeQuorumResponse) -> QuorumDescription:
    """Raises ClientError."""
    if response.error_code:
        raise broker_error(response.error_code, response.error_message, "DescribeQuorum")
    found = [each for topic in response.topics if topic.topic_name == METADATA_TOPIC for each in topic.partitions]
    if len(found) != 1:
        raise broker_error(ErrorCode.UNKNOWN_SERVER_ERROR, "", "DescribeQuorum, whose answer lacks the metadata,")
    (partition,) = found
    if partition.error_code:
        raise broker_error(partition.error_code, partition.error_message, "DescribeQuorum")
    return QuorumDescription(
        partition.leader_id,
        partition.leader_epoch,
        partition.high_watermark,
        tuple(map(_quorum_replica, partition.current_voters)),
        tuple(map(_quorum_replica, partition.observers)),
    )


def _quorum_replica(state: ReplicaState) -> QuorumReplica:
    return QuorumReplica(
        state.replica_id, state.log_end_offset, state.last_fetch_timestamp, state.last_caught_up_timestamp
    )
