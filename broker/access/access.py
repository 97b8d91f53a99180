"""The one question that every handler asks: may this caller do that?

There is no authorizer yet: everybody may do everything, as in Apache Kafka without one. Which operation on which
resource an API needs stands in its row (served.py), and tests/broker/test_served_access.py shows that each handler asks
for that. Until there are principals, this is a place and proves nothing (docs/guarantees.md).
"""

from typing import Protocol

from odradek.broker.access.operations import Operation
from odradek.broker.access.principal import Principal
from odradek.broker.access.resource import DENIED, Resource
from odradek.protocol.errors import KafkaError


class Asker(Protocol):
    """Who sent a request: itself, or through another broker."""

    @property
    def principal(self) -> Principal: ...
    @property
    def host(self) -> str: ...


class Access:
    """What may be done, for one broker."""

    def permits(self, asker: Asker, operation: Operation, resource: Resource) -> bool:
        """For what is left out of an answer rather than refused."""
        del asker, operation, resource
        return True

    def require(self, asker: Asker, operation: Operation, resource: Resource) -> None:
        """Raises KafkaError: the AUTHORIZATION_FAILED of the resource."""
        if not self.permits(asker, operation, resource):
            what = f"{resource.kind.name} {resource.name}"
            raise KafkaError(DENIED[resource.kind], f"{asker.principal} may not {operation.name} {what}")
