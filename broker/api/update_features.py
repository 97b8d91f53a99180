"""UpdateFeatures (key 57): the levels of features that all brokers rely on (KIP-584).

The controller finalizes each feature by itself, as soon as all registered brokers have it (cluster/features.py), and
none is taken back: groups may depend on it. So a request for a level that is finalized is done already; a higher one is
refused as long as a broker lacks it, and a lower one always.

Versions: 1 kind of change, validate only (KIP-778). 2 no result for each feature (KIP-1022).
"""

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import CLUSTER
from odradek.broker.cluster.features import OF_CLIENTS, SUPPORTED
from odradek.broker.handling.context import Call, Context
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

NO_RESULTS_SINCE = 2


async def handle(context: Context, call: Call, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    context.access.require(call, Operation.ALTER, CLUSTER)
    response = UpdateFeaturesResponse()
    if not request.feature_updates:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "no feature is named")
    for update in request.feature_updates:
        result = UpdatableFeatureResult(feature=update.feature)
        response.results.append(result)
        try:
            _check(context, update)
        except KafkaError as error:
            result.error_code, result.error_message = call.failed(error), error.message
            if call.version >= NO_RESULTS_SINCE:  # all or nothing, and the first error is the answer's
                return UpdateFeaturesResponse(error_code=error.code, error_message=error.message)
    return response


def _check(context: Context, update: FeatureUpdateKey) -> None:
    """Raises KafkaError: INVALID_UPDATE_VERSION, FEATURE_UPDATE_FAILED."""
    name, wanted = update.feature, update.max_version_level
    finalized = context.metadata.image.features.get(name, 0) if name in OF_CLIENTS else 0
    if name not in OF_CLIENTS or not 0 <= wanted <= SUPPORTED[name]:
        supported = f"0 to {SUPPORTED[name]} are supported" if name in OF_CLIENTS else "there is no such feature"
        raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION, f"feature {name} cannot have level {wanted}: {supported}")
    if wanted < finalized:
        raise KafkaError(
            ErrorCode.FEATURE_UPDATE_FAILED, f"feature {name} is finalized at {finalized}, and is not taken back"
        )
    if wanted > finalized:
        raise KafkaError(
            ErrorCode.FEATURE_UPDATE_FAILED,
            f"feature {name} is finalized by itself when every registered broker has it: upgrade or unregister those "
            "that have not",
        )


def fail(request: UpdateFeaturesRequest, code: ErrorCode) -> UpdateFeaturesResponse:
    del request
    return UpdateFeaturesResponse(error_code=code, error_message=code.text)
