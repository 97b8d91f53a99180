"""Connections of listeners that are not plaintext: what is served before authentication, also over TLS, and what they
may hold until then. More about TLS is in test_tls_listeners.py."""

import asyncio
import logging
import ssl
from dataclasses import replace
from typing import Any

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.listeners import Listener
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.handling.context import Caller
from odradek.broker.server import Broker
from odradek.protocol.codec.schema import Request
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.primitives import Buffer
from odradek.runtime.environment import Environment
from tests.broker.servers import started
from tests.broker.until import until
from tests.broker.wire import RawClient, batch, connected, produce, running_broker, settings
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
    return [line.partition(" on listener ")[2] for line in lines if " on listener " in line]


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


async def test_over_tls_authentication_comes_first_where_it_is_asked_for(
    certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    options = {
        "listener.security.protocol.map": "PLAINTEXT:SASL_SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates.server),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates.authority),
    }
    async with running_broker(options) as broker:
        endpoint = next(iter(broker.bound.values()))
        trust = ssl.create_default_context(cafile=str(certificates.authority))
        reader, writer = await asyncio.open_connection(endpoint.host, endpoint.port, ssl=trust)
        client = RawClient(reader, writer)
        assert (await client.ask(VERSIONS, 3)).error_code == 0
        with caplog.at_level(logging.WARNING):
            client.send(MetadataRequest(topics=[]), 8)
            assert await client.is_closed()
        writer.transport.abort()
    assert refusals(caplog) == [
        "PLAINTEXT: Metadata version 8 is not served on a SASL_SSL connection in state UNAUTHENTICATED"
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


async def test_what_strangers_hold_keeps_nobody_waiting_who_is_served() -> None:
    """Ten who begin a long request, and say no more: they would hold all that requests may."""
    outside, inside = Listener("OUTSIDE", "127.0.0.1", 0), Listener("INSIDE", "127.0.0.1", 0)
    options = {"listener.security.protocol.map": "OUTSIDE:SASL_PLAINTEXT", "queued.max.request.bytes": "1000000"}
    told = {each.name: each for each in (inside, outside)}
    made = replace(settings(), listeners=[inside, outside], advertised=told, config=BrokerConfig(options))
    async with started(Broker(made, Environment(), MemoryDisk())) as broker:
        port = broker.bound["OUTSIDE"].port
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(10)]
        for _, writer in silent:
            writer.write((400_000).to_bytes(4, "big") + bytes(200_000))
        strangers = broker.connections.strangers_memory
        await until(lambda: strangers.held_bytes >= 2_000_000)
        assert broker.memory.held_bytes == 0
        async with connected(broker) as client, asyncio.timeout(2):
            assert (await client.ask(VERSIONS, 3)).error_code == 0
        known = next(iter(broker.connections.connections))
        broker.connections.authenticated(known)
        assert broker.memory.held_bytes == 200_004
        assert strangers.held_bytes == 9 * 200_004
        for _, writer in silent:
            writer.transport.abort()
        await until(lambda: not broker.connections.connections)
        assert broker.memory.held_bytes == strangers.held_bytes == 0
