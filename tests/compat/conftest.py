"""Brokers for the clients' tests, how many records each client sends (`COMPAT_RECORDS`), and which tests run
(`COMPAT_PART`: all, or what is `telling`)."""

import os
from collections.abc import Generator

import pytest

from tests.compat.clusters import KEEPS_OLD_RECORDS, ODRADEK, OURS, THREE_BROKERS, Ours, ours

OPTIONS = {"num.partitions": "2"} | KEEPS_OLD_RECORDS
TELLING = "telling"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where only what is telling is wanted, leaves out what is marked `only_in_compat`, and what runs on three brokers
    and is not marked `telling`."""
    if os.environ.get("COMPAT_PART", "all") != TELLING:
        return
    left_out = [item for item in items if is_left_out(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if not is_left_out(item)]


def is_left_out(item: pytest.Item) -> bool:
    if item.get_closest_marker("only_in_compat") is not None:
        return True
    return item.get_closest_marker("three_brokers") is not None and item.get_closest_marker(TELLING) is None


@pytest.fixture(scope="session")
def record_count() -> int:
    return int(os.environ.get("COMPAT_RECORDS", "10000"))


@pytest.fixture(scope="session")
def one_broker(tmp_path_factory: pytest.TempPathFactory) -> Generator[Ours]:
    """`odradek serve` on a fresh data directory. Tests use topics of their own."""
    with ours(ODRADEK, tmp_path_factory.mktemp("compat"), **OPTIONS) as running:
        yield running


@pytest.fixture(scope="session")
def three_brokers(tmp_path_factory: pytest.TempPathFactory) -> Generator[Ours]:
    """`odradek cluster run`, with three replicas of everything."""
    with ours(THREE_BROKERS, tmp_path_factory.mktemp("compat-three"), **OPTIONS) as running:
        yield running


@pytest.fixture(scope="module", params=OURS)
def broker(request: pytest.FixtureRequest) -> Ours:
    """Each of them in turn; both are kept for the next module."""
    name = {ODRADEK: "one_broker", THREE_BROKERS: "three_brokers"}[request.param]
    running: Ours = request.getfixturevalue(name)
    return running
