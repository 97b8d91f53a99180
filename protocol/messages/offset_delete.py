"""OffsetDelete (key 47): removes offsets of a group, but for topics that its members are subscribed to.

v0: the API (KIP-496), which has no flexible version
"""

from odradek.protocol.codec.schema import Request, Response, Struct, field, i16, i32, message, struct


@struct
class OffsetDeleteResponsePartition(Struct):
    partition_index: i32
    error_code: i16 = 0


@struct
class OffsetDeleteResponseTopic(Struct):
    name: str
    partitions: list[OffsetDeleteResponsePartition]


@message(key=47, versions=(0, 0), flexible=None)
class OffsetDeleteResponse(Response):
    error_code: i16 = 0
    throttle_time_ms: i32 = 0
    topics: list[OffsetDeleteResponseTopic] = field(default_factory=list[OffsetDeleteResponseTopic])


@struct
class OffsetDeleteRequestPartition(Struct):
    partition_index: i32


@struct
class OffsetDeleteRequestTopic(Struct):
    name: str
    partitions: list[OffsetDeleteRequestPartition]


@message(key=47, versions=(0, 0), flexible=None)
class OffsetDeleteRequest(Request[OffsetDeleteResponse]):
    group_id: str
    topics: list[OffsetDeleteRequestTopic]
