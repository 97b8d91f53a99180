"""The one question that every handler asks: may this caller do that?

`Access` is what is asked where no authorizer is set (`authorizer.class.name`): everybody may do everything, as in
Apache Kafka without one. With one, it is `RuledAccess` (ruled_access.py). Which operation on which resource an API
needs stands in its row (served.py), and tests/broker/test_served_access.py shows that each handler asks for that.
Handlers ask through their context (`Context.permits`, `Context.require`), which remembers what was granted.
"""

from typing import Protocol

from odradek.broker.access.operations import SUPPORTED, Operation, bit_field
from odradek.broker.access.principal import Principal
from odradek.broker.access.resource import DENIED, Resource, ResourceType
from odradek.protocol.errors import KafkaError


class Asker(Protocol):
    """Who sent a request: itself, or through another broker."""

    @property
    def principal(self) -> Principal: ...
    @property
    def host(self) -> str: ...
    @property
    def request_name(self) -> str:
        """Of the API, for the audit."""
        ...


class Access:
    """What may be done, for one broker."""

    is_ruled: bool = False
    """Whether an authorizer is set; without one ACLs cannot be asked for (SECURITY_DISABLED)."""
    is_enforced: bool = False
    """Whether anything can be refused."""
    denied_count: int = 0
    """Refusals that the audit was told of."""
    generation: int = 0
    """Grows whenever somebody may do more or less than before: what was permitted before is to be asked again."""

    def permits(self, asker: Asker, operation: Operation, resource: Resource, *, logs_refusal: bool = True) -> bool:
        """For what is left out of an answer rather than refused. `logs_refusal`: whether the audit is told of a
        refusal, which it is not where nobody has named the resource."""
        del asker, operation, resource, logs_refusal
        return True

    def permits_any(self, asker: Asker, operation: Operation, kind: ResourceType) -> bool:
        """For at least one resource of the type (`authorizeByResourceType`)."""
        del asker, operation, kind
        return True

    def require(self, asker: Asker, operation: Operation, resource: Resource) -> None:
        """Raises KafkaError: the AUTHORIZATION_FAILED of the resource."""
        if not self.permits(asker, operation, resource):
            raise refusal(asker, operation, resource)

    def require_by_rules(self, asker: Asker, operation: Operation, resource: Resource) -> None:
        """`require` that holds before the rules are enforced, too: who changes ACLs now would have given himself what
        he may do then. Raises KafkaError."""
        self.require(asker, operation, resource)

    def authorized_operations(self, asker: Asker, resource: Resource) -> int:
        """What the asker may do with the resource, as a bit field (KIP-430)."""
        return bit_field(
            *(each for each in SUPPORTED[resource.kind] if self.permits(asker, each, resource, logs_refusal=False))
        )

    @property
    def is_current(self) -> bool:
        """Whether this broker knows that it has the newest ACLs."""
        return True

    def is_certain(self, asker: Asker) -> bool:
        """Whether what is known here of the asker's rights is the newest; if not, nothing may be answered."""
        del asker
        return True


def refusal(asker: Asker, operation: Operation, resource: Resource) -> KafkaError:
    """What is answered to whom may not."""
    what = f"{resource.kind.name} {resource.name}"
    return KafkaError(DENIED[resource.kind], f"{asker.principal} may not {operation.name} {what}")
