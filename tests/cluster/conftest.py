"""Rounds that take minutes are begun first (`tests/cluster/spread.py`)."""

import os

import pytest

from tests.cluster.rounds import IS_SHORT
from tests.cluster.spread import spread


@pytest.hookimpl(trylast=True)  # the order is random by then, and who is not asked for is gone
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not IS_SHORT:
        minutes = [item for item in items if item.get_closest_marker("minutes") is not None]
        others = [item for item in items if item.get_closest_marker("minutes") is None]
        items[:] = spread(minutes, others, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))
