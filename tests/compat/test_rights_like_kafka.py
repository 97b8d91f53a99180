"""The matrix of rights: each API by each kind of user and ACL, asked of Apache Kafka 4.3.1 and of `odradek serve`, both
with StandardAuthorizer. The answers are equal, field by field, or the difference stands in `rights_differences.py`.

The users are in `rights_principals.py`, the requests in `rights_questions*.py`, the clusters in `rights_world.py`.
"""

from collections.abc import Iterator

import pytest

from odradek.broker.handling.context import Api
from odradek.broker.served import SERVED
from processes.apache_kafka import ApacheKafka
from processes.free_ports import free_ports
from processes.odradek_broker import LOOPBACK, OdradekBroker, settings_words
from tests.compat import rights_questions_of_admin, rights_questions_of_data, rights_questions_of_groups
from tests.compat.admin_leaves import leaves_of
from tests.compat.rights_differences import RULES, reason_for
from tests.compat.rights_principals import CLUSTER, GROUP, PRINCIPALS, SUPER, TOPIC, TXN, concerned
from tests.compat.rights_questions import QUESTIONS, Question
from tests.compat.rights_shapes import Shape, errors_in, shape_of
from tests.compat.rights_world import SETTINGS, TOPIC_NAME, World, world_of

pytestmark = [pytest.mark.compat, pytest.mark.java, pytest.mark.slow, pytest.mark.only_in_compat]

ASKED_IN = (rights_questions_of_admin, rights_questions_of_data, rights_questions_of_groups)
"""Importing them fills `QUESTIONS`."""
BY_NAME = {api.name: api for api in SERVED}
EVERY_KIND = frozenset((TOPIC, GROUP, CLUSTER, TXN))
SASL = "SASL_PLAINTEXT"
HIDDEN = "another-topic"
"""Of which only those know who may do everything."""
NOT_ASKED = {
    "ApiVersions": "it asks for no right",
    "SaslHandshake": "it asks for no right",
    "SaslAuthenticate": "it asks for no right",
    "BrokerHeartbeat": "Apache Kafka serves it to brokers alone; tests/broker/api/test_broker_heartbeat.py",
    "Envelope": "Apache Kafka serves it to brokers alone; tests/broker/api/test_envelope.py",
}
HIDES = {"DescribeCluster", "DescribeTopicPartitions", "ListGroups", "ListTransactions", "Metadata"}
"""What leaves out what may not be seen, and refuses nothing."""
SAME_FOR_ALL = {
    "Produce 3 of a transaction without an id",
    "Produce 13 of a transaction without an id",
    "FindCoordinator 5 of share groups",
}
"""What nobody may, whatever his rights."""
IN_PART = {"AddPartitionsToTxn 0", "AddPartitionsToTxn 3"}
"""What nobody may in part: the topics of coordinators are in no transaction."""
WITHOUT_CODE = {"DescribeLogDirs 1", "DescribeLogDirs 1 all"}
"""What has no place for the error that it is: the answer is empty."""
DENIALS = frozenset(
    f"{what}_AUTHORIZATION_FAILED" for what in ("TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN")
)


@pytest.fixture(scope="module")
def kafka() -> Iterator[World]:
    with (
        ApacheKafka(properties=SETTINGS, listeners=[SASL]) as running,
        world_of(running.host, running.port, running.ports[SASL]) as world,
    ):
        yield world


@pytest.fixture(scope="module")
def odradek(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    data_dir, (port,) = tmp_path_factory.mktemp("rights") / "data", free_ports(1)
    listener = ("--listen", f"{SASL}={LOOPBACK}:{port}")
    with (
        OdradekBroker(data_dir, "--node-id", "1", *listener, *settings_words(SETTINGS)) as running,
        world_of(running.host, running.port, port) as world,
    ):
        yield world


def users_of(question: Question) -> list[str]:
    """Those of whom the answer may depend on what they may do."""
    api = BY_NAME.get(question.api)
    return concerned(EVERY_KIND if api is None else frozenset(kind for _, kind in api.needs))


def answer(world: World, question: Question, user: str) -> Shape:
    """The shape of what the user is answered; then everything is as it was."""
    question.renew(world, None)
    answered = world.ask(user, question.make(world), question.version)
    shape = shape_of(world, answered)
    question.renew(world, answered)
    return shape


@pytest.mark.parametrize("name", QUESTIONS)
def test_rights_are_those_of_kafka(kafka: World, odradek: World, name: str) -> None:
    question = QUESTIONS[name]
    found: list[str] = []
    for user in users_of(question):
        theirs, ours = answer(kafka, question, user), answer(odradek, question, user)
        found += [
            f"{user}: {'.'.join(leaf.path)} is {leaf.ours!r}, and in Kafka {leaf.theirs!r}"
            for leaf in leaves_of(theirs, ours)
            if reason_for(question, leaf) is None
        ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", QUESTIONS)
def test_questions_tell_users_apart(kafka: World, name: str) -> None:
    """Else the matrix would show nothing: who may nothing is refused or sees less, and who may everything is not."""
    question = QUESTIONS[name]
    nobody, everything, root = (answer(kafka, question, user) for user in ("none", "everything", SUPER))
    assert everything == root
    if name in SAME_FOR_ALL:
        assert nobody == everything
    elif question.api in HIDES:
        assert nobody != everything or "operations" not in question.name
    elif name in WITHOUT_CODE:
        assert nobody["results"] == [] != everything["results"]
    else:
        assert errors_in(nobody) & DENIALS
    assert name in SAME_FOR_ALL | IN_PART or not errors_in(everything) & DENIALS


def test_an_expression_matches_what_its_member_may_describe(kafka: World, odradek: World) -> None:
    for world in (kafka, odradek):
        world.make(HIDDEN)
        try:
            assert world.matched("consumer", ".*topic") == {TOPIC_NAME}
            assert world.matched("everything", ".*topic") == {TOPIC_NAME, HIDDEN}
        finally:
            world.remove(HIDDEN)


def test_every_api_is_asked_in_its_lowest_and_highest_version() -> None:
    asked: dict[str, set[int]] = {}
    for question in QUESTIONS.values():
        asked.setdefault(question.api, set()).add(question.version)
    missing = {
        api.name: sorted({*common(api)} - asked.get(api.name, set())) for api in SERVED if api.name not in NOT_ASKED
    }
    assert {name: versions for name, versions in missing.items() if versions} == {}


def common(api: Api) -> tuple[int, int]:
    """The lowest and highest version that Apache Kafka 4.3.1 has, too."""
    lowest, highest = api.served
    return lowest, min(highest, {"TxnOffsetCommit": 5}.get(api.name, highest))


def test_differences_are_of_apis_that_are_asked_and_have_reasons() -> None:
    asked = {question.api for question in QUESTIONS.values()}
    assert [rule for rule in RULES if not rule.reason or not asked.issuperset(rule.apis)] == []
    assert len(PRINCIPALS) > len(concerned(frozenset((TOPIC,))))
