"""Features of a cluster as Admin returns them, and the requests that read and change them (KIP-584, KIP-778). Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from odradek.client.errors.base import ClientError
from odradek.client.errors.client_errors import broker_error
from odradek.client.network.negotiation import SOFTWARE_NAME, SOFTWARE_VERSION
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse

__all__ = ["Feature", "FeatureChange"]

TOLD_SINCE: Final = 3
"""The version of ApiVersions that tells of features."""
UPGRADE_TYPES_SINCE: Final = 1
"""The version of UpdateFeatures that knows kinds of changes, and checks without changing (KIP-778)."""


class FeatureChange(IntEnum):
    """What may be done to levels (FeatureUpdate.UpgradeType)."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    """To a lower level, if no metadata is lost by that."""
    UNSAFE_DOWNGRADE = 3
    """To a lower level, whatever is lost."""


@dataclass(frozen=True, slots=True)
class Feature:
    """What the broker that was asked can do, and what all brokers of the cluster rely on.

    `finalized` is the level that they rely on; 0: they do not. `supported_max` is 0 for a feature that others have
    finalized and this broker does not tell of.
    """

    name: str
    supported_min: int
    supported_max: int
    finalized: int


def describe_features_request() -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=SOFTWARE_VERSION)


def described_features(response: ApiVersionsResponse) -> dict[str, Feature]:
    """By name, in order. Raises BrokerError."""
    if response.error_code:
        raise broker_error(response.error_code, "", "the features of a broker")
    supported = {each.name: (each.min_version, each.max_version) for each in response.supported_features}
    finalized = {each.name: each.max_version_level for each in response.finalized_features}
    return {
        name: Feature(name, *supported.get(name, (0, 0)), finalized.get(name, 0))
        for name in sorted(supported.keys() | finalized.keys())
    }


def update_features_request(
    levels: Mapping[str, int], change: FeatureChange, timeout_ms: int, *, validate_only: bool
) -> UpdateFeaturesRequest:
    return UpdateFeaturesRequest(
        timeout_ms=timeout_ms,
        feature_updates=[
            FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=change)
            for name, level in levels.items()
        ],
        validate_only=validate_only,
    )


def updated_features(response: UpdateFeaturesResponse, names: Mapping[str, int]) -> dict[str, ClientError | None]:
    """The error of each. Since version 2 there is one for all of them, raised as it is. Raises BrokerError."""
    if response.error_code:
        raise broker_error(response.error_code, response.error_message, f"an update of {', '.join(names)}")
    outcomes: dict[str, ClientError | None] = dict.fromkeys(names)
    for result in response.results:
        if result.error_code:
            outcomes[result.feature] = broker_error(result.error_code, result.error_message, result.feature)
    return outcomes
