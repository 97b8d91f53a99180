"""A cluster in a process of its own: what a test can do with it, what is left of it, what is said when it is gone."""

import asyncio
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from kafka import KafkaProducer

from odradek.broker.config.option import ConfigError
from odradek.broker.startup_errors import StartRefused
from odradek.testing import Kafka, WaitedInVain, cluster
from odradek.testing.broker_state import BrokerState, WrongBrokerState
from odradek.testing.kafka_cluster import WrongUse
from odradek.testing.remote.cluster_process import ClusterProcessEnded
from odradek.testing.remote.remote_cluster import RemoteCluster
from odradek.testing.running_cluster import NewTopicRefused, NotInThisMode, UnknownCall, UsedInFork
from tests.killed_test import outlives_its_test

STARTS_ONE = """
import sys
from odradek.testing import cluster
kafka = cluster(1, subprocess=True).start()
{}
print(kafka.cluster.pid, flush=True)
sys.stdin.read()
"""
FORKS = """
import os, sys
if os.fork() == 0:
    sys.stdin.read()
    os._exit(0)
"""
"""The forked child holds what it has inherited, and goes on when its parent is dead."""


def remote(kafka: Kafka) -> RemoteCluster:
    assert isinstance(kafka.cluster, RemoteCluster)
    return kafka.cluster


@pytest.fixture(scope="module")
def shared() -> Generator[Kafka]:
    """One for several tests; each has topics of its own, and leaves its broker running."""
    with cluster(1, subprocess=True) as kafka:
        yield kafka


@contextmanager
def closing_by(stop: Callable[[], None]) -> Generator[None]:
    """As the `with` of a test ends, in the child that it has forked, too."""
    try:
        yield
    finally:
        stop()


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_everything_goes_over_the_connection_and_nothing_is_left() -> None:
    before = set(threading.enumerate())
    with cluster(topics={"orders": 2}, subprocess=True) as kafka:
        pid = remote(kafka).pid
        kafka.produce("orders", (value for value in ("a", ("k", b"\xff"), {"value": None, "headers": [("h", b"1")]})))
        producer = KafkaProducer(bootstrap_servers=kafka.get_bootstrap_server())
        producer.send("orders", b"d", partition=1).get(10)
        producer.close()
        records = kafka.records("orders", 4)
        assert {(record.key, record.value, record.headers) for record in records} == {
            (None, b"a", ()), (b"k", b"\xff", ()), (None, None, (("h", b"1"),)), (None, b"d", ())
        }  # fmt: skip
        assert kafka.group("billing").committed() == {}
        kafka.brokers[1].kill()
        assert [broker.state for broker in kafka.brokers.values()] == [BrokerState.DOWN, *[BrokerState.RUNNING] * 2]
        kafka.produce("orders", ["e"])
        kafka.brokers[1].start()
        kafka.brokers[2].pause()
        assert kafka.brokers[2].state is BrokerState.PAUSED
        kafka.brokers[2].resume()
        kafka.brokers[3].stop()
        kafka.reset()
        assert kafka.records("orders") == []
        before_move = kafka.now
        kafka.now += timedelta(days=8)
        assert kafka.now - before_move >= timedelta(days=8)
        assert set(threading.enumerate()) == before, "no threads: a fork would warn of them"
    assert is_gone(pid)


def test_errors_come_over_as_they_are(shared: Kafka) -> None:
    shared.create_topic("bills")
    with pytest.raises(NewTopicRefused, match=r"'bills': Topic 'bills' already exists"):
        shared.create_topic("bills")
    with pytest.raises(WaitedInVain, match=r"1 record\(s\) of 'bills' were waited for, and within 0.05 s 0 came"):
        shared.records("bills", 1, timeout_s=0.05)
    with pytest.raises(TypeError, match="keys and values of records are bytes, str or None, not int"):
        shared.produce("bills", [1])  # type: ignore[list-item]
    with pytest.raises(AssertionError, match="waits for something else than the contents"):
        shared.run(lambda contents: asyncio.sleep(0))
    with pytest.raises(UnknownCall, match="has no call 'fly'; it has create_topics, empty, "):
        remote(shared).call("fly")
    shared.brokers[1].kill()
    with pytest.raises(WrongBrokerState, match="broker 1 cannot be killed: it is down"):
        shared.brokers[1].kill()
    with pytest.raises(WrongBrokerState, match="no broker of this cluster runs: start one"):
        shared.records("bills")
    shared.brokers[1].start()


