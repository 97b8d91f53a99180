"""Which ACLs a request is about (AclBindingFilter, ResourcePatternFilter, AccessControlEntryFilter). Pure.

Each field is met by its own value alone; 1 (ANY) and null are met by every one. An empty name, principal or host is a
value like any other, and not "any". With a name, the pattern type says how that is meant:

| pattern type | which patterns |
|---|---|
| LITERAL, PREFIXED | those of the type with this very name; `*` is the name of the wildcard |
| ANY | those of both types with this very name |
| MATCH | those that a resource of this name falls under: of the same name, the wildcard, its prefixes |
"""

from typing import Final, NamedTuple

from odradek.broker.access.acl import UNKNOWN, WILDCARD, AclBinding, PatternType, Permission
from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import ResourceType
from odradek.protocol.errors import ErrorCode, KafkaError

ANY: Final = 1
MATCH: Final = 2
"""Of pattern types."""


class AclFilter(NamedTuple):
    """In Kafka's codes. One that this release does not know meets nothing."""

    kind: int
    name: str | None
    pattern: int
    principal: str | None
    host: str | None
    operation: int
    permission: int

    def matches(self, binding: AclBinding) -> bool:
        return self._matches_pattern(binding) and self._matches_entry(binding)

    def _matches_pattern(self, binding: AclBinding) -> bool:
        if self.kind not in (ANY, binding.kind) or self.pattern not in (ANY, MATCH, binding.pattern):
            return False
        if self.name is None or self.name == binding.name:
            return True
        if self.pattern != MATCH:
            return False
        if binding.pattern is PatternType.LITERAL:
            return binding.name == WILDCARD
        return self.name.startswith(binding.name)

    def _matches_entry(self, binding: AclBinding) -> bool:
        return (
            self.principal in (None, binding.principal)
            and self.host in (None, binding.host)
            and self.operation in (ANY, binding.operation)
            and self.permission in (ANY, binding.permission)
        )

    @property
    def has_unknown(self) -> bool:
        """Whether a field says UNKNOWN, which makes the whole request malformed (DeleteAclsRequest)."""
        return UNKNOWN in (self.kind, self.pattern, self.operation, self.permission)

    def require_known(self) -> None:
        """For a deletion. Raises KafkaError INVALID_REQUEST, with Kafka's words (AclControlManager.validateFilter)."""
        if not (self.kind == ANY or self.kind in _KINDS) or not (
            self.pattern in (ANY, MATCH) or self.pattern in _PATTERNS
        ):
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Unknown patternFilter.")
        if not (self.operation == ANY or self.operation in _OPERATIONS) or not (
            self.permission == ANY or self.permission in _PERMISSIONS
        ):
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Unknown entryFilter.")


_KINDS, _PATTERNS = frozenset(ResourceType), frozenset(PatternType)
_OPERATIONS, _PERMISSIONS = frozenset(Operation), frozenset(Permission)
