"""Our options beside Apache Kafka's own answer to DescribeConfigs: names, defaults, types, sources, order of synonyms.

Deviations stand here with their reasons; one that Kafka no longer shows fails.
"""

import socket
from collections.abc import Iterator

import pytest

from odradek.broker.config.broker_config import BrokerConfig, ConfigEntry
from odradek.broker.config.broker_options import BROKER_OPTIONS
from odradek.broker.config.option import rows
from odradek.broker.config.topic_options import TOPIC_OPTIONS
from odradek.protocol.codec.codec import decode, encode
from odradek.protocol.configs import Operation
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from odradek.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from processes.apache_kafka import ApacheKafka, ask
from tests.broker.config.security_rows import SecurityRows

pytestmark = [pytest.mark.compat, pytest.mark.only_in_compat, pytest.mark.java, pytest.mark.slow]

TOPIC, BROKER = 2, 4
NODE_ID = "1"
STATIC = {"log.retention.hours": "24", "log.segment.bytes": "5000000", "num.partitions": "3"}
ALTERED = {
    (BROKER, NODE_ID): {"log.segment.bytes": "2000000", "log.roll.ms": "70000"},
    (BROKER, ""): {"log.segment.bytes": "3000000", "message.max.bytes": "2000000", "min.insync.replicas": "1"},
    (TOPIC, "altered"): {"segment.bytes": "4000000", "retention.ms": "9", "min.cleanable.dirty.ratio": "1"},
}
OURS_ALONE = {"record.validation": "how a batch is checked"}
OURS_OF_BROKERS = {
    "act.as": "what clients are told",
    "connection.authentication.timeout.ms": "how long nobody needs to know who it is",
    "max.unauthenticated.connections": "how many nobody needs to know",
    "max.unauthenticated.connections.per.ip": "how many of them from one address",
    "metadata.etcd.ca.location": "how etcd is reached",
    "metadata.etcd.certificate.location": "how etcd is reached",
    "metadata.etcd.key.location": "how etcd is reached",
    "metadata.etcd.password": "how etcd is reached",
    "metadata.etcd.username": "how etcd is reached",
    "metadata.lease.ms": "how long a broker may be silent towards etcd",
    "metadata.request.timeout.ms": "how long etcd may take to answer",
    "metadata.store": "where the metadata lives",
    "secure": "whether a start that leaves a door open is refused",
    "metrics.group.lag.max.series": "how much the metrics page tells of groups",
    "request.log.slower.than.ms": "which requests the request log tells of",
    "sasl.oauthbearer.allow.unsecured.tokens": "whether tokens need a signature",
    "sasl.oauthbearer.required.scope": "what a token's scope has to hold",
    "sasl.plain.password.file": "where hashes of passwords are",
}
INTERNAL = {
    "allow.everyone.if.no.acl.found": "an option of Kafka's authorizer",
    "super.users": "an option of Kafka's authorizer",
    "follower.replication.throttled.rate": "Kafka takes it, and describes it only where it is set",
    "leader.replication.throttled.rate": "Kafka takes it, and describes it only where it is set",
    "log.initial.task.delay.ms": "Kafka takes it, and does not describe it",
    "producer.id.expiration.check.interval.ms": "Kafka takes it, and does not describe it",
}
SET_BY_THE_TEST = {
    "group.initial.rebalance.delay.ms": "the test's Kafka does not wait",
    "offsets.topic.num.partitions": "the test's Kafka has one broker, and starts quickly",
    "offsets.topic.replication.factor": "the test's Kafka has one broker",
    "transaction.state.log.min.isr": "the test's Kafka has one broker",
    "transaction.state.log.num.partitions": "the test's Kafka has one broker, and starts quickly",
    "transaction.state.log.replication.factor": "the test's Kafka has one broker",
    "advertised.listeners": "where the test's Kafka is",
    "listener.security.protocol.map": "its controller's listener is plaintext; Kafka can change it at run time",
    "listeners": "where the test's Kafka is; Kafka can change them at run time, and its default is every address",
    "log.dirs": "where the test's Kafka keeps its data",
    "log.dir": "Kafka's default is /tmp/kafka-logs, ours is ./odradek-data",
}
DEVIATIONS = {
    "broker.heartbeat.interval.ms": "Kafka's default is 2000: a broker that died is known later",
    "broker.session.timeout.ms": "Kafka's default is 9000, likewise",
    "config.providers": "Kafka can change them at run time",
    "queued.max.request.bytes": "Kafka has no limit unless told so; ours is 256 MiB",
}


