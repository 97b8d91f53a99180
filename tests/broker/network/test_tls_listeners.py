"""Whole brokers whose listeners speak TLS: clients of Python's, principals, two brokers that replicate over it, what
changes while they run, limits, and what they tell."""

import asyncio
import logging
import os
import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from odradek.broker.access.principal import ANONYMOUS, Principal, user
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.listeners import Listener
from odradek.broker.handling.context import Caller
from odradek.broker.launch.broker_settings import settings_of
from odradek.broker.network.connection import Connection
from odradek.broker.server import Broker
from odradek.broker.startup_errors import StartRefused
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.primitives import Buffer
from odradek.testing.hosting.cluster_in_loop import ClusterInLoop
from tests.broker.tls.authority import CLIENT, Authority, Issued, load
from tests.broker.until import until
from tests.broker.wire import RawClient, batch, create_topic, produce, produced, running_broker, settings

pytestmark = pytest.mark.both_loops

SSL = {"listener.security.protocol.map": "PLAINTEXT:SSL"}
"""For the only listener."""
VERSIONS = ApiVersionsRequest(client_software_name="raw", client_software_version="1")


class Files:
    """The certificates of a broker and of its clients, as files."""

    def __init__(self, directory: Path) -> None:
        self.authority = Authority("authority")
        self.own, self.trusted = directory / "own.pem", directory / "trusted.pem"
        self.issue()
        self.trusted.write_text(self.authority.pem)

    def issue(self, name: str = "broker") -> Issued:
        issued = self.authority.issue(name)
        self.own.write_text(issued.pem)
        return issued

    def options(self, client_auth: str = "none", **more: str) -> dict[str, str]:
        return {
            **SSL,
            "ssl.keystore.type": "PEM", "ssl.keystore.location": str(self.own),
            "ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.trusted),
            "ssl.client.auth": client_auth,
        } | {name.replace("_", "."): value for name, value in more.items()}  # fmt: skip

    def client(self, name: str | None = None) -> ssl.SSLContext:
        context = self.authority.client_context()
        if name is not None:
            load(context, self.authority.issue(name, hosts=(), usages=(CLIENT,)))
        return context


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@asynccontextmanager
async def over_tls(broker: Broker, context: ssl.SSLContext) -> AsyncGenerator[RawClient]:
    endpoint = next(iter(broker.bound.values()))
    reader, writer = await asyncio.open_connection(
        endpoint.host, endpoint.port, ssl=context, server_hostname="localhost"
    )
    try:
        yield RawClient(reader, writer)
    finally:
        writer.transport.abort()


class Noting:
    """Which principals have asked."""

    def __init__(self) -> None:
        self.principals: list[Principal] = []

    def connected(self, caller: Caller) -> None: ...

    def received(self, caller: Caller, frame: memoryview) -> memoryview:
        self.principals.append(caller.principal)
        return frame

    def replying(self, caller: Caller, reply: list[Buffer]) -> list[Buffer]:
        return reply


def warnings_of(caplog: pytest.LogCaptureFixture) -> str:
    return "\n".join(record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING)


