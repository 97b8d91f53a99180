"""TransactionsCommand of Apache Kafka prints the same about our broker as about Apache Kafka, but for its numbers: what
it finds, what it does not, and what it ends, whole tables and errors."""

import re
from collections.abc import Generator
from contextlib import ExitStack, closing
from typing import Final

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.errors import KafkaError

from processes.apache_kafka import ApacheKafka, run_tool
from tests.compat.clusters import ODRADEK, OPTIONS, Cluster, ours

pytestmark = [
    *(pytest.mark.compat, pytest.mark.java, pytest.mark.slow, pytest.mark.only_in_compat, pytest.mark.timeout(300)),
]

COMMAND: Final = "org.apache.kafka.tools.TransactionsCommand"
TOPIC: Final = "commanded"
OPEN: Final = ("list",), ("list", "--duration-filter", "0"), ("list", "--transactional-id-pattern", "wri.*")
ABOUT: Final = (
    ("describe", "--transactional-id", "writer"),
    ("describe-producers", "--topic", TOPIC, "--partition", "0"),
    ("describe-producers", "--topic", TOPIC, "--partition", "1"),
    ("find-hanging", "--topic", TOPIC),
    ("find-hanging", "--topic", TOPIC, "--partition", "0", "--max-transaction-timeout", "1"),
)
FAILING: Final = (
    ("describe", "--transactional-id", "nobody"),
    ("abort", "--topic", TOPIC, "--partition", "0", "--start-offset", "77"),
    ("abort", "--topic", TOPIC, "--partition", "0"),
    ("find-hanging",),
)
Servers = tuple[Cluster, Cluster]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Generator[Servers]:
    """One of ours and one of Apache Kafka's, each with a topic and a producer whose transaction is open in it."""
    with ExitStack() as stack:
        running = (
            stack.enter_context(ours(ODRADEK, tmp_path_factory.mktemp("commanded"), **OPTIONS)),
            stack.enter_context(ApacheKafka(properties=OPTIONS)),
        )
        for server in running:
            with closing(KafkaAdminClient(bootstrap_servers=server.bootstrap)) as admin:
                admin.create_topics({TOPIC: {"num_partitions": 2, "replication_factor": 1}})
        yield running


def begun(server: Cluster) -> KafkaProducer:
    producer = KafkaProducer(bootstrap_servers=server.bootstrap, transactional_id="writer")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(TOPIC, b"a", partition=0).get(timeout=30)
    return producer


def printed(server: Cluster, *words: str) -> list[str]:
    """Its lines, each number written as 0 and each gap as one blank: a column is as wide as its longest value."""
    said = run_tool(COMMAND, "--bootstrap-server", server.bootstrap, *words, check=False)
    return [re.sub(r"\d+", "0", re.sub(r"\s+", " ", line)).strip() for line in said.splitlines()]


def test_the_command_shows_an_open_transaction_as_of_kafka(servers: Servers) -> None:
    with ExitStack() as stack:
        for server in servers:
            stack.enter_context(closing(begun(server)))
        for words in (*OPEN, *ABOUT):
            about_ours, about_kafka = (printed(server, *words) for server in servers)
            assert about_ours == about_kafka, words


def test_the_command_fails_as_of_kafka(servers: Servers) -> None:
    for words in FAILING:
        about_ours, about_kafka = (printed(server, *words) for server in servers)
        assert about_ours == about_kafka, words


def test_the_command_ends_a_transaction_as_of_kafka(servers: Servers) -> None:
    """By its transactional id; its producer is fenced."""
    for server in servers:
        with closing(begun(server)) as producer:
            assert printed(server, "forceTerminateTransaction", "--transactionalId", "writer") == []
            with pytest.raises(KafkaError):
                producer.commit_transaction()
    about_ours, about_kafka = (printed(server, "describe", "--transactional-id", "writer") for server in servers)
    assert about_ours == about_kafka
