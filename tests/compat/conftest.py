"""One broker for the clients' tests, and how many records each client sends (`COMPAT_RECORDS`)."""

import os
from collections.abc import Generator

import pytest

from tests.odradek_broker import OdradekBroker


@pytest.fixture(scope="session")
def record_count() -> int:
    return int(os.environ.get("COMPAT_RECORDS", "10000"))


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Generator[OdradekBroker]:
    """`odradek serve` on a fresh data directory. Tests use topics of their own."""
    with OdradekBroker(tmp_path_factory.mktemp("compat") / "data", "--set", "num.partitions=2") as running:
        yield running
