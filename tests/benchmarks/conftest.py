"""A cluster of Odradek for the tests of what is measured on one: started when the first of them asks for it."""

from collections.abc import Iterator

import pytest

from benchmarks.harness.cluster_servers import Cluster, running_odradek_cluster


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three brokers and etcd. Each test has topics of its own, and leaves all brokers running."""
    with running_odradek_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster
