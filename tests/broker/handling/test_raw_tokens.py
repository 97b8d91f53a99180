"""Tokens without headers: a frame is a token, a failure has no answer and comes late, a busy broker closes."""

import pytest

from odradek.broker.authentication.mechanism import TooBusy
from odradek.broker.authentication.sasl_connection import SaslConnection, Stage
from odradek.broker.handling.context import CloseConnection
from odradek.broker.handling.raw_tokens import answer_token
from tests.broker.authentication.listeners import ALICE, ALL, PASSWORD, begun, listener, plain
from tests.broker.support import running_broker


async def test_an_answer_is_a_frame_with_the_token() -> None:
    async with running_broker() as context:
        connection = begun(SaslConnection(listener(ALL, context.environment)), "SCRAM-SHA-256", 0)
        answer = await answer_token(context, connection, b"n,,n=alice,r=x")
        assert answer is not None
        frame = b"".join(answer)
        assert int.from_bytes(frame[:4], "big") == len(frame) - 4
        assert frame[4:].startswith(b"r=x")
        connection = begun(SaslConnection(listener(ALL, context.environment)), "PLAIN", 0)
        assert await answer_token(context, connection, plain(ALICE, PASSWORD)) == [b"\0\0\0\0"]
        assert connection.stage is Stage.READY


async def test_a_failure_has_none() -> None:
    async with running_broker({"connection.failed.authentication.delay.ms": "100"}) as context:
        connection = begun(SaslConnection(listener(ALL, context.environment)), "PLAIN", 0)
        began_ms = context.environment.monotonic_ms()
        assert await answer_token(context, connection, plain(ALICE, "wrong")) is None
        assert context.environment.monotonic_ms() - began_ms >= 99
        assert connection.stage is Stage.FAILED


async def test_a_broker_that_is_too_busy_closes() -> None:
    async with running_broker() as context:
        connection = begun(SaslConnection(listener(ALL, context.environment)), "PLAIN", 0)

        async def respond(token: bytes) -> None:
            raise TooBusy("64 wait")

        vars(connection)["_exchange"].respond = respond
        with pytest.raises(CloseConnection, match="64 wait"):
            await answer_token(context, connection, b"x")
