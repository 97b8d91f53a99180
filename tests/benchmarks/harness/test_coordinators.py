"""Names whose coordinator a broker is, of groups and of transactional ids, in a real cluster."""

import signal

import pytest

from benchmarks.harness.cluster_servers import Cluster
from benchmarks.harness.coordinators import KeyType, coordinator_of, name_coordinated_by


@pytest.mark.parametrize("key_type", KeyType)
def test_the_name_that_is_found_is_coordinated_by_that_broker(cluster: Cluster, key_type: KeyType) -> None:
    for member in cluster.members.values():
        name = name_coordinated_by(cluster, member, key_type, "some")
        for other in cluster.members.values():
            with other.wire() as wire:
                assert coordinator_of(wire, name, key_type) == member.node_id


def test_a_broker_that_was_away_coordinates_again(cluster: Cluster) -> None:
    member = cluster.members[2]
    name = name_coordinated_by(cluster, member, KeyType.GROUP, "away")
    member.strike(signal.SIGKILL)
    member.revive()
    assert name_coordinated_by(cluster, member, KeyType.GROUP, "away") == name


def test_who_coordinates_none_of_the_names_is_told(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.harness.coordinators.NAMES_MAX", 0)
    with pytest.raises(LookupError, match="broker 1 coordinates none of 0 names of groups"):
        name_coordinated_by(cluster, cluster.members[1], KeyType.GROUP, "some")
