"""The user data of the sticky assignors, read as Java's read it: a member whose bytes are not understood owned nothing.

(Source: StickyAssignor.java, CooperativeStickyAssignor.java. The bytes are those of `protocol.assignor_user_data`.)
"""

from collections.abc import Iterable

from odradek.client.consumer.assignment.assignor import NO_GENERATION
from odradek.client.consumer.assignment.claims import Claim
from odradek.client.topic_partition import TopicPartition, by_topic
from odradek.protocol.assignor_user_data import (
    StickyUserData,
    decode_cooperative_user_data,
    decode_sticky_user_data,
    encode_sticky_user_data,
)
from odradek.protocol.consumer_protocol import PartitionsByTopic
from odradek.protocol.errors import MalformedMessage

__all__ = ["decode_generation", "decode_previous_assignment", "encode_previous_assignment", "flat", "sorted_by_topic"]


def sorted_by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Sorted by topic and partition."""
    return by_topic(sorted(partitions))


def flat(partitions: PartitionsByTopic) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(topic, partition) for topic, found in partitions.items() for partition in found)


def encode_previous_assignment(partitions: Iterable[TopicPartition], generation: int) -> bytes:
    """What a member of `sticky` owned."""
    return encode_sticky_user_data(StickyUserData(sorted_by_topic(partitions), generation))


def decode_previous_assignment(data: bytes | None) -> Claim:
    """What a member of `sticky` owned; nothing where the bytes are not understood."""
    if not data:
        return Claim((), NO_GENERATION)
    try:
        had = decode_sticky_user_data(data)
    except MalformedMessage:
        return Claim((), NO_GENERATION)
    return Claim(flat(had.partitions), NO_GENERATION if had.generation is None else had.generation)


def decode_generation(data: bytes | None) -> int:
    """The generation of what a member of `cooperative-sticky` owned; -1 where it is not understood."""
    if data is None:
        return NO_GENERATION
    try:
        return decode_cooperative_user_data(data)
    except MalformedMessage:
        return NO_GENERATION
