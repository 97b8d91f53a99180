"""One stream of changes from one member of etcd, until it breaks.

Two tasks serve it: one reads ahead, up to REPLIES_MAX replies (more stay at etcd), and one notices when nothing comes
any more. Silence may be death: a member that hangs, a network that drops. So after a while without a reply etcd is
asked for a sign of life, and after as long again without one the stream counts as broken. What such a sign says about
revisions is not used: etcd before 3.5.8 could name one whose changes were still on the way.
"""

import asyncio
from typing import Final

from odradek.broker.cluster.etcd.member import CallFailed, Member, Stream
from odradek.broker.cluster.etcd.messages import WatchEvent, WatchReply, decode_watch, progress_request
from odradek.broker.cluster.etcd.wire import MalformedMessage
from odradek.broker.cluster.store import Compacted
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks

REPLIES_MAX: Final = 16


class Feed:
    """The replies of one stream, between the tasks that serve it and who takes them."""

    def __init__(self, member: Member, stream: Stream, environment: Environment, silence_ms: float) -> None:
        self.member = member
        self._stream = stream
        self._environment = environment
        self._silence_ms = silence_ms
        self._replies: asyncio.Queue[WatchReply | CallFailed | None] = asyncio.Queue(REPLIES_MAX)
        self._events: list[WatchEvent] = []
        self._is_heard = False
        self._has_ended = False
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, tasks: Tasks) -> None:
        self._tasks = [
            tasks.start(self._read(), "read a watch of etcd"),
            tasks.start(self._listen(), "notice when a watch of etcd is dead"),
        ]

    async def take(self) -> list[WatchEvent] | None:
        """The next events, of whole revisions; an empty list for a sign of life, None when the feed was ended.

        Raises CallFailed, Compacted.
        """
        while not self._has_ended:
            reply = await self._replies.get()
            if reply is None or self._has_ended:
                return None
            if isinstance(reply, CallFailed):
                raise reply
            if reply.is_cancelled:
                raise _why_cancelled(reply)
            self._events += reply.events
            if not reply.is_fragment:
                events, self._events = self._events, []
                return events
        return None

    def end(self) -> None:
        """Whoever waits is told None."""
        self._has_ended = True
        if not self._replies.full():
            self._replies.put_nowait(None)

    def close(self) -> None:
        """Gives the stream back."""
        for task in self._tasks:
            task.cancel()
        self._stream.cancel()

    async def _read(self) -> None:
        try:
            while True:
                reply = decode_watch(await self._stream.read())
                self._is_heard = True
                await self._replies.put(reply)
        except CallFailed as error:
            await self._replies.put(error)
        except MalformedMessage as error:
            await self._replies.put(CallFailed("INTERNAL", f"etcd sent what is no message of its own: {error}"))

    async def _listen(self) -> None:
        while True:
            if await self._is_silent():
                self._stream.send(progress_request())
                if await self._is_silent():
                    break
        silence_ms = 2 * self._silence_ms
        await self._replies.put(CallFailed("DEADLINE_EXCEEDED", f"nothing was heard for {silence_ms:.0f} ms"))

    async def _is_silent(self) -> bool:
        """Whether nothing came for a while although there was room for it."""
        self._is_heard = False
        await self._environment.sleep(self._silence_ms)
        return not self._is_heard and not self._replies.full()


def _why_cancelled(reply: WatchReply) -> Compacted | CallFailed:
    if reply.compact_revision or "compacted" in reply.cancel_reason:
        return Compacted(f"etcd has compacted what changed before revision {reply.compact_revision}")
    return CallFailed("CANCELLED", reply.cancel_reason or "etcd cancelled the watch")
