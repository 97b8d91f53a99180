"""Admin's calls about features, against our own broker."""

import pytest

from odradek.client.admin.admin import Admin
from odradek.client.admin.features import Feature, FeatureChange
from odradek.client.errors.client_errors import BrokerError
from odradek.protocol.errors import ErrorCode
from tests.broker.wire import running_broker


async def test_features_are_described_and_what_is_finalized_is_not_taken_back() -> None:
    async with running_broker() as broker:
        endpoint = next(iter(broker.bound.values()))
        async with Admin(f"{endpoint.host}:{endpoint.port}", default_api_timeout_ms=10_000) as admin:
            for node_id in (None, 0):
                found = await admin.describe_features(node_id=node_id)
                assert found == {
                    "group.version": Feature("group.version", 0, 1, 1),
                    "transaction.version": Feature("transaction.version", 0, 2, 2),
                }
            await admin.update_features({"group.version": 1})
            for levels, change, code in (
                ({"group.version": 0}, FeatureChange.UNSAFE_DOWNGRADE, ErrorCode.FEATURE_UPDATE_FAILED),
                ({"group.version": 2}, FeatureChange.UPGRADE, ErrorCode.INVALID_UPDATE_VERSION),
            ):
                with pytest.raises(BrokerError, match=r"group\.version") as caught:
                    await admin.update_features(levels, change, validate_only=True)
                assert caught.value.code is code
