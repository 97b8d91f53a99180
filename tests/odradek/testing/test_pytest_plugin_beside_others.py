"""The fixtures beside plugins and libraries that reach into a test's process: event loops, frozen clocks, forbidden
sockets, forks, several workers. Warnings are errors in each of these projects."""

from pathlib import Path

import pytest

from tests.odradek.testing.pytest_project import run, write

ASYNC = '''
import asyncio

import pytest
import uvloop

from odradek import Producer


class Policy(asyncio.DefaultEventLoopPolicy): ...


asyncio.set_event_loop_policy(Policy())


async def send_and_see(kafka, topic):
    """The call in the middle blocks the loop, of which the brokers need nothing."""
    async with Producer(kafka.bootstrap_servers) as producer:
        await (await producer.send(topic, b"a"))
        assert len(kafka.records(topic, 1)) == 1


def test_without_a_loop(kafka_topic):
    assert type(asyncio.get_event_loop_policy()) is Policy
    with pytest.raises(RuntimeError):
        asyncio.get_running_loop()
'''
STRICT = """
import pytest_asyncio


@pytest_asyncio.fixture
async def sent(kafka, kafka_topic):
    await send_and_see(kafka, kafka_topic)
    return kafka_topic


@pytest.mark.asyncio
async def test_asyncio(sent, kafka):
    assert len(kafka.records(sent)) == 1


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.mark.anyio
async def test_anyio(kafka, kafka_topic):
    await send_and_see(kafka, kafka_topic)


def test_uvloop(kafka, kafka_topic):
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(send_and_see(kafka, kafka_topic))
"""
AUTO = """
import pytest_asyncio


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def made(kafka):
    kafka.create_topic("orders")
    return "orders"


async def test_asyncio(made, kafka):
    await send_and_see(kafka, made)


@pytest.mark.kafka(brokers=2)
async def test_marked(made, kafka):
    assert len(kafka.brokers) == 2
    await send_and_see(kafka, made)
"""
ASYNCIO_INI = "filterwarnings = error\nasyncio_default_fixture_loop_scope = function\nasyncio_mode = "


def test_asyncio_in_strict_mode_anyio_and_uvloop(tmp_path: Path) -> None:
    write(tmp_path, ASYNC + STRICT, ASYNCIO_INI + "strict")
    run(tmp_path, plugins=["pytest_asyncio.plugin", "anyio.pytest_plugin"]).assert_outcomes(passed=4)


@pytest.mark.only_in_compat
def test_asyncio_in_auto_mode(tmp_path: Path) -> None:
    write(tmp_path, ASYNC + AUTO, ASYNCIO_INI + "auto")
    run(tmp_path, plugins=["pytest_asyncio.plugin"]).assert_outcomes(passed=3)


DISTURBED = '''
import datetime
import multiprocessing
import os
import time

import freezegun
import pytest
import time_machine
from confluent_kafka import Consumer, Producer
from kafka import KafkaProducer

from odradek.testing import cluster

REAL_S = time.time()
PAST = datetime.datetime(2012, 1, 14, tzinfo=datetime.timezone.utc)
FUTURE = datetime.datetime(2043, 1, 14, tzinfo=datetime.timezone.utc)


def send_and_commit(kafka, topic):
    """By a client in C, and by the kit's own."""
    servers = kafka.bootstrap_servers
    producer = Producer({"bootstrap.servers": servers})
    producer.produce(topic, b"a")
    assert producer.flush(10) == 0
    kafka.produce(topic, ["b"])
    consumer = Consumer({"bootstrap.servers": servers, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    seen = [consumer.poll(10), consumer.poll(10)]
    assert [record.value() for record in seen] == [b"a", b"b"]
    consumer.commit(asynchronous=False)
    consumer.close()
    kafka.wait_for_lag(topic)
    assert abs(kafka.now.timestamp() - REAL_S) < 60


@freezegun.freeze_time(PAST)
def test_freezegun_before_anything_is_imported(request):
    """(A fixture of the session that is named as an argument would be set up before the clock is frozen.)"""
    kafka = request.getfixturevalue("kafka_cluster")
    assert time.time() == PAST.timestamp()
    kafka.create_topic("orders")
    send_and_commit(kafka, "orders")


@freezegun.freeze_time(PAST, ignore=["kafka"])
def test_freezegun_and_kafka_python(kafka, kafka_topic):
    producer = KafkaProducer(bootstrap_servers=kafka.bootstrap_servers)
    producer.send(kafka_topic, b"a").get(10)
    producer.close()
    assert len(kafka.records(kafka_topic, 1)) == 1


@time_machine.travel(FUTURE, tick=False)
def test_time_machine(kafka, kafka_topic):
    with cluster(brokers=1, topics=["started-in-the-future"]) as another:
        send_and_commit(another, "started-in-the-future")
    send_and_commit(kafka, kafka_topic)
    kafka.produce(kafka_topic, [{"value": b"c", "timestamp_ms": int(time.time() * 1000)}])
    assert kafka.records(kafka_topic)[2].timestamp_ms == FUTURE.timestamp() * 1000


@pytest.mark.allow_hosts(["127.0.0.1"])
def test_pytest_socket(kafka, kafka_topic):
    send_and_commit(kafka, kafka_topic)


def test_a_fork(kafka, kafka_topic):
    child = os.fork()
    if child == 0:
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    kafka.produce(kafka_topic, ["a"])


def send(servers, topic):
    producer = Producer({"bootstrap.servers": servers})
    producer.produce(topic, b"a")
    producer.flush(10)


def test_a_program_that_forks(kafka, kafka_topic):
    child = multiprocessing.get_context("fork").Process(target=send, args=(kafka.bootstrap_servers, kafka_topic))
    child.start()
    child.join(20)
    assert len(kafka.records(kafka_topic, 1)) == 1
'''
# Whatever kafka-python warns of is not ours.
DISTURBED_INI = """
filterwarnings =
    error
    ignore:(read|open)_text is deprecated:DeprecationWarning
    ignore::DeprecationWarning:kafka.*
    ignore:unclosed <socket:ResourceWarning
    ignore:.*use of fork:DeprecationWarning
"""


