"""Kills the processes that a test of the simulator's parts has left, and sees that they say nothing more."""

from collections.abc import Generator

import pytest

from tests.sim.support import Bench


@pytest.fixture(autouse=True)
def benches_are_cleared() -> Generator[None]:
    yield
    while Bench.used:
        Bench.used.pop().clear()
