"""Rules that change: what is decided, kept and forgotten, what the audit hears, who is answered without certainty."""

import logging

import pytest

from odradek.broker.access import ruled_access
from odradek.broker.access.acl_index import AclIndex
from odradek.broker.access.authorizer import Authorizer
from odradek.broker.access.operations import CLUSTER_OPERATIONS, TOPIC_OPERATIONS, Operation, bit_field
from odradek.broker.access.principal import ANONYMOUS, Principal
from odradek.broker.access.resource import CLUSTER, ResourceType, of_group, of_topic
from odradek.broker.access.ruled_access import RuledAccess
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.access.rules import BOB, Asking, acl

ADMIN = Principal("User", "admin")
BROKER = Principal("User", "broker-1")
READ, WRITE, DESCRIBE = Operation.READ, Operation.WRITE, Operation.DESCRIBE
ORDERS = of_topic("orders")


class Ruled(RuledAccess):
    """Enforced, with `admin` as super user, and certain while it is told so."""

    def __init__(self) -> None:
        self.is_up_to_date = True
        authorizer = Authorizer(frozenset({ADMIN}), allows_without_acl=False, index=AclIndex.of(()))
        super().__init__(authorizer, lambda: self.is_up_to_date)
        self.enforce(True)


@pytest.fixture
def access() -> Ruled:
    return Ruled()


def test_before_it_is_enforced_everybody_may_do_everything(access: Ruled) -> None:
    access.enforce(False)
    assert access.permits(Asking(), READ, ORDERS)
    assert access.permits_any(Asking(), READ, ResourceType.TOPIC)
    assert access.authorized_operations(Asking(), ORDERS) == TOPIC_OPERATIONS
    with pytest.raises(KafkaError):  # whoever may change ACLs may do anything later
        access.require_by_rules(Asking(), Operation.ALTER, CLUSTER)
    access.require_by_rules(Asking(ADMIN), Operation.ALTER, CLUSTER)


def test_a_refusal_says_who_may_not_do_what(access: Ruled) -> None:
    with pytest.raises(KafkaError, match="User:alice may not READ TOPIC orders") as raised:
        access.require(Asking(), READ, ORDERS)
    assert raised.value.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    with pytest.raises(KafkaError) as raised:
        access.require(Asking(), READ, of_group("g"))
    assert raised.value.code is ErrorCode.GROUP_AUTHORIZATION_FAILED


def test_a_change_counts_at_once_and_is_a_new_generation(access: Ruled) -> None:
    assert not access.permits(Asking(), READ, ORDERS)
    assert not access.permits_any(Asking(), READ, ResourceType.TOPIC)
    before = access.generation
    access.change([acl()], ())
    assert access.generation > before
    assert access.permits(Asking(), READ, ORDERS)
    assert access.permits_any(Asking(), READ, ResourceType.TOPIC)
    before = access.generation
    access.change((), [acl()])
    assert access.generation > before
    assert not access.permits(Asking(), READ, ORDERS)
    assert not access.permits_any(Asking(), READ, ResourceType.TOPIC)


def test_a_new_generation_begins_only_with_a_change(access: Ruled) -> None:
    before = access.generation
    access.enforce(True)
    access.permits(Asking(), READ, ORDERS)
    assert access.generation == before
    access.enforce(False)
    assert access.generation > before


def test_what_is_kept_is_by_who_asks_from_where_and_for_what(access: Ruled) -> None:
    access.change([acl(host="10.0.0.1")], ())
    for _ in range(2):
        assert access.permits(Asking(), READ, ORDERS)
        assert not access.permits(Asking(BOB), READ, ORDERS)
        assert not access.permits(Asking(host="10.0.0.2"), READ, ORDERS)
        assert not access.permits(Asking(), WRITE, ORDERS)
        assert not access.permits(Asking(), READ, of_topic("other"))


def test_what_is_kept_is_bounded(access: Ruled, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ruled_access, "KEPT_MAX", 10)
    access.change([acl(name="*")], ())
    for number in range(100):
        assert access.permits(Asking(), READ, of_topic(f"t{number}"))
        assert not access.permits_any(Asking(host=str(number)), WRITE, ResourceType.TOPIC)
        assert access.kept_count <= 20


def test_authorized_operations_are_those_that_are_allowed(access: Ruled, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "kafka.authorizer.logger")
    access.change([acl(READ), acl(Operation.ALTER_CONFIGS)], ())
    assert access.authorized_operations(Asking(), ORDERS) == bit_field(
        READ, DESCRIBE, Operation.ALTER_CONFIGS, Operation.DESCRIBE_CONFIGS
    )
    assert access.authorized_operations(Asking(BOB), ORDERS) == 0
    assert access.authorized_operations(Asking(ADMIN), CLUSTER) == CLUSTER_OPERATIONS
    assert caplog.records == [], "nothing is granted or refused by that"


def test_the_audit_hears_each_refusal_and_grant(access: Ruled, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "kafka.authorizer.logger")
    access.change([acl()], ())
    for _ in range(2):
        access.permits(Asking(), READ, ORDERS)
        access.permits(Asking(), WRITE, ORDERS)
        access.permits(Asking(), WRITE, of_topic("other"), logs_refusal=False)
    assert [record.levelno for record in caplog.records] == [logging.DEBUG, logging.INFO] * 2
    assert access.denied_count == 2


def test_grants_are_not_told_at_info(access: Ruled, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "kafka.authorizer.logger")
    access.permits(Asking(ADMIN), READ, ORDERS)
    assert caplog.records == []


def test_without_certainty_only_super_users_and_brokers_are_answered(access: Ruled) -> None:
    action = acl(Operation.CLUSTER_ACTION, CLUSTER.name, kind=ResourceType.CLUSTER, principal=str(BROKER))
    access.change([acl(), action], ())
    for principal in (ADMIN, BROKER, Asking().principal, BOB, ANONYMOUS):
        assert access.is_certain(Asking(principal))
    access.is_up_to_date = False
    assert not access.is_current
    assert access.is_certain(Asking(ADMIN))
    assert access.is_certain(Asking(BROKER))
    for principal in (Asking().principal, BOB, ANONYMOUS):
        assert not access.is_certain(Asking(principal))
