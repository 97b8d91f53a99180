"""Requests out, in the order of `send`; answers in, matched by their order and correlation id.

What a connection does on the wire, whoever is on the other side; the connection holds it, and hears of its end. Rules:

- `done` is called exactly once, from the loop: with the response or with an error that may be retried. A request that
  takes longer than its timeout, an answer to something else, bytes that are none, and the end of the stream all end the
  connection: answers come in order, so behind a missing one nothing can be matched. All other requests fail with it,
  once the transport holds none of their bytes any more.
- A request on an idle connection is written at once. Those behind it are collected and written once a turn of the loop:
  the broker does not look at them before it has answered the first one. (`outgoing.py`)
- A request that has no answer (acks=0) is done when the transport's buffer is empty.
- While a broker's quota silences the connection (KIP-219), and while it is held for a new authentication (KIP-368),
  requests are kept back, and leave in their order afterwards, when their time begins anew. A timeout meanwhile ends the
  request alone, which was never sent; of those that were, the time is longer by the broker's silence.
- One timer serves all requests. It is set to the first deadline and looks at the others when it rings, so a request
  that is answered in time costs nothing.
- Bytes left over behind a response are ignored, as Java's client does: its parser reads what it knows and looks no
  further. Bytes that are missing, or contradict one another, are not.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from itertools import chain
from typing import Any, Final, Protocol, TypeVar, cast

from odradek.client.errors.client_errors import ClientError, ConnectionFailed, MalformedResponse, RequestTimedOut
from odradek.client.metrics.metrics import (
    INCOMING_BYTE_TOTAL,
    NO_METRICS,
    OUTGOING_BYTE_TOTAL,
    REQUEST_LATENCY,
    REQUEST_TOTAL,
    RESPONSE_TOTAL,
    Metrics,
)
from odradek.client.network.exchange import Framer, Sent, response_in
from odradek.client.network.outgoing import Outgoing
from odradek.client.network.throttle import silence_ms
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.frames import FrameReader
from odradek.protocol.primitives import Buffer
from odradek.runtime.environment import Environment

__all__ = ["GREETING_BYTES_MAX", "RESPONSE_BYTES_MAX", "Pipeline", "PipelineOwner"]

logger = logging.getLogger(__name__)

R = TypeVar("R", bound=Response)

RESPONSE_BYTES_MAX: Final = 100 * 1024 * 1024
"""A larger response is refused: the bound that brokers set for requests (socket.request.max.bytes)."""
GREETING_BYTES_MAX: Final = 1024 * 1024
"""The bound before the connection is ready. So what speaks another protocol is found out by its first bytes."""
ANSWER_GROWTH: Final = 8
"""How many times what has come of an answer its buffer may be. With 2, an answer to Fetch of 12 MiB moves three times
rather than once, and a record of 1 KiB took 3.2 µs in `get_batch` rather than 2.7."""
TIMER_SLACK_MS: Final = 1.0
"""A deadline so near has passed: uvloop's timers count whole milliseconds."""
NEVER: Final = float("inf")

_CORRELATION_ID_MAX: Final = 2**31 - 1


class PipelineOwner(Protocol):
    """The connection, as its pipeline sees it: it knows better what an end means, and is told of it."""

    def explain_bytes(self, beginning: bytes) -> ClientError | None:
        """An error for first bytes that are no response; None: there is no better one than that they are none."""
        ...

    def explain_loss(self, exc: Exception | None) -> ClientError | None:
        """An error for an end of the stream, or the transport's error; None: there is no better one."""
        ...

    def was_lost(self) -> None:
        """The socket is closed, and all requests are about to fail."""
        ...

    def has_ended(self, failure: ClientError) -> None:
        """All of them have."""
        ...


