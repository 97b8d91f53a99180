"""The fixtures in projects of others, whose tests run in a process of their own: what a test gets, what a failing one
shows, and what is refused with a sentence."""

import os
import signal
import subprocess
import threading
from pathlib import Path

from tests.odradek.testing.pytest_project import command, environment, run, write
from tests.signals import heeding_ctrl_c

FIXTURES = '''
import os

import pytest

ADDRESS = "KAFKA_BOOTSTRAP_SERVERS"


@pytest.fixture(scope="module")
def orders(kafka):
    """A fixture of the project's, which is to be made again with each cluster."""
    kafka.create_topic("orders")
    return "orders"


def topics(kafka):
    return kafka.run(lambda contents: contents.topics())


def test_one_broker_with_the_options_of_the_project(kafka, orders):
    assert len(kafka.brokers) == 1
    assert os.environ[ADDRESS] == kafka.bootstrap_servers
    kafka.create_topic("bills", partitions=2)


def test_without_a_cluster():
    assert os.environ[ADDRESS] == "kafka.example:9092"


@pytest.mark.kafka(brokers=3, topics={"bills": 2})
def test_a_marked_test_has_its_own_kind(kafka, orders):
    assert len(kafka.brokers) == 3
    assert sorted(topics(kafka)) == ["bills", "orders"]
    kafka.produce("bills", ["a"])


@pytest.mark.kafka(topics={"bills": 2})
class TestMarked:
    @pytest.mark.kafka(brokers=3)
    def test_equal_clusters_are_reset(self, kafka):
        assert topics(kafka) == ["bills"]
        assert kafka.records("bills") == []


def test_the_session_s_cluster_is_as_new_behind_a_marked_test(kafka, orders):
    assert topics(kafka) == ["orders"]
    kafka.create_topic("left")


def test_the_same_cluster_in_unmarked_tests(kafka, orders):
    assert sorted(topics(kafka)) == ["left", "orders"]


def test_three_brokers(kafka_cluster):
    assert len(kafka_cluster.brokers) == 3
    assert os.environ[ADDRESS] == kafka_cluster.bootstrap_servers


def test_both(kafka_cluster, kafka):
    assert kafka_cluster.bootstrap_servers != kafka.bootstrap_servers == os.environ[ADDRESS]


def test_clean(kafka_clean):
    assert topics(kafka_clean) == []


@pytest.mark.parametrize("number", [1, 2])
def test_a_topic_of_its_own(kafka, kafka_topic, number):
    assert kafka.records(kafka_topic) == []
    assert kafka_topic.startswith(f"test-a-topic-of-its-own-{number}-")
    kafka.produce(kafka_topic, [b"x" * 2000])
    with pytest.raises(Exception, match="MESSAGE_TOO_LARGE|too large|max"):
        kafka.produce(kafka_topic, [b"x" * 4000])
'''


def test_what_the_fixtures_give(tmp_path: Path) -> None:
    """The names of marked tests stay, and the variable is what it was."""
    (tmp_path / "conftest.py").write_text(
        "import os\nos.environ['KAFKA_BOOTSTRAP_SERVERS'] = 'kafka.example:9092'\n"
        "def pytest_unconfigure():\n    print('\\nAT THE END', os.environ['KAFKA_BOOTSTRAP_SERVERS'])\n"
    )
    write(
        tmp_path,
        FIXTURES,
        "addopts = --strict-markers\nfilterwarnings = error\nodradek_config =\n  message.max.bytes=3000",
    )
    ended = run(tmp_path, "-v", "--odradek-mode", "thread")
    assert ended.code == 0, ended.text
    assert "11 passed" in ended.text
    assert "::test_a_marked_test_has_its_own_kind PASSED" in ended.text
    assert "AT THE END kafka.example:9092" in ended.text
    assert "kafka: " not in ended.text


FAILING = """
import pytest
from kafka import KafkaConsumer


@pytest.mark.kafka(topics={"orders": 2, "empty": 1})
def test_fails(kafka):
    kafka.produce("orders", [("k", f"order {number}") for number in range(8)])
    consumer = KafkaConsumer(
        "orders", bootstrap_servers=kafka.bootstrap_servers, group_id="billing", auto_offset_reset="earliest"
    )
    consumer.poll(timeout_ms=5000, max_records=3)
    consumer.commit()
    consumer.close()
    kafka.brokers[1].stop()
    kafka.brokers[1].start()
    assert not "enough"


@pytest.mark.kafka(brokers=2)
def test_fails_without_brokers(kafka):
    kafka.brokers[1].pause()
    kafka.brokers[2].kill()
    assert not "enough"


def test_fails_without_a_cluster():
    assert not "anything"


def test_passes(kafka):
    kafka.produce("orders", ["a"])
"""


