"""Requests that only the controller can answer, at a broker that is not it: asked of the controller, whose answer is
handed back (KIP-590; ForwardingManager.java).

Clients may send these to any broker: Java's Admin sends UnregisterBroker to whoever has least to do. A request goes in
an Envelope, with who sent it and from where (api/envelope.py). One that another broker has sent on is not sent on
again: two that take each other for the controller answer NOT_CONTROLLER.

While a registered broker knows of no Envelope (cluster/features.py) the request goes as it came, in the highest
version, and its client id says that it was sent on. Anybody can call himself so, and is not believed from then on.
"""

import ipaddress
import logging
from collections.abc import Callable
from typing import Any, TypeVar

from odradek.broker.cluster.features import ENVELOPE
from odradek.broker.handling.context import Call, Context
from odradek.broker.membership.peers import Peer, is_peer
from odradek.client.network.connection import Connection
from odradek.protocol.codec.codec import decode, encode_parts
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage, code_of
from odradek.protocol.frames import FRAME_PREFIX_BYTES, RequestHeader, read_response_header, request_frame
from odradek.protocol.messages.envelope import EnvelopeRequest
from odradek.protocol.principal_data import encode_principal

logger = logging.getLogger(__name__)

RETRY_MS = 100.0

R = TypeVar("R", bound=Response)


def _own_code(response: Any) -> int:
    code: int = response.error_code
    return code


async def forward(
    context: Context,
    call: Call,
    request: Request[R],
    timeout_ms: float,
    error_code: Callable[[Any], int] = _own_code,
) -> R | None:
    """The controller's answer to `request`; None when this broker is it. `error_code`: where the answer says that the
    other one is not the controller.

    Where nobody is elected, or the controller goes away, whoever is next is asked, for `timeout_ms`.

    Raises KafkaError: NOT_CONTROLLER where another broker sent this, REQUEST_TIMED_OUT.
    """
    environment = context.environment
    deadline_ms = environment.monotonic_ms() + timeout_ms
    while not context.member.controller.is_active:
        image = context.metadata.image
        if call.is_forwarded or (ENVELOPE not in image.features and is_peer(call.client_id)):
            context.member.controller.require_active()
        controller_id = image.controller_id
        remaining_ms = max(0.0, deadline_ms - environment.monotonic_ms())
        with context.waiting(call):
            code, response = await _ask(context, call, controller_id, request, remaining_ms, error_code)
        if code not in (ErrorCode.NONE, ErrorCode.NOT_CONTROLLER):
            call.failed(KafkaError(code))
        if code is not ErrorCode.NOT_CONTROLLER:
            return response
        remaining_ms = deadline_ms - environment.monotonic_ms()
        if remaining_ms <= 0:
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT, f"the controller (broker {controller_id}) did not answer: try again"
            )
        with context.waiting(call):
            await environment.sleep(min(RETRY_MS, remaining_ms))
    return None


async def _ask(
    context: Context,
    call: Call,
    controller_id: int,
    request: Request[R],
    timeout_ms: float,
    error_code: Callable[[Any], int],
) -> tuple[ErrorCode, R | None]:
    """The answer and its code; NOT_CONTROLLER and None where that broker is not it, or cannot be asked."""
    endpoint = context.metadata.image.endpoint(controller_id, context.member.peers.listener)
    if endpoint is None or controller_id == context.identity.node_id:
        return ErrorCode.NOT_CONTROLLER, None
    patience_ms = context.config.broker_session_timeout_ms
    try:
        async with context.member.peers.connection(Peer(controller_id, endpoint), patience_ms) as connection:
            if ENVELOPE in context.metadata.image.features:
                response: Any = await _ask_in_envelope(connection, call, request, timeout_ms + patience_ms)
            else:
                response = await connection.ask(request, timeout_ms=timeout_ms + patience_ms)
    except (OSError, MalformedMessage) as error:
        logger.info("%s: broker %d, the controller, was asked: %s", type(request).__name__, controller_id, error)
        return ErrorCode.NOT_CONTROLLER, None
    return code_of(error_code(response)), response


async def _ask_in_envelope(connection: Connection, call: Call, request: Request[R], timeout_ms: float) -> R:
    """Raises MalformedMessage, KafkaError for what is wrong with the Envelope, and what the connection raises."""
    version = request.max_version
    is_flexible = request.is_flexible(version)
    header = RequestHeader(request.api_key, version, call.correlation_id, call.client_id)
    frame = b"".join(request_frame(header, is_flexible, encode_parts(request, version)))
    envelope = EnvelopeRequest(
        request_data=frame[FRAME_PREFIX_BYTES:],  # the length is not in an Envelope
        request_principal=encode_principal(*call.principal),
        client_host_address=_address(call.host),
    )
    answer = await connection.ask(envelope, version=0, timeout_ms=timeout_ms)
    if answer.error_code or answer.response_data is None:
        raise KafkaError(code_of(answer.error_code), "the controller does not take what this broker sends on")
    _, position = read_response_header(answer.response_data, is_flexible)
    return decode(request.response_type, version, answer.response_data, position)


def _address(host: str) -> bytes:
    """As Java's InetAddress has it; of who is no host, a broker that asks for itself, the loopback."""
    try:
        return ipaddress.ip_address(host).packed
    except ValueError:
        return ipaddress.IPv4Address("127.0.0.1").packed
