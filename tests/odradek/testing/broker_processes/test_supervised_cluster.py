"""A process for each broker of a test: what signals do to them, that who was killed stays down until it is started, and
that nothing is left, in processes, files or etcd."""

import asyncio
import tempfile
from collections.abc import Generator
from pathlib import Path

import confluent_kafka
import pytest

from odradek import Admin
from odradek.broker.config.option import ConfigError
from odradek.testing import Kafka, cluster
from odradek.testing.broker_state import BrokerState, WrongBrokerState
from odradek.testing.cluster_options import OptionsRefused
from odradek.testing.remote.remote_cluster import RemoteCluster
from odradek.testing.running_cluster import NotInThisMode
from processes.etcd_server import EtcdServer
from tests.killed_test import outlives_its_test

STARTS_ONE = """
import sys
from odradek.testing import cluster
kafka = cluster(1, processes=True).start()
print(kafka.cluster.broker_pids()[1], flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def kafka() -> Generator[Kafka]:
    """Of two brokers; each test leaves them running, and has topics of its own."""
    with cluster(2, processes=True, config={"num.partitions": "2"}) as running:
        yield running


def remote(kafka: Kafka) -> RemoteCluster:
    assert isinstance(kafka.cluster, RemoteCluster)
    return kafka.cluster


async def transactions(kafka: Kafka) -> list[str]:
    """The states of all."""
    async with Admin(kafka.bootstrap_servers) as admin:
        return [each.state for each in await admin.list_transactions()]


def states(kafka: Kafka) -> list[str]:
    return [broker.state.name for broker in kafka.brokers.values()]


def test_who_is_killed_stays_down_and_starts_with_what_it_had(kafka: Kafka) -> None:
    kafka.create_topic("orders", 2)
    kafka.produce("orders", [{"value": b"%d" % partition, "partition": partition} for partition in (0, 1)])
    last = kafka.log_lines()[-1].number
    kafka.brokers[1].kill()
    assert states(kafka) == ["DOWN", "RUNNING"]
    with pytest.raises(WrongBrokerState, match="broker 1 cannot be paused: it is down"):
        kafka.brokers[1].pause()
    kafka.produce("orders", [{"value": b"led by 2", "partition": partition} for partition in (0, 1)])
    lines = kafka.log_lines(last)
    assert lines
    assert not [line for line in lines if "started again" in line.message], "it is down until the test starts it"
    kafka.brokers[1].start()
    with pytest.raises(WrongBrokerState, match="broker 1 cannot be started: it is running"):
        kafka.brokers[1].start()
    assert len(kafka.records("orders", 4)) == 4


def test_who_is_paused_is_missed_and_comes_back(kafka: Kafka) -> None:
    kafka.create_topic("bills", 2)
    kafka.brokers[2].pause()
    assert kafka.brokers[2].state is BrokerState.PAUSED
    with pytest.raises(WrongBrokerState, match="broker 2 cannot be stopped: it is paused"):
        kafka.brokers[2].stop()
    kafka.produce("bills", [{"value": b"a", "partition": partition} for partition in (0, 1)])
    kafka.brokers[2].resume()
    kafka.wait_for(lambda: kafka.produce("bills", ["b"]))
    kafka.brokers[2].pause()
    kafka.brokers[2].kill()
    kafka.brokers[2].start()
    assert states(kafka) == ["RUNNING", "RUNNING"]


def test_who_is_stopped_gives_what_it_led_to_others_and_a_reset_leaves_nothing_open(kafka: Kafka) -> None:
    kafka.create_topic("kept")
    kafka.brokers[1].stop()
    assert states(kafka) == ["DOWN", "RUNNING"]
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": "billing"})
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce("kept", b"never committed")
    producer.flush(10)
    [before] = asyncio.run(transactions(kafka))
    kafka.reset()
    assert states(kafka) == ["RUNNING", "RUNNING"]
    assert kafka.run(lambda contents: contents.topics()) == []
    [after] = asyncio.run(transactions(kafka))
    assert (before, after) == ("Ongoing", "Empty")


def test_what_processes_cannot_do_is_said(kafka: Kafka) -> None:
    with pytest.raises(
        NotInThisMode, match=r"brokers\[n\]\.kill\(\) ends: kill_process needs cluster\(subprocess=True\)"
    ):
        kafka.kill_process()
    with pytest.raises(NotInThisMode, match="the clocks of brokers in processes of their own are the machine's"):
        remote(kafka).shift_clock(60.0)
    with pytest.raises(NotInThisMode, match="faults on the wire and recorded requests need the brokers in threads"):
        kafka.faults.fail(api="Produce", error="NOT_LEADER_OR_FOLLOWER")
    with pytest.raises(NotInThisMode, match="faults on the wire and recorded requests need the brokers in threads"):
        kafka.requests()
    with pytest.raises(OptionsRefused, match="subprocess is one process for all brokers"):
        cluster(subprocess=True, processes=True)
    with pytest.raises(ConfigError, match=r"num\.partitions"):
        cluster(1, processes=True, config={"num.partitions": "many"}).start()


def test_nothing_is_left_of_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with cluster(1, processes=True) as kafka:
        kafka.produce("orders", ["a"])
        assert list(tmp_path.iterdir()), tempfile.gettempdir()
    assert not list(tmp_path.iterdir())


def test_logs_can_be_kept(tmp_path: Path) -> None:
    with cluster(1, processes=True, data_dir=tmp_path) as kafka:
        kafka.produce("orders", ["a"])
    with cluster(1, data_dir=tmp_path) as kafka:
        assert [record.value for record in kafka.records("orders", 1)] == [b"a"], (
            "threads go on with what processes left"
        )


def test_it_ends_with_a_test_that_is_killed() -> None:
    assert not outlives_its_test(STARTS_ONE)


def test_in_a_given_etcd_nothing_is_left_but_what_is_to_be_kept(etcd_server: EtcdServer) -> None:
    members = etcd_server.address("/x").removeprefix("etcd://").removesuffix("/x")
    before = etcd_server.ctl("get", "--prefix", "/odradek-test-", "--keys-only")
    with cluster(2, etcd=members) as kafka:
        kafka.produce("orders", ["a"])
        assert etcd_server.ctl("get", "--prefix", "/odradek-test-", "--keys-only") != before
        kafka.brokers[1].kill()
        kafka.produce("orders", ["b"])
        kafka.brokers[1].start()
        assert len(kafka.records("orders", 2)) == 2
    assert etcd_server.ctl("get", "--prefix", "/odradek-test-", "--keys-only") == before
    with pytest.raises(OSError, match=r"127\.0\.0\.1:1"):
        cluster(1, etcd="127.0.0.1:1").start()
