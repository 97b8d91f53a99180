"""DescribeClientQuotas (key 48): the quotas of users, client ids and addresses that a filter matches (KIP-546).

A component names an entity type (`user`, `client-id`, `ip`) and what of it matches: 0 the name in `match`, 1 the
default, 2 any that is specified. A strict filter leaves out entities that have other types as well.

v0: the API
v1: flexible (KIP-482)
"""

from odradek.protocol.codec.schema import Request, Response, Struct, f64, field, i8, i16, i32, message, struct


@struct
class EntityData(Struct):
    entity_type: str
    entity_name: str | None
    """None: the default of the type."""


@struct
class ValueData(Struct):
    key: str
    value: f64


@struct
class EntryData(Struct):
    entity: list[EntityData]
    values: list[ValueData]


@message(key=48, versions=(0, 1), flexible=1)
class DescribeClientQuotasResponse(Response):
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    entries: list[EntryData] | None = field(default=None)


@struct
class ComponentData(Struct):
    entity_type: str
    match_type: i8
    match: str | None


@message(key=48, versions=(0, 1), flexible=1)
class DescribeClientQuotasRequest(Request[DescribeClientQuotasResponse]):
    components: list[ComponentData]
    strict: bool
