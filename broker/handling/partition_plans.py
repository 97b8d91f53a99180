"""What an operator asks of single partitions: other replicas, another leader.

The pure functions answer the state that the partition should get, or raise what is wrong with the request, in Kafka's
errors and words (ReplicationControlManager.java). The controller writes the states (controller/controller.py).
"""

from collections.abc import Sequence
from enum import IntEnum

from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.keys import NO_LEADER, PartitionState, partition_key
from odradek.broker.cluster.partition_changes import may_lead, with_leader
from odradek.broker.cluster.partition_writes import PartitionWrite, with_epochs
from odradek.broker.cluster.reassignment import cancelled, completed, original_replicas, reassigned, target_replicas
from odradek.broker.cluster.topic_image import TopicImage
from odradek.broker.controller.decisions import preferred, seen
from odradek.broker.handling.context import Context
from odradek.broker.handling.metadata_change import MetadataChange
from odradek.protocol.errors import ErrorCode, KafkaError


class ElectionType(IntEnum):
    """What ElectLeaders asks for."""

    PREFERRED = 0
    UNCLEAN = 1


def find(image: ClusterImage, topic: str, index: int) -> tuple[TopicImage, PartitionState]:
    """Raises KafkaError UNKNOWN_TOPIC_OR_PARTITION."""
    found = image.topics.get(topic)
    if found is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {topic}")
    if not 0 <= index < len(found.partitions):
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {topic} has no partition {index}")
    return found, found.partitions[index]


def with_replicas(
    image: ClusterImage,
    topic: str,
    index: int,
    target: Sequence[int] | None,
    min_insync: int,
    *,
    may_change_count: bool,
) -> PartitionState:
    """Given other replicas, or with None a reassignment cancelled. `min_insync`: the topic's `min.insync.replicas`.

    Raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION, NO_REASSIGNMENT_IN_PROGRESS, INVALID_REPLICA_ASSIGNMENT,
    INVALID_REPLICATION_FACTOR.
    """
    _, state = find(image, topic, index)
    if target is None:
        after = _cancelled(state, seen(state, image, min_insync), min_insync, f"{topic}-{index}")
    else:
        _check_target(image, state, target, may_change_count=may_change_count)
        after = completed(reassigned(seen(state, image, min_insync), target, min_insync), min_insync)
    return with_epochs(state, with_leader(after, may_lead(after, image.is_usable)), image)


async def reassign(
    context: Context,
    changes: MetadataChange,
    topic: str,
    index: int,
    target: Sequence[int] | None,
    *,
    may_change_count: bool,
) -> None:
    """Writes what `with_replicas` answers, at the controller. Raises KafkaError as that, and as `MetadataChange`."""
    image = context.metadata.image
    found, before = find(image, topic, index)
    min_insync = context.config.topic(found.configs).min_insync_replicas
    after = with_replicas(image, topic, index, target, min_insync, may_change_count=may_change_count)
    if after is not before:
        change = PartitionWrite(partition_key(topic, index), before, after)
        await changes.apply(lambda: context.member.controller.change([change]))


def _cancelled(state: PartitionState, now: PartitionState, min_insync: int, name: str) -> PartitionState:
    """`now`: the state given who is there."""
    if not state.adding and not state.removing:
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, f"{name} is not being reassigned")
    after = cancelled(now, min_insync)
    if after is now:
        original = original_replicas(now)
        in_sync = [broker_id for broker_id in original if broker_id in now.isr]
        others = [broker_id for broker_id in (*now.isr, *now.elr) if broker_id not in original]
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"{name} cannot go back to its former replicas {list(original)} now: of these only {in_sync} are in sync, "
            f"too few for min.insync.replicas={min_insync} without {others}, which are in sync or eligible, too. "
            "Cancel again when more of them are in sync, or reassign the partition to brokers that are",
        )
    return after


def _check_target(image: ClusterImage, state: PartitionState, target: Sequence[int], *, may_change_count: bool) -> None:
    if not target:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "The manual partition assignment includes an empty replica list."
        )
    if len(set(target)) != len(target):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "The manual partition assignment includes a broker more than once."
        )
    for broker_id in target:
        if broker_id not in image.registered:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"The manual partition assignment includes broker {broker_id}, but no such broker is registered.",
            )
    count = len(target_replicas(state))
    if not may_change_count and len(target) != count:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {count} to {len(target)}",
        )


def with_elected_leader(image: ClusterImage, topic: str, index: int, election: ElectionType) -> PartitionState:
    """Led by the first of its replicas; or, where nobody leads it, by any that is there, whatever may be lost.

    Raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION, ELECTION_NOT_NEEDED, PREFERRED_LEADER_NOT_AVAILABLE,
    ELIGIBLE_LEADERS_NOT_AVAILABLE.
    """
    _, state = find(image, topic, index)
    if election is ElectionType.PREFERRED:
        if state.leader == state.replicas[0]:
            raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED, f"{topic}-{index} is led by the first of its replicas")
        after = preferred(state, image)
        if after is state:
            raise KafkaError(
                ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
                f"broker {state.replicas[0]}, the first replica of {topic}-{index}, is not in sync or not there",
            )
        return after
    is_usable = may_lead(state, image.is_usable)
    if state.leader != NO_LEADER and is_usable(state.leader):
        raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED, f"{topic}-{index} has a leader")
    after = with_leader(state, is_usable, unclean=True)
    if after.leader == NO_LEADER:
        raise KafkaError(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, f"no replica of {topic}-{index} is there")
    return with_epochs(state, after, image)
