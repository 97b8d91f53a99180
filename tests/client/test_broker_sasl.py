"""The scripted broker lets in who should come in: exchanges from the RFCs, and what is closed before and after them."""

import asyncio
import base64

import pytest

from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.broker.wire import RawClient
from tests.client.broker_sasl import Sasl, require_sasl
from tests.client.scripted_broker import scripted_cluster
from tests.client.test_scripted_broker import INIT, connected

pytestmark = pytest.mark.virtual_time


async def step(client: RawClient, token: bytes) -> SaslAuthenticateResponse:
    return await client.ask(SaslAuthenticateRequest(auth_bytes=token), 2)


async def authenticated(client: RawClient, mechanism: str, *tokens: bytes) -> list[SaslAuthenticateResponse]:
    assert (await client.ask(SaslHandshakeRequest(mechanism=mechanism), 1)).error_code == 0
    return [await step(client, token) for token in tokens]


async def test_plain_lets_in_by_password() -> None:
    with scripted_cluster() as cluster:
        sasl = Sasl({"alice": "secret"})
        require_sasl(cluster, sasl)
        async with connected(cluster) as client:
            await client.ask(ApiVersionsRequest(), 3)
            [answer] = await authenticated(client, "PLAIN", b"\0alice\0secret")
            assert (answer.error_code, answer.session_lifetime_ms) == (0, 0)
            assert (await client.ask(INIT, 5)).error_code == 0
        assert sasl.authenticated == [(1, "alice")]


@pytest.mark.parametrize("token", [b"\0alice\0wrong", b"\0bob\0secret", b"nonsense", b"\0\xff\0\xff"])
async def test_a_refusal_is_named_and_closes_the_connection_a_little_later(token: bytes) -> None:
    with scripted_cluster() as cluster:
        require_sasl(cluster, Sasl({"alice": "secret"}))
        async with connected(cluster) as client:
            [answer] = await authenticated(client, "PLAIN", token)
            assert answer.error_code == 58
            assert answer.error_message
            start_ms = cluster.now_ms()
            assert await client.is_closed()
            assert 90 < cluster.now_ms() - start_ms < 110


async def test_scram_sha_256_is_that_of_rfc_7677() -> None:
    with scripted_cluster() as cluster:
        sasl = Sasl({"user": "pencil"}, mechanisms=["SCRAM-SHA-256"])
        sasl.nonce = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
        sasl.salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
        require_sasl(cluster, sasl)
        async with connected(cluster) as client:
            challenge, final = await authenticated(
                client,
                "SCRAM-SHA-256",
                b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
                b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
                b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
            )
            assert challenge.auth_bytes == (
                b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
            )
            assert final.error_code == 0
            assert final.auth_bytes == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


async def test_a_wrong_scram_proof_is_refused() -> None:
    with scripted_cluster() as cluster:
        require_sasl(cluster, Sasl({"user": "pencil"}))
        async with connected(cluster) as client:
            proof = b"c=biws,r=abcserver-nonce,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
            _, final = await authenticated(client, "SCRAM-SHA-256", b"n,,n=user,r=abc", proof)
            assert final.error_code == 58


async def test_oauthbearer_takes_a_token_and_wants_a_refusal_acknowledged() -> None:
    with scripted_cluster() as cluster:
        require_sasl(cluster, Sasl({"alice": "a.b.c"}))
        async with connected(cluster) as client:
            [answer] = await authenticated(client, "OAUTHBEARER", b"n,,\1auth=Bearer a.b.c\1\1")
            assert (answer.error_code, answer.auth_bytes) == (0, b"")
        async with connected(cluster) as client:
            first, second = await authenticated(client, "OAUTHBEARER", b"n,,\1auth=Bearer no\1\1", b"\1")
            assert (first.error_code, first.auth_bytes) == (0, b'{"status": "invalid_token"}')
            assert (second.error_code, second.error_message) == (58, "invalid_token")


async def test_a_mechanism_that_is_not_offered_is_answered_with_those_that_are() -> None:
    with scripted_cluster() as cluster:
        require_sasl(cluster, Sasl({}, mechanisms=["PLAIN"]))
        async with connected(cluster) as client:
            answer = await client.ask(SaslHandshakeRequest(mechanism="GSSAPI"), 1)
            assert (answer.error_code, answer.mechanisms) == (33, ["PLAIN"])
            assert await client.is_closed()


async def test_other_requests_are_closed_before_and_after_the_session() -> None:
    with scripted_cluster(checks=False) as cluster:
        sasl = Sasl({"alice": "secret"}, session_lifetime_ms=10_000)
        require_sasl(cluster, sasl)
        async with connected(cluster) as client:
            client.send(INIT, 5)
            assert await client.is_closed()
        async with connected(cluster) as client:
            client.send(SaslAuthenticateRequest(auth_bytes=b""), 2)
            assert await client.is_closed()
        async with connected(cluster) as client:
            [answer] = await authenticated(client, "PLAIN", b"\0alice\0secret")
            assert answer.session_lifetime_ms == 10_000
            await asyncio.sleep(9)
            await client.ask(INIT, 5)
            await authenticated(client, "PLAIN", b"\0alice\0secret")
            await asyncio.sleep(9)
            await client.ask(INIT, 5)
            await asyncio.sleep(2)
            client.send(INIT, 5)
            assert await client.is_closed()
        assert sasl.authenticated == [(3, "alice"), (3, "alice")]
        assert len(cluster.violations) == 3
