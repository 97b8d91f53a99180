"""Requests that have no answer (acks=0) over real loopback sockets: they are done when their bytes are gone.

With and without TLS, whose transport has given everything away while the socket's still holds it.
"""

import asyncio
from ssl import SSLContext
from typing import Any, NamedTuple

import pytest

from odradek.client.errors.client_errors import ConnectionFailed, RequestTimedOut
from odradek.protocol.messages.metadata import MetadataRequest
from tests.client.certificates import make_certificates
from tests.client.loopback import Loopback, Peer
from tests.client.questions import VERSION, Outcomes, ended, produce, question, reply, silent

pytestmark = pytest.mark.both_loops


class Security(NamedTuple):
    """How both sides talk: the server's context, and the client's settings."""

    context: SSLContext | None
    settings: dict[str, Any]


@pytest.fixture(scope="module", params=["PLAINTEXT", "SSL"])
def security(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Security:
    if request.param == "PLAINTEXT":
        return Security(None, {})
    certificates = make_certificates(tmp_path_factory.mktemp("certificates"))
    trust = {"security_protocol": "SSL", "ssl_truststore_location": str(certificates.authority)}
    return Security(certificates.server_context(), trust)


async def test_a_request_without_an_answer_is_done_when_its_bytes_are_gone(security: Security) -> None:
    go = asyncio.Event()

    async def serve(peer: Peer) -> None:
        await peer.greet()
        await go.wait()
        for _ in range(3):
            await peer.receive()
        request = await peer.receive()
        await peer.answer(request, reply(request))
        await peer.gone()

    async with Loopback(serve, ssl=security.context) as server:
        connection = await server.connect(send_buffer_bytes=262_144, **security.settings)
        outcomes = Outcomes()
        for number in range(3):
            connection.send(produce(4_000_000), 9, outcomes.of(number), expects_response=False)
        assert connection.in_flight == 3
        await asyncio.sleep(0.1)  # the peer does not read: nothing can be done, however long it takes
        assert outcomes.ended == []
        go.set()
        assert await outcomes.after(3) == [(0, None), (1, None), (2, None)]
        assert (await connection.ask(question("then"))).cluster_id == "then"
        assert connection.in_flight == 0


async def test_what_is_done_arrives_although_the_connection_is_closed_then(security: Security) -> None:
    sizes: list[int] = []

    async def serve(peer: Peer) -> None:
        await peer.greet()
        sizes.append(len((await peer.receive()).message.topic_data[0].partition_data[0].records))

    # uvloop's TLS, at the server, throws away what was not taken when the end of the stream comes.
    async with Loopback(serve, ssl=security.context, limit_bytes=4_000_000) as server:
        connection = await server.connect(send_buffer_bytes=262_144, **security.settings)
        outcomes = Outcomes()
        connection.send(produce(4_000_000), 9, outcomes.of(0), expects_response=False)
        assert await outcomes.after(1) == [(0, None)]
        connection.close()
    assert sizes == [4_000_000]


async def test_a_small_request_without_an_answer_is_done_soon_and_not_before_send_returns(security: Security) -> None:
    async with Loopback(silent, ssl=security.context) as server:
        connection = await server.connect(**security.settings)
        outcomes = Outcomes()
        connection.send(produce(), 9, outcomes.of("small"), expects_response=False)
        assert outcomes.ended == []
        assert await outcomes.after(1) == [("small", None)]


async def test_a_peer_that_does_not_read_ends_requests_without_an_answer_too(security: Security) -> None:
    async def deaf(peer: Peer) -> None:
        await peer.greet()
        await gone.wait()

    gone = asyncio.Event()
    async with Loopback(deaf, ssl=security.context) as server:
        connection = await server.connect(request_timeout_ms=500, send_buffer_bytes=262_144, **security.settings)
        outcomes = Outcomes()
        connection.send(produce(8_000_000), 9, outcomes.of(0), expects_response=False)
        connection.send(produce(), 9, outcomes.of(1), expects_response=False)
        results = await outcomes.after(2)
        gone.set()
        await ended(connection)
        assert [type(error) for _, error in results] == [RequestTimedOut, ConnectionFailed]


async def test_requests_with_and_without_answers_keep_their_order(security: Security) -> None:
    came: list[int] = []

    async def serve(peer: Peer) -> None:
        await peer.greet()
        while True:
            request = await peer.receive()
            came.append(request.header.api_key)
            if isinstance(request.message, MetadataRequest):
                await peer.answer(request, reply(request))

    async with Loopback(serve, ssl=security.context) as server:
        connection = await server.connect(**security.settings)
        outcomes = Outcomes()
        for number in range(10):
            if number % 2:
                connection.send(question(number), VERSION, outcomes.of(number))
            else:
                connection.send(produce(), 9, outcomes.of(number), expects_response=False)
        results = dict(await outcomes.after(10))
        assert came == [0, 3] * 5
        assert [results[number] for number in range(0, 10, 2)] == [None] * 5
        assert [results[number].cluster_id for number in range(1, 10, 2)] == ["1", "3", "5", "7", "9"]
