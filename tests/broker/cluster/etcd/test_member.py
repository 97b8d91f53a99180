"""One member whose channel does not do what it should: its calls end all the same."""

import asyncio
from collections.abc import AsyncIterator, Callable, Generator
from typing import Any, cast
from unittest.mock import AsyncMock, Mock

import pytest
from grpc import aio

from odradek.broker.cluster.etcd import member as member_module
from odradek.broker.cluster.etcd.member import CallFailed, Member, open_channel
from odradek.broker.cluster.etcd.messages import WATCH, watch_request
from odradek.broker.config.store_address import Endpoint
from processes.etcd_server import EtcdServer

pytestmark = pytest.mark.asyncio


async def test_a_member_that_is_closed_ends_its_calls_itself() -> None:
    """On a channel that ends none of them. Those that have ended are not remembered."""
    calls: list[Mock] = []

    def open_call(*_: object, **__: object) -> Mock:
        calls.append(Mock())
        return calls[-1]

    channel = Mock(stream_stream=Mock(return_value=open_call), close=AsyncMock())
    member = Member(Endpoint("h", 1), channel)
    for _ in range(2):
        member.stream("/service/Method")
    ended, running = calls
    for added in ended.add_done_callback.call_args_list:
        added.args[0](ended)
    await member.close()
    running.cancel.assert_called_once_with()
    ended.cancel.assert_not_called()
    channel.close.assert_awaited_once_with()


class EndlessCall:
    """A call of either kind that nothing ends."""

    def add_done_callback(self, callback: object) -> None:
        del callback

    def cancel(self) -> None:
        return

    def __await__(self) -> Generator[Any, None, bytes]:
        return self.read().__await__()

    async def read(self) -> bytes:
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")


async def test_no_call_is_waited_for_longer_than_it_may_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though gRPC, which has its own deadline, never ends it."""
    monkeypatch.setattr(member_module, "GRACE_MS", 10.0)
    opening = Mock(return_value=Mock(return_value=EndlessCall()))
    member = Member(Endpoint("h", 1), Mock(unary_unary=opening, stream_stream=opening))
    for ask in (member.ask, member.converse):
        with pytest.raises(CallFailed, match="no answer, and gRPC does not say so"):
            async with asyncio.timeout(5):
                await ask("/service/Method", b"", 10.0)


async def test_a_stream_that_etcd_broke_leaves_no_task_behind() -> None:
    """gRPC cancels the task that takes requests only with a call that is still there; it was found by the garbage
    collector, which logs an error for each."""
    with EtcdServer() as server:
        endpoint = Endpoint("127.0.0.1", server.members[0].port)
        member = Member(endpoint, open_channel(endpoint, None))
        before = asyncio.all_tasks()
        async with asyncio.timeout(30):
            stream = member.stream(WATCH)
            stream.send(watch_request(b"a", b"b", 1))
            await stream.read()
            await asyncio.to_thread(server.members[0].kill)
            with pytest.raises(CallFailed):
                await stream.read()
            assert stream.has_ended
            async with asyncio.timeout(5):
                await asyncio.gather(*(asyncio.all_tasks() - before))
        await member.close()


class Echo:
    """A channel whose calls answer each request with itself, in order, when `may_answer` lets them."""

    def __init__(self, may_answer: asyncio.Event | asyncio.Barrier) -> None:
        self.calls: list[EchoCall] = []
        self.may_answer = may_answer

    def stream_stream(self, method: str) -> Callable[..., "EchoCall"]:
        def opened(requests: AsyncIterator[bytes], metadata: object) -> EchoCall:
            del metadata
            self.calls.append(EchoCall(self, method, requests))
            return self.calls[-1]

        return opened

    async def close(self) -> None:
        return


class EchoCall:
    """One call over such a channel."""

    def __init__(self, channel: Echo, method: str, requests: AsyncIterator[bytes]) -> None:
        self.method = method
        self._channel = channel
        self._requests = requests
        self._has_ended = False
        self._callbacks: list[Callable[[EchoCall], None]] = []

    def add_done_callback(self, callback: "Callable[[EchoCall], None]") -> None:
        self._callbacks.append(callback)

    def done(self) -> bool:
        return self._has_ended

    def cancel(self) -> None:
        if not self._has_ended:
            self._has_ended = True
            for callback in self._callbacks:
                callback(self)

    async def read(self) -> bytes:
        request = await anext(self._requests)
        await self._channel.may_answer.wait()
        return request


async def test_a_stream_is_kept_for_the_next_question() -> None:
    channel = Echo(asyncio.Barrier(1))
    member = Member(Endpoint("h", 1), cast(aio.Channel, channel))
    for question in (b"1", b"2", b"3"):
        assert await member.converse("/lease", question, 1000.0) == question
    assert await member.converse("/other", b"4", 1000.0) == b"4"
    assert [call.method for call in channel.calls] == ["/lease", "/other"]
    channel.calls[0].cancel()  # as when etcd goes away
    assert await member.converse("/lease", b"5", 1000.0) == b"5"
    assert len(channel.calls) == 3
    await member.close()
    assert all(call.done() for call in channel.calls)


async def test_what_was_not_answered_in_time_is_never_the_answer_to_the_next_question() -> None:
    may_answer = asyncio.Event()
    may_answer.set()
    channel = Echo(may_answer)
    member = Member(Endpoint("h", 1), cast(aio.Channel, channel))
    assert await member.converse("/lease", b"1", 1000.0) == b"1"
    may_answer.clear()
    with pytest.raises(CallFailed, match="no answer"):
        await member.converse("/lease", b"2", 10.0)
    asking = asyncio.ensure_future(member.converse("/lease", b"3", 1000.0))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    may_answer.set()
    assert await member.converse("/lease", b"4", 1000.0) == b"4"
    assert [call.done() for call in channel.calls] == [True, True, False]
    await member.close()


async def test_of_questions_at_once_each_has_its_stream_and_one_is_kept() -> None:
    questions = (b"1", b"2", b"3")
    channel = Echo(asyncio.Barrier(len(questions)))
    member = Member(Endpoint("h", 1), cast(aio.Channel, channel))
    answers = await asyncio.gather(*(member.converse("/lease", each, 1000.0) for each in questions))
    assert answers == [*questions]
    assert sorted(call.done() for call in channel.calls) == [False, True, True]
    await member.close()