def test_what_a_failing_test_shows_and_keeps(tmp_path: Path) -> None:
    """Its topics, groups, brokers and their log, though the project captures errors alone; and a test that has left its
    cluster broken does no harm to the next one."""
    write(tmp_path, FAILING, "log_level = ERROR\nodradek_keep = kept\nfilterwarnings = ignore")
    ended = run(tmp_path, "-p", "no:randomly")
    ended.assert_outcomes(failed=3, passed=1)
    first, second, third = ended.text.split("FAILURES")[1].split("short test summary")[0].split("\n____")[1:]
    assert "<broker 1 at 127.0.0.1:" in first
    assert "orders: 2 partition(s), 8 offset(s)\n" in first
    assert "@7 key=b'k' value=b'order 7'" in first
    assert "empty: 1 partition(s), 0 offset(s)\n" in first
    assert "billing: Empty, 0 member(s), lag 5\n" in first
    assert "committed 3, lag 5, no member\n" in first
    assert " INFO odradek broker 1: " in first
    assert ", paused>" in second
    assert ", down>" in second
    assert "no broker runs that could be asked" in second
    assert "kafka: " not in third
    kept = tmp_path / "kept" / "test_project.py_test_fails"
    assert "value=b'order 7'" in (kept / "report.txt").read_text()
    assert list((kept / "data").rglob("orders-[01]/*.log"))
    assert sorted(each.name for each in (tmp_path / "kept").iterdir()) == [
        "test_project.py_test_fails",
        "test_project.py_test_fails_without_brokers",
    ]


REFUSED = """
import os
import socket

import pytest


@pytest.mark.kafka(topic="orders")
def test_an_unknown_argument(kafka): ...


@pytest.mark.kafka(brokers=0)
def test_no_brokers(kafka): ...


@pytest.mark.kafka(config={"message.max.bytes": "many"})
def test_a_broker_that_cannot_start(kafka): ...


def test_in_a_forked_child(kafka, request):
    child = os.fork()
    if child == 0:
        try:
            request.getfixturevalue("kafka_cluster")
        except BaseException as error:
            os._exit(7 if "in a child that was forked from the process of its cluster" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_another_one(kafka_cluster): ...
"""
OTHER_PLUGIN = "import pytest\n@pytest.fixture\ndef kafka_topic():\n    return 'mine'\n"


def test_what_is_refused_is_said_and_the_next_test_goes_on(tmp_path: Path) -> None:
    write(tmp_path, REFUSED)
    (tmp_path / "other_plugin.py").write_text(OTHER_PLUGIN)
    ended = run(tmp_path, plugins=["other_plugin"])
    ended.assert_outcomes(passed=2, warning=1, errors=3)
    assert "@pytest.mark.kafka has no argument 'topic'; it has brokers, topics, config, act_as" in ended.text
    assert "brokers is 0, and has to be from 1 to 100" in ended.text
    assert "the fixture `kafka` has no cluster" in ended.text
    assert "message.max.bytes" in ended.text
    assert "two plugins have a fixture `kafka_topic`, odradek and other_plugin" in ended.text
    assert "another exception" not in ended.text


INTERRUPTED = """
import threading

from kafka import KafkaConsumer, KafkaProducer


def test_leaves_clients_open(kafka):
    producer = KafkaProducer(bootstrap_servers=kafka.bootstrap_servers)
    producer.send("orders", b"a").get(10)
    consumer = KafkaConsumer("orders", bootstrap_servers=kafka.bootstrap_servers, group_id="billing")
    consumer.poll(timeout_ms=200)
    threading.Thread(target=consumer.poll, args=(60_000,), daemon=True).start()
    LEFT.extend([producer, consumer])


LEFT = []


def test_waits(kafka_cluster):
    print("\\nIT WAITS", flush=True)
    threading.Event().wait()
"""


def test_control_c_ends_it_though_clients_are_open(tmp_path: Path) -> None:
    """As a terminal sends it, while a test waits for ever."""
    write(tmp_path, INTERRUPTED)
    with subprocess.Popen(
        heeding_ctrl_c(*command("-s", "-q")),
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        # pytest has had Python say where each thread stands when it aborts.
        watchdog = threading.Timer(60, process.send_signal, (signal.SIGABRT,))
        watchdog.start()
        assert process.stdout is not None
        before: list[str] = []
        for line in process.stdout:
            before.append(line)
            if line == "IT WAITS\n":
                break
        os.killpg(process.pid, signal.SIGINT)
        text = "".join(before) + process.stdout.read()
        watchdog.cancel()
    assert process.returncode == 2, text
    assert "KeyboardInterrupt" in text
    assert "1 passed" in text
