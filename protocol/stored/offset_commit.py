"""What `__consumer_offsets` holds of committed offsets (types 0 and 1).

LegacyOffsetCommit, type 0: an early form of it, which Kafka 4.3 still reads.

OffsetCommit, type 1, by versions of the value:
v0: offset, metadata, commit_timestamp (KAFKA-1012)
v1: expire_timestamp, where the client asks for a retention time (OffsetCommit up to version 4)
v2: without it (KIP-211)
v3: leader_epoch (KIP-320)
v4: flexible (KIP-915); topic_id, tagged
"""

from typing import Final

from odradek.protocol.codec.schema import ZERO_UUID, Message, field, i32, i64, message, uuid
from odradek.protocol.stored.record_key import RecordKey

WRITTEN_VERSION: Final = 4
"""What Kafka 4.3 writes."""
WRITTEN_VERSION_WITH_EXPIRY: Final = 1
"""What it writes where the client asks for a retention time: no leader epoch and no topic id."""


@message(key=0, versions=(0, 0), flexible=None)
class LegacyOffsetCommitValue(Message):
    """Timestamps of offsets are in ms since 1970."""

    offset: i64
    metadata: str
    commit_timestamp: i64


@message(key=0, versions=(0, 0), flexible=None)
class LegacyOffsetCommitKey(RecordKey[LegacyOffsetCommitValue]):
    """Of one partition of one group."""

    group: str
    topic: str
    partition: i32


@message(key=1, versions=(0, 4), flexible=4)
class OffsetCommitValue(Message):
    """Timestamps are in ms since 1970. expire_timestamp -1: the broker's retention holds. topic_id zero: unknown."""

    offset: i64
    leader_epoch: i32 = field(since=3, default=-1)
    metadata: str
    commit_timestamp: i64
    expire_timestamp: i64 = field(since=1, until=1, default=-1)
    topic_id: uuid = field(since=4, tag=0, default=ZERO_UUID)


@message(key=1, versions=(0, 0), flexible=None)
class OffsetCommitKey(RecordKey[OffsetCommitValue]):
    """Of one partition of one group."""

    group: str
    topic: str
    partition: i32