async def test_records_are_written_and_the_certificate_says_by_whom(files: Files, tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    async with running_broker(files.options("requested"), data_dir=str(data_dir)) as broker:
        noting = Noting()
        broker.context.interceptors.connections.append(noting)
        async with over_tls(broker, files.client("billing")) as client:
            await create_topic(client, "orders")
            assert (await produced(client, "orders", batch(b"x" * 700_000))).error_code == 0
        async with over_tls(broker, files.client()) as client:
            assert (await client.ask(VERSIONS, 3)).error_code == 0
    assert noting.principals == [user("CN=billing"), user("CN=billing"), ANONYMOUS]


async def test_slices_of_files_are_not_sent_past_tls(files: Files) -> None:
    async with running_broker(files.options()) as broker, over_tls(broker, files.client()) as client:
        await client.ask(VERSIONS, 3)
        (connection,) = broker.connections.connections
        assert isinstance(connection, Connection)
        assert not connection.caller.takes_slices


async def test_many_requests_at_once_and_their_answers(files: Files) -> None:
    async with running_broker(files.options()) as broker, over_tls(broker, files.client()) as client:
        await create_topic(client, "orders")
        request = produce("orders", batch(b"y" * 20_000))
        for _ in range(200):
            client.send(request, 9)
        for _ in range(200):
            _, answer = await client.receive(request, 9)
            assert answer.responses[0].partition_responses[0].error_code == 0


async def test_a_client_without_a_certificate_is_refused_where_it_is_required(
    files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_broker(files.options("required")) as broker:
        async with over_tls(broker, files.client()) as client:
            client.send(VERSIONS, 3)
            with pytest.raises((OSError, asyncio.IncompleteReadError)):
                await client.receive_frame()
        assert broker.context.metrics.tls_handshakes_failed == {"PLAINTEXT": 1}
        assert "the client has no certificate, and ssl.client.auth=required" in warnings_of(caplog)


async def test_plaintext_on_a_listener_with_tls_is_told(files: Files, caplog: pytest.LogCaptureFixture) -> None:
    async with running_broker(files.options()) as broker:
        endpoint = next(iter(broker.bound.values()))
        reader, writer = await asyncio.open_connection(endpoint.host, endpoint.port)
        client = RawClient(reader, writer)
        client.send(VERSIONS, 3)
        assert await client.is_closed()
        client.close()
        assert "on listener PLAINTEXT: this looks like a client without TLS" in warnings_of(caplog)


async def test_tls_on_a_listener_without_is_told(files: Files, caplog: pytest.LogCaptureFixture) -> None:
    async with running_broker() as broker:
        with pytest.raises(OSError):
            async with over_tls(broker, files.client()):
                raise AssertionError("nobody speaks TLS there")
        assert "looks like a TLS hello, and this listener is plaintext" in warnings_of(caplog)


async def test_certificates_are_replaced_while_connections_go_on(
    files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_broker(files.options()) as broker, over_tls(broker, files.client()) as client:
        tls = broker.tls
        assert tls is not None
        (listener,) = tls.listeners.values()
        before = listener.context
        renewed = files.issue()
        tls.upkeep.wake()
        await until(lambda: listener.context is not before)
        async with over_tls(broker, files.client()) as other:
            shown = other.writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
            assert shown == renewed.der
        assert (await client.ask(VERSIONS, 3)).error_code == 0
        files.own.write_text("broken")
        tls.upkeep.wake()
        await until(lambda: listener.refused is not None)
        async with over_tls(broker, files.client()) as other:
            assert (await other.ask(VERSIONS, 3)).error_code == 0
        page = {metric.name: value for metric, _, value in tls.samples()}
        assert page["odradek_tls_certificate_refused"] == 1
        assert 29 < float(str(page["odradek_tls_certificate_days_left"])) < 30
    assert "are refused, and the old ones stay" in warnings_of(caplog)


@pytest.mark.parametrize("is_half", [True, False])
async def test_a_client_that_ends_without_a_goodbye_is_gone(is_half: bool, files: Files) -> None:
    async with running_broker(files.options()) as broker, over_tls(broker, files.client()) as client:
        assert (await client.ask(VERSIONS, 3)).error_code == 0
        assert len(broker.connections.connections) == 1
        if is_half:
            with socket.socket(fileno=os.dup(client.writer.get_extra_info("socket").fileno())) as sock:
                sock.shutdown(socket.SHUT_WR)
            assert await client.is_closed()
        else:
            client.writer.transport.abort()
        await until(lambda: not broker.connections.connections)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"ssl.keystore.type": "JKS"}, r"ssl\.keystore\.type is JKS.*PEM or PKCS12"),
        ({"ssl.keystore.location": "/nowhere.pem"}, r"/nowhere\.pem cannot be read: No such file"),
        ({"ssl.principal.mapping.rules": "RULE:("}, r"ssl\.principal\.mapping\.rules"),
        ({"ssl.cipher.suites": "TLS_AES_256_GCM_SHA384"}, "Python cannot switch off suites of TLS 1.3"),
        ({"ssl.truststore.location": "OWN"}, "holds no certificate|brokers would not trust one another"),
    ],
)
async def test_a_start_that_could_serve_nobody_is_refused(
    changed: dict[str, str], why: str, files: Files, tmp_path: Path
) -> None:
    stranger = tmp_path / "stranger.pem"
    stranger.write_text(Authority("stranger").pem)
    options = files.options() | {name: str(stranger) if value == "OWN" else value for name, value in changed.items()}
    with pytest.raises(StartRefused, match=rf"^the listener PLAINTEXT://127.0.0.1:0 cannot speak TLS: .*({why})"):
        async with running_broker(options):
            raise AssertionError("it has started")