def test_frozen_clocks_forbidden_sockets_and_forks(tmp_path: Path) -> None:
    write(tmp_path, DISTURBED, DISTURBED_INI)
    run(tmp_path, "-p", "no:randomly", plugins=["pytest_socket", "time_machine"]).assert_outcomes(passed=6)


WORKERS = """
import os
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.parametrize("number", range(4))
def test_with_a_cluster(kafka, kafka_topic, number):
    kafka.produce(kafka_topic, ["a"])
    assert len(kafka.records(kafka_topic, 1)) == 1
    (HERE / f"address-{os.environ['PYTEST_XDIST_WORKER']}-{kafka.bootstrap_servers}").touch()


def test_kills_its_worker(kafka):
    os.kill(os.getpid(), 9)
"""
SHARED = """

def test_three_brokers_are_shared_too(kafka_cluster):
    assert len(kafka_cluster.brokers) == 3


@pytest.mark.parametrize(
    "touch", [lambda kafka: kafka.reset(), lambda kafka: kafka.brokers[1].kill(), lambda kafka: kafka.brokers[1].stop()]
)
def test_what_would_disturb_others_is_refused(kafka, touch):
    with pytest.raises(RuntimeError, match=r"shared by all workers .* gets a cluster of its own"):
        touch(kafka)


@pytest.mark.kafka()
def test_marked(kafka):
    kafka.reset()


def test_fails(kafka, kafka_topic):
    kafka.produce(kafka_topic, ["shown"])
    assert not "anything"
"""
XDIST = ["xdist.plugin", "xdist.looponfail"]


def used(project: Path) -> tuple[set[str], set[str]]:
    """The workers of a run, and the addresses of what they used."""
    names = [each.name.split("-")[1:] for each in project.glob("address-*")]
    return {worker for worker, _ in names}, {address for _, address in names}


@pytest.mark.only_in_compat
def test_each_worker_has_a_cluster_and_may_be_killed(tmp_path: Path) -> None:
    """The worker that takes its place has another one."""
    write(tmp_path, WORKERS)
    ended = run(tmp_path, "-n", "2", plugins=XDIST)
    ended.assert_outcomes(failed=1, passed=4)
    assert "crashed while running 'test_project.py::test_kills_its_worker'" in ended.text
    workers, addresses = used(tmp_path)
    assert len(addresses) == len(workers) > 1


def test_workers_share_a_cluster_that_outlives_them(tmp_path: Path) -> None:
    write(tmp_path, WORKERS + SHARED, "odradek_xdist = shared")
    ended = run(tmp_path, "-n", "2", plugins=XDIST)
    ended.assert_outcomes(failed=2, passed=9)
    assert "@0 value=b'shown'" in ended.text
    workers, addresses = used(tmp_path)
    assert len(workers) > len(addresses) == 1
