"""One member whose channel does not do what it should: its calls end all the same."""

import asyncio
from collections.abc import Generator
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest

from broker.cluster.etcd import member as member_module
from broker.cluster.etcd.member import CallFailed, Member, open_channel
from broker.cluster.etcd.messages import WATCH, watch_request
from broker.store_address import Endpoint
from tests.etcd_server import EtcdServer

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
    ended.add_done_callback.call_args.args[0](ended)
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
            assert asyncio.all_tasks() > before
            stream.cancel()
            async with asyncio.timeout(5):
                await asyncio.gather(*(asyncio.all_tasks() - before))
        await member.close()
