"""What a broker says of a topic, checked and put in order: nodes, partitions by index, and what is precomputed of them.

Merging follows Java's Metadata.updateLatestMetadata: of one partition, the answer with the older leader epoch is
ignored, since brokers learn of elections one after the other. That holds as long as the topic is the same one: with
another topic id, everything starts anew. Epochs count from version 9 of Metadata on: before Kafka 2.4, brokers could
send wrong ones during a reassignment.

Two things are stricter than in Java. A topic whose partitions are not numbered from 0 without gaps is no answer. And
partitions do not vanish from a topic with the same id, since Kafka cannot remove them: the broker was not told yet.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, Protocol

from protocol.errors import ErrorCode
from protocol.messages.metadata import MetadataResponsePartition, MetadataResponseTopic
from protocol.schema import ZERO_UUID

NO_LEADER: Final = (-1, -1)
NO_EPOCH: Final = -1
RELIABLE_EPOCHS_SINCE: Final = 9


@dataclass(frozen=True, slots=True)
class Node:
    """A broker, as metadata names it."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


class Endpoint(Protocol):
    """Where a broker is, in a response: of Metadata, or beside a leader's hint (KIP-951)."""

    @property
    def node_id(self) -> int: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def rack(self) -> str | None: ...


class PartitionMetadata(NamedTuple):
    """`leader` is -1 where there is none that we could connect to; `leader_epoch` -1 where none is known.

    A tuple, since a cluster may have tens of thousands: a frozen dataclass takes four times as long to make.
    """

    topic: str
    partition: int
    leader: int
    leader_epoch: int
    error: ErrorCode = ErrorCode.NONE
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    offline: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """A topic with its partitions by index. The last three fields follow from these."""

    name: str
    topic_id: bytes
    partitions: tuple[PartitionMetadata, ...]
    error: ErrorCode = ErrorCode.NONE
    is_internal: bool = False
    partition_count: int = field(init=False, compare=False)
    available: tuple[int, ...] = field(init=False, compare=False)
    """The partitions with a leader."""
    leaders: tuple[tuple[int, int], ...] = field(init=False, compare=False, repr=False)
    """Node and leader epoch by partition."""

    def __post_init__(self) -> None:
        partitions = self.partitions
        object.__setattr__(self, "partition_count", len(partitions))
        object.__setattr__(self, "available", tuple(each.partition for each in partitions if each.leader >= 0))
        object.__setattr__(self, "leaders", tuple((each.leader, each.leader_epoch) for each in partitions))

    @property
    def is_complete(self) -> bool:
        """Whether every partition has a leader. If not, metadata is asked for again."""
        return len(self.available) == len(self.partitions)

    def without_leaders_outside(self, nodes: Container[int]) -> "TopicMetadata":
        """The same with no leader where it is none of `nodes`."""
        if all(leader in nodes for leader, _ in self.leaders if leader >= 0):
            return self
        partitions = (each if each.leader in nodes else each._replace(leader=-1) for each in self.partitions)
        return replace(self, partitions=tuple(partitions))

    def without_epochs(self) -> "TopicMetadata":
        """The same, in which any later answer is believed."""
        return replace(self, partitions=tuple(each._replace(leader_epoch=NO_EPOCH) for each in self.partitions))


def nodes_of(endpoints: Iterable[Endpoint]) -> dict[int, Node]:
    """The brokers that one could connect to, by id."""
    return {
        each.node_id: Node(each.node_id, each.host, each.port, each.rack)
        for each in endpoints
        if each.node_id >= 0 and each.host and 0 < each.port < 65536
    }


def code_of(number: int) -> ErrorCode:
    """Kafka's error code, UNKNOWN_SERVER_ERROR for a number that this client does not know."""
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def merged(
    name: str, answer: MetadataResponseTopic, known: TopicMetadata | None, nodes: Mapping[int, Node], api_version: int
) -> TopicMetadata | None:
    """The topic after an answer about it. None: the answer is unusable, as no partitions can be read from it."""
    found = {each.partition_index: each for each in answer.partitions}
    if not found or len(found) != len(answer.partitions) or min(found) != 0 or max(found) != len(found) - 1:
        return None
    has_id = answer.topic_id != ZERO_UUID
    if known is not None and has_id and answer.topic_id != known.topic_id:
        known = None
    before: Sequence[PartitionMetadata] = () if known is None else known.partitions
    partitions = [
        _newer(name, found[index], before[index] if index < len(before) else None, api_version)
        for index in range(len(found))
    ]
    if has_id:
        partitions += before[len(partitions) :]
    topic = TopicMetadata(
        name=name,
        topic_id=answer.topic_id if has_id or known is None else known.topic_id,
        partitions=tuple(partitions),
        is_internal=answer.is_internal,
    )
    return topic.without_leaders_outside(nodes)


def _newer(
    topic: str, answer: MetadataResponsePartition, known: PartitionMetadata | None, api_version: int
) -> PartitionMetadata:
    epoch = answer.leader_epoch if api_version >= RELIABLE_EPOCHS_SINCE and answer.leader_epoch >= 0 else NO_EPOCH
    if known is not None and NO_EPOCH < epoch < known.leader_epoch:
        return known
    return PartitionMetadata(
        topic=topic,
        partition=answer.partition_index,
        leader=answer.leader_id if answer.leader_id >= 0 else -1,
        leader_epoch=epoch,
        error=code_of(answer.error_code),
        replicas=tuple(answer.replica_nodes),
        isr=tuple(answer.isr_nodes),
        offline=tuple(answer.offline_replicas),
    )
