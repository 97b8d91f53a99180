"""ACLs as Admin takes and returns them, and the requests that make, describe and delete them (KIP-140, KIP-290). Pure.

    AclBinding(AclResourceType.TOPIC, "orders", "User:billing", AclOperation.READ)       # allowed, from any host
    AclFilter(principal="User:billing")                                                  # all that name this principal

Numbers and names are those of Kafka: ResourceType.java, PatternType.java, AclOperation.java, AclPermissionType.java.
UNKNOWN stands for a number of a newer broker.
"""

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Final, NamedTuple, Self

from odradek.client.admin.errors import ItemsFailed
from odradek.client.errors.base import ClientError
from odradek.client.errors.client_errors import broker_error
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from odradek.protocol.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from odradek.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

__all__ = [
    "CLUSTER_NAME",
    "AclBinding",
    "AclFilter",
    "AclOperation",
    "AclPatternType",
    "AclPermission",
    "AclResourceType",
]

PATTERNS_SINCE: Final = 1
"""The version of all three requests that knows pattern types (Kafka 2.0)."""
WILDCARD: Final = "*"
"""As the name of a resource, or as a host: every one."""
CLUSTER_NAME: Final = "kafka-cluster"
"""The only resource of the type CLUSTER."""


class _Numbered(IntEnum):
    """Kafka's numbers, of which a newer broker may know more."""

    @classmethod
    def of(cls, number: int) -> Self:
        """UNKNOWN for what this client does not know."""
        return cls(number) if number in cls._value2member_map_ else cls["UNKNOWN"]


class AclResourceType(_Numbered):
    """What a right is about."""

    UNKNOWN = 0
    ANY = 1
    """In a filter: every type."""
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7
    """A principal whose delegation tokens another one may make and see (KIP-373)."""


class AclPatternType(_Numbered):
    """How the name of a resource is meant (KIP-290)."""

    UNKNOWN = 0
    ANY = 1
    """In a filter: either of the two below, by exactly this name."""
    MATCH = 2
    """In a filter: all patterns that apply to this name: it literally, `*`, and its prefixes."""
    LITERAL = 3
    PREFIXED = 4


class AclOperation(_Numbered):
    """What is done to a resource."""

    UNKNOWN = 0
    ANY = 1
    """In a filter: every operation."""
    ALL = 2
    """In an ACL: every operation."""
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15
    """KIP-939."""


class AclPermission(_Numbered):
    """Whether an ACL grants or refuses; a refusal counts before any grant (AclPermissionType.java)."""

    UNKNOWN = 0
    ANY = 1
    """In a filter: both."""
    DENY = 2
    ALLOW = 3


class AclBinding(NamedTuple):
    """An ACL: a principal may, or may not, do something to the resources of a pattern, from a host."""

    resource_type: AclResourceType
    resource_name: str
    principal: str
    """Such as `User:billing`; `User:*` is everybody."""
    operation: AclOperation
    permission: AclPermission = AclPermission.ALLOW
    host: str = WILDCARD
    """An IP address, or `*` for every one."""
    pattern_type: AclPatternType = AclPatternType.LITERAL

    def __str__(self) -> str:
        prefixed = " prefix" if self.pattern_type is AclPatternType.PREFIXED else ""
        host = "any host" if self.host == WILDCARD else self.host
        what = f"{words(self.resource_type)}{prefixed} {self.resource_name}"
        return f"{words(self.permission)} {self.principal} {words(self.operation)} on {what} from {host}"


class AclFilter(NamedTuple):
    """Which ACLs are meant; the default: all. None matches every name, principal and host, and "" none."""

    resource_type: AclResourceType = AclResourceType.ANY
    resource_name: str | None = None
    principal: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission: AclPermission = AclPermission.ANY
    host: str | None = None
    pattern_type: AclPatternType = AclPatternType.ANY

    @classmethod
    def exactly(cls, acl: AclBinding) -> Self:
        """The filter that matches this ACL and no other."""
        return cls(*acl)

    def matches(self, acl: AclBinding) -> bool:
        """As a broker decides (AclBindingFilter.java, ResourcePatternFilter.java)."""
        return (
            self.resource_type in (AclResourceType.ANY, acl.resource_type)
            and self.principal in (None, acl.principal)
            and self.operation in (AclOperation.ANY, acl.operation)
            and self.permission in (AclPermission.ANY, acl.permission)
            and self.host in (None, acl.host)
            and self._matches_pattern(acl)
        )

    def _matches_pattern(self, acl: AclBinding) -> bool:
        name, pattern = self.resource_name, self.pattern_type
        if pattern not in (AclPatternType.ANY, AclPatternType.MATCH, acl.pattern_type):
            return False
        if name is None or name == acl.resource_name:
            return True
        if pattern is not AclPatternType.MATCH:
            return False
        if acl.pattern_type is AclPatternType.PREFIXED:
            return name.startswith(acl.resource_name)
        return acl.resource_name == WILDCARD


