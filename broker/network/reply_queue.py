"""Replies on their way to one client: in the order of its requests, written together where they come together, and held
up where it does not read.

A reply is there when it is put, or comes later: a Produce waits for its replicas, and those that follow it have begun
by then (decision 003). What comes later is put when it has begun, and written when its turn has come.

The transport keeps a view of what it was given until it is sent (uvloop does), so replies are lists of buffers that
nobody changes afterwards. What an answer holds of files goes from there to the socket (direct_send.py).
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Protocol

from odradek.broker.disk.file_slice import FileSlice
from odradek.broker.network.direct_send import send_directly
from odradek.broker.network.eager_call import EagerCall
from odradek.broker.network.wakeup import Wakeup
from odradek.broker.observability.request_times import RequestTimes
from odradek.protocol.primitives import Buffer
from odradek.runtime.environment import Environment

REPLIES_TOGETHER_BYTES = 64 * 1024
"""Replies to requests that arrived together are written together, up to this size. A system call each, of which every
one wakes the client, cost a fifth of the time of small requests."""

Reply = list[Buffer] | None
"""None where the protocol has none."""


class Answering(Protocol):
    """The connection, as its replies see it."""

    transport: asyncio.Transport | None
    """None before there is one, and once it is lost."""

    def cannot_complete(self, error: OSError) -> None:
        """An answer of which the client has a part will have no end."""
        ...

    async def reply(self, answer: Awaitable[Reply]) -> Reply:
        """What comes of a request; where that has no answer, the connection is closed instead."""
        ...

    def sent(self, requests: Sequence[RequestTimes], written_s: float, sent_s: float) -> None:
        """The replies to these requests, or that there are none, were given to the transport, which had room for more
        at `sent_s`."""
        ...

    def ended(self, size_bytes: int) -> None:
        """A request of this size has ended: others may be read in its place."""
        ...


class Nobody:
    """In place of a connection that is lost."""

    transport: asyncio.Transport | None = None

    def cannot_complete(self, error: OSError) -> None: ...

    async def reply(self, answer: Awaitable[Reply]) -> Reply:
        return await answer

    def sent(self, requests: Sequence[RequestTimes], written_s: float, sent_s: float) -> None: ...

    def ended(self, size_bytes: int) -> None: ...


NOBODY = Nobody()


def _start_nothing(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    raise AssertionError("the connection is lost, and starts no tasks")


class ReplyQueue:
    """The replies of one connection that are not written yet."""

    __slots__ = (
        "_answered",
        "_answerer",
        "_begun",
        "_clock_s",
        "_connection",
        "_drained",
        "_loop",
        "_parts",
        "_size_bytes",
        "_start",
        "_unsent",
        "_written_s",
        "later",
        "writable",
    )

    def __init__(
        self,
        environment: Environment,
        start: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
        connection: Answering,
    ) -> None:
        """`start` starts a task of the connection's."""
        self._loop = loop = environment.loop
        self._clock_s = environment.precise_s
        self._start = start
        self._connection = connection
        self._parts: list[Buffer] = []
        self._size_bytes = 0
        self._answered: list[RequestTimes] = []
        """Whose replies are in `_parts`."""
        self._unsent: list[RequestTimes] = []
        """Whose replies the transport has, and holds more than it may."""
        self._written_s = 0.0
        self.later: deque[tuple[EagerCall[Reply], RequestTimes]] = deque()
        """What has begun and is not answered; the first may be done, and is answered first."""
        self._answerer: asyncio.Task[None] | None = None
        self._begun = Wakeup(loop)
        self._drained = Wakeup(loop)
        self.writable: asyncio.Future[None] | None = None
        """What to wait for before anything more is answered; None: nothing."""

    # -- replies that are there -------------------------------------------------------------------------------------

    def put(self, reply: Reply, times: RequestTimes, more: object) -> None:
        """Has the reply written, now if no other one may follow at once (`more`); else together with that one, unless
        that one waits for something after all: then in the loop's next turn."""
        if reply is None:
            now_s = self._clock_s()
            self._connection.sent((times,), now_s, now_s)
            return
        if not self._parts and more:
            self._loop.call_soon(self.write)
        self._answered.append(times)
        self._parts += reply
        self._size_bytes += sum(map(len, reply))
        if not more or self._size_bytes >= REPLIES_TOGETHER_BYTES:
            self.write()

    def write(self) -> None:
        """Writes everything. A transport that is closing, or none, takes nothing more: uvloop raises, asyncio warns."""
        parts, self._parts, self._size_bytes = self._parts, [], 0
        answered, self._answered = self._answered, []
        transport = self._connection.transport
        if not parts or transport is None or transport.is_closing():
            self._end(answered)
            return
        self._written_s = written_s = self._clock_s()
        if FileSlice in map(type, parts):
            try:
                parts = send_directly(transport, parts)
            except OSError as error:
                self._end(answered)
                self._connection.cannot_complete(error)
                return
            sent_s = self._clock_s()
        else:
            sent_s = written_s
        if parts:
            transport.writelines(parts)
        if self.writable is None:
            self._connection.sent(answered, written_s, sent_s)
        else:
            self._unsent += answered

    def _end(self, requests: Sequence[RequestTimes]) -> None:
        """Nobody takes these replies any more."""
        if requests:
            now_s = self._clock_s()
            self._connection.sent(requests, now_s, now_s)

    # -- replies that come later ------------------------------------------------------------------------------------

    def put_later(self, answer: EagerCall[Reply], times: RequestTimes) -> None:
        """Has the reply written when it is there, behind those before it; the request ends then."""
        if not answer.is_done:
            times.waits(self._clock_s())
        self.later.append((answer, times))
        if self._answerer is None:
            self._answerer = self._start(self._answer_in_order())
        else:
            self._begun.wake()

    async def _answer_in_order(self) -> None:
        """One answer after the other, for as long as the connection stands."""
        while True:
            while self.later:
                answer, times = self.later[0]
                reply = await self._connection.reply(answer)
                if times.rests_upon is not None:  # it may have been there for a while
                    reply = times.rests_upon.reply_of_now(reply)
                self.later.popleft()
                self.put(reply, times, self.later and self.later[0][0].is_ready)
                self._connection.ended(times.size_bytes)
                if (writable := self.writable) is not None:
                    await writable
            self._drained.wake()
            await self._begun.wait()

    async def drained(self) -> None:
        """Returns when nothing that has begun waits any more."""
        if self.later:
            await self._drained.wait()

    # -- the client does not read -----------------------------------------------------------------------------------

    def pause(self) -> None:
        """The transport holds as much as it may."""
        self.writable = self._loop.create_future()

    def resume(self) -> None:
        """The transport has room again."""
        if self.writable is not None and not self.writable.done():
            self.writable.set_result(None)
        self.writable = None
        if self._unsent:
            self._connection.sent(self._unsent, self._written_s, self._clock_s())
            self._unsent = []

    def drop(self) -> None:
        """The connection is lost: nobody waits for anything any more, and it is let go."""
        if self._answerer is not None:
            self._answerer.cancel()
        self._parts = []
        self.resume()
        self._end(self._answered)
        while self.later:
            answer, times = self.later.popleft()
            answer.cancel()
            self._end((times,))
            self._connection.ended(times.size_bytes)
        self._connection, self._start = NOBODY, _start_nothing
