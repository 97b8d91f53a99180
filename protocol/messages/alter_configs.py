"""AlterConfigs (key 33): replaces the whole configuration of topics and brokers.

v0: the API (KIP-133)
v1: the broker answers before it throttles (KIP-219)
v2: flexible (KIP-482)
"""

from odradek.protocol.codec.schema import Request, Response, Struct, field, i8, i16, i32, message, struct


@struct
class AlterConfigsResourceResponse(Struct):
    error_code: i16 = 0
    error_message: str | None = None
    resource_type: i8
    resource_name: str


@message(key=33, versions=(0, 2), flexible=2)
class AlterConfigsResponse(Response):
    throttle_time_ms: i32 = 0
    responses: list[AlterConfigsResourceResponse]


@struct
class AlterableConfig(Struct):
    name: str
    value: str | None = field(is_sensitive=True)


@struct
class AlterConfigsResource(Struct):
    resource_type: i8
    resource_name: str
    configs: list[AlterableConfig]


@message(key=33, versions=(0, 2), flexible=2)
class AlterConfigsRequest(Request[AlterConfigsResponse]):
    resources: list[AlterConfigsResource]
    validate_only: bool
