"""A change of ACLs for a request: decided by the controller, stored, and answered when it counts everywhere.

Any broker takes the request, asks whether its caller may change ACLs, and sends it on to the controller, which asks
again. One that another controller replaces meanwhile has the next one do it: what was stored twice is there once.

Whoever may change ACLs may do anything soon. So the authorizer is asked even while its rules do not count yet
(`Access.require_by_rules`).
"""

from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from odradek.broker.access.acl import AclBinding
from odradek.broker.access.audit import tell_change
from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import CLUSTER
from odradek.broker.cluster.acls import Told
from odradek.broker.cluster.keys import CONTROLLER_KEY
from odradek.broker.cluster.store import Conflict, MetadataStore
from odradek.broker.handling.context import Call, CloseConnection, Context
from odradek.broker.handling.forwarding import RETRY_MS, forward
from odradek.broker.handling.metadata_change import MetadataChange
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.errors import ErrorCode, KafkaError

TIMEOUT_MS: Final = 20_000
"""The requests carry no time of their own, and Java's clients wait for 30 s."""

Write = Callable[[MetadataStore, Collection[AclBinding], Mapping[str, int], Told], Coroutine[Any, Any, int]]
"""`add_acls` or `remove_acls`."""

R = TypeVar("R", bound=Response)


def require_authorizer(context: Context) -> None:
    """Raises KafkaError SECURITY_DISABLED."""
    if not context.access.is_ruled:
        raise KafkaError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")


def require_known(call: Call, *, has_unknown: bool) -> None:
    """A request with a field that says UNKNOWN cannot be read, in Kafka neither. Raises CloseConnection."""
    if has_unknown:
        raise CloseConnection(f"{call.request_name} version {call.version} has UNKNOWN elements")


async def decided_by_controller(
    context: Context,
    call: Call,
    request: Request[R],
    decide: Callable[[float], Awaitable[R]],
    error_code: Callable[[Any], int],
) -> R:
    """The controller's answer. `decide` makes it where this broker is the controller, until the time that it is given
    (`monotonic_ms`), and raises NOT_CONTROLLER where that has changed; `error_code` finds that code in an answer.

    Raises KafkaError: SECURITY_DISABLED, CLUSTER_AUTHORIZATION_FAILED, NOT_CONTROLLER, REQUEST_TIMED_OUT.
    """
    context.access.require_by_rules(call, Operation.ALTER, CLUSTER)
    require_authorizer(context)
    environment = context.environment
    deadline_ms = environment.monotonic_ms() + TIMEOUT_MS
    while True:
        remaining_ms = max(0.0, deadline_ms - environment.monotonic_ms())
        if (answer := await forward(context, call, request, remaining_ms, error_code)) is not None:
            return answer
        try:
            return await decide(deadline_ms)
        except KafkaError as error:
            is_late = environment.monotonic_ms() >= deadline_ms
            if error.code is not ErrorCode.NOT_CONTROLLER or call.is_forwarded or is_late:
                raise
        with context.waiting(call):
            await environment.sleep(RETRY_MS)  # until the image shows who is


async def carry_out(
    context: Context, call: Call, deadline_ms: float, write: Write | None, what: str, bindings: Collection[AclBinding]
) -> None:
    """Stores a change, and has it in the audit: `what` was done to these ACLs by `write`; None: there is nothing to do,
    which was so when the request came.

    Raises KafkaError NOT_CONTROLLER and what `MetadataChange.apply` raises. Nothing is answered yet: see `spread`.
    """
    changes = MetadataChange(context, call, _remaining_ms(context, deadline_ms))

    async def written() -> int:
        assert write is not None
        left = dict.fromkeys(bindings)

        def stored(some: Sequence[AclBinding]) -> None:
            tell_change(str(call.principal), call.host, what, some)
            for each in some:
                del left[each]

        guard = context.member.controller.guard
        try:
            return await write(context.metadata.store, bindings, guard, stored)
        except OSError:
            tell_change(str(call.principal), call.host, f"(the store did not say so) {what}", left)
            raise

    await changes.apply(partial(_still_controller, context) if write is None else written)


async def spread(context: Context, call: Call, deadline_ms: float) -> None:
    """Returns once all changes count everywhere. Raises KafkaError: NOT_CONTROLLER, REQUEST_TIMED_OUT."""
    assert context.member.acl_spread is not None, "there is an authorizer"
    with context.waiting(call):
        await context.member.acl_spread.everywhere(_remaining_ms(context, deadline_ms))


async def _still_controller(context: Context) -> int:
    """The revision of `/controller`, if that is this broker's: one that was replaced and does not know it must not say
    that there is nothing to change. Raises Conflict, KafkaError NOT_CONTROLLER, and what the store raises."""
    ours = context.member.controller.guard[CONTROLLER_KEY]
    entry = (await context.metadata.store.read(CONTROLLER_KEY)).entries.get(CONTROLLER_KEY)
    if entry is None or entry.revision != ours:
        raise Conflict("another broker is the controller")
    return ours


def _remaining_ms(context: Context, deadline_ms: float) -> float:
    return max(0.0, deadline_ms - context.environment.monotonic_ms())
