"""CreatePartitions (key 37): adds partitions to topics.

v0: the API (KIP-195)
v1: the broker answers before it throttles (KIP-219)
v2: flexible (KIP-482)
v3: THROTTLING_QUOTA_EXCEEDED may be answered (KIP-599)
"""

from odradek.protocol.codec.schema import Request, Response, Struct, i16, i32, message, struct


@struct
class CreatePartitionsTopicResult(Struct):
    name: str
    error_code: i16 = 0
    error_message: str | None = None


@message(key=37, versions=(0, 3), flexible=2)
class CreatePartitionsResponse(Response):
    throttle_time_ms: i32 = 0
    results: list[CreatePartitionsTopicResult]


@struct
class CreatePartitionsAssignment(Struct):
    broker_ids: list[i32]


@struct
class CreatePartitionsTopic(Struct):
    name: str
    count: i32
    assignments: list[CreatePartitionsAssignment] | None


@message(key=37, versions=(0, 3), flexible=2)
class CreatePartitionsRequest(Request[CreatePartitionsResponse]):
    topics: list[CreatePartitionsTopic]
    timeout_ms: i32
    validate_only: bool
