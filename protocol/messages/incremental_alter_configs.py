"""IncrementalAlterConfigs (key 44): changes single options of topics and brokers.

config_operation: 0 set, 1 delete, 2 append, 3 subtract.

v0: the API (KIP-339)
v1: flexible (KIP-482)
"""

from odradek.protocol.codec.schema import Request, Response, Struct, field, i8, i16, i32, message, struct


@struct
class AlterConfigsResourceResponse(Struct):
    error_code: i16 = 0
    error_message: str | None = None
    resource_type: i8
    resource_name: str


@message(key=44, versions=(0, 1), flexible=1)
class IncrementalAlterConfigsResponse(Response):
    throttle_time_ms: i32 = 0
    responses: list[AlterConfigsResourceResponse]


@struct
class AlterableConfig(Struct):
    name: str
    config_operation: i8
    value: str | None = field(is_sensitive=True)


@struct
class AlterConfigsResource(Struct):
    resource_type: i8
    resource_name: str
    configs: list[AlterableConfig]


@message(key=44, versions=(0, 1), flexible=1)
class IncrementalAlterConfigsRequest(Request[IncrementalAlterConfigsResponse]):
    resources: list[AlterConfigsResource]
    validate_only: bool
