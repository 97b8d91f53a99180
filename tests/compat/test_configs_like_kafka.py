"""DescribeConfigs asked of both brokers over the wire: a fresh topic, the broker, all brokers, in every respect.

`test_options_of_kafka.py` compares the rows and what becomes of values that were set; here it is what a client sees of
a broker that was told nothing. A difference stands in its row's `deviation`, or below where the test itself makes it.
Kafka's options that we do not have stand in broker/config/kafka_options.py; one that comes or goes is noticed here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from odradek.broker.config.broker_options import BROKER_OPTIONS
from odradek.broker.config.kafka_options import NOT_HERE
from odradek.broker.config.option import Option
from odradek.broker.config.topic_options import TOPIC_OPTIONS
from odradek.protocol.configs import Operation
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
)
from odradek.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from processes.apache_kafka import ApacheKafka
from processes.odradek_broker import OdradekBroker
from tests.compat.peer import Peer

pytestmark = [pytest.mark.compat, pytest.mark.only_in_compat, pytest.mark.java, pytest.mark.slow]

TOPIC, BROKER, GROUP = 2, 4, 32
NODE_ID = "1"
SET_BY_THE_TEST = {
    "group.initial.rebalance.delay.ms": "the test's Kafka does not wait",
    "offsets.topic.num.partitions": "the test's Kafka has one broker, and starts quickly",
    "offsets.topic.replication.factor": "the test's Kafka has one broker",
    "transaction.state.log.min.isr": "the test's Kafka has one broker",
    "transaction.state.log.num.partitions": "the test's Kafka has one broker, and starts quickly",
    "transaction.state.log.replication.factor": "the test's Kafka has one broker",
    "advertised.listeners": "the test's Kafka is told, our broker is not",
    "log.dirs": "each has a directory of its own",
}
DESCRIBED_DIFFERENTLY = {
    "advertised.listeners",
    "broker.heartbeat.interval.ms",
    "broker.session.timeout.ms",
    "config.providers",
    "group.initial.rebalance.delay.ms",
    "listener.security.protocol.map",
    "listeners",
    "log.dir",
    "log.dirs",
    "min.insync.replicas",
    "node.id",
    "offsets.topic.num.partitions",
    "offsets.topic.replication.factor",
    "queued.max.request.bytes",
    "transaction.state.log.min.isr",
    "transaction.state.log.num.partitions",
    "transaction.state.log.replication.factor",
}
"""All of the broker's options that differ: one more or one less is to be looked at."""

NOT_DESCRIBED_BY_KAFKA = {
    "act.as",
    "connection.authentication.timeout.ms",
    "follower.replication.throttled.rate",
    "leader.replication.throttled.rate",
    *(name for name in BROKER_OPTIONS if name.startswith("metadata.")),
    "log.initial.task.delay.ms",
    "max.unauthenticated.connections",
    "max.unauthenticated.connections.per.ip",
    "metrics.group.lag.max.series",
    "producer.id.expiration.check.interval.ms",
    "record.validation",
    "request.log.slower.than.ms",
    "sasl.oauthbearer.allow.unsecured.tokens",
    "sasl.oauthbearer.required.scope",
    "sasl.plain.password.file",
    "secure",
}
"""Those of the metadata store, strangers, lag, validation, the request log, SASL, `act.as` and `secure` are our own,
the others internal ones of Kafka."""

CHECKED_BY_KAFKA = {
    NODE_ID: ["ssl.engine.factory.class", "cordoned.log.dirs"],
    "": [],
}
"""Those that Kafka describes without a value that it would take: here nobody looks at the values of such options."""

Shape = tuple[str | None, int, int, bool, bool, list[tuple[str, str | None, int]]]


def shape(entry: DescribeConfigsResourceResult) -> Shape:
    """Value, source, type, read-only, sensitive, synonyms."""
    synonyms = [(synonym.name, synonym.value, synonym.source) for synonym in entry.synonyms]
    return entry.value, entry.config_source, entry.config_type, entry.read_only, entry.is_sensitive, synonyms


