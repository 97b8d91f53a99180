"""Requests and answers over real loopback sockets: their order, and every way in which an answer can be wrong."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from odradek.client.errors.client_errors import ClientError, ConnectionFailed, MalformedResponse, RequestTimedOut
from odradek.client.network.connection import Connection
from odradek.client.network.pipeline import RESPONSE_BYTES_MAX
from odradek.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
)
from odradek.protocol.primitives import Buffer
from tests.client.loopback import Loopback, Peer, Received, frame_of
from tests.client.questions import VERSION, Outcomes, Result, echo, ended, question, reply, send_all, silent

pytestmark = pytest.mark.both_loops


# ------------------------------------------------------------------------------------------------ order
async def test_requests_leave_in_order_and_each_gets_its_own_answer() -> None:
    came: list[str] = []

    async def serve(peer: Peer) -> None:
        await peer.greet()
        requests = [await peer.receive() for _ in range(50)]
        came.extend(request.message.topics[0].name for request in requests)
        for request in requests:
            await peer.answer(request, reply(request))
        await peer.gone()

    async with Loopback(serve) as server:
        connection = await server.connect()
        outcomes = send_all(connection, 50)
        assert connection.in_flight == 50
        results = await outcomes.after(50)
        assert came == [str(number) for number in range(50)]
        assert [(name, result.cluster_id) for name, result in results] == [(n, str(n)) for n in range(50)]
        assert connection.in_flight == 0
        assert connection.is_open


async def test_a_turn_of_the_loop_writes_once_or_twice() -> None:
    async with Loopback(echo) as server:
        connection = await server.connect()
        writes = watch_writes(connection)
        await send_all(connection, 50).after(50)
        assert [len(buffers) for buffers in writes] == [1, 49]  # at once on the idle connection, then the others
        await connection.ask(question("alone"))
        assert len(writes) == 3


def watch_writes(connection: Connection) -> list[list[Buffer]]:
    writes: list[list[Buffer]] = []
    outgoing = cast(Any, connection.pipeline)._outgoing
    transport = outgoing._transport

    class Watched:
        def __getattr__(self, name: str) -> Any:
            return getattr(transport, name)

        def writelines(self, buffers: list[Buffer]) -> None:
            writes.append(list(buffers))
            transport.writelines(buffers)

    outgoing._transport = Watched()
    return writes


async def test_answers_may_be_torn_anywhere_and_glued_together() -> None:
    async def serve(peer: Peer) -> None:
        await peer.greet()
        while True:
            frames = b"".join(
                [frame_of(request, reply(request)) for request in [await peer.receive() for _ in range(3)]]
            )
            for index in range(len(frames)):
                await peer.send(frames[index : index + 1])

    async with Loopback(serve) as server:
        connection = await server.connect()
        for _ in range(3):
            results = await send_all(connection, 3).after(3)
            assert [result.cluster_id for _, result in results] == ["0", "1", "2"]


async def test_correlation_ids_begin_anew_after_the_largest() -> None:
    async with Loopback(echo) as server:
        connection = await server.connect()
        cast(Any, connection)._correlation_id = 2**31 - 1
        results = await send_all(connection, 3).after(3)
        assert [result.cluster_id for _, result in results] == ["0", "1", "2"]


async def test_requests_may_be_sent_and_the_connection_closed_from_within_done() -> None:
    async with Loopback(echo) as server:
        connection = await server.connect()
        outcomes = Outcomes()

        def then(result: Result) -> None:
            connection.send(question("second"), VERSION, close)
            outcomes.of("first")(result)

        def close(result: Result) -> None:
            outcomes.of("second")(result)
            connection.close()
            connection.send(question("third"), VERSION, outcomes.of("third"))

        connection.send(question("first"), VERSION, then)
        results = dict(await outcomes.after(3))
        assert (results["first"].cluster_id, results["second"].cluster_id) == ("first", "second")
        assert isinstance(results["third"], ConnectionFailed)
        await ended(connection)


async def test_a_done_that_fails_is_logged_and_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    async with Loopback(echo) as server:
        connection = await server.connect()

        def fail(result: Result) -> None:
            raise LookupError("no such thing")

        connection.send(question(0), VERSION, fail)
        with caplog.at_level(logging.ERROR):
            assert (await connection.ask(question(1))).cluster_id == "1"
        assert "Metadata v12" in caplog.text
        assert "no such thing" in caplog.text
        assert connection.in_flight == 0


async def test_who_stops_asking_loses_the_answer_and_nobody_elses(caplog: pytest.LogCaptureFixture) -> None:
    go = asyncio.Event()

    async def serve(peer: Peer) -> None:
        await peer.greet()
        first = await peer.receive()
        await go.wait()
        await peer.answer(first, reply(first))
        second = await peer.receive()
        await peer.answer(second, reply(second))
        await peer.gone()

    async with Loopback(serve) as server:
        connection = await server.connect()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(connection.ask(question("first")), 0.01)
        assert connection.in_flight == 1
        go.set()
        assert (await connection.ask(question("second"))).cluster_id == "second"
        assert connection.in_flight == 0
        assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_who_closes_gets_no_more_answers_even_if_they_have_come() -> None:
    async def serve(peer: Peer) -> None:
        await peer.greet()
        requests = [await peer.receive(), await peer.receive()]
        await peer.send(b"".join(frame_of(request, reply(request)) for request in requests))
        await peer.gone()

    async with Loopback(serve) as server:
        connection = await server.connect()
        outcomes = Outcomes()
        connection.send(question("first"), VERSION, lambda _: connection.close())
        connection.send(question("second"), VERSION, outcomes.of("second"))
        [(_, error)] = await outcomes.after(1)
        assert isinstance(error, ConnectionFailed)


async def test_large_answers_are_taken_once_the_connection_is_ready() -> None:
    brokers = [MetadataResponseBroker(node_id=node_id, host="h" * 50, port=9092) for node_id in range(40_000)]

    async def serve(peer: Peer) -> None:
        await peer.greet()
        request = await peer.receive()
        await peer.answer(request, MetadataResponse(brokers=brokers, topics=[]))
        await peer.gone()

    async with Loopback(serve) as server:
        connection = await server.connect()
        assert len((await connection.ask(question("all"))).brokers) == 40_000


async def test_a_request_that_its_version_cannot_carry_is_refused_and_nothing_else() -> None:
    async with Loopback(echo) as server:
        connection = await server.connect()
        impossible = MetadataRequest(topics=[MetadataRequestTopic(name=None)])
        with pytest.raises(ValueError, match="MetadataRequest v5"):
            connection.send(impossible, 5, Outcomes().of("impossible"))
        assert connection.in_flight == 0
        assert (await connection.ask(question("next"))).cluster_id == "next"


# ------------------------------------------------------------------------------------------------ wrong answers
Wrong = Callable[[Peer, list[Received]], Awaitable[None]]


async def wrong_id(peer: Peer, requests: list[Received]) -> None:
    await peer.answer(requests[1], reply(requests[1]))


async def negative_size(peer: Peer, requests: list[Received]) -> None:
    await peer.send(b"\xff\xff\xff\xfe" + bytes(20))


async def enormous_size(peer: Peer, requests: list[Received]) -> None:
    await peer.send((RESPONSE_BYTES_MAX + 1).to_bytes(4) + bytes(20))


async def no_header(peer: Peer, requests: list[Received]) -> None:
    await peer.send(b"\x00\x00\x00\x02\x00\x00")


async def cut_body(peer: Peer, requests: list[Received]) -> None:
    frame = frame_of(requests[0], reply(requests[0]))
    await peer.send((len(frame) - 8).to_bytes(4) + frame[4:-4])


async def contradictory_body(peer: Peer, requests: list[Received]) -> None:
    frame = bytearray(frame_of(requests[0], reply(requests[0])))
    frame[13:17] = b"\xff\xff\xff\x7f"  # 2**28 brokers
    await peer.send(bytes(frame))


MALFORMED = [wrong_id, negative_size, enormous_size, no_header, cut_body, contradictory_body]


@pytest.mark.parametrize("wrong", MALFORMED, ids=lambda wrong: wrong.__name__)
async def test_bytes_that_are_no_answer_end_the_connection_and_fail_all_its_requests(wrong: Wrong) -> None:
    async def serve(peer: Peer) -> None:
        await peer.greet()
        await wrong(peer, [await peer.receive() for _ in range(3)])
        await peer.gone()

    async with Loopback(serve) as server:
        connection = await server.connect()
        reasons: list[ClientError] = []
        connection.on_close = lambda _, why: reasons.append(why)
        results = await send_all(connection, 3).after(3)
        await ended(connection)
        errors = [error for _, error in results]
        assert [type(error) for error in errors] == [MalformedResponse, ConnectionFailed, ConnectionFailed]
        for error in errors:
            assert error.retriable
            assert f"broker 1 ({server.host}:{server.port})" in str(error)
            assert "Metadata v12" in str(error)
        assert reasons == [errors[0]]


async def test_an_answer_that_comes_twice_ends_the_connection() -> None:
    async def serve(peer: Peer) -> None:
        await peer.greet()
        request = await peer.receive()
        await peer.send(frame_of(request, reply(request)) * 2)
        await peer.gone()

    async with Loopback(serve) as server:
        connection = await server.connect()
        [(_, result)] = await send_all(connection, 1).after(1)
        assert result.cluster_id == "0"
        await ended(connection)
        with pytest.raises(ConnectionFailed, match="nobody asked for"):
            await connection.ask(question("late"))


async def test_bytes_left_over_behind_an_answer_are_ignored_as_javas_client_does() -> None:
    async def serve(peer: Peer) -> None:
        await peer.greet()
        while True:
            request = await peer.receive()
            frame = frame_of(request, reply(request))[4:] + b"more"
            await peer.send(len(frame).to_bytes(4) + frame)

    async with Loopback(serve) as server:
        connection = await server.connect()
        assert (await connection.ask(question("one"))).cluster_id == "one"
        assert (await connection.ask(question("two"))).cluster_id == "two"


@pytest.mark.parametrize("is_reset", [False, True])
async def test_the_end_of_the_stream_fails_what_is_in_flight(is_reset: bool) -> None:
    async def serve(peer: Peer) -> None:
        await peer.greet()
        request = await peer.receive()
        await peer.answer(request, reply(request))
        for _ in range(3):
            request = await peer.receive()
        await peer.send(frame_of(request, reply(request))[:9])  # and then no more of it
        if is_reset:
            peer.writer.get_extra_info("socket").setsockopt(1, 13, bytes([1, 0, 0, 0, 0, 0, 0, 0]))  # SO_LINGER 0
        peer.writer.transport.abort()

    async with Loopback(serve) as server:
        connection = await server.connect()
        await connection.ask(question("first"))
        results = await send_all(connection, 3).after(3)
        await ended(connection)
        assert [type(error) for _, error in results] == [ConnectionFailed] * 3
        expected = "Connection reset by peer" if is_reset else "closed by the other side"
        assert all(expected in str(error) for _, error in results)


async def test_a_closed_connection_takes_nothing_more_and_says_why() -> None:
    async with Loopback(echo) as server:
        connection = await server.connect()
        outcomes = send_all(connection, 2)
        connection.close(ConnectionFailed(connection.broker, "it was idle"))
        connection.close()
        connection.send(question("late"), VERSION, outcomes.of("late"))
        assert not connection.is_open
        assert outcomes.ended == [], "done is called from the loop"
        with pytest.raises(ConnectionFailed, match="it was idle"):
            await connection.ask(question("later"))
        results = dict(await outcomes.after(3))
        await ended(connection)
        assert all(isinstance(error, ConnectionFailed) and "it was idle" in str(error) for error in results.values())


# ------------------------------------------------------------------------------------------------ no answer
async def test_a_request_over_its_timeout_ends_the_connection() -> None:
    async with Loopback(silent) as server:
        connection = await server.connect(request_timeout_ms=80)
        before_ms = asyncio.get_running_loop().time() * 1000
        results = await send_all(connection, 3).after(3)
        waited_ms = asyncio.get_running_loop().time() * 1000 - before_ms
        await ended(connection)
        errors = [error for _, error in results]
        assert 70 <= waited_ms < 2_000
        assert [type(error) for error in errors] == [RequestTimedOut, ConnectionFailed, ConnectionFailed]
        assert all(error.retriable and "within 80 ms" in str(error) for error in errors)


async def test_the_shortest_timeout_counts_wherever_its_request_stands() -> None:
    async with Loopback(silent) as server:
        connection = await server.connect(request_timeout_ms=60_000)
        outcomes = Outcomes()
        connection.send(question(0), VERSION, outcomes.of(0))
        connection.send(question(1), VERSION, outcomes.of(1), timeout_ms=50)
        results = dict(await outcomes.after(2))
        assert isinstance(results[1], RequestTimedOut)
        assert isinstance(results[0], ConnectionFailed)


async def test_the_timer_is_set_to_the_next_deadline_after_one_that_was_kept() -> None:
    async def serve(peer: Peer) -> None:
        await peer.greet()
        first = await peer.receive()
        await peer.answer(first, reply(first))
        await peer.gone()

    async with Loopback(serve) as server:
        connection = await server.connect()
        outcomes = Outcomes()
        for name, timeout_ms in (("answered", 50), ("due next", 150), ("behind it", 60_000)):
            connection.send(question(name), VERSION, outcomes.of(name), timeout_ms=timeout_ms)
        results = dict(await outcomes.after(3))
        assert isinstance(results["due next"], RequestTimedOut)
        assert isinstance(results["behind it"], ConnectionFailed)


async def test_answers_in_time_keep_the_timer_from_ringing() -> None:
    async def slow(peer: Peer) -> None:
        await peer.greet()
        while True:
            request = await peer.receive()
            await asyncio.sleep(0.03)  # what is slow about it
            await peer.answer(request, reply(request))

    async with Loopback(slow) as server:
        connection = await server.connect(request_timeout_ms=100)
        for number in range(8):  # 240 ms altogether
            assert (await connection.ask(question(number))).cluster_id == str(number)


async def test_the_time_of_the_last_use_is_told() -> None:
    async with Loopback(echo) as server:
        connection = await server.connect()
        before_ms = connection.last_used_ms
        await asyncio.sleep(0.02)  # the time that is told
        await connection.ask(question("now"))
        assert connection.last_used_ms >= before_ms + 10
