"""Opening and closing connections: all addresses, TLS and its misunderstandings over real sockets on both loops, what
kills young connections, versions that change with the broker, metrics, and nothing left behind."""

import asyncio
import contextlib
import gc
import socket
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from odradek.client.configuration.client_config import ClientConfig
from odradek.client.errors.client_errors import (
    AuthenticationFailed,
    ClientError,
    ConnectionFailed,
    RequestTimedOut,
    UnsupportedVersion,
)
from odradek.client.network.connection import Connection, open_connection
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from odradek.protocol.messages.produce import ProduceRequest
from odradek.runtime.environment import Environment
from odradek.runtime.metric import Metric
from tests.client.broker_sasl import Sasl, require_sasl
from tests.client.certificates import Certificates, make_certificates
from tests.client.loopback import ALL_RANGES, Loopback, Peer, each_by_itself, frame_of, ranges_answer
from tests.client.memory_network import Reach
from tests.client.scripted_broker import scripted_cluster

ASKED = MetadataRequest(topics=[])


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def trusting(certificates: Certificates, **more: Any) -> dict[str, Any]:
    return {"security_protocol": "SSL", "ssl_truststore_location": str(certificates.authority), **more}


async def serve_metadata(peer: Peer) -> None:
    await peer.greet()
    while True:
        await peer.answer(await peer.receive(), MetadataResponse(brokers=[], topics=[], cluster_id="here"))


async def failure_of(awaitable: Awaitable[object]) -> ClientError:
    with pytest.raises(ClientError) as caught:
        await asyncio.wait_for(awaitable, 10)
    return caught.value


# ------------------------------------------------------------------------------------------------ versions
async def test_versions_are_asked_for_anew_by_each_connection() -> None:
    """So a broker that was upgraded in place is noticed with the first one."""

    def release(highest: int) -> Callable[[Peer], Awaitable[None]]:
        async def serve(peer: Peer) -> None:
            await peer.greet({3: (0, highest), 18: (0, 4)})
            await peer.gone()

        return serve

    async with Loopback(each_by_itself(release(7), release(12))) as server:
        before, after = await server.connect(), await server.connect()
        assert (before.version_of(MetadataRequest), after.version_of(MetadataRequest)) == (7, 12)
        with pytest.raises(
            UnsupportedVersion, match=rf"broker 1 \({server.host}:{server.port}\) does not know Produce"
        ):
            after.version_of(ProduceRequest)
        assert (await failure_of(after.ask(ASKED, version=None, timeout_ms=100))).retriable


async def test_an_old_broker_is_asked_again_in_a_version_that_it_knows() -> None:
    asked: list[int] = []

    async def serve(peer: Peer) -> None:
        first = await peer.receive()
        refusal = ranges_answer({18: (0, 3)})
        refusal.error_code = 35
        await peer.send(frame_of(first, refusal, version=0))
        second = await peer.receive()
        asked.extend(request.header.api_version for request in (first, second))
        await peer.answer(second, ranges_answer(ALL_RANGES))
        await peer.gone()

    async with Loopback(serve) as server:
        connection = await server.connect()
        assert asked == [4, 3]
        assert connection.version_of(ApiVersionsRequest) == ApiVersionsRequest.max_version


# ------------------------------------------------------------------------------------------------ young connections
async def close_at_once(peer: Peer) -> None:
    await peer.receive()


async def close_after_greeting(peer: Peer) -> None:
    await peer.greet()
    await peer.receive()


def speak(data: bytes) -> Callable[[Peer], Awaitable[None]]:
    async def serve(peer: Peer) -> None:
        await peer.reader.read(1)
        await peer.send(data)
        await peer.gone()

    return serve


@pytest.mark.both_loops
async def test_a_broker_that_hangs_up_without_an_answer_may_expect_tls() -> None:
    async with Loopback(close_at_once) as server:
        error = await failure_of(server.connect())
        assert isinstance(error, ConnectionFailed)
        assert "a listener with TLS does that" in str(error)
        assert f"broker 1 ({server.host}:{server.port})" in str(error)


async def test_a_broker_that_hangs_up_at_the_first_request_may_expect_sasl() -> None:
    async with Loopback(close_after_greeting) as server:
        connection = await server.connect()
        error = await failure_of(connection.ask(ASKED))
        assert isinstance(error, ConnectionFailed)
        assert "a listener with SASL does that" in str(error)


@pytest.mark.both_loops
@pytest.mark.parametrize("beginning", [b"\x15\x03\x03\x00\x02\x02\x28", b"\x16\x03\x03\x00\x7a\x02\x00\x00\x76"])
async def test_a_broker_that_answers_by_tls_is_recognized(beginning: bytes) -> None:
    async with Loopback(speak(beginning)) as server:
        error = await failure_of(server.connect())
        assert isinstance(error, AuthenticationFailed)
        assert "answered with TLS" in str(error)
        assert "security_protocol to SSL" in error.hint


