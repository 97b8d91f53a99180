"""A cluster of processes: it starts, loses a broker, loses its supervisor, stops, and refuses what cannot be."""

import os
import signal
import stat
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from odradek.broker.disk.file_disk import FileDisk
from processes.apache_kafka import answers
from processes.child_process import REPOSITORY
from processes.free_ports import free_ports
from processes.odradek_broker import OdradekBroker
from processes.odradek_cluster import OdradekCluster, OdradekClusterFailed
from processes.supervised_cluster import SupervisedCluster, children_of, until_gone

TOPIC = "orders"
PARTITIONS = 4


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SupervisedCluster]:
    """Two brokers for all tests here that leave it running."""
    (page,) = free_ports(1)
    directory = tmp_path_factory.mktemp("supervised") / "data"
    options = ("--metrics", f"127.0.0.1:{page}", "--set", f"num.partitions={PARTITIONS}", "--log-level", "info")
    with SupervisedCluster(directory, *options) as cluster:
        yield cluster


def command(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "odradek", *words], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )


def written(bootstrap: str, count: int) -> None:
    """So many records more, acknowledged by all."""
    producer = KafkaProducer(bootstrap_servers=bootstrap, acks="all", retries=100)
    results = [producer.send(TOPIC, b"%d" % number, partition=number % PARTITIONS) for number in range(count)]
    for result in results:
        result.get(30)
    producer.close()


def end_offsets(bootstrap: str) -> int:
    consumer = KafkaConsumer(bootstrap_servers=bootstrap)
    found = consumer.end_offsets([TopicPartition(TOPIC, index) for index in range(PARTITIONS)])
    consumer.close()
    return sum(found.values())


def page_of(cluster: SupervisedCluster) -> str:
    address = cluster.options[cluster.options.index("--metrics") + 1]
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
        return str(answer.read().decode())


def test_one_line_tells_where_all_are_and_what_topics_get(cluster: SupervisedCluster) -> None:
    assert cluster.addresses == [f"127.0.0.1:{cluster.port + number}" for number in range(2)]
    assert cluster.ready_line.endswith("; 2 processes; new topics have 1 replica(s))")
    assert sorted(cluster.pids()) == ["broker 1", "broker 2", "metrics"]
    assert "[broker 1] " in cluster.output
    assert "[broker 2] " in cluster.output


def test_the_socket_is_for_its_user_alone_and_processes_inherit_nothing(cluster: SupervisedCluster) -> None:
    assert cluster.data_dir is not None
    assert stat.S_IMODE((cluster.data_dir / "metadata" / "store.sock").stat().st_mode) == 0o600
    for name, pid in cluster.pids().items():
        assert os.getpgid(pid) == pid, "a terminal's signals are for the supervisor"
        links = [os.readlink(path) for path in Path(f"/proc/{pid}/fd").iterdir()]
        assert not [link for link in links if link.endswith(("metadata.log", "metadata/.lock"))], name


def test_each_partition_is_written_and_read_by_way_of_any_broker(cluster: SupervisedCluster) -> None:
    before = (
        0 if TOPIC not in command("topics", "list", "-b", cluster.bootstrap).stdout else end_offsets(cluster.bootstrap)
    )
    written(cluster.addresses[0], 40)
    assert end_offsets(cluster.addresses[1]) == before + 40


def test_one_page_tells_of_all_brokers(cluster: SupervisedCluster) -> None:
    page = page_of(cluster)
    assert 'odradek_up{broker="1"} 1\nodradek_up{broker="2"} 1\n' in page
    families = [line.split()[2] for line in page.splitlines() if line.startswith("# TYPE ")]
    assert len(families) == len(set(families))
    assert 'kafka_server_socketservermetrics_connection_count{broker="2"}' in page
    pid = cluster.kill_broker(2, signal.SIGSTOP)
    try:
        assert 'odradek_up{broker="1"} 1\nodradek_up{broker="2"} 0\n' in page_of(cluster)
    finally:
        os.kill(pid, signal.SIGCONT)


