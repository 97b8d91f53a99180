"""SaslHandshake (key 17): by which mechanism of SASL the connection is going to say who it is (KIP-43).

A mechanism that the listener does not offer is answered UNSUPPORTED_SASL_MECHANISM, with those that it does, and the
connection closes. On one that is authenticated a handshake begins it again, where its session has an end (KIP-368), and
once a second at most; else it is answered ILLEGAL_SASL_STATE, as on a listener without SASL, and nothing else happens.

Versions: 0 the tokens that follow have no headers (handling/raw_tokens.py). 1 they come in SaslAuthenticate (KIP-152).
"""

from odradek.broker.handling.context import Call, Context
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


async def handle(context: Context, call: Call, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    sasl = call.caller.sasl
    if sasl is None:
        raise KafkaError(ErrorCode.ILLEGAL_SASL_STATE, f"listener {call.caller.listener} has no SASL")
    code, mechanisms = sasl.handshake(request.mechanism, call.version)
    if code is not ErrorCode.NONE:
        call.failed(KafkaError(code))
    if code is ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        with context.waiting(call):
            await context.environment.sleep(context.config.connection_failed_authentication_delay_ms)
    return SaslHandshakeResponse(error_code=code, mechanisms=[*mechanisms])


def fail(request: SaslHandshakeRequest, code: ErrorCode) -> SaslHandshakeResponse:
    del request
    return SaslHandshakeResponse(error_code=code, mechanisms=[])