async def test_a_web_server_is_recognized() -> None:
    async with Loopback(speak(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as server:
        assert "an HTTP server listens there" in str(await failure_of(server.connect()))


async def test_other_bytes_are_no_answer() -> None:
    async with Loopback(speak(b"220 mail.test ESMTP\r\n")) as server:
        assert "no valid response" in str(await failure_of(server.connect()))


async def test_a_broker_that_greets_twice_is_no_broker() -> None:
    async def serve(peer: Peer) -> None:
        await peer.send(frame_of(await peer.receive(), ranges_answer(ALL_RANGES)) * 2)
        await peer.gone()

    async with Loopback(serve) as server:
        assert "a response that nobody asked for" in str(await failure_of(server.connect()))


async def test_a_broker_that_never_greets_is_given_up() -> None:
    async with Loopback(speak(b"")) as server:
        error = await failure_of(server.connect(request_timeout_ms=100))
        assert isinstance(error, RequestTimedOut)
        assert "ApiVersions v4 within 100 ms" in str(error)


# ------------------------------------------------------------------------------------------------ TLS
@pytest.mark.both_loops
async def test_requests_travel_by_tls(certificates: Certificates) -> None:
    async with Loopback(serve_metadata, ssl=certificates.server_context()) as server:
        connection = await server.connect(**trusting(certificates))
        answers = await asyncio.gather(*(connection.ask(ASKED) for _ in range(20)))
        assert {answer.cluster_id for answer in answers} == {"here"}


@pytest.mark.both_loops
async def test_a_request_without_an_answer_is_written_by_tls_too(certificates: Certificates) -> None:
    async with Loopback(serve_metadata, ssl=certificates.server_context()) as server:
        connection = await server.connect(**trusting(certificates))
        written: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        connection.send(ASKED, 12, written.set_result, expects_response=False)
        assert await asyncio.wait_for(written, 5) is None


@pytest.mark.both_loops
async def test_a_certificate_that_is_not_trusted_is_fatal(certificates: Certificates) -> None:
    async with Loopback(serve_metadata, ssl=certificates.server_context()) as server:
        error = await failure_of(
            server.connect(**trusting(certificates, ssl_truststore_location=str(certificates.stranger)))
        )
        assert isinstance(error, AuthenticationFailed)
        assert error.fatal
        assert "authentication by TLS at broker 1" in str(error)
        assert "ssl_truststore_location" in error.hint


@pytest.mark.both_loops
async def test_a_certificate_for_another_name_is_fatal(certificates: Certificates, tmp_path: Path) -> None:
    async with Loopback(serve_metadata, ssl=certificates.server_context()) as server:
        other = Environment()
        config = ClientConfig("x:1", **trusting(certificates))

        class Elsewhere(Environment):
            async def resolve(self, host: str, port: int) -> list[str]:
                return [server.host]

        error = await failure_of(open_connection(Elsewhere(other.loop), config, 1, "elsewhere.test", server.port))
        assert isinstance(error, AuthenticationFailed)
        assert "elsewhere.test" in str(error)
        unchecked = ClientConfig("x:1", **trusting(certificates, ssl_endpoint_identification_algorithm=""))
        connection = await open_connection(Elsewhere(other.loop), unchecked, 1, "elsewhere.test", server.port)
        connection.close()
        await connection.closed()


def refuse_by_alert(listener: socket.socket, context: ssl.SSLContext) -> None:
    """A server that says why, as brokers do, and lets the client hear it; asyncio's hangs up."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_side=True)
    sock, _ = listener.accept()
    with sock:
        while received := sock.recv(65_536):
            incoming.write(received)
            with contextlib.suppress(ssl.SSLError):
                tls.do_handshake()
            sock.sendall(outgoing.read())


@pytest.mark.both_loops
async def test_a_missing_client_certificate_is_fatal_where_the_broker_says_so(certificates: Certificates) -> None:
    context = certificates.server_context(asks_for_client=True)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        serving = asyncio.to_thread(refuse_by_alert, listener, context)
        config = ClientConfig("x:1", **trusting(certificates))
        opening = failure_of(open_connection(Environment(), config, 1, "127.0.0.1", port))
        error, _ = await asyncio.gather(opening, serving)
    assert isinstance(error, AuthenticationFailed)
    assert error.fatal
    assert "ssl_keystore_location" in error.hint


@pytest.mark.both_loops
async def test_a_missing_client_certificate_is_suspected_where_it_does_not(certificates: Certificates) -> None:
    async with Loopback(serve_metadata, ssl=certificates.server_context(asks_for_client=True)) as server:
        error = await failure_of(server.connect(**trusting(certificates)))
        assert isinstance(error, ConnectionFailed)
        assert "ssl_keystore_location" in str(error)
        connection = await server.connect(**trusting(certificates, ssl_keystore_location=str(certificates.client)))
        assert (await connection.ask(ASKED)).cluster_id == "here"


@pytest.mark.both_loops
async def test_a_plaintext_client_at_a_tls_listener_is_told(certificates: Certificates) -> None:
    async with Loopback(serve_metadata, ssl=certificates.server_context()) as server:
        error = await failure_of(server.connect())
        assert "TLS" in str(error)
        assert "security_protocol" in str(error)


@pytest.mark.both_loops
async def test_a_tls_client_at_a_plaintext_listener_is_told(certificates: Certificates) -> None:
    async def closing(peer: Peer) -> None:
        await peer.reader.read(100)  # a broker reads a size that it does not accept, and closes

    async with Loopback(closing) as server:
        error = await failure_of(server.connect(**trusting(certificates)))
        assert isinstance(error, ConnectionFailed)
        assert "a listener without TLS does that" in str(error)
    async with Loopback(speak(b"220 mail.test ESMTP\r\n")) as server:
        error = await failure_of(server.connect(**trusting(certificates)))
        assert isinstance(error, AuthenticationFailed)
        assert "does not speak TLS" in error.hint


@pytest.mark.both_loops
async def test_who_is_cancelled_while_connecting_leaves_nothing_behind(certificates: Certificates) -> None:
    """At every few steps of the loop; what is left open would be told as a ResourceWarning, which is an error here."""
    async with Loopback(serve_metadata, ssl=certificates.server_context()) as server:
        for steps in range(0, 60, 2):
            opening = asyncio.get_running_loop().create_task(server.connect(**trusting(certificates)))
            for _ in range(steps):
                await asyncio.sleep(0)
            opening.cancel()
            ends = await asyncio.gather(opening, return_exceptions=True)
            assert isinstance(ends[0], asyncio.CancelledError | Connection), ends
            await asyncio.sleep(0.01)
        gc.collect()


# ------------------------------------------------------------------------------------------------ addresses
@pytest.mark.virtual_time
async def test_the_addresses_of_a_name_are_tried_until_one_works() -> None:
    with scripted_cluster(brokers=1) as cluster:
        cluster.network.names["kafka.test"] = ["10.9.0.1", "10.9.0.2", cluster.brokers[0].address]
        cluster.network.path("10.9.0.2", 9092).reach = Reach.BLACK_HOLE
        config = ClientConfig("kafka.test:9092")
        connection = await open_connection(cluster.environment, config, -1, "kafka.test", 9092, setup_timeout_ms=1_500)
        assert [attempt.address for attempt in cluster.network.attempts] == ["10.9.0.1", "10.9.0.2", "10.0.0.1"]
        assert cluster.now_ms() - cluster.network.attempts[0].at_ms == pytest.approx(1_500, abs=10)
        assert (connection.node_id, connection.host, connection.port) == (-1, "kafka.test", 9092)
        connection.close()
        await connection.closed()


@pytest.mark.virtual_time
async def test_an_address_whose_broker_hangs_up_is_not_the_last_one() -> None:
    with scripted_cluster(brokers=1) as cluster:

        class Closing(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                transport.close()

        cluster.network.names["kafka.test"] = ["10.9.0.1", cluster.brokers[0].address]
        cluster.network.listen(Closing, "10.9.0.1", 9092).start()
        connection = await open_connection(cluster.environment, ClientConfig("x:1"), -1, "kafka.test", 9092)
        assert connection.is_open
        connection.close()
        await connection.closed()


@pytest.mark.virtual_time
async def test_when_no_address_works_each_is_named_with_its_reason() -> None:
    with scripted_cluster(brokers=1) as cluster:
        cluster.network.names["kafka.test"] = ["10.9.0.1", "10.9.0.2"]
        cluster.network.path("10.9.0.2", 9092).reach = Reach.BLACK_HOLE
        error = await failure_of(
            open_connection(cluster.environment, ClientConfig("x:1"), 4, "kafka.test", 9092, setup_timeout_ms=700)
        )
        assert isinstance(error, ConnectionFailed)
        for text in ("broker 4 (kafka.test:9092)", "10.9.0.1", "refused", "within 700 ms at 10.9.0.2"):
            assert text in str(error)


@pytest.mark.virtual_time
async def test_a_refused_authentication_is_not_tried_at_the_next_address() -> None:
    with scripted_cluster(brokers=2) as cluster:
        sasl = Sasl({"alice": "right"})
        require_sasl(cluster, sasl)
        cluster.network.names["kafka.test"] = [broker.address for broker in cluster.brokers.values()]
        credentials: dict[str, Any] = {"sasl_mechanism": "PLAIN", "sasl_username": "alice", "sasl_password": "wrong"}
        config = ClientConfig("x:1", security_protocol="SASL_PLAINTEXT", **credentials)
        error = await failure_of(open_connection(cluster.environment, config, -1, "kafka.test", 9092))
        assert isinstance(error, AuthenticationFailed)
        assert len(cluster.network.attempts) == 1


async def test_a_connection_that_was_never_made_can_be_closed() -> None:
    connection = Connection(Environment(), ClientConfig("x:1"), 1, "127.0.0.1", 1)
    assert "is not open yet" in str(await failure_of(connection.ask(ASKED, version=12)))
    assert "is not open yet" in str(await failure_of(connection.pipeline.ask_now(ASKED, 12)))
    connection.close()
    await asyncio.wait_for(connection.closed(), 1)
    async with Loopback(lambda peer: peer.gone()) as server:  # and if it is made after that, it ends at once
        await Environment().connect(lambda: connection.pipeline, server.host, server.port)


async def test_a_greeting_is_short() -> None:
    async with Loopback(speak((3 << 20).to_bytes(4) + bytes(100))) as server:
        error = await failure_of(server.connect())
        assert "3145728 bytes" in str(error)


async def test_ipv6_addresses_are_taken_literally() -> None:
    async with Loopback(serve_metadata, host="::1") as server:
        connection = await server.connect()
        assert (await connection.ask(ASKED)).cluster_id == "here"
        assert f"[::1]:{server.port}" in connection.broker


# ------------------------------------------------------------------------------------------------ the end, and figures
async def test_the_owner_is_told_once_after_all_requests_have_ended() -> None:
    async with Loopback(serve_metadata) as server:
        connection = await server.connect()
        told: list[object] = []

        def on_close(closed: Connection, why: ClientError) -> None:
            told.extend((closed is connection, closed.in_flight, type(why)))
            raise LookupError("which harms nobody")

        connection.on_close = on_close
        connection.send(ASKED, 12, told.append)
        connection.close()
        connection.close()
        await connection.closed()
        assert told[1:] == [True, 0, ConnectionFailed]
        assert isinstance(told[0], ConnectionFailed)


async def test_a_connection_shows_its_state_and_no_secret() -> None:
    async with Loopback(serve_metadata) as server:
        connection = await server.connect(node_id=7)
        assert repr(connection) == f"<Connection to broker 7 ({server.host}:{server.port}): open, 0 in flight>"
        connection.close()
        assert "closed" in repr(connection)


class Counts:
    """A hook that adds up."""

    def __init__(self) -> None:
        self.counts: dict[str, float] = {}
        self.observed: dict[str, list[float]] = {}

    def count(self, metric: Metric, amount: float, *labels: str) -> None:
        assert labels == ("1",)
        self.counts[metric.name] = self.counts.get(metric.name, 0) + amount

    def observe(self, metric: Metric, value: float, *labels: str) -> None:
        self.observed.setdefault(metric.name, []).append(value)

    def watch(self, metric: Metric, read: Callable[[], float], *labels: str) -> Callable[[], None]:
        raise AssertionError("a connection has no gauges of its own")


async def test_what_happens_is_counted() -> None:
    async with Loopback(serve_metadata) as server:
        counts = Counts()
        connection = await open_connection(Environment(), server.config(), 1, server.host, server.port, metrics=counts)
        await connection.ask(ASKED)
        connection.close()
        await connection.closed()
        assert counts.counts["connection-creation-total"] == counts.counts["connection-close-total"] == 1
        assert counts.counts["request-total"] == counts.counts["response-total"] == 2
        assert counts.counts["outgoing-byte-total"] > 40
        assert counts.counts["incoming-byte-total"] > 40
        assert len(counts.observed["request-latency"]) == 2
        await failure_of(
            open_connection(Environment(), server.config(request_timeout_ms=1), 1, server.host, 1, metrics=counts)
        )
        assert counts.counts["connection-failure-total"] == 1


async def test_the_wall_clock_is_never_looked_at() -> None:
    class Timeless(Environment):
        def now_ns(self) -> int:
            raise AssertionError("it may jump")

    async with Loopback(serve_metadata) as server:
        connection = await open_connection(Timeless(), server.config(), 1, server.host, server.port)
        await connection.ask(ASKED, timeout_ms=5_000)
        connection.close()
        await connection.closed()
