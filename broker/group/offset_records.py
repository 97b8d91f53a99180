"""A committed offset as its record has it: OffsetCommitKey and OffsetCommitValue, in Kafka's versions. Pure."""

from functools import lru_cache
from typing import Final

from odradek.broker.coordinator.machine import StoredRecord
from odradek.broker.group.offset_requests import OffsetToCommit
from odradek.broker.group.offsets import NO_EXPIRY, NO_LEADER_EPOCH, Committed, Position
from odradek.protocol.stored.group_records import encode_key, encode_value
from odradek.protocol.stored.offset_commit import LegacyOffsetCommitValue, OffsetCommitKey, OffsetCommitValue

VALUE_VERSION: Final = 4
VALUE_VERSION_WITH_EXPIRY: Final = 1


@lru_cache(maxsize=4096)  # a member commits the same partitions again and again; 300 bytes each
def _key(group_id: str, position: Position) -> bytes:
    topic, partition = position
    return encode_key(OffsetCommitKey(group=group_id, topic=topic, partition=partition))


def commit_record(group_id: str, position: Position, committed: Committed) -> StoredRecord:
    """In the version that Kafka 4.3 writes (`offsetCommitValueVersion`): 1 where it has a time of expiry, else 4."""
    version = VALUE_VERSION if committed.expire_timestamp_ms == NO_EXPIRY else VALUE_VERSION_WITH_EXPIRY
    value = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.commit_timestamp_ms,
        expire_timestamp=committed.expire_timestamp_ms,
        topic_id=committed.topic_id,
    )
    return StoredRecord(_key(group_id, position), encode_value(value, version))


def tombstone(group_id: str, position: Position) -> StoredRecord:
    return StoredRecord(_key(group_id, position), None)


def committed_of(value: OffsetCommitValue | LegacyOffsetCommitValue) -> Committed:
    """What a record of the log says."""
    if isinstance(value, LegacyOffsetCommitValue):
        return Committed(value.offset, NO_LEADER_EPOCH, value.metadata, value.commit_timestamp)
    return Committed(
        value.offset,
        value.leader_epoch,
        value.metadata,
        value.commit_timestamp,
        value.expire_timestamp,
        value.topic_id,
    )


def committed_by(wanted: OffsetToCommit, now_ms: int, expire_ms: int) -> Committed:
    """What the record holds: one with a time of expiry has neither leader epoch nor topic id."""
    if expire_ms != NO_EXPIRY:
        return Committed(wanted.offset, NO_LEADER_EPOCH, wanted.metadata, now_ms, expire_ms)
    return Committed(wanted.offset, wanted.leader_epoch, wanted.metadata, now_ms, expire_ms, wanted.topic_id)


def is_longer(text: str, limit: int) -> bool:
    """By UTF-16 units, as Java counts: a character outside of the basic plane is two."""
    count = len(text)
    if count > limit or count * 2 <= limit:
        return count > limit
    return count + sum(character > "\uffff" for character in text) > limit