class Pipeline(asyncio.BufferedProtocol):
    """See the module. `broker`: how texts call the other side; `node`: how metrics do."""

    def __init__(
        self,
        environment: Environment,
        owner: PipelineOwner,
        broker: str,
        node: str,
        *,
        client_id: str,
        request_timeout_ms: float,
        metrics: Metrics = NO_METRICS,
    ) -> None:
        self.broker = broker
        self.is_open = False
        """Whether it is ready and can be used. Once it is closed, it never is again."""
        self.in_flight = 0
        """How many requests have been given to `send` and have not ended."""
        self.last_used_ms = environment.monotonic_ms()
        """When something was last sent or received."""
        self.throttled_until_ms = 0.0
        """Until then the broker's quota silences this connection."""
        self.is_ready = False
        """Whether it has ever been open."""
        self.failure: ClientError | None = None
        """Why it is closed."""
        self.response_count = 0

        self._owner = owner
        self._loop = environment.loop
        self._now_ms = environment.monotonic_ms
        self._node = node
        self._metrics = metrics
        self._has_metrics = metrics is not NO_METRICS
        self._request_timeout_ms = request_timeout_ms
        self._framer = Framer(client_id)
        self._correlation_id = 0

        self._reader = FrameReader(GREETING_BYTES_MAX, growth=ANSWER_GROWTH)
        self._transport: asyncio.Transport | None = None
        self._culprit: Sent | None = None
        self._lost: asyncio.Future[None] = self._loop.create_future()
        self._beginning = b""  # the first bytes received, until they were a response
        self._room: memoryview | None = None  # where they are being received

        self._sent: deque[Sent] = deque()  # those that await an answer, in its order
        self._unanswered: deque[Sent] = deque()  # acks=0: not written yet, or perhaps still in the transport's buffer
        self._held: deque[tuple[Sent, list[Buffer], bool]] = deque()
        self._outgoing = Outgoing(self._loop, self._finish_written)
        self._is_holding = False
        self._is_held_by_caller = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = NEVER
        self._throttle_timer: asyncio.TimerHandle | None = None

    @property
    def state(self) -> str:
        """In words, for a log."""
        state = "open" if self.is_open else "closed" if self.failure is not None else "not open yet"
        return f"{state}, {self.in_flight} in flight"

    # -- requests --------------------------------------------------------------------------------------------------

    def send(
        self,
        request: Request[R],
        version: int,
        done: Callable[[R | ClientError], None],
        *,
        timeout_ms: float | None = None,
        expects_response: bool = True,
    ) -> None:
        """Queues a request; see the module for `done`. With `expects_response` off, `done(None)` follows the writing.

        Raises ValueError for a request that this version cannot carry.
        """
        if self.is_open:
            self._send(request, version, done, timeout_ms, expects_response=expects_response)
        else:
            self._loop.call_soon(done, self._loss())

    async def ask(self, request: Request[R], *, version: int, timeout_ms: float | None = None) -> R:
        """Sends a request and returns its response. Raises what `done` would get, and ValueError."""
        if not self.is_open:
            raise self._loss()
        return await self._ask(request, version, timeout_ms)

    async def ask_now(self, request: Request[R], version: int) -> R:
        """The same, also before the connection is ready, and past the requests that are kept back."""
        if self.failure is not None or self._transport is None:
            raise self._loss()
        return await self._ask(request, version, None, is_held=False)

    async def _ask(
        self, request: Request[R], version: int, timeout_ms: float | None, *, is_held: bool | None = None
    ) -> R:
        answer: asyncio.Future[R] = self._loop.create_future()

        def done(result: R | ClientError) -> None:
            if not answer.done():
                if isinstance(result, ClientError):
                    answer.set_exception(result.fresh())
                else:
                    answer.set_result(result)

        self._send(request, version, done, timeout_ms, is_held=is_held)
        return await answer

    def _send(
        self,
        request: Request[Any],
        version: int,
        done: Callable[[Any], None],
        timeout_ms: float | None,
        *,
        expects_response: bool = True,
        is_held: bool | None = None,
    ) -> None:
        correlation_id = self._correlation_id
        frame = self._framer.frame(request, version, correlation_id)
        self._correlation_id = correlation_id + 1 if correlation_id < _CORRELATION_ID_MAX else 0
        self.last_used_ms = now_ms = self._now_ms()
        if timeout_ms is None:
            timeout_ms = self._request_timeout_ms
        sent = Sent(request.response_type, version, correlation_id, done, timeout_ms, now_ms)
        self.in_flight += 1
        if self._has_metrics:
            self._count_request(frame)
        if sent.deadline_ms < self._timer_ms:
            self._set_timer(sent.deadline_ms)
        if self._is_holding if is_held is None else is_held:
            self._held.append((sent, frame, expects_response))
        else:
            self._transmit(sent, frame, expects_response)

    def _count_request(self, frame: list[Buffer]) -> None:
        self._metrics.count(REQUEST_TOTAL, 1, self._node)
        self._metrics.count(OUTGOING_BYTE_TOTAL, sum(map(len, frame)), self._node)

    # -- writing ---------------------------------------------------------------------------------------------------

    def _transmit(self, sent: Sent, frame: list[Buffer], expects_response: bool) -> None:
        if expects_response:
            is_idle = not self._sent and not self._outgoing.is_waiting
            self._sent.append(sent)
            if is_idle:
                self._outgoing.write(frame)
                return
        else:
            self._outgoing.watch()
            self._unanswered.append(sent)
        self._outgoing.write_soon(frame)

    def _finish_written(self) -> None:
        written, self._unanswered = self._unanswered, deque()
        for sent in written:
            self._finish(sent, None)

    def pause_writing(self) -> None:
        """Nothing: how much is in flight is for the callers to bound."""

    def resume_writing(self) -> None:
        self._outgoing.resume()

    # -- reading ---------------------------------------------------------------------------------------------------

    def get_buffer(self, sizehint: int) -> memoryview:
        room = self._reader.get_buffer(sizehint)
        if not self.response_count:
            self._room = room
        return room

    def buffer_updated(self, nbytes: int) -> None:
        if self._room is not None:
            self._beginning = (self._beginning + bytes(self._room[:nbytes]))[:16]
            self._room = None
        self.last_used_ms = self._now_ms()
        if self._has_metrics:
            self._metrics.count(INCOMING_BYTE_TOTAL, nbytes, self._node)
        reader = self._reader
        reader.buffer_updated(nbytes)
        try:
            while self.failure is None and (frame := reader.next_frame()) is not None:
                self._answered(frame)
        except MalformedMessage as error:
            self._refuse(str(error))

    def _answered(self, frame: memoryview) -> None:
        if not self._sent:
            raise MalformedMessage("a response that nobody asked for")
        sent = self._sent[0]
        response = response_in(frame, sent)
        self.response_count += 1
        self._sent.popleft()
        throttle_time_ms: int = getattr(response, "throttle_time_ms", 0)
        if throttle_time_ms > 0:
            self._throttle(silence_ms(response.api_key, sent.version, throttle_time_ms))
        if self._has_metrics:
            self._metrics.count(RESPONSE_TOTAL, 1, self._node)
            self._metrics.observe(REQUEST_LATENCY, self._now_ms() - sent.sent_ms, self._node)
        self._finish(sent, response)

    def _refuse(self, why: str) -> None:
        """What came is no answer."""
        error = None if self.response_count else self._owner.explain_bytes(self._beginning)
        culprit = self._sent[0] if self._sent else None
        named = "nothing" if culprit is None else str(culprit)
        self._close(error or MalformedResponse(named, self.broker, why), culprit)

    def _finish(self, sent: Sent, result: Response | ClientError | None) -> None:
        self.in_flight -= 1
        try:
            sent.done(result)
        except Exception:
            logger.exception("what was to be done with the result of %s from %s failed", sent, self.broker)

    # -- deadlines -------------------------------------------------------------------------------------------------

    def _set_timer(self, deadline_ms: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ms = deadline_ms
        self._timer = self._loop.call_at(deadline_ms / 1000.0, self._look_at_deadlines)

    def _look_at_deadlines(self) -> None:
        self._timer, self._timer_ms = None, NEVER
        due_ms = self._now_ms() + TIMER_SLACK_MS
        next_ms = NEVER
        for sent in chain(self._sent, self._unanswered):
            if sent.deadline_ms <= due_ms:
                self._close(RequestTimedOut(str(sent), self.broker, sent.timeout_ms), sent)
                return
            next_ms = min(next_ms, sent.deadline_ms)
        late = [held[0] for held in self._held if held[0].deadline_ms <= due_ms]
        self._held = deque(held for held in self._held if held[0].deadline_ms > due_ms)
        for held in self._held:
            next_ms = min(next_ms, held[0].deadline_ms)
        if next_ms < NEVER:
            self._set_timer(next_ms)
        elif not late:
            self._reader.shrink()  # it has been quiet for a while
        for sent in late:
            self._finish(sent, RequestTimedOut(str(sent), self.broker, sent.timeout_ms))

    # -- keeping requests back -------------------------------------------------------------------------------------

    def _throttle(self, silent_ms: float) -> None:
        if silent_ms <= 0:
            return
        for sent in chain(self._sent, self._unanswered):
            sent.deadline_ms += silent_ms  # the broker answers them after its silence
        until_ms = self._now_ms() + silent_ms
        if until_ms > self.throttled_until_ms:
            self.throttled_until_ms = until_ms
            self._is_holding = True
            if self._throttle_timer is not None:
                self._throttle_timer.cancel()
            self._throttle_timer = self._loop.call_at(until_ms / 1000.0, self._unthrottle)

    def _unthrottle(self) -> None:
        self._throttle_timer = None
        if not self._is_held_by_caller:
            self._send_held()

    async def unthrottled(self) -> None:
        """Returns when no quota silences the connection any more, or when it is lost."""
        while not self._lost.done() and (silent_ms := self.throttled_until_ms - self._now_ms()) > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(self._lost), silent_ms / 1000.0)

    def hold(self) -> None:
        """Keeps requests back from now on."""
        self._is_holding = self._is_held_by_caller = True

    def release(self) -> None:
        """Ends `hold`."""
        self._is_held_by_caller = False
        if self._throttle_timer is None:
            self._send_held()

    def _send_held(self) -> None:
        self._is_holding = False
        now_ms = self._now_ms()
        held, self._held = self._held, deque()
        for sent, frame, expects_response in held:
            sent.restart(now_ms)
            self._transmit(sent, frame, expects_response)
            if sent.deadline_ms < self._timer_ms:
                self._set_timer(sent.deadline_ms)

    # -- beginning and end -----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._outgoing.begin(self._transport)
        if self.failure is not None:  # closed before it came about
            self._transport.abort()

    def made_ready(self) -> None:
        """The connection may be used, and large responses may come."""
        assert self.failure is None
        self.is_open = self.is_ready = True
        self._reader.size_bytes_max = RESPONSE_BYTES_MAX

    def close(self, why: ClientError | None = None) -> None:
        """Ends it at once; what is in flight fails. `why` None: it is not needed any more."""
        self._close(why or ConnectionFailed(self.broker, "it was closed by this client"), None)

    async def closed(self) -> None:
        """Returns when the socket is closed and every request has ended."""
        await asyncio.shield(self._lost)

    def _close(self, why: ClientError, culprit: Sent | None) -> None:
        if self.failure is not None:
            return
        self.is_open = False
        self.failure, self._culprit = why, culprit
        # Never `close`: it would wait for a peer that does not read, and for TLS's farewell.
        if self._transport is not None:
            self._transport.abort()
        else:
            self.connection_lost(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._lost.done():
            return
        if self.failure is None:
            self.failure = self._owner.explain_loss(exc) or ConnectionFailed(self.broker, _cause(exc))
        self.is_open = False
        self._transport = None
        self._outgoing.end()
        for timer in (self._timer, self._throttle_timer):
            if timer is not None:
                timer.cancel()
        self._owner.was_lost()
        self._fail_all(self.failure)
        self._lost.set_result(None)
        self._owner.has_ended(self.failure)

    def _fail_all(self, failure: ClientError) -> None:
        others = failure
        if self.is_ready and (self._culprit is not None or not failure.retriable):
            others = ConnectionFailed(self.broker, f"it was closed, since {failure.message}")
        ending = [*self._sent, *self._unanswered, *(sent for sent, _, _ in self._held)]
        for queue in (self._sent, self._unanswered, self._held):
            queue.clear()
        for sent in ending:
            self._finish(sent, failure if sent is self._culprit else others)

    def _loss(self) -> ClientError:
        """For who comes too late, or too early."""
        if self.failure is None:
            return ConnectionFailed(self.broker, "it is not open yet")
        return ConnectionFailed(self.broker, f"it is closed, since {self.failure.message}")


def _cause(exc: Exception | None) -> str:
    if exc is None:
        return "it was closed by the other side"
    strerror = exc.strerror if isinstance(exc, OSError) else None
    return strerror or str(exc) or type(exc).__name__
