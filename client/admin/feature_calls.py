"""The calls of Admin about the features of a cluster (KIP-584)."""

from collections.abc import Mapping

from odradek.client.admin.base import AdminBase
from odradek.client.admin.features import (
    TOLD_SINCE,
    UPGRADE_TYPES_SINCE,
    Feature,
    FeatureChange,
    describe_features_request,
    described_features,
    update_features_request,
    updated_features,
)
from odradek.client.arguments import require_kind
from odradek.client.cluster.cluster import CONTROLLER
from odradek.client.errors.base import ClientError

__all__ = ["FeatureCalls"]


class FeatureCalls(AdminBase):
    """See `odradek.client.admin.admin`."""

    async def describe_features(
        self, *, node_id: int | None = None, timeout_ms: float | None = None
    ) -> dict[str, Feature]:
        """The features of a broker, or of any (`node_id`), by name, with the levels that all of the cluster rely on.

        Raises UnsupportedVersion before Kafka 2.4.
        """
        deadline = self._deadline(timeout_ms)

        async def once() -> dict[str, Feature]:
            request = describe_features_request()
            return described_features(await self._calls.ask(request, deadline, node=node_id, at_least=TOLD_SINCE))

        return await self._calls.until("ApiVersions", once, deadline)

    async def update_features(
        self,
        levels: Mapping[str, int],
        change: FeatureChange = FeatureChange.UPGRADE,
        *,
        validate_only: bool = False,
        timeout_ms: float | None = None,
    ) -> None:
        """Has the cluster finalize these levels, by name; 0: none any more.

        Raises BrokerError, or ItemsFailed where the broker tells of each, with INVALID_UPDATE_VERSION,
        FEATURE_UPDATE_FAILED and others; UnsupportedVersion before Kafka 3.3.
        """
        require_kind("levels", levels, Mapping, "a mapping of names to levels")
        wanted = dict(levels)
        deadline = self._deadline(timeout_ms)

        async def attempt(names: list[str]) -> Mapping[str, ClientError | None]:
            some = {name: wanted[name] for name in names}
            request = update_features_request(some, change, self._timeout_ms(deadline), validate_only=validate_only)
            response = await self._calls.ask(request, deadline, node=CONTROLLER, at_least=UPGRADE_TYPES_SINCE)
            return updated_features(response, some)

        await self._calls.complete("UpdateFeatures", wanted, attempt, deadline)