@pytest.mark.parametrize(
    ("options", "kind", "text"),
    [
        ({"config": {"num.partitions": "many"}}, ConfigError, "num.partitions"),
        ({"data_dir": os.devnull}, StartRefused, os.devnull),
    ],
)
def test_one_that_cannot_start_says_why(options: dict[str, object], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        cluster(1, subprocess=True, **options).start()  # type: ignore[arg-type]


def test_calls_of_several_threads_do_not_wait_for_one_another(shared: Kafka) -> None:
    shared.create_topic("orders")
    found: list[bytes] = []
    waiting = [
        threading.Thread(target=lambda: found.extend(record.value for record in shared.records("orders", 1)))
        for _ in range(3)
    ]
    for thread in waiting:
        thread.start()
    shared.produce("orders", ["a"])
    for thread in waiting:
        thread.join(10)
    assert found == [b"a"] * 3


def test_a_process_that_was_killed_is_said_to_be_in_each_call() -> None:
    with cluster(1, subprocess=True) as kafka:
        kafka.kill_process()
        assert is_gone(remote(kafka).pid)
        for call in (kafka.brokers[1].kill, kafka.reset, lambda: kafka.produce("orders", ["a"])):
            with pytest.raises(ClusterProcessEnded, match=r"does not run any more: it was killed by kill_process\(\)"):
                call()
    with cluster(1, subprocess=True) as kafka:
        os.kill(remote(kafka).pid, signal.SIGABRT)
        with pytest.raises(
            ClusterProcessEnded, match=r"(?s)it was killed by SIGABRT; what it said:.*Fatal Python error"
        ):
            kafka.reset()


def test_its_log_can_be_asked_for(shared: Kafka) -> None:
    last = max((line.number for line in shared.log_lines()), default=0)
    shared.brokers[1].kill()
    shared.brokers[1].start()
    lines = shared.log_lines(last)
    assert lines
    assert [line.number for line in lines] == list(range(last + 1, last + 1 + len(lines)))
    with cluster(brokers=1) as here, pytest.raises(NotInThisMode, match="look at the logger 'odradek'"):
        here.log_lines()


@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")  # there are threads, where brokers are such
@pytest.mark.parametrize("in_subprocess", [True, False], ids=["subprocess", "threads"])
def test_a_forked_child_is_refused_and_ends_nothing(in_subprocess: bool) -> None:
    read, write = os.pipe()
    with cluster(1, subprocess=in_subprocess) as kafka:
        pid = os.fork()
        if pid == 0:
            signal.alarm(20)
            said = ""
            try:
                with closing_by(kafka.stop):
                    kafka.reset()
            except UsedInFork as error:
                said = str(error)
            os.write(write, f"{kafka.brokers[1].address} {said}".encode())
            os._exit(0)
        os.close(write)
        os.waitpid(pid, 0)
        with os.fdopen(read) as told:
            address, _, said = told.read().partition(" ")
        assert address == kafka.bootstrap_servers
        assert "belongs to the process that started the cluster, and this is a child that was forked from it" in said
        kafka.produce("orders", ["a"])


@pytest.mark.parametrize("more", ["", FORKS], ids=["alone", "with a forked child"])
def test_it_ends_with_a_test_that_is_killed(more: str) -> None:
    assert not outlives_its_test(STARTS_ONE.format(more))


def test_logs_that_are_kept_are_whole_whoever_ends(tmp_path: Path) -> None:
    program = f"""
import os, sys
from odradek.testing import cluster
kafka = cluster(1, subprocess=True, data_dir={str(tmp_path)!r}).start()
kafka.produce("orders", ["a"])
print(kafka.cluster.pid, flush=True)
os.kill(os.getpid(), 9)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    until_gone(int(done.stdout))
    assert list(tmp_path.rglob(".kafka_cleanshutdown")), "it was stopped, not only ended"
    with cluster(1, data_dir=tmp_path, subprocess=True) as kafka:
        assert [record.value for record in kafka.records("orders", 1)] == [b"a"]
        kafka.kill_process()
    with cluster(1, data_dir=tmp_path) as kafka:
        assert [record.value for record in kafka.records("orders", 1)] == [b"a"]


async def test_the_loop_of_the_test_is_not_for_it() -> None:
    with pytest.raises(WrongUse, match="`async with` runs the brokers in the event loop"):
        async with cluster(1, subprocess=True):
            pass


def until_gone(pid: int) -> None:
    """Returns when a process that is nobody's child here has ended."""
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    poll = select.poll()
    poll.register(watched, select.POLLIN)
    assert poll.poll(10_000)
    os.close(watched)
