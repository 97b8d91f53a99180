"""Requests that only the controller can answer, at a broker that is not it: asked of the controller, whose answer is
handed back (KIP-590; ForwardingManager.java).

Clients may send these to any broker: Java's Admin sends UnregisterBroker to whoever has least to do. Kafka wraps a
request in an Envelope, for it has principals to carry along; here it goes over a connection of our own as it came, in
the highest version. One that another broker has sent on is not sent on again: two that take each other for the
controller answer NOT_CONTROLLER.
"""

import logging
from typing import Any, TypeVar

from odradek.broker.handling.context import Call, Context
from odradek.broker.membership.peers import Peer, is_peer
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.errors import ErrorCode, KafkaError, code_of

logger = logging.getLogger(__name__)

RETRY_MS = 100.0

R = TypeVar("R", bound=Response)


async def forward(context: Context, call: Call, request: Request[R], timeout_ms: float) -> R | None:
    """The controller's answer to `request`, which has an `error_code` of its own; None when this broker is it.

    Where nobody is elected, or the controller goes away, whoever is next is asked, for `timeout_ms`.

    Raises KafkaError: NOT_CONTROLLER where another broker sent this, REQUEST_TIMED_OUT.
    """
    environment = context.environment
    deadline_ms = environment.monotonic_ms() + timeout_ms
    while not context.member.controller.is_active:
        if is_peer(call.client_id):
            context.member.controller.require_active()
        controller_id = context.metadata.image.controller_id
        remaining_ms = max(0.0, deadline_ms - environment.monotonic_ms())
        code, response = await _ask(context, controller_id, request, remaining_ms)
        if code not in (ErrorCode.NONE, ErrorCode.NOT_CONTROLLER):
            call.failed(KafkaError(code))
        if code is not ErrorCode.NOT_CONTROLLER:
            return response
        remaining_ms = deadline_ms - environment.monotonic_ms()
        if remaining_ms <= 0:
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT, f"the controller (broker {controller_id}) did not answer: try again"
            )
        await environment.sleep(min(RETRY_MS, remaining_ms))
    return None


async def _ask(
    context: Context, controller_id: int, request: Request[R], timeout_ms: float
) -> tuple[ErrorCode, R | None]:
    """The answer and its code; NOT_CONTROLLER and None where that broker is not it, or cannot be asked."""
    endpoint = context.metadata.image.endpoint(controller_id, context.member.peers.listener)
    if endpoint is None or controller_id == context.identity.node_id:
        return ErrorCode.NOT_CONTROLLER, None
    patience_ms = context.config.broker_session_timeout_ms
    try:
        async with context.member.peers.connection(Peer(controller_id, endpoint), patience_ms) as connection:
            response: Any = await connection.ask(request, timeout_ms=timeout_ms + patience_ms)
    except OSError as error:
        logger.info("%s: broker %d, the controller, was asked: %s", type(request).__name__, controller_id, error)
        return ErrorCode.NOT_CONTROLLER, None
    return code_of(response.error_code), response
