"""One stream, without an etcd: replies are made up, so each comes when the test says, in the pieces that it wants."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from odradek.broker.cluster.etcd.feed import REPLIES_MAX, Feed
from odradek.broker.cluster.etcd.member import CallFailed, Member, Stream
from odradek.broker.cluster.etcd.messages import WatchEvent, progress_request
from odradek.broker.cluster.etcd.wire import blob, integer, message
from odradek.broker.cluster.store import Compacted
from odradek.broker.config.store_address import Endpoint
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks

pytestmark = [pytest.mark.asyncio, pytest.mark.virtual_time]

SILENCE_MS = 1000.0


class ScriptedStream(Stream):
    """Gives what the test puts into `replies`; an exception is raised."""

    def __init__(self) -> None:
        self.replies: asyncio.Queue[bytes | CallFailed] = asyncio.Queue()
        self.written: asyncio.Queue[bytes] = asyncio.Queue()
        self.is_cancelled = False

    def send(self, request: bytes) -> None:
        self.written.put_nowait(request)

    async def read(self) -> bytes:
        reply = await self.replies.get()
        if isinstance(reply, CallFailed):
            raise reply
        return reply

    def cancel(self) -> None:
        self.is_cancelled = True


class NoMember(Member):
    """A feed only remembers whose it is."""

    def __init__(self) -> None:
        self.endpoint = Endpoint("h", 1)


@asynccontextmanager
async def feeding() -> AsyncGenerator[tuple[Feed, ScriptedStream], None]:
    environment = Environment()
    stream, tasks = ScriptedStream(), Tasks(environment.loop)
    feed = Feed(NoMember(), stream, environment, SILENCE_MS)
    feed.start(tasks)
    yield feed, stream
    feed.close()
    assert stream.is_cancelled
    await tasks.close()


def reply(*revisions: int, is_fragment: bool = False) -> bytes:
    """A reply with one put for each revision."""
    events = [message(11, message(2, blob(1, b"/k") + integer(3, revision))) for revision in revisions]
    return b"".join(events) + integer(7, int(is_fragment))


def revisions_of(events: list[WatchEvent] | None) -> list[int]:
    assert events is not None
    return [event.entry.revision for event in events]


async def test_fragments_are_put_together() -> None:
    async with feeding() as (feed, stream):
        for data in (reply(5, 6), reply(7, 7, is_fragment=True), reply(7, is_fragment=True), reply(7, 8), reply(9)):
            stream.replies.put_nowait(data)
        assert [revisions_of(await feed.take()) for _ in range(3)] == [[5, 6], [7, 7, 7, 7, 8], [9]]


async def test_a_stream_that_breaks_between_fragments_has_told_nothing_of_them() -> None:
    async with feeding() as (feed, stream):
        stream.replies.put_nowait(reply(7, is_fragment=True))
        stream.replies.put_nowait(CallFailed("UNAVAILABLE", "gone"))
        with pytest.raises(CallFailed, match="gone"):
            await feed.take()


async def test_a_reply_without_events_is_a_sign_of_life() -> None:
    async with feeding() as (feed, stream):
        stream.replies.put_nowait(integer(3, 1))
        assert await feed.take() == []


@pytest.mark.parametrize("why", [integer(5, 12), blob(6, b"etcdserver: mvcc: required revision has been compacted")])
async def test_a_watch_that_asks_for_what_is_gone_says_compacted(why: bytes) -> None:
    async with feeding() as (feed, stream):
        stream.replies.put_nowait(integer(4, 1) + why)
        with pytest.raises(Compacted, match="compacted"):
            await feed.take()


async def test_any_other_cancellation_says_why() -> None:
    async with feeding() as (feed, stream):
        stream.replies.put_nowait(integer(3, 1) + integer(4, 1) + blob(6, b"etcdserver: permission denied"))
        with pytest.raises(CallFailed, match="permission denied"):
            await feed.take()
        stream.replies.put_nowait(integer(4, 1))
        with pytest.raises(CallFailed, match="etcd cancelled the watch"):
            await feed.take()


async def test_bytes_that_are_no_reply_break_the_stream() -> None:
    async with feeding() as (feed, stream):
        stream.replies.put_nowait(b"\x08")
        with pytest.raises(CallFailed, match="no message of its own: it ends within a number"):
            await feed.take()


async def test_silence_is_asked_about_and_then_is_death() -> None:
    environment = Environment()
    async with feeding() as (feed, stream):
        start_ms = environment.monotonic_ms()
        assert await stream.written.get() == progress_request()
        assert environment.monotonic_ms() - start_ms == pytest.approx(SILENCE_MS)
        stream.replies.put_nowait(integer(2, -1))
        assert await feed.take() == []
        assert await stream.written.get() == progress_request()
        with pytest.raises(CallFailed, match="nothing was heard for 2000 ms"):
            await feed.take()


async def test_nobody_is_taken_for_dead_whose_replies_are_not_taken() -> None:
    async with feeding() as (feed, stream):
        for revision in range(1, 2 * REPLIES_MAX + 1):
            stream.replies.put_nowait(reply(revision))
        await asyncio.sleep(10 * SILENCE_MS / 1000)
        assert stream.written.empty()
        assert stream.replies.qsize() >= REPLIES_MAX - 1
        for revision in range(1, 2 * REPLIES_MAX + 1):
            assert revisions_of(await feed.take()) == [revision]


async def test_who_waits_is_told_the_end() -> None:
    async with feeding() as (feed, stream):
        waiting = asyncio.ensure_future(feed.take())
        await asyncio.sleep(0)
        start_ms = Environment().monotonic_ms()
        feed.end()
        assert await waiting is None
        assert Environment().monotonic_ms() == start_ms
        stream.replies.put_nowait(reply(1))
        assert await feed.take() is None
