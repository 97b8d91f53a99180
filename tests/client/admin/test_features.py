"""Features: what a broker can do beside what is finalized, and the outcome of an update at each version."""

import pytest

from odradek.client.admin.features import (
    Feature,
    FeatureChange,
    describe_features_request,
    described_features,
    update_features_request,
    updated_features,
)
from odradek.client.errors.client_errors import BrokerError
from odradek.client.network.negotiation import SOFTWARE_PATTERN
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import ApiVersionsResponse, FinalizedFeatureKey, SupportedFeatureKey
from odradek.protocol.messages.update_features import UpdatableFeatureResult, UpdateFeaturesResponse


def test_features_are_in_order_whether_they_are_supported_or_finalized() -> None:
    response = ApiVersionsResponse(
        api_keys=[],
        supported_features=[
            SupportedFeatureKey(name="share.version", min_version=0, max_version=1),
            SupportedFeatureKey(name="group.version", min_version=0, max_version=1),
        ],
        finalized_features=[
            FinalizedFeatureKey(name="group.version", max_version_level=1, min_version_level=1),
            FinalizedFeatureKey(name="metadata.version", max_version_level=27, min_version_level=27),
        ],
    )
    assert list(described_features(response).values()) == [
        Feature("group.version", 0, 1, 1),
        Feature("metadata.version", 0, 0, 27),
        Feature("share.version", 0, 1, 0),
    ]
    with pytest.raises(BrokerError):
        described_features(ApiVersionsResponse(api_keys=[], error_code=ErrorCode.INVALID_REQUEST))


def test_a_request_says_who_asks_as_kafka_demands() -> None:
    request = describe_features_request()
    assert SOFTWARE_PATTERN.fullmatch(request.client_software_name)
    assert SOFTWARE_PATTERN.fullmatch(request.client_software_version)


def test_an_update_says_which_kind_it_is() -> None:
    request = update_features_request({"a": 1, "b": 0}, FeatureChange.SAFE_DOWNGRADE, 5_000, validate_only=True)
    assert [(each.feature, each.max_version_level, each.upgrade_type) for each in request.feature_updates] == [
        ("a", 1, 2),
        ("b", 0, 2),
    ]
    assert (request.timeout_ms, request.validate_only) == (5_000, True)


def test_each_feature_has_its_outcome_or_all_have_one() -> None:
    failed = UpdatableFeatureResult(
        feature="b", error_code=ErrorCode.INVALID_UPDATE_VERSION, error_message="there is none"
    )
    response = UpdateFeaturesResponse(results=[UpdatableFeatureResult(feature="a"), failed])
    outcomes = updated_features(response, {"a": 1, "b": 9})
    assert outcomes["a"] is None
    error = outcomes["b"]
    assert error is not None
    assert (error.code, "there is none" in str(error)) == (ErrorCode.INVALID_UPDATE_VERSION, True)
    assert updated_features(UpdateFeaturesResponse(), {"a": 1}) == {"a": None}
    refused = UpdateFeaturesResponse(error_code=ErrorCode.FEATURE_UPDATE_FAILED, error_message="not taken back")
    with pytest.raises(BrokerError, match="not taken back"):
        updated_features(refused, {"a": 0})
