"""ListConfigResources (key 74): the names of what has configurations of its own.

Resource types are those of DescribeConfigs, such as 16 client metrics and 32 group.

v0: client metrics alone, as ListClientMetricsResources (KIP-1000), flexible
v1: resource_types, of which none means all; resource_type (KIP-1142)
"""

from odradek.protocol.codec.schema import Request, Response, Struct, field, i8, i16, i32, message, struct


@struct
class ConfigResource(Struct):
    resource_name: str
    resource_type: i8 = field(since=1, default=16)


@message(key=74, versions=(0, 1), flexible=0)
class ListConfigResourcesResponse(Response):
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    config_resources: list[ConfigResource] = field(default_factory=list[ConfigResource])


@message(key=74, versions=(0, 1), flexible=0)
class ListConfigResourcesRequest(Request[ListConfigResourcesResponse]):
    resource_types: list[i8] = field(since=1, default_factory=list[i8])
