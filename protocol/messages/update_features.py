"""UpdateFeatures (key 57): changes the finalized levels of features.

upgrade_type: 1 upgrade, 2 downgrade that loses nothing, 3 downgrade that may lose metadata. A level below 1 removes the
feature.

v0: the API (KIP-584), flexible; allow_downgrade
v1: upgrade_type in its place, validate_only (KIP-778)
v2: no results for each feature in the response (KIP-1022)
"""

from odradek.protocol.codec.schema import Request, Response, Struct, field, i8, i16, i32, message, struct


@struct
class UpdatableFeatureResult(Struct):
    feature: str
    error_code: i16 = 0
    error_message: str | None = None


@message(key=57, versions=(0, 2), flexible=0)
class UpdateFeaturesResponse(Response):
    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: str | None = None
    results: list[UpdatableFeatureResult] = field(until=1, default_factory=list[UpdatableFeatureResult])


@struct
class FeatureUpdateKey(Struct):
    feature: str
    max_version_level: i16
    allow_downgrade: bool = field(until=0, default=False)
    upgrade_type: i8 = field(since=1, default=1)


@message(key=57, versions=(0, 2), flexible=0)
class UpdateFeaturesRequest(Request[UpdateFeaturesResponse]):
    timeout_ms: i32 = 60000
    feature_updates: list[FeatureUpdateKey]
    validate_only: bool = field(since=1, default=False)
