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
from typing import TYPE_CHECKING, Any, cast

from odradek.broker.access.principal import Principal
from odradek.broker.handling.context import Api, Caller, CloseConnection, Context, mute_nobody, never
from odradek.broker.handling.dispatch import dispatch, request_ended
from odradek.broker.handling.large_requests import eager_api
from odradek.broker.handling.raw_tokens import answer_token
from odradek.broker.network.client_left import has_left
from odradek.broker.network.connection_state import (
    AUTHENTICATED,
    ConnectionCondition,
    ConnectionState,
    established,
    initial,
)
from odradek.broker.network.connection_table import ConnectionTable
from odradek.broker.network.direct_send import can_send_directly
from odradek.broker.network.eager_call import EagerCall
from odradek.broker.network.muting import Muting
from odradek.broker.network.reply_queue import Reply, ReplyQueue
from odradek.broker.network.request_budget import RequestBudget
from odradek.broker.network.wakeup import Wakeup
from odradek.broker.observability.request_times import RequestTimes
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.frames import FRAME_PREFIX_BYTES, FrameReader, peek_request

if TYPE_CHECKING:
    from odradek.broker.authentication.sasl_connection import Stage

logger = logging.getLogger(__name__)

READ_AHEAD_REQUESTS = 16


class Connection(asyncio.BufferedProtocol):
    """The protocol object that the event loop drives; its worker task runs the requests."""

    def __init__(self, context: Context, memory: RequestBudget, caller: Caller, table: ConnectionTable) -> None:
        self._context = context
        self._table = table
        self.caller = caller
        self.caller.has_more = self._has_more
        self._muting = Muting(self, context.environment)
        self.caller.mute = self._muting.begin
        self._condition = ConnectionCondition(initial(caller.protocol))
        self._common_memory = memory
        self._memory = memory if self.is_authenticated else table.strangers_memory
        self._reader = FrameReader(context.config.socket_request_max_bytes, table.landing)
        self._failed = ""
        """Why the connection closes behind the answer to the present request."""
        self.requests: deque[tuple[memoryview, float]] = deque()
        """Frames, and when each was received (`Environment.precise_s`)."""
        self._request_bytes = 0
        self._partial_bytes = 0
        self._aside_bytes = (0, 0)
        """Of these, what is set aside while the client is silenced: of whole requests, and of one that is not whole."""
        self._running = False
        self._replies = ReplyQueue(context.environment, self._start, self)
        self.is_reading_paused = False
        self._arrival = Wakeup(context.environment.loop)
        self._is_taken_in = False
        self._worker: asyncio.Task[None] | None = None
        self.transport: asyncio.Transport | None = None
        self.last_active_ms = 0.0
        if caller.protocol.needs_authentication:
            self._expect_authentication()

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return self._context.tasks.start(work, f"connection {self.caller.peer}")

    # -- the event loop calls these -------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        peer = self.transport.get_extra_info("peername")
        self.caller.peer = f"{peer[0]}:{peer[1]}" if peer else "unknown"
        self.caller.host = str(peer[0]) if peer else ""
        if self.caller.sasl is not None:
            self.caller.sasl.peer = self.caller.peer
        self.caller.takes_slices = can_send_directly(self.transport)
        self.last_active_ms = self._context.environment.monotonic_ms()
        if self._context.stopping:  # it was accepted before the listeners were closed, and the others are told to end
            self.close("the broker stops")
            return
        self._table.arrive(self)

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
        if self.caller.sasl is not None:
            self.caller.sasl.lost()
        if self._worker is not None:
            self._worker.cancel()
            self._worker = None
        self._replies.drop()
        # A request under way gives its own bytes back when its task has ended; the others will never be run.
        self._drop_requests()
        self._memory.dropped(self._partial_bytes)
        self._partial_bytes = 0
        self._reader.drop()
        self._muting.end()
        self.caller.mute = mute_nobody
        self.caller.has_more = never  # the connection is in no cycle, and is freed before the next collection

    # -- TLS beneath it calls these (tls_layer.py) ---------------------------------------------------------------------

    def secured(self, principal: Principal) -> None:
        """TLS stands, and the certificate of the client says that it is this one. Before, nothing is received."""
        self._condition.move(established(self.caller.protocol))
        if self.is_authenticated:
            self.caller.principal = principal
            self._table.authenticated(self)
        if self._is_taken_in:
            self._worker = self._start(self._work())

    def tls_failed(self, reason: str) -> None:
        """Says so in the log, and closes the transport."""
        if self._condition.state is ConnectionState.TLS_HANDSHAKE:
            failures, listener = self._context.metrics.tls_handshakes_failed, self.caller.listener
            failures[listener] = failures.get(listener, 0) + 1
        self._close(reason)

    # -- the table of connections calls these -------------------------------------------------------------------------

    def hold(self) -> None:
        """There are too many connections, or they come too fast: nothing is read before `begin`."""
        self._context.environment.loop.call_soon(self._pause_held)  # uvloop begins to read when this has returned

    def _pause_held(self) -> None:
        if not self._is_taken_in:
            self._pause()

    def begin(self) -> None:
        """It is taken in. Where TLS comes first, requests begin behind it."""
        if self.transport is None or self.transport.is_closing():
            return
        self._is_taken_in = True
        self._resume()
        try:
            for interceptor in self._context.interceptors.connections:
                interceptor.connected(self.caller)
        except CloseConnection as error:
            self._close(str(error))
            return
        if self._condition.state is not ConnectionState.TLS_HANDSHAKE:
            self._worker = self._start(self._work())

    @property
    def is_authenticated(self) -> bool:
        """Whether it is known who the client is, or nobody asks."""
        return self._condition.state in AUTHENTICATED

    def admitted(self) -> None:
        """What it has sent counts with that of the others who are served, from now on."""
        strangers, self._memory = self._memory, self._common_memory
        if strangers is not self._memory:
            strangers.hand_over(self._memory, self._request_bytes, self._partial_bytes, self._resume)
            if self.is_reading_paused:
                self._resume_if_caught_up()

    def refuse(self, reason: str) -> None:
        """Closes it, and says so in the log. A stranger, who may not even read, is not waited for."""
        self._close(reason)
        if self.transport is not None and not self.is_authenticated:
            self.transport.abort()

    @property
    def has_left(self) -> bool:
        """Whether the client has closed its end, of a connection that is not read from."""
        return self.transport is not None and has_left(self.transport)

    # -- requests, one after the other ------------------------------------------------------------------------------

    @property
    def is_busy(self) -> bool:
        """Whether a request is being answered, waits for its turn, or its reply is still being sent."""
        replies = self._replies
        is_waiting = self._muting.until_ms > 0.0 or replies.writable is not None
        return self._running or bool(self.requests) or bool(replies.later) or is_waiting

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
            if not self.requests or self._muting.until_ms:
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
                    await self._unmuted()
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
                    self._close_if_failed()
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

    async def _unmuted(self) -> None:
        """Returns when no quota silences the client, or the broker stops."""
        while self._muting.until_ms and not self._context.stopping:
            await self._arrival.wait()

    def _keeps_turn(self) -> bool:
        return self.caller.keeps_turn

    async def _intercepted(self, frame: memoryview, times: RequestTimes) -> Reply:
        """Raises CloseConnection, MalformedMessage."""
        interceptors, caller = self._context.interceptors, self.caller
        if (received := interceptors.received(caller, frame)) is None:
            return None
        if caller.sasl is not None and caller.sasl.takes_tokens:
            reply = await answer_token(self._context, caller.sasl, bytes(received))
        else:
            self._admit(received)
            reply = await dispatch(self._context, caller, received, times)
        return None if reply is None else interceptors.replying(caller, reply)

    def _admit(self, frame: memoryview) -> None:
        """Raises CloseConnection for a request that the state does not admit, MalformedMessage."""
        condition, sasl, (key, version, _) = self._condition, self.caller.sasl, peek_request(frame)
        api = self._context.served.get(key)
        admits = condition.admits(is_before_authentication=api is not None and api.is_before_authentication)
        if not admits or (sasl is not None and not sasl.admits(key)):
            why = f"is not served on a {self.caller.protocol.name} connection in state {condition.state.name}"
            condition.move(ConnectionState.FAILED)
            if sasl is not None and sasl.has_ended:
                sasl.expired()
                why = "came after the session, which it had not renewed"
            raise CloseConnection(f"{f'API key {key}' if api is None else api.name} version {version} {why}")

    def _eager_api(self, frame: memoryview, size_bytes: int) -> Api | None:
        """The API of the request, if it may begin while others of that API wait (`Api.is_eager`)."""
        is_ready = self._condition.admits_all or self._condition.state is ConnectionState.READY
        return eager_api(self._context.served, frame, size_bytes) if is_ready else None

    # -- authentication (authentication/sasl_connection.py) -----------------------------------------------------------

    def _expect_authentication(self) -> None:
        """Nothing else is served before it, and no long frames are read."""
        caller, authentication = self.caller, self._context.authentication
        if authentication is None or (sasl := authentication.connection(caller.listener)) is None:
            return  # the condition lets nobody through
        caller.sasl = sasl
        sasl.moved = self._stage_moved
        limit = authentication.receive_bytes_max(caller.listener)
        self._reader.size_bytes_max = min(self._reader.size_bytes_max, limit)

    def _stage_moved(self, stage: "Stage") -> None:
        """The connection goes where its authentication has come to."""
        caller, state = self.caller, ConnectionState[stage.name]
        assert caller.sasl is not None
        if state is ConnectionState.FAILED:
            self._failed = "it has not authenticated"
            self._pause()
        is_first = self._condition.state is ConnectionState.AUTHENTICATING
        self._condition.move(state, has_end=caller.sasl.ends_ms is not None)
        if state is ConnectionState.READY and is_first and caller.sasl.principal is not None:
            caller.principal = caller.sasl.principal
            self._reader.size_bytes_max = self._context.config.socket_request_max_bytes
            self._table.authenticated(self)

    def _close_if_failed(self) -> None:
        """The failure itself was told in the log, as often as it may be."""
        if self._failed:
            self._drop_requests()
            self.close(self._failed)

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
        log = logger if self.is_authenticated else self._table.log_of_strangers
        log.warning("closed the connection of %s on listener %s: %s", self.caller.peer, self.caller.listener, reason)
        self._drop_requests()
        self._replies.write()
        if self.transport is not None:
            self.transport.close()

    def _drop_requests(self) -> None:
        """Those that wait for their turn will not be run."""
        self._take_back()
        while self.requests:
            self._finish(_size_bytes(self.requests.popleft()[0]))

    # -- a quota silences the client (muting.py) ----------------------------------------------------------------------

    @property
    def may_be_muted(self) -> bool:
        """Whether it is open, and not a follower's."""
        return self.transport is not None and not self.transport.is_closing() and not self.caller.follows

    def pause_muted(self) -> bool:
        """Stops reading, and sets aside what was received; whether there is room for that."""
        self._memory.forget(self._resume)
        self._pause()
        self._aside_bytes = sum(_size_bytes(frame) for frame, _ in self.requests), self._partial_bytes
        return self._memory.set_aside(*self._aside_bytes)

    def overfull(self) -> None:
        """There was no room: closes it."""
        self._close("clients that quotas silence have sent more than a quarter of queued.max.request.bytes")

    def resume_muted(self) -> None:
        """Its time is up: goes on."""
        self.last_active_ms = self._context.environment.monotonic_ms()
        self._take_back()
        if self.is_reading_paused:
            self._resume_if_caught_up()
        self._arrival.wake()

    def left_while_muted(self) -> None:
        """Closes it: nobody waits for it any more."""
        self._drop_requests()
        self.close("its client has left while a quota silenced it")

    def _take_back(self) -> None:
        aside, self._aside_bytes = self._aside_bytes, (0, 0)
        if any(aside):
            self._memory.take_back(*aside)

    # -- back-pressure ----------------------------------------------------------------------------------------------

    @property
    def _is_ahead(self) -> bool:
        """Whether enough has been read ahead. A request that is alone may be as large as it likes."""
        if self._muting.until_ms or self._worker is None:  # silenced, or held
            return True
        count = len(self.requests) + len(self._replies.later)
        return (self._running or count > 0) and (
            count >= READ_AHEAD_REQUESTS or self._request_bytes + self._partial_bytes >= self._muting.read_ahead_bytes
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
        """Reads no further, of a connection that is open."""
        if not self.is_reading_paused and self.transport is not None and not self.transport.is_closing():
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
