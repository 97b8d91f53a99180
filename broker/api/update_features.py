"""UpdateFeatures (key 57): the levels of features that all brokers rely on (KIP-584).

The controller finalizes each feature by itself, as soon as all registered brokers have it (cluster/features.py). So a
request for a level that is finalized is done already, and a higher one is refused as long as a broker lacks it.

`transaction.version` may be lowered, as in Kafka by a request that says that it means to, and raised again. It stays
where it was put; at the highest level that this release can, it is finalized by itself again. A producer hears of it
with its next connection, and ends what it has begun as it has begun it. `group.version` is not taken back: groups
depend on it.

Versions: 1 kind of change, validate only (KIP-778). 2 no result for each feature (KIP-1022).
"""

from itertools import islice
from typing import Final

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import CLUSTER
from odradek.broker.cluster.features import OF_CLIENTS, SETTABLE, SUPPORTED, common_level
from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.keys import FEATURES_KEY, encode_features, node_key
from odradek.broker.cluster.store import CHUNK_SIZE, Txn
from odradek.broker.handling.context import Call, Context
from odradek.broker.handling.metadata_change import MetadataChange
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

NO_RESULTS_SINCE: Final = 2
UPGRADE_TYPES_SINCE: Final = 1
UPGRADE: Final = 1


async def handle(context: Context, call: Call, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    context.require(call, Operation.ALTER, CLUSTER)
    if not request.feature_updates:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "no feature is named")
    image = context.metadata.image
    response, wanted = UpdateFeaturesResponse(), dict[str, int]()
    for update in request.feature_updates:
        result = UpdatableFeatureResult(feature=update.feature)
        response.results.append(result)
        try:
            if _is_change(image, call, update):
                wanted[update.feature] = update.max_version_level
        except KafkaError as error:
            result.error_code, result.error_message = call.failed(error), error.message
            if call.version >= NO_RESULTS_SINCE:  # all or nothing, and the first error is the answer's
                return UpdateFeaturesResponse(error_code=error.code, error_message=error.message)
    if wanted and not request.validate_only:
        txn = _setting(image, wanted)
        await MetadataChange(context, call, request.timeout_ms).apply(lambda: context.metadata.store.commit(txn))
    return response


def _is_change(image: ClusterImage, call: Call, update: FeatureUpdateKey) -> bool:
    """Raises KafkaError: INVALID_UPDATE_VERSION, FEATURE_UPDATE_FAILED."""
    name, wanted = update.feature, update.max_version_level
    finalized = image.features.get(name, 0) if name in OF_CLIENTS else 0
    if name not in OF_CLIENTS or not 0 <= wanted <= SUPPORTED[name]:
        supported = f"0 to {SUPPORTED[name]} are supported" if name in OF_CLIENTS else "there is no such feature"
        raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION, f"feature {name} cannot have level {wanted}: {supported}")
    if wanted < finalized and name not in SETTABLE:
        raise KafkaError(
            ErrorCode.FEATURE_UPDATE_FAILED, f"feature {name} is finalized at {finalized}, and is not taken back"
        )
    means_to_lower = update.allow_downgrade if call.version < UPGRADE_TYPES_SINCE else update.upgrade_type != UPGRADE
    if (wanted < finalized and not means_to_lower) or (wanted > finalized and means_to_lower):
        kind = "a downgrade" if wanted < finalized else "no downgrade"
        raise KafkaError(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"feature {name} is finalized at {finalized}: {wanted} is {kind}, and has to be asked for as that",
        )
    if wanted > finalized and (name not in SETTABLE or wanted > common_level(name, image.registered, image.nodes)):
        raise KafkaError(
            ErrorCode.FEATURE_UPDATE_FAILED,
            f"feature {name} is finalized by itself when every registered broker has it: upgrade or unregister those "
            "that have not",
        )
    return wanted != finalized or image.held_features.get(name, wanted) != wanted


def _setting(image: ClusterImage, wanted: dict[str, int]) -> Txn:
    """Conflicts where a broker has come with fewer features, or another level was set meanwhile."""
    held = {**image.held_features, **wanted}
    held = {name: level for name, level in held.items() if level != SUPPORTED.get(name)}
    nodes = {node_key(broker_id): node.revision for broker_id, node in islice(image.nodes.items(), CHUNK_SIZE)}
    return Txn(
        expect={FEATURES_KEY: image.features_revision, **nodes},
        put={FEATURES_KEY: encode_features({**image.features, **wanted}, held)},
    )


def fail(request: UpdateFeaturesRequest, code: ErrorCode) -> UpdateFeaturesResponse:
    del request
    return UpdateFeaturesResponse(error_code=code, error_message=code.text)
