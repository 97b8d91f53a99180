"""ACLs as clients send them: what is taken, and what is refused with Kafka's words."""

from typing import Any

import pytest

from odradek.broker.access.acl import AclBinding, AclCodes, PatternType, Permission, binding_of
from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import ResourceType
from odradek.protocol.errors import ErrorCode, KafkaError

GOOD = AclCodes(2, "orders", 3, "User:alice", "*", 3, 3)


def test_what_is_good_is_taken() -> None:
    expected = AclBinding(
        ResourceType.TOPIC, "orders", PatternType.LITERAL, "User:alice", "*", Operation.READ, Permission.ALLOW
    )
    assert binding_of(GOOD) == expected
    assert str(expected) == (
        "StandardAcl(resourceType=TOPIC, resourceName=orders, patternType=LITERAL, principal=User:alice, host=*, "
        "operation=READ, permissionType=ALLOW)"
    )


@pytest.mark.parametrize("kind", ResourceType)
@pytest.mark.parametrize("operation", Operation)
def test_every_type_and_operation_may_be_kept(kind: ResourceType, operation: Operation) -> None:
    name = "kafka-cluster" if kind is ResourceType.CLUSTER else "x"
    binding = binding_of(GOOD._replace(kind=kind, name=name, operation=operation, pattern=4, permission=2))
    assert (binding.kind, binding.operation, binding.pattern, binding.permission) == (
        kind,
        operation,
        PatternType.PREFIXED,
        Permission.DENY,
    )


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        (GOOD._replace(kind=4), "The only valid name for the CLUSTER resource is kafka-cluster"),
        (GOOD._replace(name=""), "Invalid empty resource name"),
        (GOOD._replace(kind=1), "Invalid resourceType ANY"),
        (GOOD._replace(kind=99), "Invalid resourceType UNKNOWN"),
        (GOOD._replace(pattern=1), "Invalid patternType ANY"),
        (GOOD._replace(pattern=2), "Invalid patternType MATCH"),
        (GOOD._replace(pattern=-1), "Invalid patternType UNKNOWN"),
        (GOOD._replace(operation=1), "Invalid operation ANY"),
        (GOOD._replace(operation=16), "Invalid operation UNKNOWN"),
        (GOOD._replace(permission=1), "Invalid permissionType ANY"),
        (GOOD._replace(permission=4), "Invalid permissionType UNKNOWN"),
        (GOOD._replace(principal="alice"), "'alice' is not of the form principalType:principalName"),
        (GOOD._replace(principal=""), "'' is not of the form principalType:principalName"),
    ],
)
def test_what_is_not_is_refused(codes: AclCodes, message: str) -> None:
    with pytest.raises(KafkaError) as raised:
        binding_of(codes)
    assert raised.value.code is ErrorCode.INVALID_REQUEST
    assert raised.value.message.startswith(message)


def test_unknown_in_any_field_makes_the_request_malformed() -> None:
    assert not GOOD.has_unknown
    for field in ("kind", "pattern", "operation", "permission"):
        unknown: dict[str, Any] = {field: 0}
        assert GOOD._replace(**unknown).has_unknown
    assert not GOOD._replace(kind=99).has_unknown, "Kafka reads it, and refuses it then"
