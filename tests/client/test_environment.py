"""The real environment: clocks in the stated units, version-4 UUIDs, helper threads, listening on free ports."""

import asyncio
import threading
import time
import uuid

from client.environment import Environment


async def test_clocks_and_entropy() -> None:
    environment = Environment()
    assert abs(environment.now_ms() - time.time() * 1000) < 5_000
    before = environment.monotonic_ms()
    assert environment.monotonic_ms() >= before
    assert uuid.UUID(bytes=environment.random_uuid()).version == 4
    assert environment.random_uuid() != environment.random_uuid()
    assert len(environment.random_bytes(7)) == 7


async def test_blocking_work_runs_in_another_thread() -> None:
    assert await Environment().run_blocking(threading.get_ident) != threading.get_ident()


async def test_listen_answers_the_port_really_bound_and_connect_reaches_it() -> None:
    environment = Environment()
    accepted = environment.loop.create_future()

    class Accepting(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            accepted.set_result(transport)

    server, addresses = await environment.listen(Accepting, "127.0.0.1", 0)
    await server.start_serving()
    [(host, port)] = addresses
    assert port != 0
    transport = await environment.connect(asyncio.Protocol, host, port)
    (await asyncio.wait_for(accepted, 5)).close()
    transport.close()
    server.close()
    await server.wait_closed()
