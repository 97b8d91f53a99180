"""ApiVersions (key 18): which APIs the broker serves, at which versions, and its features.

Its responses have the header of version 0 always, and a broker that does not know the version of the request answers
version 0 with UNSUPPORTED_VERSION and the range of this key (KIP-511).

v0: the APIs (KIP-35)
v1: throttle_time_ms (KIP-124)
v2: the broker answers before it throttles (KIP-219)
v3: flexible (KIP-482); name and version of the client (KIP-511); features (KIP-584), zk_migration_ready (KIP-866)
v4: a supported feature may have the min_version 0 (KAFKA-17011)
v5: cluster_id and node_id, which the client takes the broker for; REBOOTSTRAP_REQUIRED may be answered (KIP-1242)
"""

from odradek.protocol.codec.schema import Request, Response, Struct, field, i16, i32, i64, message, struct


@struct
class ApiVersion(Struct):
    api_key: i16
    min_version: i16
    max_version: i16


@struct
class SupportedFeatureKey(Struct):
    name: str
    min_version: i16
    max_version: i16


@struct
class FinalizedFeatureKey(Struct):
    name: str
    max_version_level: i16
    min_version_level: i16


@message(key=18, versions=(0, 5), flexible=3)
class ApiVersionsResponse(Response):
    error_code: i16 = 0
    api_keys: list[ApiVersion]
    throttle_time_ms: i32 = field(since=1, default=0)
    supported_features: list[SupportedFeatureKey] = field(since=3, tag=0, default_factory=list[SupportedFeatureKey])
    finalized_features_epoch: i64 = field(since=3, tag=1, default=-1)
    finalized_features: list[FinalizedFeatureKey] = field(since=3, tag=2, default_factory=list[FinalizedFeatureKey])
    zk_migration_ready: bool = field(since=3, tag=3, default=False)


@message(key=18, versions=(0, 5), flexible=3)
class ApiVersionsRequest(Request[ApiVersionsResponse]):
    client_software_name: str = field(since=3, default="")
    client_software_version: str = field(since=3, default="")
    cluster_id: str | None = field(since=5, default=None)
    node_id: i32 = field(since=5, default=-1)
