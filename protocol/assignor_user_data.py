"""What Java's sticky assignors put into the user data of a subscription (`consumer_protocol`), without a version.

    StickyAssignor               the partitions that the member had, by topic; int32 generation (KIP-341)
    CooperativeStickyAssignor    int32 generation; the partitions are in the subscription itself (KIP-429)

Java's assignors take what does not parse for "no partitions, generation -1", and null or nothing for "never had any".
"""

from typing import NamedTuple

from odradek.protocol.codec.codec import decode_prefix, encode
from odradek.protocol.codec.schema import Buffer, Message, Struct, field, i32, message, struct
from odradek.protocol.consumer_protocol import PartitionsByTopic
from odradek.protocol.errors import MalformedMessage


class StickyUserData(NamedTuple):
    """What a member had. `generation` None: it was written by an assignor that did not know it."""

    partitions: PartitionsByTopic
    generation: int | None


@struct
class TopicAssignment(Struct):
    topic: str
    partitions: list[i32]


@message(key=-1, versions=(0, 1), flexible=None)
class StickyAssignorUserData(Message):
    previous_assignment: list[TopicAssignment]
    generation: i32 = field(since=1, default=-1)


@message(key=-1, versions=(0, 0), flexible=None)
class CooperativeStickyAssignorUserData(Message):
    generation: i32


def encode_sticky_user_data(had: StickyUserData) -> bytes:
    """In the order of the mapping; without a generation where that is None. Raises ValueError for values that have no
    form on the wire."""
    parts = [TopicAssignment(topic=topic, partitions=list(of_topic)) for topic, of_topic in had.partitions.items()]
    if had.generation is None:
        return encode(StickyAssignorUserData(previous_assignment=parts), 0)
    return encode(StickyAssignorUserData(previous_assignment=parts, generation=had.generation), 1)


def decode_sticky_user_data(data: Buffer) -> StickyUserData:
    """With the generation if four bytes are left for it; what follows is ignored. Raises MalformedMessage."""
    generation: int | None
    try:
        found = decode_prefix(StickyAssignorUserData, 1, data)
        generation = found.generation
    except MalformedMessage:
        found = decode_prefix(StickyAssignorUserData, 0, data)
        generation = None
    partitions: dict[str, list[int]] = {}
    for part in found.previous_assignment:
        partitions.setdefault(part.topic, []).extend(part.partitions)
    return StickyUserData(partitions, generation)


def encode_cooperative_user_data(generation: int) -> bytes:
    """Raises ValueError for a number of more than 32 bits."""
    return encode(CooperativeStickyAssignorUserData(generation=generation), 0)


def decode_cooperative_user_data(data: Buffer) -> int:
    """The generation; what follows is ignored. Raises MalformedMessage."""
    return decode_prefix(CooperativeStickyAssignorUserData, 0, data).generation
