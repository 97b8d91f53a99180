"""A broker whose listener speaks SASL, and what raw clients say to it: honest ones, and others."""

from collections.abc import Mapping
from typing import Final

from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest
from odradek.protocol.scram import ScramClient, salted_password
from tests.broker.authentication.listeners import ALICE, ALL, PASSWORD, plain
from tests.broker.wire import RawClient

OPTIONS: Final[Mapping[str, str]] = {
    **{name.replace(".outside.", ".plaintext."): value for name, value in ALL.items()},
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT",
}
"""For `running_broker` of wire.py, whose only listener this makes one with SASL."""


async def shake_hands(client: RawClient, mechanism: str = "PLAIN", version: int = 1) -> None:
    answer = await client.ask(SaslHandshakeRequest(mechanism=mechanism), version)
    assert answer.error_code == 0


async def send_token(client: RawClient, token: bytes, version: int = 2) -> SaslAuthenticateResponse:
    return await client.ask(SaslAuthenticateRequest(auth_bytes=token), version)


async def authenticate(client: RawClient, user: str = ALICE, password: str = PASSWORD) -> SaslAuthenticateResponse:
    """By PLAIN."""
    await shake_hands(client)
    return await send_token(client, plain(user, password))


async def authenticate_by_scram(
    client: RawClient, mechanism: str, user: str, password: str
) -> SaslAuthenticateResponse:
    await shake_hands(client, mechanism)
    scram = ScramClient(mechanism, user, "raw-client")
    first = await send_token(client, scram.first())
    answer = await send_token(
        client, scram.final(salted_password(mechanism, password, scram.challenge(first.auth_bytes)))
    )
    if not answer.error_code:
        scram.verify(answer.auth_bytes)
    return answer


async def send_raw(client: RawClient, token: bytes) -> bytes:
    """A token without a header, as behind SaslHandshake 0; the broker's."""
    client.writer.write(len(token).to_bytes(4, "big") + token)
    return bytes(await client.receive_frame())