async def test_who_says_nothing_is_closed(files: Files, caplog: pytest.LogCaptureFixture) -> None:
    """One deadline, which bytes do not move."""
    options = files.options(connection_authentication_timeout_ms="300")
    async with running_broker(options) as broker, over_tls(broker, files.client()) as served:
        endpoint = next(iter(broker.bound.values()))
        silent = socket.create_connection((endpoint.host, endpoint.port))
        silent.setblocking(False)
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(10):
            await loop.sock_sendall(silent, b"\x16\3\1\2\0\1\0")
            while await loop.sock_recv(silent, 1) != b"":
                raise AssertionError("there is nothing to answer")
        silent.close()
        assert (await served.ask(VERSIONS, 3)).error_code == 0, "who is authenticated is no stranger"
        assert broker.context.metrics.connections_unauthenticated == 0
        assert "not authenticated within 300 ms" in warnings_of(caplog)


async def test_strangers_have_limits_of_their_own(files: Files) -> None:
    options = files.options(max_unauthenticated_connections_per_ip="3")
    async with running_broker(options) as broker, over_tls(broker, files.client()) as served:
        endpoint = next(iter(broker.bound.values()))
        await served.ask(VERSIONS, 3)
        silent = [await asyncio.open_connection(endpoint.host, endpoint.port) for _ in range(5)]
        ended = [asyncio.ensure_future(reader.read(1)) for reader, _ in silent]
        done, left = await asyncio.wait(ended, timeout=1.0)
        assert (len(done), len(left)) == (2, 3)
        assert broker.context.metrics.connections_unauthenticated == 3
        assert (await served.ask(VERSIONS, 3)).error_code == 0
        for _, writer in silent:
            writer.transport.abort()
        await asyncio.wait(ended, timeout=5.0)


async def test_brokers_replicate_over_tls(files: Files) -> None:
    """And take one another for who their certificates say, though they are named like that of nobody else."""
    options = files.options("required")
    one = replace(settings(node_id=1), config=BrokerConfig(options | {"node.id": "1"}), node_id=1)
    two = replace(settings(node_id=2), config=BrokerConfig(options | {"node.id": "2"}), node_id=2)
    cluster = ClusterInLoop([one, two], None)
    await cluster.start()
    try:
        await cluster.create_topics({"orders": 1}, replication_factor=2)
        for node_id in (1, 2):
            broker = cluster.brokers[node_id].broker
            assert broker.tls is not None
            assert broker.tls.broker_principal == user("CN=broker")
        led = next(
            broker for broker in (cluster.brokers[1].broker, cluster.brokers[2].broker)
            if broker.context.metadata.image.topics["orders"].partitions[0].leader == broker.settings.node_id
        )  # fmt: skip
        async with over_tls(led, files.client("producer")) as client:
            answer = await produced(client, "orders", batch(b"x" * 100_000))
            assert answer.error_code == 0
        state = led.context.metadata.image.topics["orders"].partitions[0]
        assert sorted(state.isr) == [1, 2]
    finally:
        await cluster.stop()


def test_a_broker_without_tls_imports_nothing_of_it() -> None:
    """Its start and its memory are what they were."""
    program = (
        "import sys, odradek.broker.launch.serve_command, odradek.broker.server; "
        "names = ('odradek.broker.tls', 'odradek.broker.network.tls', 'cryptography'); "
        "print([name for name in sys.modules if name.startswith(names)])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_command_takes_listeners_with_tls() -> None:
    listeners = "PLAIN://127.0.0.1:0,SSL://127.0.0.1:0"
    made = settings_of(BrokerConfig({"listeners": listeners}), memory=True, metrics=None)
    assert [listener.name for listener in made.listeners] == ["PLAIN", "SSL"]
    assert [made.protocol(listener).name for listener in made.listeners] == ["PLAINTEXT", "SSL"]
    assert made.broker_listener == Listener("PLAIN", "127.0.0.1", 0).name
