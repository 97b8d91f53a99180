"""The real environment: clocks in the stated units, version-4 UUIDs, chance, helper threads, names, free ports, sockets
with the options asked for."""

import asyncio
import socket
import ssl
import sys
import threading
import time
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from odradek.protocol.codec.schema import uuid_text
from odradek.runtime.environment import Environment
from tests.client.certificates import make_certificates


async def test_clocks_and_entropy() -> None:
    environment = Environment()
    assert abs(environment.now_ms() - time.time() * 1000) < 5_000
    before = environment.monotonic_ms()
    assert environment.monotonic_ms() >= before
    assert uuid.UUID(bytes=environment.random_uuid()).version == 4
    assert environment.random_uuid() != environment.random_uuid()
    assert len(environment.random_bytes(7)) == 7


async def test_random_numbers_cover_their_range_and_stay_within() -> None:
    environment = Environment()
    drawn = [environment.random() for _ in range(1_000)]
    assert all(0 <= number < 1 for number in drawn)
    assert len(set(drawn)) == 1_000
    assert min(drawn) < 0.05
    assert max(drawn) > 0.95
    assert {environment.random_below(3) for _ in range(200)} == {0, 1, 2}


async def test_the_extremes_of_entropy_stay_within_the_range() -> None:
    class Extreme(Environment):
        byte = b"\xff"

        def random_bytes(self, size: int) -> bytes:
            return self.byte * size

    environment = Extreme()
    assert environment.random() < 1
    assert environment.random_below(2**32) == 2**32 - 1
    environment.byte = b"\0"
    assert environment.random() == 0
    assert environment.random_below(5) == 0


async def test_no_id_begins_with_a_dash_which_a_command_takes_for_an_option() -> None:
    class Fixed(Environment):
        first = 0

        def random_bytes(self, size: int) -> bytes:
            return bytes((self.first, *range(1, size)))

    environment = Fixed()
    for environment.first in range(256):
        drawn = environment.random_uuid()
        assert not uuid_text(drawn).startswith("-")
        assert drawn[1:6] == bytes(range(1, 6)), "the rest stays"


async def test_sleep_takes_milliseconds() -> None:
    environment = Environment()
    before = environment.monotonic_ms()
    await environment.sleep(30)
    assert 25 <= environment.monotonic_ms() - before < 5_000


async def test_blocking_work_runs_in_another_thread() -> None:
    assert await Environment().run_blocking(threading.get_ident) != threading.get_ident()


async def test_while_a_helper_thread_computes_others_get_their_turn_sooner() -> None:
    """Until the last of those that compute at the same time has ended, however it ended."""
    environment = Environment(owns_process=True)
    usual = sys.getswitchinterval()
    first_may_end, second_may_end = threading.Event(), threading.Event()

    def failing() -> None:
        second_may_end.wait(10)
        raise ValueError("of the function")

    first = asyncio.create_task(environment.run_computing(first_may_end.wait, 10))
    second = asyncio.create_task(environment.run_computing(failing))
    await asyncio.sleep(0)
    assert sys.getswitchinterval() == pytest.approx(usual / 50)
    first_may_end.set()
    assert await first
    assert sys.getswitchinterval() == pytest.approx(usual / 50)
    second_may_end.set()
    with pytest.raises(ValueError, match="of the function"):
        await second
    assert sys.getswitchinterval() == pytest.approx(usual)


async def test_as_many_helper_threads_as_were_allowed_run_at_the_same_time() -> None:
    environment = Environment()
    environment.allow_helper_threads(40)
    together = threading.Barrier(40, timeout=10)
    await asyncio.gather(*(environment.run_blocking(together.wait) for _ in range(40)))
    environment.end_helper_threads()


class Accepting(asyncio.Protocol):
    """Keeps its transport."""

    def __init__(self, accepted: "asyncio.Future[Any]") -> None:
        self.accepted = accepted

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.accepted.set_result(transport)


@pytest.mark.both_loops
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_listen_answers_the_port_really_bound_and_connect_reaches_it(host: str) -> None:
    environment = Environment()
    accepted = environment.loop.create_future()
    server, addresses = await environment.listen(lambda: Accepting(accepted), host, 0)
    await server.start_serving()
    [(bound, port)] = addresses
    assert port != 0
    transport = await environment.connect(
        asyncio.Protocol, bound, port, send_buffer_bytes=40_000, receive_buffer_bytes=50_000
    )
    sock: socket.socket = transport.get_extra_info("socket")
    assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) != 0
    # Linux answers twice what it was asked for.
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) in (40_000, 80_000)
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) in (50_000, 100_000)
    (await asyncio.wait_for(accepted, 5)).close()
    transport.close()
    server.close()
    await server.wait_closed()


