"""Which ACL decides a question: the rules of Kafka's StandardAuthorizer one by one, and against a naive reading."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.client.admin.acl_rules import AclAnswer, AclDecider, AclQuestion, explained
from odradek.client.admin.acls import AclBinding, AclOperation, AclPatternType, AclPermission, AclResourceType

TOPIC = AclResourceType.TOPIC
READ, WRITE, DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE
DENY, ALLOW = AclPermission.DENY, AclPermission.ALLOW
ASKED = AclQuestion("User:billing", READ, TOPIC, "orders", "10.0.0.7")


def acl(
    name: str = "orders",
    principal: str = "User:billing",
    operation: AclOperation = READ,
    permission: AclPermission = ALLOW,
    host: str = "*",
    pattern: AclPatternType = AclPatternType.LITERAL,
) -> AclBinding:
    return AclBinding(TOPIC, name, principal, operation, permission, host, pattern)


def decided(*acls: AclBinding, operation: AclOperation = READ, host: str | None = "10.0.0.7") -> AclAnswer:
    return explained(acls, AclQuestion("User:billing", operation, TOPIC, "orders", host))


@pytest.mark.parametrize(
    "rule",
    [
        acl(),
        acl("*"),
        acl("ord", pattern=AclPatternType.PREFIXED),
        acl("orders", pattern=AclPatternType.PREFIXED),
        acl(principal="User:*"),
        acl(host="10.0.0.7"),
        acl(host="::ffff:10.0.0.7"),
        acl(operation=AclOperation.ALL),
    ],
)
def test_a_grant_that_applies_decides(rule: AclBinding) -> None:
    assert decided(rule) == AclAnswer(True, AclDecider.ALLOW, rule, ())


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (acl(principal="User:Billing"), "it is for User:Billing"),
        (acl(principal="User:billing "), "it is for User:billing "),
        (acl(host="10.0.0.8"), "it is for the host 10.0.0.8"),
        (acl(operation=WRITE), "it is about Write"),
        (acl(operation=DESCRIBE), "it is about Describe"),
    ],
)
def test_an_acl_of_the_resource_that_does_not_apply_says_why(other: AclBinding, why: str) -> None:
    assert decided(other) == AclAnswer(False, AclDecider.NO_MATCH, None, ((other, why),))


@pytest.mark.parametrize(
    "other",
    [
        acl("orders2"),
        acl("Orders"),
        acl("order"),
        acl("*", pattern=AclPatternType.PREFIXED),
        acl("orders2", pattern=AclPatternType.PREFIXED),
        acl()._replace(resource_type=AclResourceType.GROUP),
    ],
)
def test_an_acl_of_another_resource_counts_for_nothing(other: AclBinding) -> None:
    assert decided(other) == AclAnswer(None, AclDecider.NO_ACLS, None, ())


def test_a_refusal_counts_before_grants_that_name_more() -> None:
    refusal = acl("*", "User:*", AclOperation.ALL, DENY)
    grant = acl()
    assert decided(grant, refusal) == AclAnswer(False, AclDecider.DENY, refusal, ((grant, "it applies, too"),))
    for earlier, later in ((acl("*"), acl(permission=DENY)), (acl(permission=DENY), acl(principal="User:*"))):
        rule = earlier if earlier.permission is DENY else later
        assert decided(earlier, later).rule == decided(later, earlier).rule == rule


def test_grants_imply_that_one_may_look_and_refusals_refuse_what_they_name() -> None:
    for operation in (READ, WRITE, AclOperation.DELETE, AclOperation.ALTER):
        assert decided(acl(operation=operation), operation=DESCRIBE).is_allowed is True
        refused = decided(acl(operation=operation, permission=DENY), operation=DESCRIBE)
        assert refused.decider is AclDecider.NO_MATCH
    assert decided(acl(operation=AclOperation.CREATE), operation=DESCRIBE).is_allowed is False
    configs = AclOperation.DESCRIBE_CONFIGS
    assert decided(acl(operation=AclOperation.ALTER_CONFIGS), operation=configs).is_allowed is True
    assert decided(acl(operation=AclOperation.ALTER), operation=configs).is_allowed is False


def test_a_host_that_is_not_named_is_one_that_no_acl_names() -> None:
    assert decided(acl(host="10.0.0.7"), host=None).is_allowed is False
    assert decided(acl(), host=None).is_allowed is True


def test_without_acls_the_option_of_the_broker_decides() -> None:
    for allows in (True, False, None):
        assert explained([], ASKED, allows_without_acls=allows).is_allowed is allows
    # An ACL for anybody makes the resource one that has ACLs.
    assert explained([acl(principal="User:bob")], ASKED, allows_without_acls=True).is_allowed is False


def test_a_super_user_is_asked_of_no_acl() -> None:
    refusal = acl(permission=DENY)
    assert explained([refusal], ASKED, super_users=["User:billing"]).is_allowed is True
    assert explained([refusal], ASKED, super_users=["User:Billing"]).is_allowed is False


ACLS = st.builds(
    acl,
    st.sampled_from(["orders", "ord", "*", "payments", "o"]),
    st.sampled_from(["User:billing", "User:bob", "User:*"]),
    st.sampled_from([READ, WRITE, DESCRIBE, AclOperation.ALL, AclOperation.ALTER_CONFIGS]),
    st.sampled_from([ALLOW, DENY]),
    st.sampled_from(["*", "10.0.0.7", "10.0.0.8"]),
    st.sampled_from([AclPatternType.LITERAL, AclPatternType.PREFIXED]),
)


def naive(acls: list[AclBinding], asked: AclOperation) -> bool | None:
    """One pass over all ACLs, as one reads Kafka's documentation."""
    verdicts: set[AclPermission] = set()
    has_acls = False
    for each in acls:
        prefixed = each.pattern_type is AclPatternType.PREFIXED
        names = "orders".startswith(each.resource_name) if prefixed else each.resource_name in ("orders", "*")
        if not names:
            continue
        has_acls = True
        operations = {each.operation}
        if each.permission is ALLOW and each.operation in (READ, WRITE):
            operations.add(DESCRIBE)
        if each.permission is ALLOW and each.operation is AclOperation.ALTER_CONFIGS:
            operations.add(AclOperation.DESCRIBE_CONFIGS)
        if each.principal != "User:bob" and each.host != "10.0.0.8" and operations & {asked, AclOperation.ALL}:
            verdicts.add(each.permission)
    if not has_acls:
        return None
    return DENY not in verdicts and ALLOW in verdicts


@given(st.lists(ACLS, max_size=6), st.sampled_from([READ, WRITE, DESCRIBE, AclOperation.DESCRIBE_CONFIGS]))
def test_answers_are_those_of_a_naive_reading(acls: list[AclBinding], asked: AclOperation) -> None:
    answer = decided(*acls, operation=asked)
    assert answer.is_allowed == naive(acls, asked)
    assert answer.rule is None or answer.rule in acls
