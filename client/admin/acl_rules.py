"""What ACLs come to for one question: may this principal do that, by which rule, and why not by the others? Pure.

The rules are those of StandardAuthorizerData.java:

- An ACL is about a resource if it has its type and names it literally, by `*`, or by a prefix.
- It applies if it names the principal or `User:*`, the host (however its address is written) or `*`, and the operation
  or ALL. A grant of Read, Write, Delete or Alter grants Describe, too, and one of AlterConfigs DescribeConfigs; a
  refusal refuses what it names.
- One refusal that applies decides, else one grant. Without any, the answer is no; but where no ACL at all is about the
  resource, `allow.everyone.if.no.acl.found` of the broker decides.
- Super users are asked of no ACL. Who they are is an option of the broker.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from ipaddress import IPv6Address, ip_address
from typing import Final

from odradek.client.admin.acls import (
    WILDCARD,
    AclBinding,
    AclOperation,
    AclPatternType,
    AclPermission,
    AclResourceType,
    words,
)

__all__ = ["AclAnswer", "AclDecider", "AclQuestion", "explained"]

EVERYBODY: Final = "User:*"
IMPLYING: Final[dict[AclOperation, frozenset[AclOperation]]] = {
    AclOperation.DESCRIBE: frozenset({AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER}),
    AclOperation.DESCRIBE_CONFIGS: frozenset({AclOperation.ALTER_CONFIGS}),
}
"""By operation, the others whose grant grants it."""


@dataclass(frozen=True, slots=True)
class AclQuestion:
    """Who wants to do what, to which resource, from where. `host` None: from one that no ACL names."""

    principal: str
    operation: AclOperation
    resource_type: AclResourceType
    resource_name: str
    host: str | None = None


class AclDecider(Enum):
    """What decides a question."""

    SUPER_USER = "super user"
    DENY = "an ACL that refuses"
    ALLOW = "an ACL that grants"
    NO_MATCH = "no ACL of the resource grants it"
    NO_ACLS = "no ACL is about the resource"


@dataclass(frozen=True, slots=True)
class AclAnswer:
    """`is_allowed` is None where an option of the broker decides that is not known (NO_ACLS).

    `rule`: the ACL that decides, where one does. `others`: the other ACLs about the resource, with why they do not
    apply, or what is stronger.
    """

    is_allowed: bool | None
    decider: AclDecider
    rule: AclBinding | None
    others: tuple[tuple[AclBinding, str], ...]


def explained(
    acls: Iterable[AclBinding],
    question: AclQuestion,
    *,
    super_users: Iterable[str] = (),
    allows_without_acls: bool | None = None,
) -> AclAnswer:
    """The answer of a broker that has these ACLs, and why.

    `allows_without_acls`: its `allow.everyone.if.no.acl.found`; None: not known.
    """
    if question.principal in super_users:
        return AclAnswer(True, AclDecider.SUPER_USER, None, ())
    relevant = sorted(acl for acl in acls if is_about(acl, question.resource_type, question.resource_name))
    obstacles = {acl: obstacle(acl, question) for acl in relevant}
    applying = [acl for acl in relevant if obstacles[acl] is None]
    rule = min(applying, key=_strength, default=None)  # of those that are equally strong, the first in their order
    others = tuple((acl, obstacles[acl] or "it applies, too") for acl in relevant if acl != rule)
    if rule is not None:
        is_allowed = rule.permission is AclPermission.ALLOW
        return AclAnswer(is_allowed, AclDecider.ALLOW if is_allowed else AclDecider.DENY, rule, others)
    if relevant:
        return AclAnswer(False, AclDecider.NO_MATCH, None, others)
    return AclAnswer(allows_without_acls, AclDecider.NO_ACLS, None, ())


def is_about(acl: AclBinding, resource_type: AclResourceType, name: str) -> bool:
    """Whether the ACL's pattern has this resource."""
    if acl.resource_type is not resource_type:
        return False
    if acl.pattern_type is AclPatternType.PREFIXED:
        return name.startswith(acl.resource_name)
    return acl.resource_name in (name, WILDCARD)


def obstacle(acl: AclBinding, question: AclQuestion) -> str | None:
    """Why an ACL about the resource does not apply; None: it does."""
    if acl.principal not in (question.principal, EVERYBODY):
        return f"it is for {acl.principal}"
    if acl.host != WILDCARD and (question.host is None or _spelled(acl.host) != _spelled(question.host)):
        return f"it is for the host {acl.host}"
    if acl.operation in (AclOperation.ALL, question.operation):
        return None
    if acl.permission is AclPermission.ALLOW and acl.operation in IMPLYING.get(question.operation, ()):
        return None
    return f"it is about {words(acl.operation)}"


def _spelled(host: str) -> str:
    """An address in the one spelling in which addresses are compared, that of IPv4 where it can be; else as it is."""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(address if mapped is None else mapped)


def _strength(acl: AclBinding) -> int:
    return 1 if acl.permission is AclPermission.ALLOW else 0
