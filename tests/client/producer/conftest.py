"""What tests of transactions on our own broker share."""

import pytest

from odradek.broker.cluster.features import OF_CLIENTS, TRANSACTION_VERSION


@pytest.fixture(params=["v1", "v2"])
def version(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The transaction version that the broker tells of."""
    if request.param == "v1":
        told = tuple(each for each in OF_CLIENTS if each != TRANSACTION_VERSION)
        monkeypatch.setattr("odradek.broker.handling.releases.OF_CLIENTS", told)
    return str(request.param)
