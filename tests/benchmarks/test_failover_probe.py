"""A probe writes to whoever leads, knows what was acknowledged, and does not rest with less."""

import pytest

from benchmarks.failover_probe import Acknowledged, Probe, values_in
from benchmarks.harness.cluster_servers import Cluster
from benchmarks.harness.readback import LogDiffers
from benchmarks.harness.replicated_topics import replicated_topic


def test_what_was_acknowledged_is_found_again(cluster: Cluster) -> None:
    with replicated_topic(cluster, "probed", 3) as leaders, Probe("probed") as probe:
        for partition in (0, 1, 2, 1):
            probe.put(cluster.members, partition)
        assert [(each.partition, each.offset) for each in probe.acknowledged] == [(0, 0), (1, 0), (2, 0), (1, 1)]
        assert len({each.value for each in probe.acknowledged}) == 4
        probe.compare(cluster.members, 3)
        with cluster.members[leaders[1]].wire() as wire:
            assert values_in(wire, "probed", 1) == {0: b"attempt 2", 1: b"attempt 4"}


@pytest.mark.parametrize("told", [Acknowledged(0, 1, b"attempt 2"), Acknowledged(0, 0, b"another")])
def test_what_is_lost_or_another_is_noticed(cluster: Cluster, told: Acknowledged) -> None:
    with replicated_topic(cluster, "lost", 3), Probe("lost") as probe:
        probe.put(cluster.members, 0)
        probe.acknowledged.append(told)
        with pytest.raises(LogDiffers, match="was acknowledged"):
            probe.compare(cluster.members, 3)


def test_a_leader_that_must_not_be_asked_is_waited_out(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.harness.member_wires.TIMEOUT_S", 0.2)
    with replicated_topic(cluster, "waits", 3) as leaders, Probe("waits") as probe:
        others = {node_id: member for node_id, member in cluster.members.items() if node_id != leaders[0]}
        probe.connect(others)
        with pytest.raises(TimeoutError, match="waits-0 acknowledges nothing"):
            probe.put(others, 0)
