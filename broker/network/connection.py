"""One client's connection: bytes to frames, frames to requests, replies in order, and back-pressure both ways.

Requests are *applied* one after the other, and replies go out in their order, which is what Kafka's muted channels give
and what clients rely on. The next request starts after the reply to the previous one is queued, but for one case: a
Produce that follows Produces starts although these still wait for their replicas (decision 003), and so does an
OffsetCommit that follows others. What these do to the log they do before they wait, so the order in the log is that of
the requests.

Replies to what arrived together are written together. Reading goes on meanwhile, up to `READ_AHEAD_REQUESTS` whole
requests and `READ_AHEAD_BYTES`, those that wait for their replicas included; then it pauses until there are fewer.
Writing has its own brake: while the client does not read its replies, no further request is started. A third brake is
common to all: `RequestBudget`.

The receive buffer is the `FrameReader`'s, which never reuses one that a request still holds.

Anything the client gets wrong at this level (a frame too long, a body that does not parse, an API or version that was
not advertised, or that must not come before authentication, `connection_state.py`) closes the connection, with one log
line that says whose it was and why.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Coroutine, Sequence
from typing import Any, cast

from odradek.broker.handling.context import Api, Caller, CloseConnection, Context, never
from odradek.broker.handling.dispatch import dispatch, request_ended
from odradek.broker.handling.large_requests import is_large
from odradek.broker.network.connection_state import ConnectionCondition, ConnectionState, established, initial
from odradek.broker.network.connection_table import ConnectionTable
from odradek.broker.network.direct_send import can_send_directly
from odradek.broker.network.eager_call import EagerCall
from odradek.broker.network.reply_queue import Reply, ReplyQueue
from odradek.broker.network.request_budget import RequestBudget
from odradek.broker.network.wakeup import Wakeup
from odradek.broker.observability.request_times import RequestTimes
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.frames import FRAME_PREFIX_BYTES, FrameReader, peek_request

logger = logging.getLogger(__name__)

READ_AHEAD_REQUESTS = 16
READ_AHEAD_BYTES = 1 << 20


class Connection(asyncio.BufferedProtocol):
    """The protocol object that the event loop drives; its worker task runs the requests."""

    def __init__(self, context: Context, memory: RequestBudget, caller: Caller, table: ConnectionTable) -> None:
        self._context = context
        self._memory = memory
        self._table = table
        self.caller = caller
        self.caller.has_more = self._has_more
        self._condition = ConnectionCondition(initial(caller.protocol))
        self._reader = FrameReader(context.config.socket_request_max_bytes, table.landing)
        self.requests: deque[tuple[memoryview, float]] = deque()
        """Frames, and when each was received (`Environment.precise_s`)."""
        self._request_bytes = 0
        self._partial_bytes = 0
        self._running = False
        self._replies = ReplyQueue(context.environment, self._start, self)
        self.is_reading_paused = False
        self._arrival = Wakeup(context.environment.loop)
        self._worker: asyncio.Task[None] | None = None
        self.transport: asyncio.Transport | None = None
        self.last_active_ms = 0.0

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return self._context.tasks.start(work, f"connection {self.caller.peer}")

    # -- the event loop calls these -------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        if self._condition.state is ConnectionState.TLS_HANDSHAKE:  # which the transport has done
            self._condition.move(established(self.caller.protocol))
        peer = self.transport.get_extra_info("peername")
        self.caller.peer = f"{peer[0]}:{peer[1]}" if peer else "unknown"
        self.caller.host = str(peer[0]) if peer else ""
        self.caller.takes_slices = can_send_directly(self.transport)
        self.last_active_ms = self._context.environment.monotonic_ms()
        if self._context.stopping:  # it was accepted before the listeners were closed, and the others are told to end
            self.close("the broker stops")
            return
        if (refusal := self._table.admit(self)) is not None:
            self._close(refusal)
            return
        try:
            for interceptor in self._context.interceptors.connections:
                interceptor.connected(self.caller)
        except CloseConnection as error:
            self._close(str(error))
            return
        self._worker = self._start(self._work())

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        environment = self._context.environment
        self.last_active_ms, now_s = environment.monotonic_ms(), environment.precise_s()
        self._memory.received(nbytes)
        self._partial_bytes += nbytes
        try:
            self._reader.buffer_updated(nbytes)
            while (frame := self._reader.next_frame()) is not None:
                size_bytes = _size_bytes(frame)
                self._partial_bytes -= size_bytes
                self._memory.completed(size_bytes, self._resume)
                self._request_bytes += size_bytes
                self.requests.append((frame, now_s))
        except MalformedMessage as error:
            self._refuse(error)
            return
        if self.requests:
            self._arrival.wake()
            self.caller.arrived()
        self._pause_if_ahead()

    def eof_received(self) -> bool:
        return False  # the transport closes itself; replies still queued are flushed first

    def pause_writing(self) -> None:
        self._replies.pause()

    def resume_writing(self) -> None:
        self._replies.resume()

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        self._table.forget(self)
        self._memory.forget(self._resume)
        if self.caller.on_close is not None:
            self.caller.on_close()
        if self._worker is not None:
            self._worker.cancel()
            self._worker = None
        self._replies.drop()
        # A request under way gives its own bytes back when its task has ended; these will never be run.
        while self.requests:
            self._finish(_size_bytes(self.requests.popleft()[0]))
        self._memory.dropped(self._partial_bytes)
        self._partial_bytes = 0
        self._reader.drop()
        self.caller.has_more = never  # the connection is in no cycle, and is freed before the next collection

    # -- requests, one after the other ------------------------------------------------------------------------------

    @property
    def is_busy(self) -> bool:
        """Whether a request is being answered, waits for its turn, or its reply is still being sent."""
        replies = self._replies
        return self._running or bool(self.requests) or bool(replies.later) or replies.writable is not None

    @property
    def is_followers(self) -> bool:
        return self.caller.follows

    def _has_more(self) -> bool:
        return bool(self.requests)

    async def _work(self) -> None:
        context, replies, condition = self._context, self._replies, self._condition
        waiting_api = None
        """What `replies.later` waits for."""
        if context.starting is not None:
            await context.starting.wait()
        while self.transport is not None and (not context.stopping or self.caller.follows):
            if not self.requests:
                self.last_active_ms = context.environment.monotonic_ms()
                await self._arrival.wait()
                continue
            frame, received_s = self.requests.popleft()
            size_bytes = _size_bytes(frame)
            eager_api = self._eager_api(frame, size_bytes)
            times = RequestTimes(received_s, size_bytes)
            self._running = True
            try:
                if replies.later and eager_api is not waiting_api:
                    await replies.drained()
                if context.interceptors.connections or not condition.admits_all:
                    answer = self._intercepted(frame, times)
                else:
                    answer = dispatch(context, self.caller, frame, times)
                del frame  # else the receive buffer counts as held, and is never used again
                begun = None if eager_api is None else EagerCall(answer)
                if begun is not None and self.caller.keeps_turn:
                    await begun.while_it(self._keeps_turn)
                if begun is not None and (replies.later or not begun.is_done):
                    replies.put_later(begun, times)
                    size_bytes, waiting_api = 0, eager_api
                else:
                    replies.put(await self.reply(begun or answer), times, self.requests)
                del answer, begun
            except asyncio.CancelledError:  # the client is gone
                request_ended(context, times, times.completed_s, times.completed_s)
                raise
            finally:
                self._running = False
                self._finish(size_bytes)
            if self.is_reading_paused:
                self._resume_if_caught_up()
            if (writable := replies.writable) is not None:
                await writable
        await replies.drained()

    def _keeps_turn(self) -> bool:
        return self.caller.keeps_turn

    async def _intercepted(self, frame: memoryview, times: RequestTimes) -> Reply:
        """Raises CloseConnection, MalformedMessage."""
        interceptors, caller = self._context.interceptors, self.caller
        if (received := interceptors.received(caller, frame)) is None:
            return None
        self._admit(received)
        reply = await dispatch(self._context, caller, received, times)
        return None if reply is None else interceptors.replying(caller, reply)

    def _admit(self, frame: memoryview) -> None:
        """Raises CloseConnection for a request that the state does not admit, MalformedMessage."""
        condition, (key, version, _) = self._condition, peek_request(frame)
        api = self._context.served.get(key)
        if not condition.admits(is_before_authentication=api is not None and api.is_before_authentication):
            state = condition.state.name
            condition.move(ConnectionState.FAILED)
            what = f"API key {key}" if api is None else api.name
            raise CloseConnection(
                f"{what} version {version} is not served on a {self.caller.protocol.name} connection in state {state}"
            )

    def _eager_api(self, frame: memoryview, size_bytes: int) -> Api | None:
        """The API of the request, if it may begin while others of that API wait (`Api.is_eager`): a large one waits
        itself before it has done anything, and the next one would overtake it."""
        api = self._context.served.get(int.from_bytes(frame[:2], "big"))
        return api if api is not None and api.is_eager and not is_large(api, size_bytes) else None

    # -- its replies call these (`Answering`) -------------------------------------------------------------------------

    async def reply(self, answer: Awaitable[Reply]) -> Reply:
        """None where there is none; the connection may have been closed instead."""
        try:
            return await answer
        except (CloseConnection, MalformedMessage) as error:
            self._refuse(error)
            return None

    def cannot_complete(self, error: OSError) -> None:
        self._close(f"an answer cannot be completed: {error}")

    def sent(self, requests: Sequence[RequestTimes], written_s: float, sent_s: float) -> None:
        for times in requests:
            request_ended(self._context, times, written_s, sent_s)

    def ended(self, size_bytes: int) -> None:
        self._finish(size_bytes)
        if self.is_reading_paused:
            self._resume_if_caught_up()

    # -- its end ------------------------------------------------------------------------------------------------------

    def _finish(self, size_bytes: int) -> None:
        self._request_bytes -= size_bytes
        self._memory.answered(size_bytes)

    def finish(self) -> asyncio.Task[None] | None:
        """Starts no further request; the task that ends with the request under way. Called when the broker stops."""
        self._arrival.wake()
        return self._worker

    def give_back(self) -> None:
        """Gives back what it holds for receiving: it has been quiet for a while."""
        self._reader.shrink()

    def close(self, reason: str) -> None:
        """Closes from outside: idle, or the server ends. Replies already queued are still sent."""
        logger.debug("closing the connection of %s: %s", self.caller.peer, reason)
        self._replies.write()
        if self.transport is not None:
            self.transport.close()

    def _refuse(self, error: CloseConnection | MalformedMessage) -> None:
        """What the client sent has no answer but this."""
        self._context.metrics.malformed_requests += 1
        self._close(str(error))

    def _close(self, reason: str) -> None:
        logger.warning("closed the connection of %s on listener %s: %s", self.caller.peer, self.caller.listener, reason)
        while self.requests:
            self._finish(_size_bytes(self.requests.popleft()[0]))
        self._replies.write()
        if self.transport is not None:
            self.transport.close()

    # -- back-pressure ----------------------------------------------------------------------------------------------

    @property
    def _is_ahead(self) -> bool:
        """Whether enough has been read ahead. A request that is alone may be as large as it likes."""
        count = len(self.requests) + len(self._replies.later)
        return (self._running or count > 0) and (
            count >= READ_AHEAD_REQUESTS or self._request_bytes + self._partial_bytes >= READ_AHEAD_BYTES
        )

    def _pause_if_ahead(self) -> None:
        if self.is_reading_paused or self.transport is None or self.transport.is_closing():
            return
        if self._is_ahead:
            self._memory.forget(self._resume)
            self._pause()
        elif not self._memory.may_read(self._resume):
            self._pause()

    def _pause(self) -> None:
        assert self.transport is not None
        self.is_reading_paused = True
        self.transport.pause_reading()

    def _resume_if_caught_up(self) -> None:
        if not self._is_ahead and self._memory.may_read(self._resume):
            self._resume()

    def _resume(self) -> None:
        if self.is_reading_paused and self.transport is not None and not self.transport.is_closing():
            self.is_reading_paused = False
            self.transport.resume_reading()


def _size_bytes(frame: memoryview) -> int:
    return len(frame) + FRAME_PREFIX_BYTES
