"""Which ACLs the options of `odradek acls` come to: what is added, what is looked for, and what is refused."""

import click
import pytest

from odradek.client.admin.acls import (
    CLUSTER_NAME,
    AclBinding,
    AclFilter,
    AclOperation,
    AclPatternType,
    AclPermission,
    AclResourceType,
)
from odradek.client.commands.acl_plan import AclOptions, listed, planned, removed

TOPIC, GROUP = AclResourceType.TOPIC, AclResourceType.GROUP
CLUSTER, TRANSACTIONAL_ID = AclResourceType.CLUSTER, AclResourceType.TRANSACTIONAL_ID
READ, WRITE, DESCRIBE, CREATE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.CREATE
ORDERS, BILLING, PAYER = (TOPIC, "orders"), (GROUP, "billing"), (TRANSACTIONAL_ID, "payer")
ALICE = ("User:alice",)


def test_each_principal_operation_and_host_has_its_acl() -> None:
    options = AclOptions([ORDERS], ["User:a", "User:b"], [READ, WRITE], ["10.0.0.7", "10.0.0.8"], denies=True)
    found = planned(options)
    assert len(found) == 8
    assert found[0] == AclBinding(TOPIC, "orders", "User:a", READ, AclPermission.DENY, "10.0.0.7")
    assert {acl.permission for acl in found} == {AclPermission.DENY}


def test_without_a_host_every_one_is_meant() -> None:
    assert planned(AclOptions([ORDERS], ALICE, [READ])) == [AclBinding(TOPIC, "orders", "User:alice", READ)]


def test_prefixes_are_of_names_and_the_cluster_has_none() -> None:
    found = planned(AclOptions([ORDERS, (CLUSTER, CLUSTER_NAME)], ALICE, [DESCRIBE], is_prefixed=True))
    assert [acl.pattern_type for acl in found] == [AclPatternType.PREFIXED, AclPatternType.LITERAL]


def rights(options: AclOptions) -> dict[tuple[AclResourceType, str], set[AclOperation]]:
    found: dict[tuple[AclResourceType, str], set[AclOperation]] = {}
    for acl in planned(options):
        found.setdefault((acl.resource_type, acl.resource_name), set()).add(acl.operation)
    return found


def test_a_producer_and_a_consumer_get_what_kafka_acls_gives_them() -> None:
    """AclCommand.scala: getProducerResourceFilterToAcls, getConsumerResourceFilterToAcls."""
    assert rights(AclOptions([ORDERS, PAYER], ALICE, is_producer=True)) == {
        ORDERS: {WRITE, DESCRIBE, CREATE},
        PAYER: {WRITE, DESCRIBE},
    }
    assert rights(AclOptions([ORDERS, BILLING], ALICE, is_consumer=True)) == {
        ORDERS: {READ, DESCRIBE},
        BILLING: {READ},
    }
    assert rights(AclOptions([ORDERS, BILLING], ALICE, is_producer=True, is_consumer=True, is_idempotent=True)) == {
        ORDERS: {WRITE, DESCRIBE, CREATE, READ},
        BILLING: {READ},
        (CLUSTER, CLUSTER_NAME): {AclOperation.IDEMPOTENT_WRITE},
    }


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (AclOptions([ORDERS], (), [READ]), "whose right"),
        (AclOptions((), ALICE, [READ]), "on what"),
        (AclOptions([ORDERS], ALICE), "to do what"),
        (AclOptions([ORDERS], ALICE, [AclOperation.CLUSTER_ACTION]), "nobody is asked for ClusterAction on a Topic"),
        (AclOptions([BILLING], ALICE, [WRITE]), "nobody is asked for Write on a Group"),
        (AclOptions([(TOPIC, "*")], ALICE, [READ], is_prefixed=True), "--prefixed and *"),
        (AclOptions([ORDERS], ALICE, [READ], is_producer=True), "neither with --operation nor with --deny"),
        (AclOptions([ORDERS], ALICE, denies=True, is_producer=True), "neither with --operation nor with --deny"),
        (AclOptions([BILLING], ALICE, is_consumer=True), "--consumer needs --topic"),
        (AclOptions([ORDERS], ALICE, is_consumer=True), "--consumer needs --group"),
        (AclOptions([PAYER], ALICE, is_producer=True), "--producer needs --topic"),
        (AclOptions([ORDERS, BILLING], ALICE, is_producer=True), "--producer gives no right on a Group"),
        (AclOptions([ORDERS, BILLING, PAYER], ALICE, is_consumer=True), "gives no right on a TransactionalId"),
        (AclOptions([ORDERS], ALICE, [WRITE], is_idempotent=True), "--idempotent goes with --producer"),
    ],
)
def test_what_says_too_little_or_would_do_nothing_is_refused(options: AclOptions, why: str) -> None:
    with pytest.raises(click.UsageError, match="(?i)" + why.replace("*", r"\*")):
        planned(options)


def test_all_operations_can_be_named_at_once() -> None:
    (acl,) = planned(AclOptions([(AclResourceType.USER, "alice")], ALICE, [AclOperation.ALL]))
    assert acl.operation is AclOperation.ALL


# ------------------------------------------------------------------------------------------------------------ removed
def test_what_is_removed_is_what_the_same_options_add() -> None:
    for options in (
        AclOptions([ORDERS], ALICE, [READ, WRITE], ["10.0.0.7"]),
        AclOptions([ORDERS], ALICE, [READ], ["*"], denies=True, is_prefixed=True),
        AclOptions([ORDERS, BILLING], ALICE, is_consumer=True),
    ):
        assert removed(options) == [AclFilter.exactly(acl) for acl in planned(options)]


def test_what_is_left_out_is_every_one_and_a_grant_is_no_refusal() -> None:
    assert removed(AclOptions([ORDERS])) == [
        AclFilter(TOPIC, "orders", permission=AclPermission.ALLOW, pattern_type=AclPatternType.LITERAL)
    ]
    assert removed(AclOptions((), ALICE, denies=True)) == [
        AclFilter(principal="User:alice", permission=AclPermission.DENY)
    ]
    (prefixes,) = removed(AclOptions((), ALICE, is_prefixed=True))
    assert prefixes.pattern_type is AclPatternType.PREFIXED


def test_every_acl_there_is_can_not_be_removed_at_once() -> None:
    for options in (AclOptions(), AclOptions(operations=[READ]), AclOptions(hosts=["*"]), AclOptions(denies=True)):
        with pytest.raises(click.UsageError, match="which ACLs"):
            removed(options)


# ------------------------------------------------------------------------------------------------------------- listed
def test_lists_are_of_names_principals_or_of_everything() -> None:
    assert listed([], [], is_prefixed=False, matches=False) == [AclFilter()]
    assert listed([ORDERS], ["User:a", "User:b"], is_prefixed=False, matches=True) == [
        AclFilter(TOPIC, "orders", "User:a", pattern_type=AclPatternType.MATCH),
        AclFilter(TOPIC, "orders", "User:b", pattern_type=AclPatternType.MATCH),
    ]
    (prefixes,) = listed([], [], is_prefixed=True, matches=False)
    assert prefixes == AclFilter(pattern_type=AclPatternType.PREFIXED)
    for resources, is_prefixed in (([], False), ([ORDERS], True)):
        with pytest.raises(click.UsageError, match="--match"):
            listed(resources, [], is_prefixed=is_prefixed, matches=True)
