"""Connections of listeners that are not plaintext: what is served before authentication, and that it goes over TLS."""

import asyncio
import logging
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.config.security_protocol import SecurityProtocol
from odradek.broker.handling.context import Caller
from odradek.broker.network.connection import Connection
from odradek.broker.server import Broker
from odradek.protocol.codec.schema import Request
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.primitives import Buffer
from tests.broker.wire import RawClient, batch, connected, create_topic, produce, running_broker
from tests.client.certificates import Certificates, make_certificates

pytestmark = pytest.mark.both_loops

SASL = {"listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT"}
"""For the only listener. A start refuses it; the broker does what it is told."""

VERSIONS = ApiVersionsRequest(client_software_name="raw", client_software_version="1")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def refusals(caplog: pytest.LogCaptureFixture) -> list[str]:
    lines = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    return [line.partition(" on listener ")[2] for line in lines]


@pytest.mark.parametrize(
    ("request_", "version", "name"),
    [
        (MetadataRequest(topics=[]), 8, "Metadata"),
        (produce("orders", batch(b"x"), acks=1), 9, "Produce"),
    ],
)
async def test_before_authentication_nothing_but_versions_is_served(
    request_: Request[Any], version: int, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A Produce among them, which would begin at once. What was asked before is answered."""
    async with running_broker(SASL) as broker, connected(broker) as client:
        assert (await client.ask(VERSIONS, 3)).error_code == 0
        assert (await client.ask(ApiVersionsRequest(), 0)).error_code == 0
        with caplog.at_level(logging.WARNING):
            client.send(VERSIONS, 3)
            client.send(request_, version)
            client.send(VERSIONS, 3)
            await client.receive(VERSIONS, 3)
            assert await client.is_closed()
        assert refusals(caplog) == [
            f"PLAINTEXT: {name} version {version} is not served on a SASL_PLAINTEXT connection in state UNAUTHENTICATED"
        ]
        assert broker.context.metrics.malformed_requests == 1
        assert not broker.context.metadata.image.topics, "nothing was done"


async def test_what_is_not_served_at_all_closes_it_too(caplog: pytest.LogCaptureFixture) -> None:
    async with running_broker(SASL) as broker, connected(broker) as client:
        with caplog.at_level(logging.WARNING):
            client.writer.write(bytes.fromhex("00000008 03e7 0000 00000001"))
            assert await client.is_closed()
    assert refusals(caplog) == [
        "PLAINTEXT: API key 999 version 0 is not served on a SASL_PLAINTEXT connection in state UNAUTHENTICATED"
    ]


@asynccontextmanager
async def over_tls(
    broker: Broker, protocol: SecurityProtocol, certificates: Certificates
) -> AsyncGenerator[tuple[RawClient, Connection]]:
    """A client of a listener with TLS in front of this broker, and its connection there."""
    made: list[Connection] = []

    def accept() -> Connection:
        made.append(Connection(broker.context, broker.memory, Caller("OUT", protocol=protocol), broker.connections))
        return made[-1]

    context = certificates.server_context()
    server, [(host, port)] = await broker.environment.listen(accept, "127.0.0.1", 0, ssl=context)
    await server.start_serving()
    trust = ssl.create_default_context(cafile=str(certificates.authority))
    reader, writer = await asyncio.open_connection(host, port, ssl=trust)
    try:
        yield RawClient(reader, writer), made[0]
    finally:
        writer.transport.abort()
        server.close()


async def test_requests_are_served_over_tls_and_slices_of_files_are_not(
    certificates: Certificates, tmp_path: Path
) -> None:
    """A slice would go past TLS."""
    async with (
        running_broker(data_dir=str(tmp_path)) as broker,
        over_tls(broker, SecurityProtocol.SSL, certificates) as (client, connection),
    ):
        await create_topic(client, "orders")
        answer = await client.ask(produce("orders", batch(b"x" * 300_000)), 9)
        assert answer.responses[0].partition_responses[0].error_code == 0
        assert connection.caller.protocol is SecurityProtocol.SSL
        assert not connection.caller.takes_slices


async def test_over_tls_authentication_comes_first_where_it_is_asked_for(
    certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_broker() as broker, over_tls(broker, SecurityProtocol.SASL_SSL, certificates) as (client, _):
        assert (await client.ask(VERSIONS, 3)).error_code == 0
        with caplog.at_level(logging.WARNING):
            client.send(MetadataRequest(topics=[]), 8)
            assert await client.is_closed()
    assert refusals(caplog) == [
        "OUT: Metadata version 8 is not served on a SASL_SSL connection in state UNAUTHENTICATED"
    ]


async def test_what_an_interceptor_makes_of_a_request_is_what_must_be_admitted() -> None:
    class Replacing:
        def connected(self, caller: Caller) -> None: ...

        def received(self, caller: Caller, frame: memoryview) -> memoryview:
            return memoryview(MetadataRequest.api_key.to_bytes(2, "big") + frame[2:])

        def replying(self, caller: Caller, reply: list[Buffer]) -> list[Buffer]:
            return reply

    async with running_broker(SASL) as broker, connected(broker) as client:
        broker.context.interceptors.connections.append(Replacing())
        client.send(ApiVersionsRequest(), 0)
        assert await client.is_closed()
