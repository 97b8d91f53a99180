"""`acls explain` and our broker decide alike: the client's rules against the broker's, on random ACLs and questions."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.client.admin.acl_rules import AclDecider, AclQuestion, explained
from odradek.client.admin.acls import (
    CLUSTER_NAME,
    AclBinding,
    AclOperation,
    AclPatternType,
    AclPermission,
    AclResourceType,
)

# By name: the broker's rooms are no part of what the client is typed against.
acl: Any = pytest.importorskip("odradek.broker.access.acl")
acl_index: Any = pytest.importorskip("odradek.broker.access.acl_index")
authorizer: Any = pytest.importorskip("odradek.broker.access.authorizer")
operations: Any = pytest.importorskip("odradek.broker.access.operations")
principal: Any = pytest.importorskip("odradek.broker.access.principal")
resource: Any = pytest.importorskip("odradek.broker.access.resource")

NAMES = ["orders", "ord", "orders2", "*", "o", "payments", CLUSTER_NAME]
PRINCIPALS = ["User:billing", "User:bob", "User:*", "Group:billing"]
HOSTS = ["10.0.0.7", "::ffff:10.0.0.7", "10.0.0.8", "::1", "0:0:0:0:0:0:0:1"]
KINDS = [kind for kind in AclResourceType if kind > AclResourceType.ANY]
OPERATIONS = [operation for operation in AclOperation if operation > AclOperation.ALL]
GROUNDS = {
    AclDecider.SUPER_USER: "SUPER_USER",
    AclDecider.DENY: "ACL",
    AclDecider.ALLOW: "ACL",
    AclDecider.NO_MATCH: "NO_ACL_COUNTS",
    AclDecider.NO_ACLS: "NO_ACL",
}

ACLS = st.builds(
    AclBinding,
    st.sampled_from(KINDS),
    st.sampled_from(NAMES),
    st.sampled_from(PRINCIPALS),
    st.sampled_from([*OPERATIONS, AclOperation.ALL]),
    st.sampled_from([AclPermission.ALLOW, AclPermission.DENY]),
    st.sampled_from(["*", *HOSTS]),
    st.sampled_from([AclPatternType.LITERAL, AclPatternType.PREFIXED]),
)
QUESTIONS = st.builds(
    AclQuestion,
    st.sampled_from(PRINCIPALS),
    st.sampled_from(OPERATIONS),
    st.sampled_from(KINDS),
    st.sampled_from(NAMES),
    st.sampled_from(HOSTS),
)


def of_broker(binding: AclBinding) -> Any:
    return acl.AclBinding(
        resource.ResourceType(int(binding.resource_type)),
        binding.resource_name,
        acl.PatternType(int(binding.pattern_type)),
        binding.principal,
        binding.host,
        operations.Operation(int(binding.operation)),
        acl.Permission(int(binding.permission)),
    )


def principal_of(text: str) -> Any:
    kind, _, name = text.partition(":")
    return principal.Principal(kind, name)


@settings(max_examples=300)
@given(st.lists(ACLS, max_size=8), QUESTIONS, st.booleans(), st.sampled_from([(), ("User:bob",)]))
def test_client_and_broker_decide_alike(
    acls: list[AclBinding], question: AclQuestion, allows: bool, super_users: tuple[str, ...]
) -> None:
    rules = authorizer.Authorizer(
        frozenset(map(principal_of, super_users)),
        allows_without_acl=allows,
        index=acl_index.AclIndex.of(map(of_broker, acls)),
    )
    assert question.host is not None
    decision = rules.decide(
        principal_of(question.principal),
        question.host,
        operations.Operation(int(question.operation)),
        resource.Resource(resource.ResourceType(int(question.resource_type)), question.resource_name),
    )
    answer = explained(acls, question, super_users=super_users, allows_without_acls=allows)
    assert answer.is_allowed == decision.allows
    assert GROUNDS[answer.decider] == decision.ground.name
