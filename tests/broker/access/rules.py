"""What the tests of rights share: ACLs in a line, somebody who asks, and a slow authorizer that is plainly right."""

from collections.abc import Iterable
from dataclasses import dataclass

from odradek.broker.access.acl import AclBinding, PatternType, Permission
from odradek.broker.access.operations import Operation
from odradek.broker.access.principal import Principal
from odradek.broker.access.resource import Resource, ResourceType

ALICE = Principal("User", "alice")
BOB = Principal("User", "bob")
HOST = "10.0.0.1"


def acl(
    operation: Operation = Operation.READ,
    name: str = "orders",
    *,
    kind: ResourceType = ResourceType.TOPIC,
    pattern: PatternType = PatternType.LITERAL,
    principal: str = "User:alice",
    host: str = "*",
    permission: Permission = Permission.ALLOW,
) -> AclBinding:
    return AclBinding(kind, name, pattern, principal, host, operation, permission)


def deny(
    operation: Operation = Operation.READ,
    name: str = "orders",
    *,
    kind: ResourceType = ResourceType.TOPIC,
    pattern: PatternType = PatternType.LITERAL,
    principal: str = "User:alice",
    host: str = "*",
) -> AclBinding:
    return AclBinding(kind, name, pattern, principal, host, operation, Permission.DENY)


@dataclass
class Asking:
    """Who asks."""

    principal: Principal = ALICE
    host: str = HOST
    request_name: str = "Fetch"


def covers(binding: AclBinding, resource: Resource) -> bool:
    if binding.kind != resource.kind:
        return False
    if binding.pattern == PatternType.PREFIXED:
        return resource.name.startswith(binding.name)
    return binding.name in ("*", resource.name)


IMPLIED_BY = {
    Operation.DESCRIBE: [Operation.DESCRIBE, Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER],
    Operation.DESCRIBE_CONFIGS: [Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS],
}


def concerns(binding: AclBinding, principal: Principal, host: str, operation: Operation) -> bool:
    kind, _, name = binding.principal.partition(":")
    if (kind, name) not in (tuple(principal), ("User", "*")) or binding.host not in ("*", host):
        return False
    if binding.permission == Permission.DENY:
        return binding.operation in (Operation.ALL, operation)
    return binding.operation in [Operation.ALL, *IMPLIED_BY.get(operation, [operation])]


def plainly_allows(
    bindings: Iterable[AclBinding],
    principal: Principal,
    host: str,
    operation: Operation,
    resource: Resource,
    *,
    allows_without_acl: bool,
) -> bool:
    """One ACL after the other."""
    covering = [each for each in bindings if covers(each, resource)]
    if not covering:
        return allows_without_acl
    permissions = {each.permission for each in covering if concerns(each, principal, host, operation)}
    return permissions == {Permission.ALLOW}


def plainly_allows_any(
    bindings: Iterable[AclBinding], principal: Principal, host: str, operation: Operation, kind: ResourceType
) -> bool:
    """Whether some resource could be named that ACLs on this very operation allow: each name in an ACL is tried, and
    each with something behind it."""
    found = [
        each
        for each in bindings
        if each.kind == kind
        and each.operation in (Operation.ALL, operation)
        and concerns(each, principal, host, operation)
    ]
    names = {name for each in found for name in (each.name, each.name + "\U0010ffff")} | {"\U0010ffff"}
    return any(
        plainly_allows(found, principal, host, operation, Resource(kind, name), allows_without_acl=False)
        for name in names
    )
