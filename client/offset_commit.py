"""The rows of an OffsetCommit, which members of groups and Admin both send. Pure."""

from collections.abc import Mapping
from typing import Protocol

from odradek.client.topic_partition import TopicPartition
from odradek.protocol.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic

__all__ = ["commit_topics"]


class Committed(Protocol):
    """What is committed of a partition: a `CommittedOffset` of Admin, or an `OffsetAndMetadata` of a consumer."""

    @property
    def offset(self) -> int: ...
    @property
    def metadata(self) -> str: ...
    @property
    def leader_epoch(self) -> int: ...


def commit_topics(offsets: Mapping[TopicPartition, Committed]) -> list[OffsetCommitRequestTopic]:
    """By topic's name, in the order in which they come."""
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for partition, committed in offsets.items():
        topics.setdefault(partition.topic, []).append(
            OffsetCommitRequestPartition(
                partition_index=partition.partition,
                committed_offset=committed.offset,
                committed_leader_epoch=committed.leader_epoch,
                committed_metadata=committed.metadata,
            )
        )
    return [OffsetCommitRequestTopic(name=name, partitions=partitions) for name, partitions in topics.items()]
