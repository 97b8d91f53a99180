"""An Odradek for the tests of what is measured of transactions."""

from collections.abc import Iterator

import pytest

from benchmarks.harness.servers import Server, running_odradek


@pytest.fixture(scope="session")
def transaction_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Each test has topics and transactional ids of its own, and leaves it running."""
    with running_odradek(tmp_path_factory.mktemp("transactions")) as server:
        yield server
