"""Leaders of a real cluster are killed and stopped, somebody else leads, and what was acknowledged is there."""

import signal

import pytest

from benchmarks.failover import (
    CONTROLLER_KILLED,
    EQUAL_TIMEOUTS,
    KILLED,
    STOPPED,
    Strike,
    chosen,
    longest,
    strikes_at,
)
from benchmarks.figures.figures import Summary
from benchmarks.harness.cluster_servers import Cluster
from benchmarks.harness.replicated_topics import controller_of
from odradek.broker.config.broker_config import BrokerConfig
from processes.kafka_nodes import NODE_IDS


def test_strikes_are_the_issues() -> None:
    assert [each.signal for each in (KILLED, CONTROLLER_KILLED, STOPPED)] == [
        signal.SIGKILL,
        signal.SIGKILL,
        signal.SIGSTOP,
    ]
    assert [KILLED.wants_controller(number) for number in range(3)] == [False, False, False]
    assert [CONTROLLER_KILLED.wants_controller(number) for number in range(3)] == [True, True, True]
    assert [STOPPED.wants_controller(number) for number in range(3)] == [True, False, True]


def test_equal_timeouts_are_ours() -> None:
    ours = BrokerConfig({})
    assert EQUAL_TIMEOUTS["broker.session.timeout.ms"] == str(ours.broker_session_timeout_ms)
    assert EQUAL_TIMEOUTS["broker.heartbeat.interval.ms"] == str(ours.broker_heartbeat_interval_ms)
    assert len(EQUAL_TIMEOUTS) == 2


def test_the_longest_is_a_figure_of_its_own() -> None:
    assert longest(Summary((1.0, 3.0, 2.0))).values == (3.0,)


def test_victims_are_the_controller_or_the_others_in_turn(cluster: Cluster) -> None:
    controller = controller_of(cluster)
    assert chosen(cluster, True, 0) is controller
    others = [chosen(cluster, False, number).node_id for number in range(4)]
    assert set(others) == set(NODE_IDS) - {controller.node_id}
    assert others[:2] == others[2:]


@pytest.mark.slow
@pytest.mark.parametrize("strike", [KILLED, CONTROLLER_KILLED, STOPPED], ids=lambda each: str(each.name))
def test_a_leader_is_replaced_and_comes_back(cluster: Cluster, strike: Strike) -> None:
    said: list[str] = []
    seconds = strikes_at(cluster, strike.name, strike, 1, said.append)
    assert 0 < seconds.values[0] < 30
    assert f"{strike.name} 1/1 Odradek" in said[0]
    if strike is STOPPED:
        assert seconds.values[0] > 0.5, "nobody hears that a process stands still"
    for member in cluster.members.values():
        assert list(member.data_dir.glob(f"{strike.name}-*")) == []
