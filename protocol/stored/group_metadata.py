"""What `__consumer_offsets` holds of a classic group (type 2): its generation with members and assignments.

By versions of the value:
v0: the group (KAFKA-2464)
v1: rebalance_timeout (KIP-62)
v2: current_state_timestamp (KIP-211)
v3: group_instance_id (KIP-345)
v4: flexible (KIP-915)
"""

from typing import Final

from odradek.protocol.codec.schema import Message, Struct, field, i32, i64, message, struct
from odradek.protocol.stored.record_key import RecordKey

WRITTEN_VERSION: Final = 3
"""What Kafka 4.3 writes."""


@struct
class MemberMetadata(Struct):
    """Time-outs are in ms; rebalance_timeout -1: it is the session's. subscription and assignment are opaque."""

    member_id: str
    group_instance_id: str | None = field(since=3, default=None)
    client_id: str
    client_host: str
    rebalance_timeout: i32 = field(since=1, default=-1)
    session_timeout: i32
    subscription: bytes
    assignment: bytes


@message(key=2, versions=(0, 4), flexible=4)
class GroupMetadataValue(Message):
    """current_state_timestamp: since when the group is in its state, in ms since 1970; -1: unknown."""

    protocol_type: str
    generation: i32
    protocol: str | None
    leader: str | None
    current_state_timestamp: i64 = field(since=2, default=-1)
    members: list[MemberMetadata]


@message(key=2, versions=(0, 0), flexible=None)
class GroupMetadataKey(RecordKey[GroupMetadataValue]):
    """Of one group."""

    group: str
