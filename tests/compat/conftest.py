"""Brokers for the clients' tests, how many records each client sends (`COMPAT_RECORDS`), and which tests run
(`COMPAT_PART`: all; what is `telling`, as `make test` does; the `rest`, for whoever has done that; what is telling and
not in the rest, the `first` part for whoever will do that; or what is `foreign`, as `make foreign` does, which takes
minutes a test and belongs to no other part)."""

import os
from collections.abc import Generator

import pytest

from tests.compat.clusters import KEEPS_OLD_RECORDS, ODRADEK, OURS, THREE_BROKERS, Ours, ours
from tests.one_for_spark import WITH_SPARK

OPTIONS = {"num.partitions": "2"} | KEEPS_OLD_RECORDS
ALL, TELLING, FIRST, REST, FOREIGN = "all", "telling", "first", "rest", "foreign"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what is not of the part that is wanted."""
    part = os.environ.get("COMPAT_PART", ALL)
    is_wanted = {item: part in parts_of(item) for item in items}
    config.hook.pytest_deselected(items=[item for item in items if not is_wanted[item]])
    items[:] = [item for item in items if is_wanted[item]]


def parts_of(item: pytest.Item) -> set[str]:
    """Not telling is what is marked `only_in_compat`, what runs on three brokers and is not marked `telling`, and what
    needs Spark, whose JVM computes for over a minute. The rest is that, and what shows more with more records."""
    marked = {mark.name for mark in item.iter_markers()}
    if "only_in_foreign" in marked:
        return {FOREIGN}
    if item.nodeid.partition("::")[0] in WITH_SPARK:
        return {ALL, REST}
    if "only_in_compat" in marked or ("three_brokers" in marked and TELLING not in marked):
        return {ALL, REST}
    counts = isinstance(item, pytest.Function) and "record_count" in item.fixturenames
    return {ALL, TELLING, REST} if counts else {ALL, TELLING, FIRST}


@pytest.fixture(scope="session")
def record_count() -> int:
    return int(os.environ.get("COMPAT_RECORDS", "10000"))


@pytest.fixture(scope="session")
def one_broker(tmp_path_factory: pytest.TempPathFactory) -> Generator[Ours]:
    """One of the test kit's, on a fresh data directory. Tests use topics of their own."""
    with ours(ODRADEK, tmp_path_factory.mktemp("compat"), **OPTIONS) as running:
        yield running


@pytest.fixture(scope="session")
def three_brokers(tmp_path_factory: pytest.TempPathFactory) -> Generator[Ours]:
    """Three of them, with three replicas of everything."""
    with ours(THREE_BROKERS, tmp_path_factory.mktemp("compat-three"), **OPTIONS) as running:
        yield running


@pytest.fixture(scope="module", params=OURS)
def broker(request: pytest.FixtureRequest) -> Ours:
    """Each of them in turn; both are kept for the next module."""
    name = {ODRADEK: "one_broker", THREE_BROKERS: "three_brokers"}[request.param]
    running: Ours = request.getfixturevalue(name)
    return running
