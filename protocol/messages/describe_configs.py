"""DescribeConfigs (key 32): the configuration of topics and brokers.

v1: config_source and synonyms (KIP-226)
v2: the broker answers before it throttles (KIP-219)
v3: config_type and documentation (KIP-569)
v4: flexible (KIP-482)
"""

from odradek.protocol.codec.schema import Request, Response, Struct, field, i8, i16, i32, message, struct


@struct
class DescribeConfigsSynonym(Struct):
    name: str
    value: str | None = field(is_sensitive=True)
    source: i8


@struct
class DescribeConfigsResourceResult(Struct):
    name: str
    value: str | None = field(is_sensitive=True)
    read_only: bool
    config_source: i8 = -1
    is_sensitive: bool
    synonyms: list[DescribeConfigsSynonym]
    config_type: i8 = field(since=3, default=0)
    documentation: str | None = field(since=3, default=None)


@struct
class DescribeConfigsResult(Struct):
    error_code: i16 = 0
    error_message: str | None = None
    resource_type: i8
    resource_name: str
    configs: list[DescribeConfigsResourceResult]


@message(key=32, versions=(1, 4), flexible=4)
class DescribeConfigsResponse(Response):
    throttle_time_ms: i32 = 0
    results: list[DescribeConfigsResult]


@struct
class DescribeConfigsResource(Struct):
    resource_type: i8
    resource_name: str
    configuration_keys: list[str] | None


@message(key=32, versions=(1, 4), flexible=4)
class DescribeConfigsRequest(Request[DescribeConfigsResponse]):
    resources: list[DescribeConfigsResource]
    include_synonyms: bool = False
    include_documentation: bool = field(since=3, default=False)
