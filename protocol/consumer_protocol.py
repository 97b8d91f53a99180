"""What members of protocol type `consumer` tell one another through a classic group: subscriptions in the metadata of
JoinGroup, assignments in SyncGroup. To the coordinator they are opaque but for the topics.

    int16 version      then topics, user data, …, in the form of this version

v0: topics, user_data; the assignment
v1: owned_partitions (KIP-429)
v2: generation_id (KIP-792)
v3: rack_id (KIP-881)

A version above 3 is read as version 3, and bytes left over are ignored: whatever comes later is added at the end
(Kafka's ConsumerProtocol). The assignment has the same fields in all versions.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple, TypeVar

from odradek.protocol.codec.codec import decode_prefix, encode
from odradek.protocol.codec.schema import Buffer, Message, Struct, field, i32, message, struct
from odradek.protocol.errors import MalformedMessage

PROTOCOL_TYPE: Final = "consumer"
NEWEST_VERSION: Final = 3

M = TypeVar("M", bound=Message)

PartitionsByTopic = Mapping[str, Sequence[int]]
NO_PARTITIONS: Final[PartitionsByTopic] = MappingProxyType({})


class Subscription(NamedTuple):
    """What a member wants, and what it had before the rebalance."""

    topics: Sequence[str]
    user_data: bytes | None = None
    """The assignor's; see `assignor_user_data`."""
    owned_partitions: PartitionsByTopic = NO_PARTITIONS
    generation: int = -1
    """The last one in which the member had its partitions; -1: none."""
    rack: str | None = None


class Assignment(NamedTuple):
    """What a member gets."""

    partitions: PartitionsByTopic
    user_data: bytes | None = None


@struct
class TopicPartition(Struct):
    topic: str
    partitions: list[i32]


@message(key=-1, versions=(0, NEWEST_VERSION), flexible=None)
class ConsumerProtocolSubscription(Message):
    topics: list[str]
    user_data: bytes | None = None
    owned_partitions: list[TopicPartition] = field(since=1, default_factory=list[TopicPartition])
    generation_id: i32 = field(since=2, default=-1)
    rack_id: str | None = field(since=3, default=None)


@message(key=-1, versions=(0, NEWEST_VERSION), flexible=None)
class ConsumerProtocolAssignment(Message):
    assigned_partitions: list[TopicPartition]
    user_data: bytes | None = None


def encode_subscription(subscription: Subscription, version: int = NEWEST_VERSION) -> bytes:
    """Sorted by topic and partition, as Java does. What the version does not carry is left out.

    Raises ValueError for a version that is not declared, and for values that have no form on the wire.
    """
    owned = {topic: sorted(subscription.owned_partitions[topic]) for topic in sorted(subscription.owned_partitions)}
    return _encoded(
        ConsumerProtocolSubscription(
            topics=sorted(subscription.topics),
            user_data=subscription.user_data,
            owned_partitions=_listed(owned),
            generation_id=subscription.generation,
            rack_id=subscription.rack,
        ),
        version,
    )


def decode_subscription(data: Buffer) -> Subscription:
    """Raises MalformedMessage."""
    found = _decoded(ConsumerProtocolSubscription, data)
    return Subscription(
        tuple(found.topics),
        found.user_data,
        _by_topic(found.owned_partitions),
        found.generation_id,
        found.rack_id or None,
    )


def encode_assignment(assignment: Assignment, version: int = NEWEST_VERSION) -> bytes:
    """In the order of the mapping. Errors as in `encode_subscription`."""
    parts = _listed(assignment.partitions)
    return _encoded(ConsumerProtocolAssignment(assigned_partitions=parts, user_data=assignment.user_data), version)


def decode_assignment(data: Buffer) -> Assignment:
    """Raises MalformedMessage."""
    found = _decoded(ConsumerProtocolAssignment, data)
    return Assignment(_by_topic(found.assigned_partitions), found.user_data)


def _encoded(content: Message, version: int) -> bytes:
    return version.to_bytes(2, "big", signed=True) + encode(content, version)


def _decoded(cls: type[M], data: Buffer) -> M:
    if len(data) < 2:
        raise MalformedMessage(f"{cls.__name__} has {len(data)} bytes")
    version = int.from_bytes(data[:2], "big", signed=True)
    if version < cls.min_version:
        raise MalformedMessage(f"{cls.__name__} has the version {version}")
    return decode_prefix(cls, min(version, cls.max_version), data, 2)


def _listed(partitions: PartitionsByTopic) -> list[TopicPartition]:
    return [TopicPartition(topic=topic, partitions=list(of_topic)) for topic, of_topic in partitions.items()]


def _by_topic(parts: Iterable[TopicPartition]) -> PartitionsByTopic:
    """A topic may come twice."""
    found: dict[str, list[int]] = {}
    for part in parts:
        found.setdefault(part.topic, []).extend(part.partitions)
    return found