def test_a_broker_that_dies_is_started_again_at_its_port(cluster: SupervisedCluster) -> None:
    written(cluster.bootstrap, 8)
    before = end_offsets(cluster.bootstrap)
    pid = cluster.kill_broker(2)
    cluster.broker_pid(2, other_than=pid)
    written(cluster.bootstrap, 8)
    assert end_offsets(cluster.bootstrap) == before + 8
    assert "broker 2 was killed by SIGKILL, and is started again in 0.1 s" in cluster.output
    host, port = cluster.addresses[1].split(":")
    assert answers(host, int(port))


def test_a_second_supervisor_is_refused_and_so_is_one_process(cluster: SupervisedCluster) -> None:
    assert cluster.data_dir is not None
    for options in (["--processes"], []):
        refused = command("cluster", "run", "--listen", "127.0.0.1:0", "--data-dir", str(cluster.data_dir), *options)
        assert refused.returncode == 1
        assert "is in use: another `odradek cluster run` runs on it" in refused.stderr
        assert "Traceback" not in refused.stderr
    assert cluster.is_running


def test_a_backup_is_taken_while_it_runs(cluster: SupervisedCluster, tmp_path: Path) -> None:
    assert cluster.data_dir is not None
    file = tmp_path / "backup.jsonl"
    for where in (
        ["--metadata", f"unix:{cluster.data_dir}/metadata/store.sock"],
        ["--data-dir", f"{cluster.data_dir}/metadata"],
    ):
        done = command("cluster", "backup", str(file), *where)
        assert done.returncode == 0, done.stderr
        assert '"/nodes/2"' in file.read_text()
        file.unlink()


@pytest.mark.only_in_compat
def test_a_killed_supervisor_leaves_brokers_that_stop_and_the_next_one_goes_on(tmp_path: Path) -> None:
    with SupervisedCluster(tmp_path / "data", "--set", f"num.partitions={PARTITIONS}") as cluster:
        written(cluster.bootstrap, 40)
        orphans = [pid for pid, _ in children_of(cluster.pid)]
        cluster.kill()
        cluster.start()  # at once: it waits for the locks
        assert end_offsets(cluster.bootstrap) == 40
        until_gone(orphans)
        assert cluster.output.count("the supervisor is gone") == 2
        orphans = [pid for pid, _ in children_of(cluster.pid)]
        assert cluster.data_dir is not None
        marks = [cluster.data_dir / f"broker-{number}" / ".kafka_cleanshutdown" for number in (1, 2)]
        assert not any(mark.exists() for mark in marks), "a start takes the mark away"
        cluster.kill()
        until_gone(orphans)
        assert all(mark.exists() for mark in marks)
        assert "Traceback" not in cluster.output
        assert "was killed" not in cluster.output


@pytest.mark.only_in_compat
def test_a_data_directory_that_is_in_use_yet_is_waited_for(tmp_path: Path) -> None:
    directory = tmp_path / "data" / "broker-2"
    directory.mkdir(parents=True)
    lock = FileDisk().lock(str(directory / ".lock"))  # as a broker of a killed supervisor has it
    with closing(SupervisedCluster(tmp_path / "data")) as cluster:
        cluster.launch()
        cluster.until_said("broker-2 is in use yet, and is waited for 30 s at most")
        lock.release()
        cluster.wait_until_ready()
        cluster.stop()


def test_a_broker_that_stands_still_ends_cleanly_when_its_supervisor_is_killed(tmp_path: Path) -> None:
    """The kernel wakes it, and hangs up: its group is orphaned."""
    with closing(SupervisedCluster(tmp_path / "data")) as cluster:
        cluster.start()
        pids = list(cluster.pids().values())
        cluster.kill_broker(2, signal.SIGSTOP)
        cluster.kill()
        until_gone(pids)
        assert (tmp_path / "data" / "broker-2" / ".kafka_cleanshutdown").exists()


