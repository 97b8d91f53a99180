"""The records of Kafka's metadata log that an adoption needs (KIP-631), as declarations. Pure.

    value = unsigned varint  frame version, 1      (AbstractApiMessageSerde.java)
            unsigned varint  the record's type     MetadataRecordType.java, here the `key` of each class
            unsigned varint  the record's version
            the record, as the flexible version of a message is written

Types that are not declared here are told apart by their numbers alone. A version of a declared type that is not known
cannot be read, which is an error: a topic or an option would be missing.
"""

from collections.abc import Mapping
from typing import Final

from odradek.protocol.codec.codec import decode
from odradek.protocol.codec.schema import Message, field, i8, i32, i64, message, uuid
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.primitives import read_unsigned_varint

FRAME_VERSION: Final = 1
LEADER_UNCHANGED: Final = -2


@message(key=2, versions=(0, 0), flexible=0)
class TopicRecord(Message):
    """A topic is created."""

    name: str
    topic_id: uuid


@message(key=3, versions=(0, 2), flexible=0)
class PartitionRecord(Message):
    """A partition is created, or written down anew as a whole. v1: KIP-858, v2: KIP-966."""

    partition_id: i32 = -1
    topic_id: uuid
    replicas: list[i32]
    isr: list[i32]
    removing_replicas: list[i32]
    adding_replicas: list[i32]
    leader: i32 = -1
    leader_recovery_state: i8 = field(default=0, tag=0)
    leader_epoch: i32 = -1
    partition_epoch: i32 = -1
    directories: list[uuid] = field(since=1, default_factory=list[bytes])
    eligible_leader_replicas: list[i32] | None = field(since=2, default=None, tag=1)
    last_known_elr: list[i32] | None = field(since=2, default=None, tag=2)


@message(key=4, versions=(0, 0), flexible=0)
class ConfigRecord(Message):
    """An option of a resource is set, or with None removed."""

    resource_type: i8
    resource_name: str
    name: str
    value: str | None


@message(key=5, versions=(0, 2), flexible=0)
class PartitionChangeRecord(Message):
    """What is named changes. A leader, the old one even, is named when the leader epoch grows."""

    partition_id: i32 = -1
    topic_id: uuid
    isr: list[i32] | None = field(default=None, tag=0)
    leader: i32 = field(default=LEADER_UNCHANGED, tag=1)
    replicas: list[i32] | None = field(default=None, tag=2)
    removing_replicas: list[i32] | None = field(default=None, tag=3)
    adding_replicas: list[i32] | None = field(default=None, tag=4)
    leader_recovery_state: i8 = field(default=-1, tag=5)
    directories: list[uuid] | None = field(since=1, default=None, tag=8)
    eligible_leader_replicas: list[i32] | None = field(since=2, default=None, tag=6)
    last_known_elr: list[i32] | None = field(since=2, default=None, tag=7)


@message(key=9, versions=(0, 0), flexible=0)
class RemoveTopicRecord(Message):
    """A topic is deleted, with its partitions and its options."""

    topic_id: uuid


@message(key=15, versions=(0, 0), flexible=0)
class ProducerIdsRecord(Message):
    """A broker took a block of producer ids."""

    broker_id: i32
    broker_epoch: i64 = -1
    next_producer_id: i64


@message(key=23, versions=(0, 0), flexible=0)
class BeginTransactionRecord(Message):
    """The records behind it count together, or not at all (KIP-868)."""

    name: str | None = field(default=None, tag=0)


@message(key=24, versions=(0, 0), flexible=0)
class EndTransactionRecord(Message):
    """They count."""


@message(key=25, versions=(0, 0), flexible=0)
class AbortTransactionRecord(Message):
    """They do not."""

    reason: str | None = field(default=None, tag=0)


@message(key=28, versions=(0, 0), flexible=0)
class ClearElrRecord(Message):
    """The eligible leaders (KIP-966) of a topic count no more; those of every topic where the name is empty."""

    topic_name: str


DECLARED: Final[Mapping[int, type[Message]]] = {
    record.api_key: record
    for record in (
        TopicRecord, PartitionRecord, ConfigRecord, PartitionChangeRecord, RemoveTopicRecord, ProducerIdsRecord,
        BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord, ClearElrRecord,
    )
}  # fmt: skip


def read_record(value: bytes) -> Message | int:
    """The record in the value of a metadata log's record; its type alone when that is not declared here.

    Raises MalformedMessage, also for versions that are not known.
    """
    try:
        frame_version, position = read_unsigned_varint(value, 0)
        record_type, position = read_unsigned_varint(value, position)
        version, position = read_unsigned_varint(value, position)
    except IndexError as error:
        raise MalformedMessage("the frame of a metadata record is cut") from error
    if frame_version != FRAME_VERSION:
        raise MalformedMessage(f"a metadata record has frame version {frame_version}, only {FRAME_VERSION} is known")
    declared = DECLARED.get(record_type)
    if declared is None:
        return record_type
    if not declared.min_version <= version <= declared.max_version:
        raise MalformedMessage(f"{declared.__name__} has version {version}, {declared.max_version} is the last known")
    return decode(declared, version, value, position)
