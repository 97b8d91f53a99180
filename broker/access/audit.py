"""The audit of who asked for what: the logger `kafka.authorizer.logger`, in Kafka's words (StandardAuthorizerData).

Each refusal is a line at INFO, each grant one at DEBUG, with principal, host, operation, resource and the rule that
decided. Questions that only find out what to leave out of an answer are in no line. Changes of ACLs are always a line
at INFO, with who made them.

What a client names is a client's: characters that are not printable are escaped, so that nobody writes a line of the
log himself, and a name is cut.
"""

import logging
from collections.abc import Iterable
from typing import Final

from odradek.broker.access.acl import AclBinding
from odradek.broker.access.authorizer import Decision, told
from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import Resource

logger: Final = logging.getLogger("kafka.authorizer.logger")

SHOWN_MAX: Final = 256
"""Characters of a name. Kafka's topics have 249 at most."""


def shown(text: str, limit: int = SHOWN_MAX) -> str:
    """What a client wrote, for a line of the log."""
    cut = text if len(text) <= limit else text[:limit] + "…"
    if cut.isprintable():
        return cut
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in cut)


def tell(
    principal: str, host: str, operation: Operation, resource: Resource, request_name: str, decision: Decision
) -> None:
    """A refusal or a grant."""
    logger.log(
        logging.DEBUG if decision.allows else logging.INFO,
        "Principal = %s is %s operation = %s from host = %s on resource = %s:LITERAL:%s for request = %s with "
        "resourceRefCount = 1 based on rule %s",
        shown(principal),
        "Allowed" if decision.allows else "Denied",
        operation.name,
        shown(host),
        "".join(word.capitalize() for word in resource.kind.name.split("_")),
        shown(resource.name),
        shown(request_name),
        shown(decision.rule, 4 * SHOWN_MAX),
    )


def tell_change(principal: str, host: str, what: str, bindings: Iterable[AclBinding]) -> None:
    """ACLs were created or deleted."""
    for binding in bindings:
        acl = shown(told(binding), 4 * SHOWN_MAX)
        logger.info("%s from host %s has %s an ACL: %s", shown(principal), shown(host), what, acl)