@pytest.mark.only_in_compat
def test_the_same_directory_runs_in_one_process_and_back(tmp_path: Path) -> None:
    with SupervisedCluster(tmp_path / "data", "--set", f"num.partitions={PARTITIONS}", brokers=3) as cluster:
        written(cluster.bootstrap, 40)
    with OdradekCluster(tmp_path / "data") as one:
        assert end_offsets(one.bootstrap) == 40
        assert command("topics", "create", "later", "-b", one.bootstrap).stdout == (
            "later created with 1 partition(s), 1 replica(s) each\n"
        )
    with SupervisedCluster(tmp_path / "data", brokers=3) as again:
        created = command("topics", "create", "lone", "-b", again.bootstrap)
        assert "Note: lone has one partition, which one of the 3 brokers of this machine serves" in created.stderr
        chosen = command("topics", "create", "chosen", "--partitions", "1", "-b", again.bootstrap)
        assert chosen.stderr == ""
        assert end_offsets(again.bootstrap) == 40


@pytest.mark.only_in_compat
def test_fewer_brokers_are_refused_while_the_others_hold_partitions(tmp_path: Path) -> None:
    with SupervisedCluster(tmp_path / "data", "--set", f"num.partitions={PARTITIONS}", brokers=3) as cluster:
        written(cluster.bootstrap, 4)
    fewer = SupervisedCluster(tmp_path / "data", brokers=2)
    with pytest.raises(OdradekClusterFailed, match=r"odradek partitions spread --brokers 1,2\)"):
        fewer.start()
    fewer.close()
    one_process = command("cluster", "run", "--brokers", "2", "--data-dir", str(tmp_path / "data"))
    assert one_process.returncode == 1
    assert "without broker(s) 3 replicas of" in one_process.stderr
    with SupervisedCluster(tmp_path / "data", brokers=3) as three:
        assert end_offsets(three.bootstrap) == 4
        assert command("topics", "delete", TOPIC, "-b", three.bootstrap).returncode == 0
    with SupervisedCluster(tmp_path / "data", brokers=2) as two:
        listed = command("brokers", "-b", two.bootstrap).stdout.splitlines()
        assert sorted(line.split()[0] for line in listed) == ["1", "2"]
        assert "broker(s) 3 held nothing, and are forgotten" in two.output


@pytest.mark.only_in_compat
def test_a_port_that_is_taken_ends_the_start_with_a_sentence(tmp_path: Path) -> None:
    with OdradekBroker(tmp_path / "other") as other:
        port = int(other.bootstrap.rpartition(":")[2])
        refused = command(
            *("cluster", "run", "--processes", "--memory", "--brokers", "2"), "--listen", f"127.0.0.1:{port - 1}"
        )
        assert refused.returncode == 1
        assert f"Error: broker 2: cannot listen on 127.0.0.1:{port}: Address already in use" in refused.stderr
        assert "Traceback" not in refused.stderr


def test_the_directory_of_one_broker_is_refused(tmp_path: Path) -> None:
    with OdradekBroker(tmp_path / "data"):
        pass
    for options in (["--processes"], []):
        refused = command("cluster", "run", "--data-dir", str(tmp_path / "data"), "--listen", "127.0.0.1:0", *options)
        assert refused.returncode == 1
        assert "is the data directory of one broker, of `odradek serve`" in refused.stderr
        assert "odradek cluster take" in refused.stderr


@pytest.mark.only_in_compat
def test_a_broker_that_dies_again_and_again_is_left_down(tmp_path: Path) -> None:
    with SupervisedCluster(tmp_path / "data", brokers=2) as cluster:
        pid = 0
        for _ in range(5):
            pid = cluster.broker_pid(2, other_than=pid)
            os.kill(pid, signal.SIGKILL)
        cluster.until_said("broker 2 has died 5 times within a minute, and is left down: the last time it was")
        assert answers("127.0.0.1", cluster.port)
        assert list(cluster.pids()) == ["broker 1"]
        rolled = cluster.roll()
        assert rolled.returncode == 1
        assert "broker 2 does not run" in rolled.stderr


def test_brokers_in_memory_leave_no_socket_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with SupervisedCluster(None, brokers=2):
        assert len(list(tmp_path.iterdir())) == 1
    assert list(tmp_path.iterdir()) == []
