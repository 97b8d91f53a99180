"""Kills the processes that a test of the simulator's parts has left, and sees that they say nothing more. Leaves whole
histories, which are marked `only_in_sim`, to `make sim` where `SIM_PART` is `telling`, as in `make test`."""

import os
from collections.abc import Generator

import pytest

from tests.sim.support import Bench


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if os.environ.get("SIM_PART") != "telling":
        return
    left = [item for item in items if item.get_closest_marker("only_in_sim") is not None]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item.get_closest_marker("only_in_sim") is None]


@pytest.fixture(autouse=True)
def benches_are_cleared() -> Generator[None]:
    yield
    while Bench.used:
        Bench.used.pop().clear()
