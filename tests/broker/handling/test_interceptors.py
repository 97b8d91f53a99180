"""Interceptors: each can pass, delay, drop, replace and disconnect; by requests, and by connections over sockets."""

import asyncio
from typing import Any

import pytest

from odradek.broker.handling.context import Api, Call, Caller, CloseConnection
from odradek.broker.handling.interceptors import Proceed
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from odradek.protocol.primitives import Buffer
from tests.broker.support import ask, ask_if_answered, make_topic, running_broker
from tests.broker.wire import connected
from tests.broker.wire import running_broker as running_server

ALL = MetadataRequest(topics=None)


class Noting:
    """Passes everything, and says when."""

    def __init__(self, name: str, notes: list[str]) -> None:
        self.name = name
        self.notes = notes

    async def intercept(self, call: Call, api: Api, request: Any, proceed: Proceed) -> Any:
        self.notes.append(f"{self.name} before {api.name} v{call.version}")
        answer = await proceed(request)
        self.notes.append(f"{self.name} after")
        return answer


class Doing:
    """Does what it is told to do with a request."""

    def __init__(self, fault: str) -> None:
        self.fault = fault
        self.gate = asyncio.Event()

    async def intercept(self, call: Call, api: Api, request: Any, proceed: Proceed) -> Any:
        match self.fault:
            case "delay":
                await self.gate.wait()
                return await proceed(request)
            case "drop":
                return None
            case "another request":
                return await proceed(MetadataRequest(topics=[MetadataRequestTopic(name="orders")]))
            case "another answer":
                return MetadataResponse(brokers=[], topics=[], cluster_id="somewhere else")
            case "an error":
                raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "on purpose")
            case _:
                raise CloseConnection("on purpose")


async def test_the_first_is_the_outermost_and_they_come_and_go() -> None:
    notes: list[str] = []
    async with running_broker() as context:
        requests = context.interceptors.requests
        requests += [Noting("first", notes), Noting("second", notes)]
        await ask(context, ALL, 9)
        assert notes == ["first before Metadata v9", "second before Metadata v9", "second after", "first after"]
        requests.clear()
        await ask(context, ALL, 9)
        assert len(notes) == 4


async def test_a_request_is_delayed_replaced_refused_or_dropped() -> None:
    async with running_broker() as context:
        for name in ("orders", "payments"):
            await make_topic(context, name)
        requests = context.interceptors.requests
        requests[:] = [delaying := Doing("delay")]
        waiting = asyncio.ensure_future(ask(context, ALL, 9))
        await asyncio.sleep(0)
        assert not waiting.done()
        delaying.gate.set()
        assert len((await asyncio.wait_for(waiting, 5)).topics) == 2
        requests[:] = [Doing("another request")]
        assert [topic.name for topic in (await ask(context, ALL, 9)).topics] == ["orders"]
        requests[:] = [Doing("another answer")]
        assert (await ask(context, ALL, 9)).cluster_id == "somewhere else"
        requests[:] = [Doing("an error")]
        named = MetadataRequest(topics=[MetadataRequestTopic(name="orders")])
        assert [topic.error_code for topic in (await ask(context, named, 9)).topics] == [ErrorCode.REQUEST_TIMED_OUT]
        requests[:] = [Doing("drop")]
        assert await ask_if_answered(context, ALL, 9) is None
        requests[:] = [Doing("disconnect")]
        with pytest.raises(CloseConnection, match="on purpose"):
            await ask(context, ALL, 9)


class OnWire:
    """What happens to the bytes of connections; everything passes that nothing is said of."""

    def __init__(self, *, connects: bool = True, takes: bool = True, size_bytes: int | None = None) -> None:
        self.connects = connects
        self.takes = takes
        self.size_bytes = size_bytes
        self.seen: list[str] = []
        self.has_seen = asyncio.Event()

    def connected(self, caller: Caller) -> None:
        self.seen.append(f"connected {caller.listener}")
        if not self.connects:
            raise CloseConnection("nobody is let in, on purpose")

    def received(self, caller: Caller, frame: memoryview) -> memoryview | None:
        self.seen.append(f"{len(frame)} bytes")
        self.has_seen.set()
        return frame if self.takes else None

    def replying(self, caller: Caller, reply: list[Buffer]) -> list[Buffer] | None:
        if self.size_bytes == 0:
            raise CloseConnection("before the reply, on purpose")
        return reply if self.size_bytes is None else [b"".join(reply)[: self.size_bytes]]


async def test_a_connection_is_refused_its_requests_dropped_or_its_replies_cut() -> None:
    async with running_server() as broker:
        connections = broker.context.interceptors.connections
        connections[:] = [passing := OnWire()]
        async with connected(broker) as client:
            assert (await client.ask(ALL, 9)).topics == []
        assert passing.seen[0] == "connected PLAINTEXT"
        assert passing.seen[1].endswith(" bytes")
        connections[:] = [OnWire(connects=False)]
        async with connected(broker) as client:
            assert await client.reader.read() == b""
        connections[:] = []
        async with connected(broker) as client:
            connections[:] = [dropping := OnWire(takes=False)]
            client.send(ALL, 9)
            await asyncio.wait_for(dropping.has_seen.wait(), 5)
            connections[:] = []
            client.send(ALL, 9)
            frame = await client.receive_frame()
            assert int.from_bytes(frame[:4], "big") == 2, "the first had no answer"
            connections[:] = [OnWire(size_bytes=3)]
            client.send(ALL, 9)
            connections_end = [OnWire(size_bytes=0)]
            assert len(await client.reader.readexactly(3)) == 3
            connections[:] = connections_end
            client.send(ALL, 9)
            assert await client.reader.read() == b""