SUPPORTED: Final[dict[AclResourceType, frozenset[AclOperation]]] = {
    AclResourceType.TOPIC: frozenset(
        {
            AclOperation.READ,
            AclOperation.WRITE,
            AclOperation.CREATE,
            AclOperation.DESCRIBE,
            AclOperation.DELETE,
            AclOperation.ALTER,
            AclOperation.DESCRIBE_CONFIGS,
            AclOperation.ALTER_CONFIGS,
        }
    ),
    AclResourceType.GROUP: frozenset(
        {
            AclOperation.READ,
            AclOperation.DESCRIBE,
            AclOperation.DELETE,
            AclOperation.DESCRIBE_CONFIGS,
            AclOperation.ALTER_CONFIGS,
        }
    ),
    AclResourceType.CLUSTER: frozenset(
        {
            AclOperation.CREATE,
            AclOperation.CLUSTER_ACTION,
            AclOperation.DESCRIBE_CONFIGS,
            AclOperation.ALTER_CONFIGS,
            AclOperation.IDEMPOTENT_WRITE,
            AclOperation.ALTER,
            AclOperation.DESCRIBE,
        }
    ),
    AclResourceType.TRANSACTIONAL_ID: frozenset(
        {AclOperation.DESCRIBE, AclOperation.WRITE, AclOperation.TWO_PHASE_COMMIT}
    ),
    AclResourceType.DELEGATION_TOKEN: frozenset({AclOperation.DESCRIBE}),
    AclResourceType.USER: frozenset({AclOperation.CREATE_TOKENS, AclOperation.DESCRIBE_TOKENS}),
}
"""What is asked of each type of resource (AclEntry.supportedOperations); ALL stands for all of it."""


def words(member: IntEnum) -> str:
    """As Kafka's tools write it: `DescribeConfigs`, `TransactionalId`, `Allow`."""
    return "".join(part.capitalize() for part in member.name.split("_"))


def problem_of(acl: AclBinding) -> str | None:
    """Why this cannot be created; None for nothing. (Source: AclBinding.toFilter, findIndefiniteField.)"""
    if acl.resource_type in (AclResourceType.ANY, AclResourceType.UNKNOWN):
        return f"its resource type is {acl.resource_type.name}"
    if acl.pattern_type not in (AclPatternType.LITERAL, AclPatternType.PREFIXED):
        return f"its pattern type is {acl.pattern_type.name}"
    if acl.operation in (AclOperation.ANY, AclOperation.UNKNOWN):
        return f"its operation is {acl.operation.name}"
    if acl.permission not in (AclPermission.ALLOW, AclPermission.DENY):
        return f"its permission is {acl.permission.name}"
    for what, text in (("name", acl.resource_name), ("principal", acl.principal), ("host", acl.host)):
        if not text:
            return f"its {what} is empty"
    return None


def describe_acls_request(matching: AclFilter) -> DescribeAclsRequest:
    return DescribeAclsRequest(
        resource_type_filter=matching.resource_type,
        resource_name_filter=matching.resource_name,
        pattern_type_filter=matching.pattern_type,
        principal_filter=matching.principal,
        host_filter=matching.host,
        operation=matching.operation,
        permission_type=matching.permission,
    )


def described_acls(response: DescribeAclsResponse) -> list[AclBinding]:
    """In order, each once. Raises BrokerError."""
    if response.error_code:
        raise broker_error(response.error_code, response.error_message, "DescribeAcls")
    return sorted(
        {
            AclBinding(
                AclResourceType.of(resource.resource_type),
                resource.resource_name,
                acl.principal,
                AclOperation.of(acl.operation),
                AclPermission.of(acl.permission_type),
                acl.host,
                AclPatternType.of(resource.pattern_type),
            )
            for resource in response.resources
            for acl in resource.acls
        }
    )


def create_acls_request(acls: Iterable[AclBinding]) -> CreateAclsRequest:
    return CreateAclsRequest(
        creations=[
            AclCreation(
                resource_type=acl.resource_type,
                resource_name=acl.resource_name,
                resource_pattern_type=acl.pattern_type,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission,
            )
            for acl in acls
        ]
    )


def created_acls(response: CreateAclsResponse, acls: Sequence[AclBinding]) -> dict[AclBinding, ClientError | None]:
    """Results come in the order of the request; one that is missing is left out."""
    return {
        acl: broker_error(result.error_code, result.error_message, f"CreateAcls of {acl}")
        if result.error_code
        else None
        for acl, result in zip(acls, response.results, strict=False)
    }


def delete_acls_request(filters: Iterable[AclFilter]) -> DeleteAclsRequest:
    return DeleteAclsRequest(
        filters=[
            DeleteAclsFilter(
                resource_type_filter=each.resource_type,
                resource_name_filter=each.resource_name,
                pattern_type_filter=each.pattern_type,
                principal_filter=each.principal,
                host_filter=each.host,
                operation=each.operation,
                permission_type=each.permission,
            )
            for each in filters
        ]
    )


def deleted_acls(
    response: DeleteAclsResponse, filters: Sequence[AclFilter]
) -> dict[AclFilter, list[AclBinding] | ClientError]:
    """By filter, the ACLs that are gone; ItemsFailed where some that it matches could not be deleted."""
    outcomes: dict[AclFilter, list[AclBinding] | ClientError] = {}
    for each, result in zip(filters, response.filter_results, strict=False):
        if result.error_code:
            outcomes[each] = broker_error(result.error_code, result.error_message, "DeleteAcls")
            continue
        gone = [_matched(acl) for acl in result.matching_acls if not acl.error_code]
        errors = {
            _matched(acl): broker_error(acl.error_code, acl.error_message, f"DeleteAcls of {_matched(acl)}")
            for acl in result.matching_acls
            if acl.error_code
        }
        outcomes[each] = ItemsFailed("DeleteAcls", errors, dict.fromkeys(gone)) if errors else sorted(gone)
    return outcomes


def _matched(acl: DeleteAclsMatchingAcl) -> AclBinding:
    return AclBinding(
        AclResourceType.of(acl.resource_type),
        acl.resource_name,
        acl.principal,
        AclOperation.of(acl.operation),
        AclPermission.of(acl.permission_type),
        acl.host,
        AclPatternType.of(acl.pattern_type),
    )


def refused(acl: AclBinding, why: str) -> ClientError:
    """The error of an ACL that is not sent."""
    error = ClientError(f"{acl} cannot be created: {why}", hint="Name what it is about; ANY and MATCH are for filters.")
    error.code = ErrorCode.INVALID_REQUEST
    return error
