"""ApiVersions (key 18): which APIs are served, in which versions; for most clients the first request of a connection.

The answer follows from `SERVED`, in order of the keys. Clients infer the broker's version from the ranges (kafka-python
reads Kafka 3.9), so they change together or not at all. There are no features: none is listed, and the epoch is -1. A
version of this API that we do not know is answered by dispatch (KIP-511).

Versions: 3 flexible, client software name and version (KIP-511), features (KIP-584). 4 a feature's minimum may be 0.
"""

import re

from odradek.broker.handling.context import Call, Context
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse

SOFTWARE_SINCE = 3
SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
"""ApiVersionsRequest.java: both the name and the version must look like this."""


async def handle(context: Context, call: Call, request: ApiVersionsRequest) -> ApiVersionsResponse:
    if call.version >= SOFTWARE_SINCE:
        name, version = request.client_software_name, request.client_software_version
        if not SOFTWARE.fullmatch(name) or not SOFTWARE.fullmatch(version):
            raise KafkaError(ErrorCode.INVALID_REQUEST, "client software name and version must match KIP-511's pattern")
        call.caller.software = f"{name} {version}"
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=key, min_version=api.advertised[0], max_version=api.advertised[1])
            for key, api in sorted(context.served.items())
            if api.is_advertised
        ]
    )


def fail(request: ApiVersionsRequest, code: ErrorCode) -> ApiVersionsResponse:
    del request
    return ApiVersionsResponse(error_code=code, api_keys=[])
