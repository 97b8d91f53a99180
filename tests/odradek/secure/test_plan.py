"""What `odradek secure init` takes for hosts and clients, and that no client's rights reach into another's."""

import itertools

import pytest

from odradek.client.admin.acl_rules import AclQuestion, explained
from odradek.client.admin.acls import AclOperation, AclResourceType
from odradek.secure.plan import Plan, PlanRefused, address, checked_clients, checked_hosts, rights_of


def test_hosts_are_names_and_addresses_each_once() -> None:
    hosts = ["b1.example", "10.0.0.7", "::1", "b_1", "b1.example"]
    assert checked_hosts(hosts) == ["b1.example", "10.0.0.7", "::1", "b_1"]


@pytest.mark.parametrize("host", ["", "*", "0", "::", "b1.example:9093", "a b", "fe80::1%eth0", "https://b1", "-b"])
def test_what_no_certificate_can_be_for_is_refused(host: str) -> None:
    with pytest.raises(PlanRefused, match="--host"):
        checked_hosts([host])


def test_a_host_has_to_be_named() -> None:
    with pytest.raises(PlanRefused, match="give --host"):
        checked_hosts([])


def test_clients_come_in_lists() -> None:
    assert checked_clients(["billing, reports", "web-1"]) == ["billing", "reports", "web-1"]
    assert checked_clients([]) == []


@pytest.mark.parametrize(
    ("names", "why"),
    [
        ("", "is no name"),
        ("billing,", "is no name"),
        ("../up", "is no name"),
        (".", "is no name"),
        ("a b", "is no name"),
        ("a=b", "is no name"),
        ("x" * 65, "is no name"),
        ("Admin", "made anyway"),
        ("broker", "made anyway"),
        ("billing,Billing", "stands twice"),
        ("billing,billing.eu", "no other client's name"),
    ],
)
def test_names_that_would_get_into_the_way_are_refused(names: str, why: str) -> None:
    with pytest.raises(PlanRefused, match=why):
        checked_clients([names])


def allowed(client: str, operation: AclOperation, kind: AclResourceType, name: str) -> bool:
    acls = [acl for each in ("billing", "billing2", "reports") for acl in rights_of(each)]
    return explained(acls, AclQuestion(f"User:{client}", operation, kind, name)).is_allowed is True


def test_a_client_may_use_what_bears_its_name() -> None:
    topic, group, txn = AclResourceType.TOPIC, AclResourceType.GROUP, AclResourceType.TRANSACTIONAL_ID
    for name in ("billing", "billing.orders", "billing.a.b"):
        for operation in (AclOperation.READ, AclOperation.WRITE, AclOperation.CREATE, AclOperation.DESCRIBE):
            assert allowed("billing", operation, topic, name)
        assert allowed("billing", AclOperation.READ, group, name)
        assert allowed("billing", AclOperation.WRITE, txn, name)
        assert not allowed("billing", AclOperation.DELETE, topic, name)


def test_no_client_may_use_what_is_another_ones() -> None:
    operations = [each for each in AclOperation if each not in (AclOperation.ANY, AclOperation.UNKNOWN)]
    kinds = (AclResourceType.TOPIC, AclResourceType.GROUP, AclResourceType.TRANSACTIONAL_ID, AclResourceType.CLUSTER)
    for operation, kind in itertools.product(operations, kinds):
        for name in ("billing2", "billing2.orders", "billing-x", "Billing", "orders", "kafka-cluster", "*"):
            assert not allowed("billing", operation, kind, name)


def test_addresses_of_ipv6_have_brackets() -> None:
    assert address("::1", 9093) == "[::1]:9093"
    plan = Plan(["b1.example", "::1"], ["billing"], "/d", "/d/data", "10.0.0.1", 9093)
    assert plan.bootstrap == "b1.example:9093,[::1]:9093"
    assert plan.users == ["admin", "broker", "billing"]
