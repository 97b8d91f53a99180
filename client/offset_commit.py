"""The rows of an OffsetCommit, which members of groups and Admin both send, and what a transaction has to know of a
group whose offsets it commits. Pure."""

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol, runtime_checkable

from odradek.client.errors.base import ClientError
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic

__all__ = ["BindableConsumer", "BoundConsumer", "Committed", "GroupIdentity", "OffsetSource", "OffsetsToCommit"]
__all__ += ["TransactionOwner", "commit_topics"]


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

    def offsets_for_transaction(self, last: object | None = None) -> OffsetsToCommit:
        """Everything that was handed out so far; or, of the partitions of a record or batch, up to its end.

        Raises ClientError where that cannot be told or may not be done; TypeError where it has handed out no such
        objects.
        """
        ...

    def committed_by_transaction(self, offsets: Mapping[TopicPartition, Committed]) -> None:
        """The transaction with these offsets was committed."""
        ...


class TransactionOwner(Protocol):
    """The transactions of a producer, as a consumer sees them."""

    @property
    def transactional_id(self) -> str: ...
    @property
    def is_closed(self) -> bool: ...


class BoundConsumer(OffsetSource, Protocol):
    """A consumer whose offsets the transactions of one producer commit, and nobody else."""

    @property
    def group_id(self) -> str: ...

    async def ready(self, timeout_ms: float) -> None:
        """Returns when no commit of its own is under way. Raises RequestTimedOut, ConsumerClosed."""
        ...

    def opened(self, fail: Callable[[ClientError], None]) -> None:
        """A transaction has begun. `fail`: called when it can only be aborted, since partitions were taken away."""
        ...

    def committed(self) -> None:
        """The transaction was committed; `committed_by_transaction` has told with which offsets."""
        ...

    def aborted(self, cause: ClientError | None) -> None:
        """It counts for nothing, because of this, perhaps."""
        ...

    def unsettled(self, error: ClientError) -> None:
        """Nobody has said yet what became of it: `committed` or `aborted` follows."""
        ...


@runtime_checkable
class BindableConsumer(Protocol):
    def bind_to_transactions(self, owner: TransactionOwner) -> BoundConsumer:
        """Raises WrongUse where it is too late for that, or it is bound to another producer."""
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
