"""ListPartitionReassignments (key 46): which partitions are being given other replicas.

v0: the API (KIP-455), flexible
"""

from odradek.protocol.codec.schema import Request, Response, Struct, i16, i32, message, struct


@struct
class OngoingPartitionReassignment(Struct):
    partition_index: i32
    replicas: list[i32]
    adding_replicas: list[i32]
    removing_replicas: list[i32]


@struct
class OngoingTopicReassignment(Struct):
    name: str
    partitions: list[OngoingPartitionReassignment]


@message(key=46, versions=(0, 0), flexible=0)
class ListPartitionReassignmentsResponse(Response):
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    topics: list[OngoingTopicReassignment]


@struct
class ListPartitionReassignmentsTopics(Struct):
    name: str
    partition_indexes: list[i32]


@message(key=46, versions=(0, 0), flexible=0)
class ListPartitionReassignmentsRequest(Request[ListPartitionReassignmentsResponse]):
    timeout_ms: i32 = 60000
    topics: list[ListPartitionReassignmentsTopics] | None = None