class Greeting(asyncio.Protocol):
    """Says a line, and keeps what comes until the end."""

    def __init__(self, line: bytes) -> None:
        self.line = line
        self.received = b""
        self.lost = asyncio.get_running_loop().create_future()
        self.heard = asyncio.get_running_loop().create_future()
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.write(self.line)

    def data_received(self, data: bytes) -> None:
        self.received += data
        if self.received.endswith(b"\n"):
            self.heard.set_result(None)
        elif not self.received.isascii():
            self.transport.close()  # as a broker does with what is no frame

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.lost.done():
            self.lost.set_result(None)


@asynccontextmanager
async def greeted(
    served: ssl.SSLContext | None, line: bytes = b"hello\n"
) -> AsyncGenerator[tuple[Environment, int, list[Greeting]]]:
    """A listener that says a line, and those who were accepted."""
    environment = Environment()
    accepted: list[Greeting] = []

    def accept() -> Greeting:
        accepted.append(Greeting(line))
        return accepted[-1]

    server, [(_, port)] = await environment.listen(accept, "127.0.0.1", 0, ssl=served)
    await server.start_serving()
    try:
        yield environment, port, accepted
    finally:
        server.close()
        for each in accepted:
            if each.transport is not None:
                each.transport.abort()
                await asyncio.wait_for(each.lost, 5)


@pytest.mark.both_loops
async def test_who_listens_with_tls_is_understood_by_who_connects_with_it(tmp_path: Path) -> None:
    certificates = make_certificates(tmp_path)
    trust = ssl.create_default_context(cafile=str(certificates.authority))
    async with greeted(certificates.server_context()) as (environment, port, accepted):
        client = Greeting(b"hi\n")
        transport = await environment.connect(lambda: client, "127.0.0.1", port, ssl=trust)
        await asyncio.wait_for(asyncio.gather(client.heard, accepted[0].heard), 5)
        assert (client.received, accepted[0].received) == (b"hello\n", b"hi\n")
        assert accepted[0].transport.get_extra_info("sslcontext") is not None
        transport.close()
        await asyncio.wait_for(asyncio.gather(client.lost, accepted[0].lost), 5)


@pytest.mark.both_loops
async def test_who_speaks_no_tls_to_who_listens_with_it_is_closed(tmp_path: Path) -> None:
    """And the protocol that would have served it hears nothing."""
    async with greeted(make_certificates(tmp_path).server_context()) as (environment, port, accepted):
        client = Greeting(b"hello, this is plain\n")
        await environment.connect(lambda: client, "127.0.0.1", port)
        await asyncio.wait_for(client.lost, 5)
        assert client.received[:1] != b"h"
        assert [each.transport for each in accepted] == [None]


@pytest.mark.both_loops
async def test_who_speaks_tls_to_who_does_not_gets_an_error(tmp_path: Path) -> None:
    trust = ssl.create_default_context(cafile=str(make_certificates(tmp_path).authority))
    async with greeted(None, b"") as (environment, port, accepted):
        with pytest.raises(ConnectionError):
            await environment.connect(lambda: Greeting(b""), "127.0.0.1", port, ssl=trust)
        await asyncio.wait_for(accepted[0].lost, 5)


@pytest.mark.both_loops
async def test_a_port_where_nobody_listens_refuses_and_leaves_no_socket() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(ConnectionRefusedError):
        await Environment().connect(asyncio.Protocol, "127.0.0.1", port)


async def test_names_resolve_to_addresses_and_addresses_to_themselves() -> None:
    environment = Environment()
    found = await environment.resolve("localhost", 9092)
    assert found
    assert set(found) <= {"127.0.0.1", "::1"}
    assert len(set(found)) == len(found)
    for address in ("127.0.0.1", "::1", "10.1.2.3"):
        assert await environment.resolve(address, 9092) == [address]


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 70 + ".test"])
async def test_what_is_no_name_raises(host: str) -> None:
    with pytest.raises((OSError, UnicodeError)):
        await Environment().resolve(host, 9092)


async def test_zones_of_link_local_addresses_are_kept() -> None:
    """Resolvers give them in the socket address; `connect` finds the interface by the name again."""

    class Resolving(asyncio.SelectorEventLoop):
        async def getaddrinfo(self, *_: Any, **__: Any) -> Any:
            found = (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("fe80::1", 9092, 0, 2))
            return [found, found, (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.1", 9092))]

    loop = Resolving()
    try:
        assert await Environment(loop).resolve("kafka.test", 9092) == ["fe80::1%2", "10.0.0.1"]
    finally:
        loop.close()


@pytest.mark.both_loops
async def test_an_address_has_a_name_or_an_error() -> None:
    environment = Environment()
    with pytest.raises(OSError, match=r".+"):
        await environment.canonical_name("192.0.2.1")  # of a network for documentation
