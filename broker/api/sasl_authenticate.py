"""SaslAuthenticate (key 36): one token of the mechanism that the handshake has named, each way (KIP-152).

A failure is answered SASL_AUTHENTICATION_FAILED after `connection.failed.authentication.delay.ms`, and the connection
closes; its words are the same whatever was wrong, but for what a client can learn from its own token. On a connection
that is authenticated, and on a listener without SASL, the answer is ILLEGAL_SASL_STATE, and nothing else happens.

Versions: 1 the session's lifetime (KIP-368). 2 flexible.
"""

from odradek.broker.handling.context import Call, CloseConnection, Context
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse


async def handle(context: Context, call: Call, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    sasl = call.caller.sasl
    if sasl is None or not sasl.is_asked_for_tokens:
        said = "SaslAuthenticate request received after successful authentication"
        return _failed(call, KafkaError(ErrorCode.ILLEGAL_SASL_STATE, said))
    from odradek.broker.authentication.mechanism import TooBusy
    from odradek.broker.authentication.sasl_connection import AuthenticationFailed

    try:
        with context.waiting(call):
            session = await sasl.authenticate(bytes(request.auth_bytes))
    except AuthenticationFailed as error:
        with context.waiting(call):
            await context.environment.sleep(context.config.connection_failed_authentication_delay_ms)
        return _failed(call, KafkaError(ErrorCode.SASL_AUTHENTICATION_FAILED, str(error)))
    except TooBusy as error:
        raise CloseConnection(str(error)) from error
    return SaslAuthenticateResponse(error_message="", auth_bytes=session.token, session_lifetime_ms=session.lifetime_ms)


def _failed(call: Call, error: KafkaError) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(error_code=call.failed(error), error_message=error.message, auth_bytes=b"")


def fail(request: SaslAuthenticateRequest, code: ErrorCode) -> SaslAuthenticateResponse:
    del request
    return SaslAuthenticateResponse(error_code=code, error_message=code.text, auth_bytes=b"")
