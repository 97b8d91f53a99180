"""A coordinator of a real cluster is killed, somebody else coordinates, and what was acknowledged is committed."""

import pytest

from benchmarks.groups.committer import Committer
from benchmarks.groups.coordinator_failover import kills_at
from benchmarks.harness.cluster_servers import Cluster
from benchmarks.harness.readback import LogDiffers
from benchmarks.harness.replicated_topics import DURABLE, replicated_topic


@pytest.mark.slow
def test_a_coordinator_is_replaced_and_comes_back(cluster: Cluster) -> None:
    said: list[str] = []
    seconds = kills_at(cluster, "coordinated", 1, said.append)
    assert 0 < seconds.values[0] < 30
    assert said[0].startswith("coordinator 1/1 Odradek")


def test_an_offset_that_is_not_there_is_told(cluster: Cluster) -> None:
    with (
        replicated_topic(cluster, "compared", len(cluster.members), DURABLE),
        Committer("compared", "comparing") as committer,
    ):
        committer.commit(cluster.members)
        committer.compare(cluster.members)
        committer.offset += 1
        with pytest.raises(LogDiffers, match="1 committed, and 2"):
            committer.compare(cluster.members)
