"""ApiVersions (key 18): which APIs are served, in which versions; for most clients the first request of a connection.

The answer follows from `SERVED`, in order of the keys. Clients infer the broker's version from the ranges (kafka-python
reads Kafka 4.3), so they change together or not at all; with `act.as` they are those of an earlier release, whose
features alone are told then (handling/releases.py). Of the features (cluster/features.py) those are told that Kafka
has, too; they are finalized by themselves. A version of this API that we do not know is answered by dispatch (KIP-511).

A client that takes this broker for another one, or for one of another cluster, is told REBOOTSTRAP_REQUIRED (KIP-1242):
an address may have been given to another broker since.

Versions: 3 flexible, client software name and version (KIP-511), features (KIP-584). 4 a feature's minimum may be 0.
5 the cluster and the node that are meant, as in Kafka 4.4.
"""

import re

from odradek.broker.cluster.features import SUPPORTED
from odradek.broker.handling.context import Call, Context
from odradek.broker.handling.releases import features_of
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

SOFTWARE_SINCE = 3
MEANT_SINCE = 5
NO_NODE = -1
MINIMUM_ZERO_SINCE = 4
"""Before, a client takes a feature whose minimum is 0 for a mistake (KAFKA-17011)."""
SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
"""ApiVersionsRequest.java: both the name and the version must look like this."""


async def handle(context: Context, call: Call, request: ApiVersionsRequest) -> ApiVersionsResponse:
    if call.version >= SOFTWARE_SINCE:
        name, version = request.client_software_name, request.client_software_version
        if not SOFTWARE.fullmatch(name) or not SOFTWARE.fullmatch(version):
            raise KafkaError(ErrorCode.INVALID_REQUEST, "client software name and version must match KIP-511's pattern")
        call.caller.software = f"{name} {version}"
    if call.version >= MEANT_SINCE:
        _require_meant(context, request)
    image = context.metadata.image
    features = features_of(context.config.act_as)
    finalized = [(name, level) for name in features if (level := image.features.get(name, 0))]
    return ApiVersionsResponse(
        supported_features=[
            SupportedFeatureKey(name=name, min_version=0, max_version=SUPPORTED[name])
            for name in features
            if call.version >= MINIMUM_ZERO_SINCE
        ],
        finalized_features_epoch=image.features_revision if finalized else -1,
        finalized_features=[
            FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
            for name, level in finalized
        ],
        api_keys=[
            ApiVersion(api_key=key, min_version=api.advertised[0], max_version=api.advertised[1])
            for key, api in sorted(context.served.items())
            if api.is_advertised
        ],
    )


def _require_meant(context: Context, request: ApiVersionsRequest) -> None:
    """Raises KafkaError: REBOOTSTRAP_REQUIRED, INVALID_REQUEST where only one of the two is given."""
    own = context.identity
    if (request.cluster_id is None) != (request.node_id == NO_NODE):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "cluster id and node id must be given together")
    if request.cluster_id is not None and (request.cluster_id, request.node_id) != (own.cluster_id, own.node_id):
        raise KafkaError(
            ErrorCode.REBOOTSTRAP_REQUIRED,
            f"this is broker {own.node_id} of cluster {own.cluster_id}, not {request.node_id} of {request.cluster_id}",
        )


def fail(request: ApiVersionsRequest, code: ErrorCode) -> ApiVersionsResponse:
    del request
    return ApiVersionsResponse(error_code=code, api_keys=[])
