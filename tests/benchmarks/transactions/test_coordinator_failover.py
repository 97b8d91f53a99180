"""A coordinator of a real cluster is killed, an id commits again, and what it has committed is there."""

import pytest

from benchmarks.harness.cluster_servers import Cluster
from benchmarks.transactions.coordinator_failover import BAR, kills_at


@pytest.mark.slow
def test_an_id_commits_again_after_its_coordinator_was_killed(cluster: Cluster) -> None:
    said: list[str] = []
    seconds = kills_at(cluster, "transacted", 1, said.append)
    assert 0 < seconds.values[0] < 30
    assert said[0].startswith("coordinator 1/1 Odradek")
    assert str(BAR) == "≤ 1"
