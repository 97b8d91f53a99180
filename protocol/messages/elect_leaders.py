"""ElectLeaders (key 43): gives partitions their preferred leader, or an unclean one.

v0: the preferred leader (KIP-183)
v1: election_type, error_code of the whole (KIP-460)
v2: flexible (KIP-482)
"""

from odradek.protocol.codec.schema import Request, Response, Struct, field, i8, i16, i32, message, struct


@struct
class PartitionResult(Struct):
    partition_id: i32
    error_code: i16 = 0
    error_message: str | None = None


@struct
class ReplicaElectionResult(Struct):
    topic: str
    partition_result: list[PartitionResult]


@message(key=43, versions=(0, 2), flexible=2)
class ElectLeadersResponse(Response):
    throttle_time_ms: i32 = 0
    error_code: i16 = field(since=1, default=0)
    replica_election_results: list[ReplicaElectionResult]


@struct
class TopicPartitions(Struct):
    topic: str
    partitions: list[i32]


@message(key=43, versions=(0, 2), flexible=2)
class ElectLeadersRequest(Request[ElectLeadersResponse]):
    election_type: i8 = field(since=1, default=0)
    topic_partitions: list[TopicPartitions] | None
    timeout_ms: i32 = 60000
