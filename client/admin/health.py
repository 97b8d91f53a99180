"""Which partitions of a cluster are not as they should be. Pure.

A replica that a reassignment adds is not missed until it is there. `min.insync.replicas` counts at most as many as the
partition has replicas, as brokers count it (KIP-966).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from odradek.client.admin.replication import Reassignment
from odradek.client.admin.topics import PartitionDescription, TopicDescription
from odradek.client.topic_partition import TopicPartition

__all__ = ["MIN_INSYNC", "PartitionHealth", "out_of_sync", "partition_healths"]

MIN_INSYNC: Final = "min.insync.replicas"


@dataclass(frozen=True, slots=True)
class PartitionHealth:
    """A partition, and what it lacks."""

    partition: TopicPartition
    state: PartitionDescription
    is_offline: bool
    """It has no leader: nothing can be read or written."""
    is_under_replicated: bool
    """A replica that it should have is not in sync."""
    is_under_min_isr: bool
    """Fewer are in sync than `min.insync.replicas`: acks=all is refused."""

    @property
    def is_well(self) -> bool:
        return not (self.is_offline or self.is_under_replicated or self.is_under_min_isr)


def out_of_sync(topics: Iterable[TopicDescription]) -> list[str]:
    """The topics with a replica that is not in sync; of the others `min.insync.replicas` need not be known."""
    return [topic.name for topic in topics if any(state.out_of_sync for state in topic.partitions)]


def partition_healths(
    topics: Iterable[TopicDescription],
    reassignments: Mapping[TopicPartition, Reassignment],
    min_insync: Mapping[str, int],
) -> list[PartitionHealth]:
    """All partitions, with what they lack. `min_insync`: of those topics of which it is known."""
    found: list[PartitionHealth] = []
    for topic in topics:
        for state in topic.partitions:
            expected = _expected(topic.name, state, reassignments)
            least = min(min_insync.get(topic.name, 0), len(state.replicas))
            found.append(
                PartitionHealth(
                    TopicPartition(topic.name, state.partition),
                    state,
                    is_offline=state.leader < 0,
                    is_under_replicated=any(each not in state.isr for each in expected),
                    is_under_min_isr=len(state.isr) < least,
                )
            )
    return found


def _expected(
    topic: str, state: PartitionDescription, reassignments: Mapping[TopicPartition, Reassignment]
) -> tuple[int, ...]:
    """The replicas that should be in sync."""
    moving = reassignments.get(TopicPartition(topic, state.partition))
    return tuple(each for each in state.replicas if moving is None or each not in moving.adding)
