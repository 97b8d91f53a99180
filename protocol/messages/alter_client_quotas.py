"""AlterClientQuotas (key 49): sets and removes quotas of users, client ids and addresses (KIP-546).

Each entry is done or refused by itself.

v0: the API
v1: flexible (KIP-482)
"""

from odradek.protocol.codec.schema import Request, Response, Struct, f64, i16, i32, message, struct


@struct
class EntityData(Struct):
    entity_type: str
    entity_name: str | None
    """None: the default of the type."""


@struct
class EntryResponse(Struct):
    error_code: i16 = 0
    error_message: str | None = None
    entity: list[EntityData]


@message(key=49, versions=(0, 1), flexible=1)
class AlterClientQuotasResponse(Response):
    throttle_time_ms: i32 = 0
    entries: list[EntryResponse]


@struct
class OpData(Struct):
    key: str
    value: f64
    remove: bool


@struct
class EntryData(Struct):
    entity: list[EntityData]
    ops: list[OpData]


@message(key=49, versions=(0, 1), flexible=1)
class AlterClientQuotasRequest(Request[AlterClientQuotasResponse]):
    entries: list[EntryData]
    validate_only: bool
