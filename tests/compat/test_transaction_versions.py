"""`transaction.version` is lowered to 1 and to 0 and raised to 2 again while Java 3.9, Java 4 and librdkafka copy in
transactions: each ends what it has begun, and each record is copied once.

A producer hears of another version with its next connection. So in each step transactions go on by the connections that
there are, and then by others, since the broker is killed; it loads what it has written under the version before.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Producer

from benchmarks.harness.metrics_page import read_page
from odradek import Admin, NewTopic
from odradek.client.admin.features import FeatureChange
from odradek.testing.sim.checking.numbered import encoded
from processes.cluster_processes import Processes
from processes.free_ports import free_ports
from processes.jars import EARLIER_CLIENTS
from processes.odradek_broker import OdradekBroker
from tests.cluster.client_session import Job
from tests.cluster.clients import Client
from tests.cluster.committed_reader import CommittedReader
from tests.cluster.java_copier import JavaCopier
from tests.compat.clusters import eventually

pytestmark = [pytest.mark.compat, pytest.mark.only_in_compat, pytest.mark.java, pytest.mark.timeout(180)]

COPIERS: Final[dict[str, Callable[[Job, Path], Client]]] = {
    "java-3.9": partial(JavaCopier, clients=EARLIER_CLIENTS),
    "java-4": JavaCopier,
    "librdkafka": Client,
}
PARTITIONS: Final = 3
FEED: Final = 300
"""Records a step: at least five transactions of each copier."""
ABORTED: Final = 5_000
"""Java's copier ends when it has copied as many records as there were offsets behind its own when it joined last. It
does not get to that with so many offsets of which no record counts."""
PATIENCE_S: Final = 40.0
FEATURE: Final = "transaction.version"
OPTIONS: Final = ("--set", "transaction.state.log.num.partitions=4", "--set", "offsets.topic.num.partitions=4")
OF_VERSION_2: Final = re.compile(
    r'^kafka_network_requestmetrics_requests_total\{request="Produce",version="1[2-9]"\} (\d+)', re.M
)
FATAL: Final = re.compile("(?i)fatal|ProducerFenced|begins anew|UNSUPPORTED_VERSION|INVALID_TXN_STATE|INVALID_PRODUCER")


@dataclass
class World:
    """A broker, and a copier of each kind, with topics of its own."""

    broker: OdradekBroker
    metrics: str
    processes: Processes
    copiers: dict[str, Client] = field(default_factory=dict[str, Client])
    readers: dict[str, CommittedReader] = field(default_factory=dict[str, CommittedReader])
    fed: int = 0

    def start(self) -> None:
        asyncio.run(make_topics(self.broker.bootstrap))
        for name, kind in COPIERS.items():
            have_aborted(self.broker.bootstrap, source(name))
            copier = kind(self._job(name), self.processes.log_file(name))
            self.copiers[name] = self.processes.add(copier)
            self.readers[name] = CommittedReader(self.broker.bootstrap, target(name), PARTITIONS)
        self.processes.start(*self.copiers.values())

    def _job(self, name: str) -> Job:
        return Job(
            f"{name}-copier",
            name,
            self.broker.bootstrap,
            source(name),
            0,
            str(self.processes.directory / f"{name}.history"),
            group=f"copiers-of-{name}",
            transactional_id=name,
            target=target(name),
            target_partitions=PARTITIONS,
        )

    def feed(self, count: int) -> None:
        """Of each source."""
        producer = Producer({"bootstrap.servers": self.broker.bootstrap})
        for number in range(self.fed, self.fed + count):
            for name in COPIERS:
                producer.produce(source(name), encoded(number), partition=number % PARTITIONS)
        assert producer.flush(PATIENCE_S) == 0
        self.fed += count

    def copied(self) -> dict[str, int]:
        """How many records of each are committed."""
        for name, copier in self.copiers.items():
            assert copier.is_running, f"{name} ended: {copier.output[-4_000:]}"
        with ThreadPoolExecutor() as pool:
            list(pool.map(CommittedReader.catch_up, self.readers.values()))
        return {name: reader.counts.total() for name, reader in self.readers.items()}

    def feed_until_commits(self) -> None:
        """Each copier has committed, of what may take it longer."""
        before = self.copied()
        self.feed(FEED)
        eventually(lambda: all(count > before[name] for name, count in self.copied().items()), True, PATIENCE_S)

    def wait_until_copied(self) -> None:
        eventually(self.copied, dict.fromkeys(COPIERS, self.fed), PATIENCE_S)

    def kill_broker(self) -> None:
        """It is there again when this returns. Java 4 joins again for it, from the offsets that it has committed."""
        javas = [copier for copier in self.copiers.values() if isinstance(copier, JavaCopier)]
        for copier in javas:
            copier.pause()
            have_aborted(self.broker.bootstrap, copier.job.topic)
        self.broker.kill()
        for copier in javas:
            copier.resume()
        self.broker.start()

    def uses_version_2(self) -> bool:
        """Whether a copier writes by it now, as only Java 4 can. What it has heard counts from the second transaction
        on."""
        counts: list[int] = []
        for _ in range(2):
            self.feed(FEED // 5)
            self.wait_until_copied()
            counts.append(self._of_version_2())
        return counts[1] > counts[0]

    def _of_version_2(self) -> int:
        return sum(map(int, OF_VERSION_2.findall(read_page(self.metrics))))


def source(name: str) -> str:
    return f"to-be-copied-by-{name}"


def target(name: str) -> str:
    return f"copied-by-{name}"


async def make_topics(bootstrap: str) -> None:
    async with Admin(bootstrap) as admin:
        await admin.create_topics([NewTopic(of(name), PARTITIONS, 1) for name in COPIERS for of in (source, target)])


def have_aborted(bootstrap: str, topic: str) -> None:
    producer: Any = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"aborting-{topic}"})
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    for number in range(ABORTED):
        producer.produce(topic, b"aborted", partition=number % PARTITIONS)
    producer.flush(PATIENCE_S)
    producer.abort_transaction(PATIENCE_S)


async def set_version(bootstrap: str, version: int) -> None:
    change = FeatureChange.SAFE_DOWNGRADE if version < 2 else FeatureChange.UPGRADE
    async with Admin(bootstrap) as admin:
        await admin.update_features({FEATURE: version}, change)
        assert ((await admin.describe_features())[FEATURE].finalized or 0) == version


async def under_way(bootstrap: str) -> list[str]:
    """The transactions that have not ended."""
    async with Admin(bootstrap) as admin:
        states = ("Ongoing", "PrepareCommit", "PrepareAbort")
        return [each.transactional_id for each in (await admin.list_transactions()) if each.state in states]


@pytest.fixture
def world(tmp_path: Path) -> Generator[World]:
    metrics = f"127.0.0.1:{free_ports(1)[0]}"
    with Processes(tmp_path) as processes:
        broker = processes.broker(0, *OPTIONS, "--metrics", metrics)
        broker.start()
        world = World(broker, metrics, processes)
        yield world
        for copier in world.copiers.values():
            copier.kill()  # Java's own way to end uses its consumer in two threads


def test_transaction_versions_go_down_and_up_while_clients_copy(world: World) -> None:
    world.start()
    assert world.uses_version_2()
    for version in (1, 0, 2):
        world.feed_until_commits()
        asyncio.run(set_version(world.broker.bootstrap, version))
        world.feed_until_commits()
        world.kill_broker()
        world.wait_until_copied()
        assert world.uses_version_2() is (version == 2)
    for name, reader in world.readers.items():
        assert reader.counts == Counter(range(world.fed)), name
        assert not FATAL.search(world.copiers[name].output), name
    eventually(lambda: asyncio.run(under_way(world.broker.bootstrap)), [])
