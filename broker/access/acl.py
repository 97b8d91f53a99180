"""One ACL: who may, or may not, do what with which resources, from where (AclBinding.java, StandardAcl.java). Pure.

A resource pattern is literal (the name, or `*` for every resource of the type) or prefixed. Principals are texts, as
`User:alice`, `User:*` for everybody; hosts are addresses, `*` for every one.

What a client sends comes in Kafka's codes; `binding_of` checks them as Kafka's controller does
(AclControlManager.validateNewAcl, AclApis). Beyond Kafka, a principal without a colon is refused: Kafka stores such an
ACL, and fails every request that comes across it.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final, NamedTuple, TypeVar

from odradek.broker.access.operations import Operation
from odradek.broker.access.principal import parse_principal
from odradek.broker.access.resource import CLUSTER, ResourceType
from odradek.protocol.errors import ErrorCode, KafkaError

WILDCARD: Final = "*"
UNKNOWN: Final = 0
"""The code that no field of a request may hold."""
_NOT_IN_ACLS: Final[Mapping[int, str]] = {1: "ANY", 2: "MATCH"}
"""Codes that stand in filters only; 2 is MATCH of pattern types alone."""


class PatternType(IntEnum):
    """With Kafka's codes."""

    LITERAL = 3
    PREFIXED = 4


class Permission(IntEnum):
    """With Kafka's codes."""

    DENY = 2
    ALLOW = 3


class AclBinding(NamedTuple):
    """Two that are equal are one."""

    kind: ResourceType
    name: str
    pattern: PatternType
    principal: str
    host: str
    operation: Operation
    permission: Permission

    def __str__(self) -> str:
        """As Kafka's log has it."""
        return (
            f"StandardAcl(resourceType={self.kind.name}, resourceName={self.name}, patternType={self.pattern.name}, "
            f"principal={self.principal}, host={self.host}, operation={self.operation.name}, "
            f"permissionType={self.permission.name})"
        )


class AclCodes(NamedTuple):
    """An ACL as a request has it."""

    kind: int
    name: str
    pattern: int
    principal: str
    host: str
    operation: int
    permission: int

    @property
    def has_unknown(self) -> bool:
        """Whether a field says UNKNOWN, which makes the whole request malformed (CreateAclsRequest.validate)."""
        return UNKNOWN in (self.kind, self.pattern, self.operation, self.permission)


_E = TypeVar("_E", bound=IntEnum)


def binding_of(codes: AclCodes) -> AclBinding:
    """Raises KafkaError INVALID_REQUEST, with Kafka's words."""
    if codes.kind == ResourceType.CLUSTER and codes.name != CLUSTER.name:
        raise _invalid(f"The only valid name for the CLUSTER resource is {CLUSTER.name}")
    if not codes.name:
        raise _invalid("Invalid empty resource name")
    binding = AclBinding(
        _member(ResourceType, codes.kind, "resourceType"),
        codes.name,
        _member(PatternType, codes.pattern, "patternType"),
        codes.principal,
        codes.host,
        _member(Operation, codes.operation, "operation"),
        _member(Permission, codes.permission, "permissionType"),
    )
    try:
        parse_principal(codes.principal)
    except ValueError as error:
        raise _invalid(str(error)) from None
    return binding


def _member(kind: type[_E], code: int, what: str) -> _E:
    """Raises KafkaError INVALID_REQUEST."""
    try:
        return kind(code)
    except ValueError:
        named = _NOT_IN_ACLS.get(code, "UNKNOWN")
        raise _invalid(f"Invalid {what} {named}") from None


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
