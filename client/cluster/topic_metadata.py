"""What a broker says of a topic, checked and put in order: nodes, leaders by partition, and what follows from them.

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

from odradek.protocol.codec.schema import ZERO_UUID
from odradek.protocol.messages.metadata import MetadataResponsePartition, MetadataResponseTopic

NO_EPOCH: Final = -1
RELIABLE_EPOCHS_SINCE: Final = 9
FORMER_IDS_MAX: Final = 8


@dataclass(frozen=True, slots=True)
class Node:
    """A broker, as metadata names it."""

    node_id: int
    host: str
    port: int


class Endpoint(Protocol):
    """Where a broker is, in a response: of Metadata, or beside a leader's hint (KIP-951)."""

    @property
    def node_id(self) -> int: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...


class Leader(NamedTuple):
    """Who leads a partition. `node_id` -1: nobody that we could connect to. `epoch` -1: it is not known."""

    node_id: int
    epoch: int


NO_LEADER: Final = Leader(-1, NO_EPOCH)


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """A topic with the leaders of its partitions by index. `partition_count` and `available` follow from these."""

    name: str
    topic_id: bytes
    leaders: tuple[Leader, ...]
    partition_count: int = field(init=False, compare=False)
    available: tuple[int, ...] = field(init=False, compare=False)
    """The partitions with a leader."""
    former_ids: tuple[bytes, ...] = field(default=(), compare=False)
    """Of topics that had this name before, as far as brokers told; the last few."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "partition_count", len(self.leaders))
        available = tuple(index for index, (node_id, _) in enumerate(self.leaders) if node_id >= 0)
        object.__setattr__(self, "available", available)

    @property
    def replaces_another(self) -> bool:
        """Whether it was made anew. (Not where a broker that was not told yet names a former topic.)"""
        return bool(self.former_ids) and self.topic_id not in self.former_ids

    @property
    def is_complete(self) -> bool:
        """Whether every partition has a leader. If not, metadata is asked for again."""
        return len(self.available) == len(self.leaders)

    def without_leaders_outside(self, nodes: Container[int]) -> "TopicMetadata":
        """The same with no leader where it is none of `nodes`."""
        if all(node_id in nodes for node_id, _ in self.leaders if node_id >= 0):
            return self
        leaders = (each if each.node_id in nodes else Leader(-1, each.epoch) for each in self.leaders)
        return replace(self, leaders=tuple(leaders))

    def without_epochs(self) -> "TopicMetadata":
        """The same, in which any later answer is believed."""
        return replace(self, leaders=tuple(Leader(node_id, NO_EPOCH) for node_id, _ in self.leaders))


def nodes_of(endpoints: Iterable[Endpoint]) -> dict[int, Node]:
    """The brokers that one could connect to, by id."""
    return {
        each.node_id: Node(each.node_id, each.host, each.port)
        for each in endpoints
        if each.node_id >= 0 and each.host and 0 < each.port < 65536
    }


def merged(
    name: str, answer: MetadataResponseTopic, known: TopicMetadata | None, nodes: Mapping[int, Node], api_version: int
) -> TopicMetadata | None:
    """The topic after an answer about it. None: the answer is unusable, as no partitions can be read from it."""
    found = {each.partition_index: each for each in answer.partitions}
    if not found or len(found) != len(answer.partitions) or min(found) != 0 or max(found) != len(found) - 1:
        return None
    has_id = answer.topic_id != ZERO_UUID
    former_ids = () if known is None else known.former_ids
    if known is not None and has_id and answer.topic_id != known.topic_id:
        if known.topic_id != ZERO_UUID and known.topic_id not in former_ids:
            former_ids = (*former_ids, known.topic_id)[-FORMER_IDS_MAX:]
        known = None
    before: Sequence[Leader] = () if known is None else known.leaders
    leaders = [
        _newer(found[index], before[index] if index < len(before) else None, api_version) for index in range(len(found))
    ]
    if has_id:
        leaders += before[len(leaders) :]
    topic_id = answer.topic_id if has_id or known is None else known.topic_id
    return TopicMetadata(name, topic_id, tuple(leaders), former_ids=former_ids).without_leaders_outside(nodes)


def _newer(answer: MetadataResponsePartition, known: Leader | None, api_version: int) -> Leader:
    epoch = answer.leader_epoch if api_version >= RELIABLE_EPOCHS_SINCE and answer.leader_epoch >= 0 else NO_EPOCH
    if known is not None and NO_EPOCH < epoch < known.epoch:
        return known
    return Leader(max(answer.leader_id, -1), epoch)
