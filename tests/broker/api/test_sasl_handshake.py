"""SaslHandshake by itself, on a connection that needs none; for others see test_connection_sasl.py."""

import pytest

from odradek.broker.authentication.sasl_connection import SaslConnection, Stage
from odradek.broker.handling.context import Caller
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.broker.authentication.listeners import ALICE, ALL, PASSWORD, authenticated, listener, plain
from tests.broker.support import ask, running_broker


@pytest.mark.parametrize("version", [0, 1])
async def test_without_sasl_it_is_refused_and_nothing_happens(version: int) -> None:
    async with running_broker() as context:
        answer = await ask(context, SaslHandshakeRequest(mechanism="PLAIN"), version)
        assert (answer.error_code, answer.mechanisms) == (ErrorCode.ILLEGAL_SASL_STATE, [])


@pytest.mark.parametrize("version", [0, 1])
async def test_what_is_offered_is_told(version: int) -> None:
    async with running_broker() as context:
        for mechanism, code, stage in (
            ("SCRAM-SHA-512", ErrorCode.NONE, Stage.AUTHENTICATING),
            ("GSSAPI", ErrorCode.UNSUPPORTED_SASL_MECHANISM, Stage.FAILED),
        ):
            caller = Caller("OUTSIDE")
            caller.sasl = SaslConnection(listener(ALL, context.environment))
            answer = await ask(context, SaslHandshakeRequest(mechanism=mechanism), version, caller=caller)
            assert answer.error_code == code
            assert answer.mechanisms == ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
            assert caller.sasl.stage is stage


async def test_who_is_authenticated_for_good_is_refused_and_stays_so() -> None:
    async with running_broker() as context:
        caller = Caller("OUTSIDE")
        caller.sasl = SaslConnection(listener(ALL, context.environment))
        await authenticated(caller.sasl, "PLAIN", plain(ALICE, PASSWORD))
        answer = await ask(context, SaslHandshakeRequest(mechanism="PLAIN"), 1, caller=caller)
        assert (answer.error_code, answer.mechanisms) == (ErrorCode.ILLEGAL_SASL_STATE, [])
        assert caller.sasl.stage is Stage.READY
