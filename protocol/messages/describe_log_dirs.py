"""DescribeLogDirs (key 35): the sizes of the logs in each log directory.

v1: the broker answers before it throttles (KIP-219)
v2: flexible (KIP-482)
v3: error_code of the whole (KIP-784)
v4: total_bytes and usable_bytes of the volume (KIP-827)
v5: is_cordoned (KIP-1066)
"""

from odradek.protocol.codec.schema import Request, Response, Struct, field, i16, i32, i64, message, struct


@struct
class DescribeLogDirsPartition(Struct):
    partition_index: i32
    partition_size: i64
    offset_lag: i64
    is_future_key: bool


@struct
class DescribeLogDirsTopic(Struct):
    name: str
    partitions: list[DescribeLogDirsPartition]


@struct
class DescribeLogDirsResult(Struct):
    error_code: i16 = 0
    log_dir: str
    topics: list[DescribeLogDirsTopic]
    total_bytes: i64 = field(since=4, default=-1)
    usable_bytes: i64 = field(since=4, default=-1)
    is_cordoned: bool = field(since=5, default=False)


@message(key=35, versions=(1, 5), flexible=2)
class DescribeLogDirsResponse(Response):
    throttle_time_ms: i32 = 0
    error_code: i16 = field(since=3, default=0)
    results: list[DescribeLogDirsResult]


@struct
class DescribableLogDirTopic(Struct):
    topic: str
    partitions: list[i32]


@message(key=35, versions=(1, 5), flexible=2)
class DescribeLogDirsRequest(Request[DescribeLogDirsResponse]):
    topics: list[DescribableLogDirTopic] | None
