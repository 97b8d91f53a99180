"""CreateTopics (key 19): creates topics.

v2: throttle_time_ms (KIP-124)
v3: the broker answers before it throttles (KIP-219)
v4: -1 as num_partitions or replication_factor takes the default of the broker (KIP-464)
v5: flexible (KIP-482); partitions, replication factor and configs in the response (KIP-525)
v6: THROTTLING_QUOTA_EXCEEDED may be answered (KIP-599)
v7: topic_id (KIP-516)
"""

from odradek.protocol.codec.schema import (
    ZERO_UUID,
    Request,
    Response,
    Struct,
    field,
    i8,
    i16,
    i32,
    message,
    struct,
    uuid,
)


@struct
class CreatableTopicConfigs(Struct):
    name: str
    value: str | None = field(is_sensitive=True)
    read_only: bool
    config_source: i8 = -1
    is_sensitive: bool


@struct
class CreatableTopicResult(Struct):
    name: str
    topic_id: uuid = field(since=7, default=ZERO_UUID)
    error_code: i16 = 0
    error_message: str | None = None
    topic_config_error_code: i16 = field(since=5, tag=0, default=0)
    num_partitions: i32 = field(since=5, default=-1)
    replication_factor: i16 = field(since=5, default=-1)
    configs: list[CreatableTopicConfigs] | None = field(since=5, default=None)


@message(key=19, versions=(2, 7), flexible=5)
class CreateTopicsResponse(Response):
    throttle_time_ms: i32 = 0
    topics: list[CreatableTopicResult]


@struct
class CreatableReplicaAssignment(Struct):
    partition_index: i32
    broker_ids: list[i32]


@struct
class CreatableTopicConfig(Struct):
    name: str
    value: str | None = field(is_sensitive=True)


@struct
class CreatableTopic(Struct):
    name: str
    num_partitions: i32
    replication_factor: i16
    assignments: list[CreatableReplicaAssignment]
    configs: list[CreatableTopicConfig]


@message(key=19, versions=(2, 7), flexible=5)
class CreateTopicsRequest(Request[CreateTopicsResponse]):
    topics: list[CreatableTopic]
    timeout_ms: i32 = 60000
    validate_only: bool = False
