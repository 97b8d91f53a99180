"""Who may do what, by super users and ACLs: what Kafka's StandardAuthorizer decides (StandardAuthorizerData). Pure.

1. A super user may do everything.
2. An ACL counts for a question if its pattern covers the resource, its principal is the asker's or `User:*`, its host
   the asker's or `*`, and its operation the one that is asked for or ALL. An ACL that *allows* READ, WRITE, DELETE or
   ALTER allows DESCRIBE, too, and one that allows ALTER_CONFIGS allows DESCRIBE_CONFIGS. One that denies denies what it
   names.
3. One that denies outweighs all that allow.
4. Where none counts: denied; but `allow.everyone.if.no.acl.found` allows it if no ACL at all covers the resource,
   whomever it is for.

Beyond Kafka, addresses are compared as addresses and not as texts (`acl_index.canonical_host`).
"""

from collections.abc import Iterator
from enum import Enum, auto
from typing import Final, NamedTuple

from odradek.broker.access.acl import WILDCARD, AclBinding, PatternType, Permission
from odradek.broker.access.acl_index import AclIndex, Section, canonical_host, merged
from odradek.broker.access.operations import Operation
from odradek.broker.access.principal import EVERYBODY, Principal
from odradek.broker.access.resource import Resource, ResourceType

_IMPLYING: Final = {
    Operation.DESCRIBE: frozenset(
        {Operation.DESCRIBE, Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}
    ),
    Operation.DESCRIBE_CONFIGS: frozenset({Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS}),
}
"""What, once allowed, allows this too."""
_HARDCODE: Final = "hardcode"
"""Kafka's name for any resource whatever, by which it finds out who may everything (Authorizer.java)."""


class Ground(Enum):
    """What decided."""

    SUPER_USER = auto()
    ACL = auto()
    NO_ACL_COUNTS = auto()
    """There are ACLs for the resource, and none of them allows it."""
    NO_ACL = auto()
    """None covers the resource; `allow.everyone.if.no.acl.found` decides."""


class Decision(NamedTuple):
    """Whether it is allowed, and by which rule."""

    allows: bool
    ground: Ground
    acl: AclBinding | None = None

    @property
    def rule(self) -> str:
        """As Kafka's audit names it."""
        match self.ground:
            case Ground.ACL:
                return f"MatchingAcl(acl={self.acl})"
            case Ground.NO_ACL:
                return "DefaultAllow" if self.allows else "DefaultDeny"
            case Ground.SUPER_USER:
                return "SuperUser"
            case Ground.NO_ACL_COUNTS:
                return "DefaultDeny"

    @property
    def why(self) -> str:
        """For a person who wonders, in words that follow "because"."""
        match self.ground:
            case Ground.SUPER_USER:
                return "the principal is one of super.users"
            case Ground.ACL:
                assert self.acl is not None
                return f"an ACL {'allows' if self.allows else 'denies'} it: {told(self.acl)}"
            case Ground.NO_ACL_COUNTS:
                return "there are ACLs for this resource, and none of them allows it"
            case Ground.NO_ACL:
                found = "no ACL is for this resource, and allow.everyone.if.no.acl.found is "
                return found + ("true" if self.allows else "false")


def told(acl: AclBinding) -> str:
    """An ACL in words."""
    return (
        f"{acl.permission.name} {acl.operation.name} on {acl.kind.name} {acl.name} ({acl.pattern.name}) "
        f"to {acl.principal} from host {acl.host}"
    )


_SUPER_USER: Final = Decision(True, Ground.SUPER_USER)
_NONE_COUNTS: Final = Decision(False, Ground.NO_ACL_COUNTS)


class Authorizer:
    """The rules at one moment. Immutable."""

    __slots__ = ("_without_acl", "index", "super_users")

    def __init__(self, super_users: frozenset[Principal], *, allows_without_acl: bool, index: AclIndex) -> None:
        self.super_users = super_users
        self.index = index
        self._without_acl = Decision(allows_without_acl, Ground.NO_ACL)

    def with_index(self, index: AclIndex) -> "Authorizer":
        return Authorizer(self.super_users, allows_without_acl=self._without_acl.allows, index=index)

    def decide(self, principal: Principal, host: str, operation: Operation, resource: Resource) -> Decision:
        """May they do that?"""
        if principal in self.super_users:
            return _SUPER_USER
        host = canonical_host(host)
        found: AclBinding | None = None
        is_covered = False
        for section in self.index.sections(resource.kind, resource.name):
            is_covered = True
            for acl in merged(section, principal, EVERYBODY):
                if _counts(acl, host, operation):
                    if acl.permission is Permission.DENY:
                        return Decision(False, Ground.ACL, acl)
                    found = acl
        if found is not None:
            return Decision(True, Ground.ACL, found)
        return _NONE_COUNTS if is_covered else self._without_acl

    def decide_any(self, principal: Principal, host: str, operation: Operation, kind: ResourceType) -> bool:
        """May they do that with at least one resource of the type? As `Authorizer.authorizeByResourceType` of Kafka,
        which no operation implies."""
        if self.decide(principal, host, operation, Resource(kind, _HARDCODE)).allows:
            return True
        allowed: dict[PatternType, set[str]] = {PatternType.LITERAL: set(), PatternType.PREFIXED: set()}
        denied: dict[PatternType, set[str]] = {PatternType.LITERAL: set(), PatternType.PREFIXED: set()}
        for acl in self._of_kind(principal, canonical_host(host), operation, kind):
            (denied if acl.permission is Permission.DENY else allowed)[acl.pattern].add(acl.name)
        if WILDCARD in denied[PatternType.LITERAL]:
            return False
        if WILDCARD in allowed[PatternType.LITERAL]:
            return True
        names = (allowed[PatternType.LITERAL] - denied[PatternType.LITERAL]) | allowed[PatternType.PREFIXED]
        prefixes = denied[PatternType.PREFIXED]
        return any(not any(name[:length] in prefixes for length in range(1, len(name) + 1)) for name in names)

    def _of_kind(
        self, principal: Principal, host: str, operation: Operation, kind: ResourceType
    ) -> Iterator[AclBinding]:
        for section in self.index.of_kind(kind):
            for acl in merged(section, principal, EVERYBODY):
                if acl.operation in (Operation.ALL, operation) and _is_from(acl, host):
                    yield acl

    def may_from_somewhere(self, principal: Principal, operation: Operation, resource: Resource) -> Decision:
        """May they do that, if they come from the right address? For a broker that does not know how others see it."""
        hosts = {WILDCARD: None} | {
            acl.host: None for section in self._sections_of(resource) for acl in merged(section, principal, EVERYBODY)
        }
        decisions = [self.decide(principal, host, operation, resource) for host in hosts]
        return next((each for each in decisions if each.allows), decisions[0])

    def _sections_of(self, resource: Resource) -> Iterator[Section]:
        return self.index.sections(resource.kind, resource.name)


def _counts(acl: AclBinding, host: str, operation: Operation) -> bool:
    if not _is_from(acl, host):
        return False
    if acl.operation is Operation.ALL or acl.operation is operation:
        return True
    return acl.permission is Permission.ALLOW and acl.operation in _IMPLYING.get(operation, ())


def _is_from(acl: AclBinding, host: str) -> bool:
    return acl.host == WILDCARD or canonical_host(acl.host) == host