class Answers:
    """What Kafka describes, by resource and name."""

    def __init__(self, kafka: ApacheKafka) -> None:
        self._sock = socket.create_connection((kafka.host, kafka.port), timeout=30)

    def close(self) -> None:
        self._sock.close()

    def create_topics(self, *names: str) -> None:
        topics = [
            CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[])
            for name in names
        ]
        request = CreateTopicsRequest(topics=topics, timeout_ms=30_000, validate_only=False)
        body = ask(self._sock, api_key=19, api_version=4, body=encode(request, 4))
        response = decode(CreateTopicsResponse, 4, body)
        assert [topic.error_code for topic in response.topics] == [0] * len(names)

    def alter(self, resource: tuple[int, str], values: dict[str, str]) -> None:
        configs = [
            AlterableConfig(name=name, config_operation=Operation.SET, value=text) for name, text in values.items()
        ]
        altered = AlterConfigsResource(resource_type=resource[0], resource_name=resource[1], configs=configs)
        request = IncrementalAlterConfigsRequest(resources=[altered], validate_only=False)
        body = ask(self._sock, api_key=44, api_version=0, body=encode(request, 0))
        (result,) = decode(IncrementalAlterConfigsResponse, 0, body).responses
        assert result.error_code == 0, result.error_message

    def describe(self, resource_type: int, name: str) -> dict[str, DescribeConfigsResourceResult]:
        asked = DescribeConfigsResource(resource_type=resource_type, resource_name=name, configuration_keys=None)
        request = DescribeConfigsRequest(resources=[asked], include_synonyms=True, include_documentation=True)
        body = ask(self._sock, api_key=32, api_version=3, body=encode(request, 3))
        (result,) = decode(DescribeConfigsResponse, 3, body).results
        assert result.error_code == 0, result.error_message
        return {config.name: config for config in result.configs}


@pytest.fixture(scope="module")
def kafka() -> Iterator[Answers]:
    with ApacheKafka(properties=STATIC) as running:
        answers = Answers(running)
        answers.create_topics("plain", "altered")
        for resource, values in ALTERED.items():
            answers.alter(resource, values)
        # The answer to an alteration comes from the controller, before the broker has followed.
        while "log.roll.ms" not in str(answers.describe(TOPIC, "altered")["segment.ms"].synonyms):
            pass
        while answers.describe(TOPIC, "altered")["segment.bytes"].value != "4000000":
            pass
        yield answers
        answers.close()


@pytest.fixture
def config() -> BrokerConfig:
    return BrokerConfig({**STATIC, "node.id": NODE_ID}, ALTERED[BROKER, ""], ALTERED[BROKER, NODE_ID])


Shape = tuple[str | None, int, int, bool, bool, list[tuple[str, str | None, int]]]


def of_kafka(entry: DescribeConfigsResourceResult) -> Shape:
    synonyms = [(synonym.name, synonym.value, synonym.source) for synonym in entry.synonyms]
    return entry.value, entry.config_source, entry.config_type, entry.read_only, entry.is_sensitive, synonyms


def of_ours(entry: ConfigEntry) -> Shape:
    synonyms = [(synonym.name, synonym.value, int(synonym.source)) for synonym in entry.synonyms]
    return entry.value, int(entry.source), int(entry.type), entry.is_read_only, entry.is_sensitive, synonyms


