"""Requests that are kept back over real loopback sockets: while a quota silences, while the caller holds, or both."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from odradek.client.errors.client_errors import RequestTimedOut
from tests.client.loopback import Loopback, Peer
from tests.client.questions import VERSION, Outcomes, echo, ended, question, reply, send_all

pytestmark = pytest.mark.both_loops


def throttled_once(throttle_time_ms: int, arrivals: list[float]) -> Callable[[Peer], Awaitable[None]]:
    """Names the throttle time in its first answer, and notes when requests come."""

    async def serve(peer: Peer) -> None:
        await peer.greet()
        throttle = throttle_time_ms
        while True:
            request = await peer.receive()
            arrivals.append(asyncio.get_running_loop().time() * 1000)
            await peer.answer(request, reply(request, throttle))
            throttle = 0

    return serve


async def test_a_throttled_connection_keeps_still_and_sends_in_order_afterwards() -> None:
    arrivals: list[float] = []
    async with Loopback(throttled_once(120, arrivals)) as server:
        connection = await server.connect()
        await connection.ask(question("first"))
        assert connection.throttled_until_ms > asyncio.get_running_loop().time() * 1000 + 60
        results = await send_all(connection, 3).after(3)
        assert [result.cluster_id for _, result in results] == ["0", "1", "2"]
        assert arrivals[1] - arrivals[0] >= 110
        assert arrivals[3] - arrivals[1] < 100
        assert connection.in_flight == 0
        assert (await connection.ask(question("then"), timeout_ms=2_000)).cluster_id == "then"


async def test_versions_from_before_kip_219_do_not_silence() -> None:
    arrivals: list[float] = []
    async with Loopback(throttled_once(30_000, arrivals)) as server:
        connection = await server.connect()
        await connection.ask(question("first"), version=5)
        await asyncio.wait_for(connection.ask(question("second"), version=5), 5)
        assert connection.throttled_until_ms == 0


async def test_the_brokers_silence_is_added_to_the_time_of_what_was_sent_before() -> None:
    async def serve(peer: Peer) -> None:
        await peer.greet()
        first, second = await peer.receive(), await peer.receive()
        await peer.answer(first, reply(first, 150))
        await asyncio.sleep(0.15)  # the silence that was asked for
        await peer.answer(second, reply(second))
        await peer.gone()

    async with Loopback(serve) as server:
        connection = await server.connect(request_timeout_ms=100)
        results = await send_all(connection, 2).after(2)
        assert [result.cluster_id for _, result in results] == ["0", "1"]


async def test_what_waits_for_the_end_of_the_silence_can_time_out_alone() -> None:
    arrivals: list[float] = []
    async with Loopback(throttled_once(200, arrivals)) as server:
        connection = await server.connect()
        await connection.ask(question("first"))
        outcomes = Outcomes()
        connection.send(question("short"), VERSION, outcomes.of("short"), timeout_ms=40)
        connection.send(question("long"), VERSION, outcomes.of("long"))
        results = await outcomes.after(2)
        assert [name for name, _ in results] == ["short", "long"]
        assert isinstance(results[0][1], RequestTimedOut)
        assert results[1][1].cluster_id == "long"
        assert len(arrivals) == 2
        assert connection.is_open


async def test_requests_are_held_until_both_the_caller_and_the_quota_let_go() -> None:
    arrivals: list[float] = []
    async with Loopback(throttled_once(100, arrivals)) as server:
        connection = await server.connect()
        await connection.ask(question("first"))
        connection.pipeline.hold()
        outcomes = send_all(connection, 2)
        await connection.pipeline.unthrottled()
        await asyncio.sleep(0.05)  # the quota's timer has rung, and must have done nothing
        assert len(arrivals) == 1
        past = await connection.pipeline.ask_now(question("past the others"), VERSION)
        assert past.cluster_id == "past the others"
        connection.pipeline.release()
        results = await outcomes.after(2)
        assert [result.cluster_id for _, result in results] == ["0", "1"]


async def test_what_is_held_fails_with_the_connection() -> None:
    async with Loopback(echo) as server:
        connection = await server.connect()
        connection.pipeline.hold()
        outcomes = send_all(connection, 2)
        assert connection.in_flight == 2
        connection.close()
        await outcomes.after(2)
        await ended(connection)


async def test_letting_go_does_not_break_the_silence() -> None:
    arrivals: list[float] = []
    async with Loopback(throttled_once(120, arrivals)) as server:
        connection = await server.connect()
        await connection.ask(question("first"))
        connection.pipeline.hold()
        outcomes = send_all(connection, 1)
        connection.pipeline.release()
        await outcomes.after(1)
        assert arrivals[1] - arrivals[0] >= 110


async def test_the_time_of_what_was_kept_back_begins_when_it_leaves() -> None:
    async def serve(peer: Peer) -> None:
        await peer.greet()
        first = await peer.receive()
        await peer.answer(first, reply(first, 200))
        second = await peer.receive()
        await asyncio.sleep(0.2)  # the silence that was asked for
        await peer.answer(second, reply(second))
        await peer.gone()

    async with Loopback(serve) as server:
        connection = await server.connect(request_timeout_ms=300)
        await connection.ask(question("first"))
        assert (await connection.ask(question("second"))).cluster_id == "second"


async def test_a_deadline_is_kept_although_the_timer_rang_for_a_request_that_was_answered() -> None:
    async with Loopback(throttled_once(20_000, [])) as server:
        connection = await server.connect()
        await connection.ask(question("first"), timeout_ms=50)
        outcomes = Outcomes()
        connection.send(question("kept back"), VERSION, outcomes.of("kept back"), timeout_ms=150)
        [(_, error)] = await outcomes.after(1)
        assert isinstance(error, RequestTimedOut)
