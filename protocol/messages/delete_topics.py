"""DeleteTopics (key 20): deletes topics.

v1: throttle_time_ms (KIP-124)
v2: the broker answers before it throttles (KIP-219)
v3: TOPIC_DELETION_DISABLED may be answered (KAFKA-5975)
v4: flexible (KIP-482)
v5: error_message; THROTTLING_QUOTA_EXCEEDED may be answered (KIP-599)
v6: topics by name or id (KIP-516)
"""

from odradek.protocol.codec.schema import ZERO_UUID, Request, Response, Struct, field, i16, i32, message, struct, uuid


@struct
class DeletableTopicResult(Struct):
    name: str | None = field(nullable_since=6)
    topic_id: uuid = field(since=6, default=ZERO_UUID)
    error_code: i16 = 0
    error_message: str | None = field(since=5, default=None)


@message(key=20, versions=(1, 6), flexible=4)
class DeleteTopicsResponse(Response):
    throttle_time_ms: i32 = 0
    responses: list[DeletableTopicResult]


@struct
class DeleteTopicState(Struct):
    name: str | None = None
    topic_id: uuid = ZERO_UUID


@message(key=20, versions=(1, 6), flexible=4)
class DeleteTopicsRequest(Request[DeleteTopicsResponse]):
    topics: list[DeleteTopicState] = field(since=6, default_factory=list[DeleteTopicState])
    topic_names: list[str] = field(until=5, default_factory=list[str])
    timeout_ms: i32
