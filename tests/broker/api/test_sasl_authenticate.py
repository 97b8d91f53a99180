"""SaslAuthenticate by itself, in every version. What comes of it on a connection shows test_connection_sasl.py."""

import pytest

from odradek.broker.authentication.mechanism import TooBusy
from odradek.broker.authentication.sasl_connection import SaslConnection, Stage
from odradek.broker.handling.context import Caller, CloseConnection
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from tests.broker.authentication.listeners import ALICE, ALL, PASSWORD, authenticated, begun, listener, plain
from tests.broker.support import ask, running_broker

VERSIONS = range(3)
LIMITED = ALL | {"connections.max.reauth.ms": "60000"}


@pytest.mark.parametrize("version", VERSIONS)
async def test_without_sasl_it_is_refused_and_nothing_happens(version: int) -> None:
    async with running_broker() as context:
        answer = await ask(context, SaslAuthenticateRequest(auth_bytes=b"x"), version)
        assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert answer.error_message == "SaslAuthenticate request received after successful authentication"


@pytest.mark.parametrize("version", VERSIONS)
async def test_the_lifetime_is_told_since_version_1(version: int) -> None:
    async with running_broker() as context:
        caller = Caller("OUTSIDE")
        caller.sasl = begun(SaslConnection(listener(LIMITED, context.environment)), "PLAIN")
        answer = await ask(context, SaslAuthenticateRequest(auth_bytes=plain(ALICE, PASSWORD)), version, caller=caller)
        assert (answer.error_code, answer.error_message, answer.auth_bytes) == (0, "", b"")
        assert answer.session_lifetime_ms == (60_000 if version else 0)
        again = await ask(context, SaslAuthenticateRequest(auth_bytes=b"x"), version, caller=caller)
        assert again.error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert caller.sasl.stage is Stage.READY


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_failure_is_answered_late(version: int) -> None:
    async with running_broker({"connection.failed.authentication.delay.ms": "150"}) as context:
        caller = Caller("OUTSIDE")
        caller.sasl = begun(SaslConnection(listener(ALL, context.environment)), "PLAIN")
        began_ms = context.environment.monotonic_ms()
        answer = await ask(context, SaslAuthenticateRequest(auth_bytes=plain(ALICE, "wrong")), version, caller=caller)
        assert context.environment.monotonic_ms() - began_ms >= 149
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert answer.error_message == "Authentication failed: Invalid username or password"
        assert answer.auth_bytes == b""
        assert caller.sasl.stage is Stage.FAILED
        assert context.metrics.apis["SaslAuthenticate"].errors == {ErrorCode.SASL_AUTHENTICATION_FAILED: 1}


async def test_a_broker_that_is_too_busy_closes() -> None:
    async with running_broker() as context:
        caller = Caller("OUTSIDE")
        caller.sasl = begun(SaslConnection(listener(ALL, context.environment)), "PLAIN")

        async def respond(token: bytes) -> None:
            raise TooBusy("64 wait")

        vars(caller.sasl)["_exchange"].respond = respond
        with pytest.raises(CloseConnection, match="64 wait"):
            await ask(context, SaslAuthenticateRequest(auth_bytes=b"x"), 2, caller=caller)


async def test_an_authenticated_connection_takes_no_tokens() -> None:
    async with running_broker() as context:
        caller = Caller("OUTSIDE")
        caller.sasl = SaslConnection(listener(ALL, context.environment))
        await authenticated(caller.sasl, "PLAIN", plain(ALICE, PASSWORD))
        answer = await ask(context, SaslAuthenticateRequest(auth_bytes=plain("bob", "of bob")), 2, caller=caller)
        assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert caller.sasl.principal == ("User", ALICE)
