"""OAUTHBEARER: the client's message, the broker's error in JSON, and one token an exchange."""

import json

import pytest

from odradek.broker.authentication.mechanism import Authenticated, Refused
from odradek.broker.authentication.oauthbearer import OAuthBearerExchange
from odradek.broker.authentication.token_claims import INSUFFICIENT_SCOPE, TokenRefused
from tests.broker.authentication.listeners import bearer

GOOD = "a.good-token_~+/="
FOUND = Authenticated("alice", 1_700_000_000_000)


def validate(token: str) -> Authenticated:
    if token == GOOD:
        return FOUND
    if token == "scope":  # noqa: S105
        raise TokenRefused("its scope lacks it", INSUFFICIENT_SCOPE, scope="read write", user="alice")
    raise TokenRefused("no key fits")


def exchange() -> OAuthBearerExchange:
    return OAuthBearerExchange(validate)


@pytest.mark.parametrize(
    "message",
    [
        bearer(GOOD),
        bearer(GOOD, "alice"),
        f"n,,\1auth=bearer   {GOOD}\1\1".encode(),
        f"n,,\1traceId=1 2\1auth=Bearer {GOOD}\1other=x=y\1\1".encode(),
    ],
)
async def test_a_good_token_comes_in(message: bytes) -> None:
    assert await exchange().respond(message) == (b"", FOUND)


@pytest.mark.parametrize(
    ("token", "told"),
    [("bad", {"status": "invalid_token"}), ("scope", {"status": "insufficient_scope", "scope": "read write"})],
)
async def test_a_bad_one_is_answered_with_why_and_refused_then(token: str, told: dict[str, str]) -> None:
    running = exchange()
    answer = await running.respond(bearer(token))
    assert answer.authenticated is None
    assert json.loads(answer.token) == told
    with pytest.raises(Refused) as caught:
        await running.respond(b"\1")
    assert json.loads(caught.value.told or "") == told
    assert token not in (str(caught.value), caught.value.told)


async def test_after_a_bad_token_no_other_is_looked_at() -> None:
    running = exchange()
    await running.respond(bearer("bad"))
    with pytest.raises(Refused):
        await running.respond(bearer(GOOD))


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\1",
        b"n,,",
        b"n,,\1\1",
        b"n,,\1auth=Bearer\1\1",
        f"n,,\1auth=Basic {GOOD}\1\1".encode(),
        f"n,,\1auth=Bearer {GOOD}\1".encode(),
        f"n,,auth=Bearer {GOOD}\1\1".encode(),
        f"y,,\1auth=Bearer {GOOD}\1\1".encode(),
        f"p=tls-unique,,\1auth=Bearer {GOOD}\1\1".encode(),
        f"n,,\1auth=Bearer {GOOD} {GOOD}\1\1".encode(),
        f"n,,\1auth=Bearer bad\1auth=Bearer {GOOD}\1\1".encode(),
        b"n,,\1other=x\1\1",
        f"n,a=b=c,\1auth=Bearer {GOOD}\1\1".encode(),
        b"n,,\1auth=Bearer \xff\1\1",
        f"n,,\1auth=Bearer {GOOD}\1\1\1".encode(),
    ],
)
async def test_a_message_that_is_none(message: bytes) -> None:
    with pytest.raises(Refused, match="the message") as caught:
        await exchange().respond(message)
    assert caught.value.told is None, "the usual words"


async def test_a_bearer_is_authorized_as_himself_alone() -> None:
    with pytest.raises(Refused, match="somebody else"):
        await exchange().respond(bearer(GOOD, "root"))
