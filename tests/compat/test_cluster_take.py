"""From `odradek serve` to several brokers and back, with load while the brokers run: every record is where it was sent.
Three brokers in one process, and four processes.

Real processes, clients of kafka-python, and the commands as they are given.
"""

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from processes.child_process import ChildProcess
from processes.odradek_broker import OdradekBroker, settings_words
from processes.odradek_cluster import OdradekCluster
from processes.supervised_cluster import SupervisedCluster
from tests.compat.commands import Commands

pytestmark = [pytest.mark.compat, pytest.mark.only_in_compat, pytest.mark.slow, pytest.mark.timeout(180)]

PARTITIONS: Final = 6
FIRST_RECORDS: Final = 600
ONE_REPLICA: Final = {
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
}
SETTINGS: Final = settings_words(ONE_REPLICA)
GROUP: Final = "readers"


class Load:
    """Records sent with acks=all, one after the other in each partition, until it is ended."""

    def __init__(self, bootstrap: str, sent: dict[int, list[bytes]]) -> None:
        self._sent = sent
        self._stop = threading.Event()
        self._enough = threading.Event()
        self._bootstrap = bootstrap
        self.failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            with KafkaProducer(bootstrap_servers=self._bootstrap, acks="all", enable_idempotence=True) as producer:
                number = 0
                while not self._stop.is_set():
                    for partition in range(PARTITIONS):
                        self._sent[partition].append(b"load-%d-%d" % (partition, number))
                    answers = [
                        producer.send("orders", values[-1], partition=partition)
                        for partition, values in self._sent.items()
                    ]
                    for answer in answers:
                        answer.get(30)
                    number += 1
                    self._enough.set()
        except Exception as error:  # noqa: BLE001 - told by the test
            self.failure = error

    def end(self) -> None:
        """Once some was acknowledged."""
        assert self._enough.wait(30) or self.failure is not None
        self._stop.set()
        self._thread.join(60)
        assert not self._thread.is_alive()
        assert self.failure is None, self.failure


@contextmanager
def load(bootstrap: str, sent: dict[int, list[bytes]]) -> Generator[None]:
    running = Load(bootstrap, sent)
    try:
        yield
    finally:
        running.end()


def read(bootstrap: str, sent: dict[int, list[bytes]]) -> dict[int, list[bytes]]:
    """As many records as were sent, of each partition; what comes beyond them is found, too."""
    found: dict[int, list[bytes]] = defaultdict(list)
    with KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False) as consumer:
        consumer.assign([TopicPartition("orders", index) for index in range(PARTITIONS)])
        ends = consumer.end_offsets(consumer.assignment())
        while any((consumer.position(each) or 0) < end for each, end in ends.items()):
            for partition, records in consumer.poll(timeout_ms=1000).items():
                found[partition.partition] += [record.value for record in records]
    assert sum(ends.values()) == sum(len(values) for values in sent.values()), "nothing is doubled"
    return dict(found)


def committed(bootstrap: str) -> dict[int, int | None]:
    with KafkaConsumer(bootstrap_servers=bootstrap, group_id=GROUP, enable_auto_commit=False) as consumer:
        return {index: consumer.committed(TopicPartition("orders", index)) for index in range(PARTITIONS)}


def consume_some(bootstrap: str) -> None:
    """A group that commits where it is."""
    with KafkaConsumer(
        "orders", bootstrap_servers=bootstrap, group_id=GROUP, auto_offset_reset="earliest", enable_auto_commit=False
    ) as consumer:
        while not consumer.poll(timeout_ms=500):
            continue
        consumer.commit()


def leaders(odradek: Commands, topic: str) -> list[int]:
    [described] = odradek.json("topics", "describe", topic)
    return sorted(each["leader"] for each in described["partitions"])


def in_one_process(data_dir: Path) -> OdradekCluster:
    return OdradekCluster(data_dir, *SETTINGS)


def in_processes(data_dir: Path) -> SupervisedCluster:
    """Topics have one replica by default there."""
    return SupervisedCluster(data_dir, brokers=4)


@pytest.mark.parametrize(
    ("cluster_on", "counts"),
    [
        pytest.param(in_one_process, [2, 2, 2], id="one process"),
        pytest.param(in_processes, [1, 1, 2, 2], id="four processes", marks=pytest.mark.only_in_compat),
    ],
)
def test_every_record_is_there_after_the_way_to_several_brokers_and_back(
    cluster_on: Callable[[Path], OdradekCluster | SupervisedCluster], counts: list[int], tmp_path: Path
) -> None:
    serve_dir, cluster_dir = tmp_path / "serve", tmp_path / "cluster"
    way = (str(serve_dir), "--data-dir", str(cluster_dir))
    sent: dict[int, list[bytes]] = {index: [] for index in range(PARTITIONS)}
    with OdradekBroker(serve_dir, *SETTINGS) as broker:
        odradek = Commands(broker)
        odradek.run("topics", "create", "orders", "--partitions", str(PARTITIONS))
        with KafkaProducer(bootstrap_servers=broker.bootstrap, acks="all") as producer:
            for number in range(FIRST_RECORDS):
                partition = number % PARTITIONS
                sent[partition].append(b"first-%d" % number)
                producer.send("orders", sent[partition][-1], partition=partition)
        consume_some(broker.bootstrap)
        offsets = committed(broker.bootstrap)
        assert any(offsets.values())
        cluster_id = odradek.json("cluster", "status")["cluster_id"]
        odradek.run("cluster", "take", *way, code=1)
        assert "another running broker holds the lock file; stop the broker that runs on it" in odradek.said
    assert b"would rename" in odradek.run("cluster", "take", *way, "--dry-run")
    assert serve_dir.is_dir()
    odradek.run("cluster", "take", *way)
    with cluster_on(cluster_dir) as cluster:
        odradek = Commands(cluster)
        assert odradek.json("cluster", "status")["cluster_id"] == cluster_id
        assert leaders(odradek, "orders") == [0] * PARTITIONS
        with load(cluster.bootstrap, sent):
            odradek.run("partitions", "spread", "--execute", "--lot", "3", "--throttle", "100000000")
        assert sorted(Counter(leaders(odradek, "orders")).values()) == counts
        assert set(leaders(odradek, "__consumer_offsets")) == set(range(len(counts)))
        assert committed(cluster.bootstrap) == offsets
        _stop(cluster)
        odradek.run("cluster", "take", *way, "--back", code=1)
        assert "have replicas on other brokers than 0" in odradek.said
        assert "odradek partitions spread --brokers 0 --execute" in odradek.said
        cluster.start()
        with load(cluster.bootstrap, sent):
            odradek.run("partitions", "spread", "--brokers", "0", "--execute")
        assert leaders(odradek, "orders") == [0] * PARTITIONS
    odradek.run("cluster", "take", *way, "--back")
    with OdradekBroker(serve_dir, *SETTINGS) as broker:
        odradek = Commands(broker)
        assert [each["node_id"] for each in odradek.json("cluster", "status")["brokers"]] == [0]
        assert read(broker.bootstrap, sent) == sent
        assert committed(broker.bootstrap) == offsets


def _stop(process: ChildProcess) -> None:
    assert process.terminate() == 0
