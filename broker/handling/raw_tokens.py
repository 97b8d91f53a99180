"""Tokens of SASL without a header of Kafka's, which follow a SaslHandshake of version 0 (KIP-43): a frame is a token.

The answer is a frame with the broker's token. A failure has no answer: the connection closes, as late as it would be
answered otherwise.
"""

from typing import TYPE_CHECKING

from odradek.broker.handling.context import CloseConnection, Context
from odradek.protocol.frames import FRAME_PREFIX_BYTES
from odradek.protocol.primitives import Buffer

if TYPE_CHECKING:
    from odradek.broker.authentication.sasl_connection import SaslConnection


async def answer_token(context: Context, sasl: "SaslConnection", token: bytes) -> list[Buffer] | None:
    """The broker's token, in a frame; None where authentication has failed. Raises CloseConnection."""
    from odradek.broker.authentication.mechanism import TooBusy
    from odradek.broker.authentication.sasl_connection import AuthenticationFailed

    try:
        session = await sasl.authenticate(token)
    except AuthenticationFailed:
        await context.environment.sleep(context.config.connection_failed_authentication_delay_ms)
        return None
    except TooBusy as error:
        raise CloseConnection(str(error)) from error
    return [len(session.token).to_bytes(FRAME_PREFIX_BYTES, "big") + session.token]
