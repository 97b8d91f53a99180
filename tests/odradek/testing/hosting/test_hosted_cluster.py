"""Brokers in threads: nothing acknowledged is lost by kills, others lead after one, and after a pause; a thread that
keeps the interpreter to itself costs nobody the lead."""

import sys
import threading
import time
from pathlib import Path

import pytest

from odradek.testing import Kafka, cluster
from odradek.testing.broker_state import BrokerState, WrongBrokerState
from odradek.testing.contents import Contents
from odradek.testing.hosting.hosted_cluster import HostedCluster

TOPIC = "orders"


def leader_of(kafka: Kafka) -> int:
    async def ask(contents: Contents) -> int:
        described = await (await contents.admin()).describe_topic(TOPIC)
        return described.partitions[0].leader

    return kafka.run(ask)


@pytest.mark.parametrize("in_files", [False, True], ids=["memory", "files"])
def test_nothing_acknowledged_is_lost_by_kills(in_files: bool, tmp_path: Path) -> None:
    with cluster(topics=[TOPIC], data_dir=tmp_path if in_files else None) as kafka:
        sent = 0
        for _ in range(3):
            for _ in range(20):
                kafka.produce(TOPIC, [b"%d" % sent])
                sent += 1
            leader = leader_of(kafka)
            kafka.brokers[leader].kill()
            assert kafka.brokers[leader].state is BrokerState.DOWN
            for _ in range(20):
                kafka.produce(TOPIC, [b"%d" % sent])
                sent += 1
            kafka.brokers[leader].start()
        assert [record.value for record in kafka.records(TOPIC, sent)] == [b"%d" % number for number in range(sent)]


def test_who_is_paused_is_missed_and_comes_back() -> None:
    with cluster(topics=[TOPIC]) as kafka:
        kafka.produce(TOPIC, ["0"])
        leader = leader_of(kafka)
        kafka.brokers[leader].pause()
        assert kafka.brokers[leader].state is BrokerState.PAUSED
        kafka.wait_for(lambda: leader_of(kafka) != leader, "another leader")
        kafka.produce(TOPIC, ["1"])
        kafka.brokers[leader].resume()
        kafka.produce(TOPIC, ["2"])
        assert [record.value for record in kafka.records(TOPIC, 3)] == [b"0", b"1", b"2"]


def test_a_thread_that_keeps_the_interpreter_costs_nobody_the_lead() -> None:
    with cluster(topics=[TOPIC]) as kafka:
        kafka.produce(TOPIC, ["its producer id is committed to the metadata"])
        assert isinstance(kafka.cluster, HostedCluster)
        memory = kafka.cluster.memory
        before = memory.revision
        switch_s = sys.getswitchinterval()
        sys.setswitchinterval(60)
        until_s = time.monotonic() + 2.5
        while time.monotonic() < until_s:
            pass
        sys.setswitchinterval(switch_s)
        kafka.produce(TOPIC, ["a"])
        assert memory.revision == before, "nothing is decided"


def test_a_paused_broker_can_be_killed_and_the_cluster_stopped_with_one() -> None:
    with cluster(topics=[TOPIC]) as kafka:
        kafka.brokers[1].pause()
        kafka.brokers[1].kill()
        kafka.brokers[1].start()
        kafka.produce(TOPIC, ["a"])
        kafka.brokers[2].pause()


def test_nothing_is_left_of_one_that_was_killed() -> None:
    before = set(threading.enumerate())
    with cluster(2) as kafka:
        kafka.brokers[1].kill()
    assert {thread.name for thread in set(threading.enumerate()) - before} == set()


def test_what_does_not_go_with_the_state_of_a_broker_is_refused() -> None:
    with cluster(1) as kafka:
        [broker] = kafka.brokers.values()
        with pytest.raises(WrongBrokerState, match="broker 1 cannot be started: it is running"):
            broker.start()
        with pytest.raises(WrongBrokerState, match="broker 1 is not paused"):
            broker.resume()
        broker.pause()
        with pytest.raises(WrongBrokerState, match="broker 1 is paused already"):
            broker.pause()
        with pytest.raises(WrongBrokerState, match="broker 1 is paused: resume it, or kill it"):
            broker.stop()
        broker.kill()
        with pytest.raises(WrongBrokerState, match="broker 1 cannot be killed: it is down"):
            broker.kill()
