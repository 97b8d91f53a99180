"""Envelope (key 58): a request that another broker sends on to the controller, in the name of who sent it (KIP-590).

It is accepted from brokers alone, on their listener, and never advertised: who sends one knows that all brokers can
take it (cluster/features.py). The request inside is handled as if its caller had asked here: its principal and its
address count, not the broker's. It may be of an API that is sent on, and no other; no Envelope is in an Envelope, so
what was sent on is not sent on again.

The answer inside is the API's own, its errors too; the Envelope's error says what is wrong with the Envelope.

Versions: 0 is the only one.
"""

import ipaddress

from odradek.broker.access.operations import Operation
from odradek.broker.access.principal import Principal
from odradek.broker.access.resource import CLUSTER
from odradek.broker.handling.context import Call, Caller, CloseConnection, Context
from odradek.broker.handling.dispatch import dispatch_alone
from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from odradek.protocol.frames import FRAME_PREFIX_BYTES, peek_request
from odradek.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from odradek.protocol.principal_data import decode_principal


async def handle(context: Context, call: Call, request: EnvelopeRequest) -> EnvelopeResponse:
    if not context.is_from_brokers_listener(call):
        raise KafkaError(
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            f"an Envelope on listener {call.caller.listener}, where no broker is",
        )
    context.require(call, Operation.CLUSTER_ACTION, CLUSTER)
    caller = _caller(call, request)
    frame = memoryview(request.request_data)
    try:
        api_key, _, _ = peek_request(frame)
        api = context.served.get(api_key)
        if api is None or not api.is_forwarded:
            name = f"API key {api_key}" if api is None else api.name
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{name} is not sent on by brokers")
        reply = await dispatch_alone(context, caller, frame, is_forwarded=True)
    except (CloseConnection, MalformedMessage) as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"the request in an Envelope: {error}") from error
    assert reply is not None, "what is sent on has an answer"
    return EnvelopeResponse(response_data=b"".join(reply)[FRAME_PREFIX_BYTES:])


def _caller(call: Call, request: EnvelopeRequest) -> Caller:
    """Who sent the request to the other broker. Raises KafkaError: PRINCIPAL_DESERIALIZATION_FAILURE,
    INVALID_REQUEST."""
    try:
        host = str(ipaddress.ip_address(bytes(request.client_host_address)))
    except ValueError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"the client's address in an Envelope: {error}") from error
    caller = Caller(listener="", peer=f"{host} through {call.caller.peer}", host=host)
    try:
        caller.principal = Principal(*decode_principal(request.request_principal or b""))
    except MalformedMessage as error:
        raise KafkaError(ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE, str(error)) from error
    return caller


def fail(request: EnvelopeRequest, code: ErrorCode) -> EnvelopeResponse:
    del request
    return EnvelopeResponse(error_code=code)