@dataclass(frozen=True, slots=True)
class Both:
    """The two brokers, asked the same."""

    theirs: Peer
    ours: Peer

    def describe(
        self, resource_type: int, name: str, **asked: Any
    ) -> tuple[dict[str, DescribeConfigsResourceResult], dict[str, DescribeConfigsResourceResult]]:
        """Their answer and ours, by name."""
        return describe(self.theirs, resource_type, name, **asked), describe(self.ours, resource_type, name, **asked)


def describe(
    peer: Peer,
    resource_type: int,
    name: str,
    *,
    version: int = 4,
    keys: list[str] | None = None,
    synonyms: bool = True,
    documentation: bool = False,
) -> dict[str, DescribeConfigsResourceResult]:
    resource = DescribeConfigsResource(resource_type=resource_type, resource_name=name, configuration_keys=keys)
    request = DescribeConfigsRequest(
        resources=[resource], include_synonyms=synonyms, include_documentation=documentation
    )
    [result] = peer.ask(request, version).results
    assert result.error_code == 0, result.error_message
    entries = {entry.name: entry for entry in result.configs}
    assert len(entries) == len(result.configs)
    return entries


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    data_dir = tmp_path_factory.mktemp("configs") / "data"
    with (
        ApacheKafka() as kafka,
        OdradekBroker(data_dir, "--node-id", NODE_ID) as odradek,
        Peer(kafka.host, kafka.port) as theirs,
        Peer(odradek.host, odradek.port) as ours,
    ):
        for peer in (theirs, ours):
            peer.create_topic("fresh")
        yield Both(theirs, ours)


def differences(
    theirs: dict[str, DescribeConfigsResourceResult], ours: dict[str, DescribeConfigsResourceResult]
) -> dict[str, tuple[Shape, Shape]]:
    """What both have and describe differently: their shape and ours."""
    return {
        name: (shape(theirs[name]), shape(ours[name]))
        for name in sorted(theirs.keys() & ours.keys())
        if shape(theirs[name]) != shape(ours[name])
    }


def unexplained(differing: dict[str, tuple[Shape, Shape]], rows: dict[str, Option[Any]]) -> dict[str, Any]:
    return {
        name: shapes
        for name, shapes in differing.items()
        if name not in SET_BY_THE_TEST and (name not in rows or not rows[name].deviation)
    }


def test_a_fresh_topic_is_described_as_kafka_does(both: Both) -> None:
    theirs, ours = both.describe(TOPIC, "fresh")
    assert set(theirs) - set(ours) == set()
    assert set(ours) - set(theirs) == {"record.validation"}
    differing = differences(theirs, ours)
    assert unexplained(differing, TOPIC_OPTIONS) == {}
    assert set(differing) == {"min.insync.replicas"}


def test_the_broker_is_described_as_kafka_does(both: Both) -> None:
    theirs, ours = both.describe(BROKER, NODE_ID)
    assert set(ours) - set(theirs) == NOT_DESCRIBED_BY_KAFKA
    assert [name for name in NOT_DESCRIBED_BY_KAFKA if not BROKER_OPTIONS[name].deviation] == []
    differing = differences(theirs, ours)
    assert unexplained(differing, BROKER_OPTIONS) == {}
    assert set(differing) == DESCRIBED_DIFFERENTLY


def test_a_group_is_described_as_kafka_does(both: Both) -> None:
    """With nothing of its own, and with some; options of share and streams groups are not here."""
    for name, value in (("", ""), ("consumer.session.timeout.ms", "50000"), ("consumer.assignment.interval.ms", "0")):
        if name:
            codes = [altered(peer, "billing", name, value, kind=GROUP) for peer in (both.theirs, both.ours)]
            assert codes == [ErrorCode.NONE] * 2
            while describe(both.theirs, GROUP, "billing")[name].value != value:
                pass  # Kafka answers before it has followed
        theirs, ours = both.describe(GROUP, "billing")
        assert {each for each in set(theirs) - set(ours) if not each.startswith(("share.", "streams."))} == set()
        assert set(ours) - set(theirs) == set()
        assert differences(theirs, ours) == {}


