"""The rows of an OffsetCommit, which members of groups and Admin both send, and what a transaction has to know of a
group whose offsets it commits. Pure."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol, runtime_checkable

from odradek.client.topic_partition import TopicPartition
from odradek.protocol.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic

__all__ = ["Committed", "GroupIdentity", "OffsetSource", "OffsetsToCommit", "commit_topics"]


class Committed(Protocol):
    """What is committed of a partition: a `CommittedOffset` of Admin, or an `OffsetAndMetadata` of a consumer."""

    @property
    def offset(self) -> int: ...
    @property
    def metadata(self) -> str: ...
    @property
    def leader_epoch(self) -> int: ...


@runtime_checkable
class GroupIdentity(Protocol):
    """As what offsets of a group are committed (KIP-447): `Consumer.group_metadata()` returns one.

    `generation`: or the member epoch of KIP-848; -1 with an empty member id: from outside of the group.
    """

    @property
    def group_id(self) -> str: ...
    @property
    def member_id(self) -> str: ...
    @property
    def generation(self) -> int: ...
    @property
    def group_instance_id(self) -> str | None: ...


class OffsetsToCommit(NamedTuple):
    """Offsets to go on at, and for which group."""

    group: GroupIdentity
    offsets: Mapping[TopicPartition, Committed]


@runtime_checkable
class OffsetSource(Protocol):
    """A consumer, as a transaction sees it that commits its offsets."""

    def offsets_for_transaction(self) -> OffsetsToCommit:
        """Everything that was handed out so far. Raises ClientError where that cannot be told or may not be done."""
        ...

    def committed_by_transaction(self, offsets: Mapping[TopicPartition, Committed]) -> None:
        """The transaction with these offsets was committed."""
        ...


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
