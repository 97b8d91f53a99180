"""Which versions of which APIs a broker and this client have in common.

Each new connection asks anew, so a broker that was upgraded in place is noticed with its first one. The question itself
has versions, and the client begins with version 4: a broker that does not know it answers UNSUPPORTED_VERSION, in
version 0 and, since Kafka 2.4, with the range that it does know (KIP-511). (Source: NetworkClient.java,
handleApiVersionsResponse.)
"""

import re
from collections.abc import Awaitable, Callable
from typing import Any, Final

from odradek.client.errors.client_errors import ConnectionFailed, UnsupportedVersion, broker_error
from odradek.protocol.codec.schema import Request
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

__all__ = ["SOFTWARE_NAME", "SOFTWARE_VERSION", "Versions", "negotiate"]

SOFTWARE_NAME: Final = "odradek"
SOFTWARE_VERSION: Final = "0.1.0"
"""How this client introduces itself; brokers count clients by these."""
SOFTWARE_PATTERN: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
"""What Kafka accepts as either, or it answers INVALID_REQUEST (ApiVersionsRequest.java)."""
assert SOFTWARE_PATTERN.fullmatch(SOFTWARE_NAME)
assert SOFTWARE_PATTERN.fullmatch(SOFTWARE_VERSION)

FIRST_ASKED: Final = 4
"""The next version names cluster and node; a broker before Kafka 4.4 would cost each connection a round trip by it."""

Ask = Callable[[ApiVersionsRequest, int], Awaitable[ApiVersionsResponse]]


class Versions:
    """The broker's ranges."""

    __slots__ = ("_levels", "_ranges", "broker")

    def __init__(self, broker: str, answer: ApiVersionsResponse) -> None:
        self.broker = broker
        self._ranges = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
        self._levels: dict[str, int] = {}
        if answer.finalized_features_epoch >= 0:  # before, the broker does not know (ApiVersionsResponse.json)
            self._levels = {each.name: each.max_version_level for each in answer.finalized_features}

    def version_of(self, request: type[Request[Any]], at_most: int | None = None) -> int:
        """The highest version that both have, `at_most` this one. Raises UnsupportedVersion where there is none."""
        highest = request.max_version if at_most is None else min(at_most, request.max_version)
        theirs = self._ranges.get(request.api_key)
        if theirs is not None:
            version = min(highest, theirs[1])
            if version >= request.min_version and version >= theirs[0]:
                return version
        raise UnsupportedVersion(
            request.__name__.removesuffix("Request"), self.broker, (request.min_version, highest), theirs
        )

    def level_of(self, feature: str) -> int:
        """The level that the cluster relied on when the broker was asked (KIP-584); 0: none."""
        return self._levels.get(feature, 0)

    def offers(self, request: type[Request[Any]]) -> bool:
        """Whether the broker knows the API at all."""
        return request.api_key in self._ranges


async def negotiate(ask: Ask, broker: str) -> Versions:
    """Asks for the broker's ranges, again by a lower version if it does not know this one. Raises ConnectionFailed."""
    version = FIRST_ASKED
    request = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=SOFTWARE_VERSION)
    while True:
        answer = await ask(request, version)
        if not answer.error_code:
            return Versions(broker, answer)
        if answer.error_code != int(ErrorCode.UNSUPPORTED_VERSION) or version == 0:
            error = broker_error(answer.error_code, what="ApiVersions")
            raise ConnectionFailed(broker, error.message) from error
        version = _offered(answer, below=version)


def _offered(answer: ApiVersionsResponse, below: int) -> int:
    """The version to try next: the newest that the broker offers, 0 where it offers none. Always a lower one."""
    for each in answer.api_keys:
        if each.api_key == ApiVersionsRequest.api_key and 0 <= each.max_version < below:
            return each.max_version
    return 0
