"""Which ACLs the options of `odradek acls` come to. Pure.

`--producer` and `--consumer` stand for what a producer and a consumer need, as in AclCommand.scala:

    --producer       Write, Describe and Create on topics, Write and Describe on transactional ids; with --idempotent
                     IdempotentWrite on the cluster, which producers of Kafka 3.0 and newer do not need
    --consumer       Read and Describe on topics, Read on groups

What differs from kafka-acls: an operation has to be named, where there it is All unless said; and what an option would
do nothing for is refused.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

import click

from odradek.client.admin.acls import (
    CLUSTER_NAME,
    SUPPORTED,
    WILDCARD,
    AclBinding,
    AclFilter,
    AclOperation,
    AclPatternType,
    AclPermission,
    AclResourceType,
    words,
)

__all__ = ["AclOptions", "listed", "planned", "removed"]

Resource = tuple[AclResourceType, str]

PRODUCER: Final[Mapping[AclResourceType, tuple[AclOperation, ...]]] = {
    AclResourceType.TOPIC: (AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.CREATE),
    AclResourceType.TRANSACTIONAL_ID: (AclOperation.WRITE, AclOperation.DESCRIBE),
}
CONSUMER: Final[Mapping[AclResourceType, tuple[AclOperation, ...]]] = {
    AclResourceType.TOPIC: (AclOperation.READ, AclOperation.DESCRIBE),
    AclResourceType.GROUP: (AclOperation.READ,),
}


@dataclass(frozen=True, slots=True)
class AclOptions:
    """What the command line says."""

    resources: Sequence[Resource] = ()
    principals: Sequence[str] = ()
    operations: Sequence[AclOperation] = ()
    hosts: Sequence[str] = ()
    denies: bool = False
    is_prefixed: bool = False
    is_producer: bool = False
    is_consumer: bool = False
    is_idempotent: bool = False

    @property
    def has_role(self) -> bool:
        return self.is_producer or self.is_consumer

    @property
    def permission(self) -> AclPermission:
        return AclPermission.DENY if self.denies else AclPermission.ALLOW

    def pattern(self, kind: AclResourceType) -> AclPatternType:
        """The cluster has one name, and no prefix."""
        is_prefix = self.is_prefixed and kind is not AclResourceType.CLUSTER
        return AclPatternType.PREFIXED if is_prefix else AclPatternType.LITERAL


def planned(options: AclOptions) -> list[AclBinding]:
    """The ACLs to add, each once. Raises UsageError."""
    if not options.principals:
        raise click.UsageError("whose right is it? give --principal, such as User:billing")
    _check(options)
    if options.has_role:
        rights = _of_roles(options)
    elif not options.resources:
        raise click.UsageError("on what? give --topic, --group, --transactional-id, --cluster or another resource")
    elif not options.operations:
        raise click.UsageError("to do what? give --operation, or --producer or --consumer")
    else:
        rights = [(each, options.operations) for each in options.resources]
    for (kind, _), operations in rights:
        _check_operations(kind, operations)
    acls = [
        AclBinding(kind, name, principal, operation, options.permission, host, options.pattern(kind))
        for (kind, name), operations in rights
        for principal, operation, host in product(options.principals, operations, options.hosts or (WILDCARD,))
    ]
    return list(dict.fromkeys(acls))


def removed(options: AclOptions) -> list[AclFilter]:
    """What `remove` looks for: what `add` with the same options has added, and more where an option is left out.

    Raises UsageError, where neither a resource nor a principal is named, too: that would be every ACL there is.
    """
    if options.has_role:
        return [AclFilter.exactly(acl) for acl in planned(options)]
    if not options.resources and not options.principals:
        raise click.UsageError("which ACLs? give a resource, such as --topic, or --principal")
    _check(options)
    for kind, _ in options.resources:
        _check_operations(kind, options.operations)
    anywhere = AclPatternType.PREFIXED if options.is_prefixed else AclPatternType.ANY
    patterns: list[tuple[AclResourceType, str | None, AclPatternType]] = [
        (kind, name, options.pattern(kind)) for kind, name in options.resources
    ] or [(AclResourceType.ANY, None, anywhere)]
    principals: Sequence[str | None] = options.principals or (None,)
    hosts: Sequence[str | None] = options.hosts or (None,)
    return [
        AclFilter(kind, name, principal, operation, options.permission, host, pattern)
        for (kind, name, pattern), principal, operation, host in product(
            patterns, principals, options.operations or (AclOperation.ANY,), hosts
        )
    ]


def listed(
    resources: Iterable[Resource], principals: Sequence[str], *, is_prefixed: bool, matches: bool
) -> list[AclFilter]:
    """What `list` asks for. `matches`: all that apply to these names, whatever they are called. Raises UsageError."""
    named = list(resources)
    if matches and not named:
        raise click.UsageError("--match is about names: give --topic, --group or another resource")
    if matches and is_prefixed:
        raise click.UsageError("--match and --prefixed exclude each other: prefixes are among what matches")
    pattern = AclPatternType.ANY
    if matches or is_prefixed:
        pattern = AclPatternType.MATCH if matches else AclPatternType.PREFIXED
    wanted: list[tuple[AclResourceType, str | None]] = [*named] or [(AclResourceType.ANY, None)]
    whose: Sequence[str | None] = principals or (None,)
    return [
        AclFilter(kind, name, principal, pattern_type=pattern) for (kind, name), principal in product(wanted, whose)
    ]


def _check(options: AclOptions) -> None:
    """Raises UsageError for options that contradict one another, or would do nothing."""
    if options.is_prefixed and any(name == WILDCARD for _, name in options.resources):
        raise click.UsageError("--prefixed and * do not go together: * alone already stands for every name")
    if options.is_idempotent and not options.is_producer:
        raise click.UsageError("--idempotent goes with --producer")
    if not options.has_role:
        return
    role = "--producer" if options.is_producer else "--consumer"
    if options.operations or options.denies:
        raise click.UsageError(f"{role} says what is allowed: it goes neither with --operation nor with --deny")
    kinds = {kind for kind, _ in options.resources}
    missing = [
        option
        for kind, option, needs in (
            (AclResourceType.TOPIC, "--topic", True),
            (AclResourceType.GROUP, "--group", options.is_consumer),
        )
        if needs and kind not in kinds
    ]
    if missing:
        raise click.UsageError(f"{role} needs {' and '.join(missing)}")
    known = {*(PRODUCER if options.is_producer else ()), *(CONSUMER if options.is_consumer else ())}
    if unused := sorted(kinds - known):
        raise click.UsageError(f"{role} gives no right on a {words(unused[0])}: leave it out, or use --operation")


def _of_roles(options: AclOptions) -> list[tuple[Resource, Sequence[AclOperation]]]:
    rights: dict[Resource, dict[AclOperation, None]] = {}
    for role, applies in ((PRODUCER, options.is_producer), (CONSUMER, options.is_consumer)):
        for resource in options.resources if applies else ():
            for operation in role.get(resource[0], ()):
                rights.setdefault(resource, {})[operation] = None
    if options.is_idempotent:
        rights[AclResourceType.CLUSTER, CLUSTER_NAME] = {AclOperation.IDEMPOTENT_WRITE: None}
    return [(resource, tuple(operations)) for resource, operations in rights.items()]


def _check_operations(kind: AclResourceType, operations: Iterable[AclOperation]) -> None:
    """Raises UsageError."""
    for operation in operations:
        if operation is not AclOperation.ALL and operation not in SUPPORTED[kind]:
            known = ", ".join(words(each) for each in sorted(SUPPORTED[kind]))
            raise click.UsageError(f"nobody is asked for {words(operation)} on a {words(kind)}, but for {known} or All")
