"""Topics with three replicas, made and looked at in a real cluster, led by whom they should be."""

import signal

import pytest

from benchmarks.harness.cluster_servers import Cluster
from benchmarks.harness.replicated_topics import (
    DURABLE,
    PartitionState,
    controller_id,
    controller_of,
    replicated_topic,
    require_full,
    require_spread,
    restore_leaders,
    states_of,
    wait_for,
    wait_until_leading,
)
from benchmarks.load.replies import LoadFailed
from odradek.protocol.errors import KafkaError
from processes.kafka_nodes import NODE_IDS


def test_a_partition_is_full_when_it_is_led_and_all_replicas_are_in_sync() -> None:
    assert PartitionState(1, (1, 2, 3), (3, 2, 1)).is_full
    assert not PartitionState(-1, (1, 2, 3), (1, 2, 3)).is_full
    assert not PartitionState(1, (1, 2, 3), (1, 2)).is_full
    assert PartitionState(1, (1, 2, 3), (1, 2, 3)).is_as_preferred
    assert not PartitionState(2, (1, 2, 3), (1, 2, 3)).is_as_preferred


@pytest.mark.parametrize("leaders", [[1, 2, 3, 1, 2, 3], [1, 2, 3, 1], [2], [1, 3]])
def test_leaders_may_be_spread(leaders: list[int]) -> None:
    require_spread("t", leaders, 3)


@pytest.mark.parametrize("leaders", [[1, 1, 1], [1, 1, 2, 3, 1], [1, 2, 1, 2]])
def test_leaders_that_are_not_spread_are_refused(leaders: list[int]) -> None:
    with pytest.raises(LoadFailed, match="are not spread"):
        require_spread("t", leaders, 3)


def test_a_topic_is_there_on_every_broker_for_a_block_and_gone_after_it(cluster: Cluster) -> None:
    with replicated_topic(cluster, "three-replicas", 6, DURABLE) as leaders:
        assert sorted(leaders) == [1, 1, 2, 2, 3, 3]
        require_full(cluster, "three-replicas")
        for member in cluster.members.values():
            assert len(list(member.data_dir.glob("three-replicas-*"))) == 6
    for member in cluster.members.values():
        assert list(member.data_dir.glob("three-replicas-*")) == []
        with member.wire() as wire, pytest.raises(KafkaError, match="UNKNOWN_TOPIC_OR_PARTITION"):
            states_of(wire, "three-replicas")


def test_a_broker_is_waited_for_that_does_not_know_yet_what_it_leads(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.load.wire.LEADER_TIMEOUT_S", 0.2)
    with replicated_topic(cluster, "led", 3) as leaders:
        wait_until_leading(cluster.members[leaders[1]], "led", [1])
        with pytest.raises(KafkaError, match="NOT_LEADER_OR_FOLLOWER"):
            wait_until_leading(cluster.members[leaders[0]], "led", [1])


def test_all_brokers_agree_who_controls_them(cluster: Cluster) -> None:
    said: set[int] = set()
    for member in cluster.members.values():
        with member.wire() as wire:
            said.add(controller_id(wire))
    assert said == {controller_of(cluster).node_id}
    assert said <= set(NODE_IDS)


def test_a_broker_that_was_away_leads_again_what_it_led(cluster: Cluster) -> None:
    with replicated_topic(cluster, "moved", 3) as leaders:
        member = cluster.members[leaders[0]]
        member.strike(signal.SIGKILL)
        member.process.kill()
        rest = {node_id: each for node_id, each in cluster.members.items() if each is not member}
        survivors = Cluster("Odradek", "1", rest)
        states = wait_for(survivors, "moved", lambda state: state.leader in rest, 3)
        assert states[0].leader != leaders[0]
        with pytest.raises(LoadFailed, match="not fully in sync"):
            require_full(survivors, "moved")
        with pytest.raises(TimeoutError, match=r"after 0\.1 s broker"):
            wait_for(survivors, "moved", lambda state: state.is_full, 3, timeout_s=0.1)
        member.process.start()
        assert [state.leader for state in restore_leaders(cluster, "moved", 3)] == leaders