@pytest.mark.parametrize("name", ["plain", "altered"])
def test_a_topic_is_described_as_kafka_does(kafka: Answers, config: BrokerConfig, name: str) -> None:
    """Every option that Kafka has for a topic, with nothing of the topic's own and with some."""
    theirs = {each: of_kafka(entry) for each, entry in kafka.describe(TOPIC, name).items()}
    described = config.describe_topic(ALTERED.get((TOPIC, name), {}))
    ours = {entry.name: of_ours(entry) for entry in described if entry.name not in OURS_ALONE}
    assert ours == theirs
    assert set(OURS_ALONE) == set(TOPIC_OPTIONS) - set(theirs)


def test_a_broker_is_described_as_kafka_does(kafka: Answers, config: BrokerConfig) -> None:
    """The options that we have, each as Kafka has it."""
    theirs = {name: of_kafka(entry) for name, entry in kafka.describe(BROKER, NODE_ID).items()}
    exceptions = OURS_ALONE | OURS_OF_BROKERS | INTERNAL | SET_BY_THE_TEST | DEVIATIONS
    ours = {entry.name: of_ours(entry) for entry in config.describe_broker()}
    different = {name: (shape, theirs.get(name)) for name, shape in ours.items() if shape != theirs.get(name)}
    assert {name: shapes for name, shapes in different.items() if name not in exceptions | {"node.id": ""}} == {}
    assert set(exceptions) - set(different) == set(), "deviations that are none any more"
    assert set(OURS_ALONE | OURS_OF_BROKERS | INTERNAL) == set(BROKER_OPTIONS) - set(theirs)
    # Kafka's node.id has no default, so none stands behind the value.
    assert ours["node.id"][:5] == theirs["node.id"][:5]


def test_all_brokers_are_described_as_kafka_does(kafka: Answers, config: BrokerConfig) -> None:
    theirs = {name: of_kafka(entry) for name, entry in kafka.describe(BROKER, "").items()}
    assert {entry.name: of_ours(entry) for entry in config.describe_default_broker()} == theirs


def test_types_and_read_only_are_kafkas_where_values_deviate(kafka: Answers, config: BrokerConfig) -> None:
    theirs = {name: of_kafka(entry) for name, entry in kafka.describe(BROKER, NODE_ID).items()}
    for entry in config.describe_broker([*SET_BY_THE_TEST, *DEVIATIONS]):
        assert of_ours(entry)[2] == theirs[entry.name][2]
        is_fixed_here = entry.name in ("config.providers", "listener.security.protocol.map", "listeners")
        assert of_ours(entry)[3] == (theirs[entry.name][3] or is_fixed_here)


def test_options_of_a_listener_are_described_as_kafka_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under their own names, in each layer, with what the broker has behind; a secret is not shown."""
    connections, password = "listener.name.plaintext.max.connections", "listener.name.plaintext.ssl.key.password"
    jaas, unknown = "listener.name.plaintext.plain.sasl.jaas.config", "listener.name.plaintext.no.such"
    static = {connections: "50", "max.connections": "1000", jaas: "x required;"}
    of_all, of_one = {connections: "60"}, {connections: "70", password: "hunter2", unknown: "x"}
    for row in rows(SecurityRows).values():
        monkeypatch.setitem(BROKER_OPTIONS, row.name, row)
    monkeypatch.setattr(BROKER_OPTIONS["max.connections"], "per_listener", True)
    config = BrokerConfig({**static, "node.id": NODE_ID}, of_all, of_one)
    with ApacheKafka(properties=static) as running:
        answers = Answers(running)
        answers.alter((BROKER, ""), of_all)
        answers.alter((BROKER, NODE_ID), of_one)
        while unknown not in answers.describe(BROKER, NODE_ID) or not answers.describe(BROKER, ""):
            pass
        names = [connections, password, jaas, unknown, "max.connections"]
        theirs = {name: of_kafka(answers.describe(BROKER, NODE_ID)[name]) for name in names}
        theirs_of_all = {name: of_kafka(entry) for name, entry in answers.describe(BROKER, "").items()}
        answers.close()
    assert {entry.name: of_ours(entry) for entry in config.describe_broker(names)} == theirs
    del theirs_of_all["min.insync.replicas"]  # which its format command sets
    assert {entry.name: of_ours(entry) for entry in config.describe_default_broker()} == theirs_of_all
