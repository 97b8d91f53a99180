"""The same raw requests sent to each of three nodes of Apache Kafka 4.3.1, and of three brokers of ours.

The questions are in `questions_of_clusters.py` and `questions_of_leadership.py`: what leaders, followers and strangers
to a partition answer, epochs, elections, reassignments.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack

import pytest

from processes.apache_kafka import ApacheKafka
from tests.compat import questions_of_leadership
from tests.compat.admin_fuzz import both_of, told_of
from tests.compat.admin_requests import history
from tests.compat.clusters import THREE_BROKERS, eventually, ours
from tests.compat.kafka_cluster import kafka_cluster
from tests.compat.peer import Peer
from tests.compat.questions import Answer
from tests.compat.questions_of_admin import created, new_topic
from tests.compat.questions_of_clusters import FOLLOWER, LEADER, OF_CLUSTERS, Peers, fetched, produced
from tests.compat.questions_of_leadership import wait_for

pytestmark = [
    pytest.mark.compat,
    pytest.mark.java,
    pytest.mark.slow,
    pytest.mark.three_brokers,
    pytest.mark.timeout(240),
]

ASKED_IN = (questions_of_leadership,)
"""Importing it fills `OF_CLUSTERS`."""
OPTIONS = {"auto.create.topics.enable": "false", "default.replication.factor": "3", "min.insync.replicas": "2"}
SEEDS = range(100, 112)
"""Of the histories of random requests."""
RECORDS = 3
CONFIGS = {"min_insync_replicas": "1", "retention_ms": "-1"}
"""The records are of 2023: Kafka would delete them in the middle of a question."""

Addresses = Mapping[int, tuple[str, int]]


@pytest.fixture(scope="module")
def kafka() -> Iterator[Addresses]:
    with kafka_cluster(**OPTIONS) as nodes:
        yield {node_id: address_of(node) for node_id, node in nodes.items()}


def address_of(node: ApacheKafka) -> tuple[str, int]:
    return node.host, node.port


@pytest.fixture(scope="module")
def odradek(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Addresses]:
    with ours(THREE_BROKERS, tmp_path_factory.mktemp("cluster-answers"), **OPTIONS) as running:
        yield running.places


def answer(addresses: Addresses, name: str) -> Answer:
    """Each question has connections and a topic of its own."""
    topic = name.replace("_", "-")
    with ExitStack() as open_connections:
        peers = {node_id: open_connections.enter_context(Peer(*where)) for node_id, where in addresses.items()}
        make(peers, topic)
        return OF_CLUSTERS[name](peers, topic)


def make(peers: Peers, topic: str) -> None:
    """The topic as questions expect it; returns when followers know that its records may be read."""
    assert created(peers[LEADER], new_topic(topic, -1, -1, [1, 2], [2, 3], **CONFIGS)) == ["NONE"]
    wait_for(peers, topic, 0, 1, [1, 2])
    wait_for(peers, topic, 1, 2, [2, 3])
    # A leader hears of a topic after others do.
    eventually(lambda: fetched(peers[LEADER], topic, 0)[0], "NONE")
    eventually(lambda: fetched(peers[FOLLOWER], topic, 1)[0], "NONE")
    for _ in range(RECORDS):
        assert produced(peers[LEADER], topic, 0)[0] == "NONE"
    eventually(lambda: fetched(peers[FOLLOWER], topic, 0)[:2], ("NONE", RECORDS))


def test_random_admin_requests_are_answered_alike_and_leave_the_same(kafka: Addresses, odradek: Addresses) -> None:
    """Histories of two or three requests, each request to any of the brokers (`admin_fuzz.py`)."""
    with both_of(kafka, odradek) as clusters:
        found = clusters.differences(SEEDS)
        assert not found, "".join(told_of(seed, history(seed, 3), found[seed]) for seed in found)


@pytest.mark.parametrize("name", OF_CLUSTERS)
def test_both_answer_alike(kafka: Addresses, odradek: Addresses, name: str) -> None:
    assert answer(odradek, name) == answer(kafka, name)