@pytest.mark.parametrize(
    ("group", "name", "value"),
    [
        ("billing", "consumer.session.timeout.ms", "44999"),
        ("billing", "consumer.session.timeout.ms", "60001"),
        ("billing", "consumer.session.timeout.ms", "x"),
        ("billing", "consumer.heartbeat.interval.ms", "0"),
        ("billing", "consumer.heartbeat.interval.ms", "15001"),
        ("billing", "consumer.assignment.interval.ms", "-1"),
        ("billing", "nope", "1"),
        ("", "consumer.session.timeout.ms", "50000"),
        ("a/b c", "consumer.session.timeout.ms", "50000"),
    ],
)
def test_a_groups_options_are_taken_and_refused_as_kafka_does(both: Both, group: str, name: str, value: str) -> None:
    codes = [altered(peer, group, name, value, kind=GROUP) for peer in (both.theirs, both.ours)]
    assert codes[0] == codes[1]


def test_kafkas_other_options_are_known_and_why_they_are_not_here(both: Both) -> None:
    """Whoever builds one of these parts takes its options out of the table."""
    theirs, ours = both.describe(BROKER, NODE_ID)
    assert set(theirs) - set(ours) == set(NOT_HERE)


@pytest.mark.parametrize("broker", [NODE_ID, ""])
def test_kafkas_other_options_are_refused_and_stored_at_run_time_as_kafka_does(both: Both, broker: str) -> None:
    """Each by itself, with the value that Kafka describes."""
    theirs, _ = both.describe(BROKER, NODE_ID)
    codes = {
        name: [altered(peer, broker, name, theirs[name].value or "x") for peer in (both.theirs, both.ours)]
        for name in NOT_HERE
    }
    different = {name: answers for name, answers in codes.items() if answers[0] != answers[1]}
    assert different == {name: [ErrorCode.INVALID_REQUEST, ErrorCode.NONE] for name in CHECKED_BY_KAFKA[broker]}


def altered(peer: Peer, resource_name: str, name: str, value: str, *, kind: int = BROKER) -> ErrorCode:
    """A broker's is checked alone."""
    change = AlterableConfig(name=name, config_operation=Operation.SET, value=value)
    resource = AlterConfigsResource(resource_type=kind, resource_name=resource_name, configs=[change])
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=kind == BROKER)
    [answer] = peer.ask(request, 1).responses
    return ErrorCode(answer.error_code)


def test_what_was_set_for_all_brokers_is_nothing(both: Both) -> None:
    """But for what Kafka's format command sets, see the row of `min.insync.replicas`."""
    theirs, ours = both.describe(BROKER, "")
    assert (set(theirs), set(ours)) == ({"min.insync.replicas"}, set())


def test_without_synonyms_and_documentation_there_are_none(both: Both) -> None:
    theirs, ours = both.describe(TOPIC, "fresh", synonyms=False)
    for entries in (theirs, ours):
        assert [entry.name for entry in entries.values() if entry.synonyms or entry.documentation is not None] == []


def test_documentation_is_there_when_asked_for(both: Both) -> None:
    theirs, ours = both.describe(TOPIC, "fresh", documentation=True)
    for entries in (theirs, ours):
        assert [entry.name for entry in entries.values() if not entry.documentation] == []


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_names_asked_for_are_answered_and_unknown_ones_left_out(both: Both, version: int) -> None:
    """In every version; types come with 3."""
    asked = ["retention.ms", "no.such.option", "segment.bytes"]
    theirs, ours = both.describe(TOPIC, "fresh", keys=asked, version=version)
    assert set(theirs) == set(ours) == {"retention.ms", "segment.bytes"}
    assert differences(theirs, ours) == {}
