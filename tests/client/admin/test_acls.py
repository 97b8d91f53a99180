"""ACLs as values: which of them a filter matches, what cannot be created, and answers that newer brokers give."""

import pytest

from odradek.client.admin.acls import (
    SUPPORTED,
    AclBinding,
    AclFilter,
    AclOperation,
    AclPatternType,
    AclPermission,
    AclResourceType,
    created_acls,
    deleted_acls,
    described_acls,
    problem_of,
)
from odradek.client.admin.errors import ItemsFailed
from odradek.client.errors.client_errors import BrokerError
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_acls import AclCreationResult, CreateAclsResponse
from odradek.protocol.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsResponse
from odradek.protocol.messages.describe_acls import AclDescription, DescribeAclsResource, DescribeAclsResponse
from tests.client.security_handlers import matching_acl

TOPIC = AclResourceType.TOPIC
LITERAL, PREFIXED, ANY, MATCH = (
    AclPatternType.LITERAL,
    AclPatternType.PREFIXED,
    AclPatternType.ANY,
    AclPatternType.MATCH,
)
READS = AclBinding(TOPIC, "orders", "User:billing", AclOperation.READ)


def named(name: str, pattern: AclPatternType = LITERAL) -> AclBinding:
    return READS._replace(resource_name=name, pattern_type=pattern)


@pytest.mark.parametrize(
    ("pattern", "matched"),
    [
        (LITERAL, {"orders"}),
        (PREFIXED, set[str]()),
        (ANY, {"orders"}),
        (MATCH, {"orders", "*", "ord prefix"}),
    ],
)
def test_a_filter_matches_names_by_its_pattern_type(pattern: AclPatternType, matched: set[str]) -> None:
    acls = {
        "orders": named("orders"),
        "orders2": named("orders2"),
        "*": named("*"),
        "ord prefix": named("ord", PREFIXED),
        "* prefix": named("*", PREFIXED),
        "orders2 prefix": named("orders2", PREFIXED),
    }
    found = AclFilter(TOPIC, "orders", pattern_type=pattern)
    assert {name for name, acl in acls.items() if found.matches(acl)} == matched


@pytest.mark.parametrize("pattern", [LITERAL, PREFIXED, ANY, MATCH])
def test_an_empty_name_matches_no_name(pattern: AclPatternType) -> None:
    found = AclFilter(TOPIC, "", pattern_type=pattern)
    assert not found.matches(named("orders"))
    assert not found.matches(named("ord", PREFIXED))


def test_no_name_matches_every_name_of_the_pattern_type() -> None:
    assert AclFilter().matches(named("orders"))
    assert AclFilter(pattern_type=PREFIXED).matches(named("ord", PREFIXED))
    assert not AclFilter(pattern_type=PREFIXED).matches(named("orders"))


@pytest.mark.parametrize(
    "other",
    [
        READS._replace(resource_type=AclResourceType.GROUP),
        READS._replace(principal="User:Billing"),
        READS._replace(principal="User:billing "),
        READS._replace(operation=AclOperation.WRITE),
        READS._replace(permission=AclPermission.DENY),
        READS._replace(host="10.0.0.7"),
        READS._replace(resource_name="Orders"),
        READS._replace(pattern_type=PREFIXED),
    ],
)
def test_the_exact_filter_matches_nothing_else(other: AclBinding) -> None:
    exact = AclFilter.exactly(READS)
    assert exact.matches(READS)
    assert not exact.matches(other)


@pytest.mark.parametrize(
    ("acl", "problem"),
    [
        (READS._replace(resource_type=AclResourceType.ANY), "resource type is ANY"),
        (READS._replace(pattern_type=MATCH), "pattern type is MATCH"),
        (READS._replace(operation=AclOperation.ANY), "operation is ANY"),
        (READS._replace(operation=AclOperation.UNKNOWN), "operation is UNKNOWN"),
        (READS._replace(permission=AclPermission.ANY), "permission is ANY"),
        (READS._replace(resource_name=""), "name is empty"),
        (READS._replace(principal=""), "principal is empty"),
        (READS._replace(host=""), "host is empty"),
    ],
)
def test_what_says_nothing_definite_cannot_be_created(acl: AclBinding, problem: str) -> None:
    assert problem in (problem_of(acl) or "")


def test_what_is_definite_can_be_created() -> None:
    assert problem_of(READS) is None
    assert problem_of(named("ord", PREFIXED)) is None


def test_numbers_of_a_newer_broker_are_unknown() -> None:
    description = AclDescription(principal="User:a", host="*", operation=99, permission_type=3)
    resource = DescribeAclsResource(resource_type=88, resource_name="x", pattern_type=77, acls=[description])
    (acl,) = described_acls(DescribeAclsResponse(resources=[resource]))
    assert acl.resource_type is AclResourceType.UNKNOWN
    assert acl.pattern_type is AclPatternType.UNKNOWN
    assert acl.operation is AclOperation.UNKNOWN
    assert acl.permission is AclPermission.ALLOW


def test_an_error_of_the_whole_answer_is_raised() -> None:
    with pytest.raises(BrokerError, match="SECURITY_DISABLED") as caught:
        described_acls(DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message="none"))
    assert caught.value.code is ErrorCode.SECURITY_DISABLED


def test_results_without_an_answer_are_left_out() -> None:
    others = [READS, named("payments")]
    assert created_acls(CreateAclsResponse(results=[AclCreationResult()]), others) == {READS: None}


def test_acls_that_could_not_be_deleted_are_told_beside_those_that_were() -> None:
    everything = AclFilter()
    stays = matching_acl(named("payments"), ErrorCode.UNKNOWN_SERVER_ERROR)
    result = DeleteAclsFilterResult(matching_acls=[matching_acl(READS), stays])
    outcome = deleted_acls(DeleteAclsResponse(filter_results=[result]), [everything])[everything]
    assert isinstance(outcome, ItemsFailed)
    assert list(outcome.errors) == [named("payments")]
    assert list(outcome.results) == [READS]


def test_an_acl_is_told_in_words() -> None:
    assert str(READS) == "Allow User:billing Read on Topic orders from any host"
    denied = named("ord", PREFIXED)._replace(
        permission=AclPermission.DENY, host="10.0.0.7", operation=AclOperation.DESCRIBE_CONFIGS
    )
    assert str(denied) == "Deny User:billing DescribeConfigs on Topic prefix ord from 10.0.0.7"


def test_every_resource_that_has_rights_says_which() -> None:
    assert SUPPORTED.keys() == set(AclResourceType) - {AclResourceType.UNKNOWN, AclResourceType.ANY}
