"""Two processes of Odradek under a supervisor, for the tests of what is measured on them."""

from collections.abc import Iterator

import pytest

from benchmarks.cores.core_servers import running_processes
from benchmarks.harness.cluster_servers import Cluster


@pytest.fixture(scope="package")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Each test has topics of its own, and leaves both brokers running."""
    with running_processes(tmp_path_factory.mktemp("processes")) as cluster:
        yield cluster
