"""ConsumerGroupHeartbeat (key 68): a member of a consumer group joins, reports what it owns, learns its assignment, and
leaves (KIP-848).

member_epoch: 0 joins, -1 leaves, -2 leaves as a static member that comes back. What is null (rebalance_timeout_ms: -1)
has not changed since the last heartbeat.

v0: the API, flexible
v1: subscribed_topic_regex (KIP-848); the member makes its own id (KIP-1082)
"""

from odradek.protocol.codec.schema import Request, Response, Struct, field, i16, i32, message, struct, uuid


@struct
class TopicPartitions(Struct):
    topic_id: uuid
    partitions: list[i32]


@struct
class Assignment(Struct):
    topic_partitions: list[TopicPartitions]


@message(key=68, versions=(0, 1), flexible=0)
class ConsumerGroupHeartbeatResponse(Response):
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: i32 = 0
    heartbeat_interval_ms: i32 = 0
    assignment: Assignment | None = None


@message(key=68, versions=(0, 1), flexible=0)
class ConsumerGroupHeartbeatRequest(Request[ConsumerGroupHeartbeatResponse]):
    group_id: str
    member_id: str
    member_epoch: i32
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: i32 = -1
    subscribed_topic_names: list[str] | None = None
    subscribed_topic_regex: str | None = field(since=1, default=None)
    server_assignor: str | None = None
    topic_partitions: list[TopicPartitions] | None = None
